"""The real kubelet's Topology Manager, real VFs: what the container saw, and what PodResources
says."""

import scenarios
from scenarios import GPU, VF, container
from bed import check, equal, scenario
from policies import MESSAGE, REASON, STORIES
from real import cluster


def nodes_of(c, devices):
    return {c.machine.numa[d] for d in devices}


def check_pod(c, name, gpus, vfs):
    """All of bed A's checks, and that every node opens: here a driver is behind it. Returns (its
    GPUs, its VFs)."""
    mine = scenarios.check_container(c, name, "main", gpus, vfs)
    opened = c.report(name, "main").opened
    equal({node: said
           for node, said in opened.items()
           if said}, {}, "nodes that do not open in the container")
    return mine


def check_choice(c, name, mine, free):
    """On the nodes that the kubelet chose, no better VFs were free."""
    nodes = nodes_of(c, [d for devices in mine for d in devices])
    if c.order(name) == [GPU, VF]:
        scenarios.check_optimal(c, *mine, {vf for vf in free if c.machine.numa[vf] in nodes})
    return len(nodes)


def tell(c, policy):
    """The story of this policy, a pod a step."""
    told = []
    for i, step in enumerate(STORIES[policy]):
        pod, what = container("main", step.gpus,
                              step.vfs), f"{policy}, {step.gpus}+{step.vfs} ({step.shows})"
        free = c.free()
        if not step.nodes:
            said = c.failed(c.new(pod))
            equal(said, f"{REASON}: {MESSAGE}", f"{what}: the words of the refusal")
            told.append(f"{step.gpus}+{step.vfs} refused")
            continue
        name = c.run(pod)
        equal(check_choice(c, name, check_pod(c, name, step.gpus, step.vfs), free), step.nodes,
              f"{what}: NUMA nodes")
        told.append(f"{step.gpus}+{step.vfs} on {step.nodes}")
        if not step.stays:
            c.end(name)
    return ", ".join(told)


@scenario
def restricted():
    """real kubelet, restricted: what has to be together is, what cannot be is refused"""
    with cluster(policy="restricted") as c:
        return tell(c, "restricted")


@scenario
def single_numa_node():
    """real kubelet, single-numa-node: one node for every pod, or refused"""
    with cluster(policy="single-numa-node") as c:
        return tell(c, "single-numa-node")


def on_one_switch(c, gpus, vfs, **more):
    name = c.run(container("main", gpus, vfs, **more))
    mine = check_pod(c, name, gpus, vfs)
    equal(len(nodes_of(c, mine[0] + mine[1])), 1, f"NUMA nodes of {mine}")
    pairs = scenarios.assignment(c.machine, *mine)[1]
    equal({path
           for _, _, path in pairs}, {"PIX"},
          f"{name}, {' before '.join(c.order(name))}: paths of {pairs}")
    return name


@scenario
def gpus_first_and_vfs_first():
    """real kubelet, single-numa-node: in both orders the VFs are behind the GPUs' switch"""
    firsts = []
    with cluster(policy="single-numa-node") as c:
        while len(set(firsts)) < 2:
            check(len(firsts) < 16, f"only one order in {len(firsts)} pods: {set(firsts)}")
            pods = [on_one_switch(c, 1, 1), on_one_switch(c, 2, 2, vfs_first=True)]
            firsts += [c.order(pod)[0] for pod in pods]
            c.end(*pods)
    return f"{firsts.count(GPU)} of {len(firsts)} GPU-first"


@scenario
def scenarios_of_the_other_bed():
    """real kubelet: two containers, a container that crashes, a VF that sickens in a pod, as in the
    other bed"""
    words = []
    with cluster(policy="single-numa-node") as c:
        for run in (scenarios.two_containers_of_a_pod,
                    scenarios.a_container_that_crashes_keeps_its_vfs,
                    scenarios.a_vf_that_sickens_stays_with_its_pod):
            words.append(run(c))
            scenarios.clean(c)
    return "; ".join(filter(None, words))


@scenario
def the_kubelet_restarts():
    """real kubelet, single-numa-node: it restarts, and nothing that runs is touched"""
    with cluster(policy="single-numa-node") as c:
        name = on_one_switch(c, 2, 2)
        ids, held, took = c.running(name), c.held(), []
        for sig in ("SIGTERM", "SIGKILL"):
            c.note_shown(name)
            took.append(c.kubelet_restart(sig))
            scenarios.until(lambda: c.running(name) == ids, "the pod to run as before the restart",
                            failure=AssertionError)
            equal(c.held(), held, "devices after the restart")
        c.wait_until_shown(name)
        on_one_switch(c, 2, 2)
        equal(c.running(name), ids, "containers after the restart")
    return "registered again " + " and ".join(f"{ms:.0f}"
                                              for ms in took) + " ms after kubelet.sock appeared"
