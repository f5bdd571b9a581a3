"""
What must not happen when something dies, comes back or lies, on a real kubelet: a VF in two live
containers, a container without its VFs, something left over. Beside what scenarios.py and late.py
ask of a cluster: relay_pod_resources(), relay_plugins(), kubelet_dies(), kubelet_comes_back(),
move_away(VFs), explain_inside(pod). Standard library only.
"""
import contextlib
import time

from late import all_slots, check_cdi, check_in_order, check_late, is_newest, late
from scenarios import LIMIT, VF, check, check_container, container, equal, scenario, until

DEAF = "trap '' TERM; while :; do sleep 1; done\n"
DEADLINES = (
    4, 8, 16
)  # seconds a pod may take, one try each to make the kubelet forget: its end has to come at the right moment
GRACES = (
    5, 12, 25
)  # seconds that the kubelet gives a deaf container; the longer ones are for a busy machine


class TooQuick(Exception):
    """The old container ended before there was something to see."""


def with_more_grace(attempt):
    """attempt(grace) once, and again if that was too short a time."""
    for grace in GRACES[:-1]:
        with contextlib.suppress(TooQuick):
            return attempt(grace)
    return attempt(GRACES[-1])


def vfs_of(c, name):
    """Of a container that runs, by what it printed."""
    return set(c.report(name, "main").env["PCIDEVICE_RDMA_VF"].split(","))


def waiting(c, name):
    """Why the container does not run, as the kubelet tells it."""
    for s in (c.status(name) or {}).get("containerStatuses", []):
        return s["state"].get("waiting", {}).get("message")
    return None


def refused(c, name):
    status = c.status(name) or {}
    return status.get("phase") == "Failed" and status.get("message")


@contextlib.contextmanager
def railmated_with(c, *options):
    """Another railmated for a while."""
    c.stop_railmate(c.newest_railmate())
    c.start_railmate(*options)
    c.wait_registered()
    try:
        yield
    finally:
        c.stop_railmate(c.newest_railmate())
        c.start_railmate()
        c.wait_registered()


# --- deleted by force ---

def forced(c, hers, mine, moved):
    """
    A pod with `hers` VFs is gone for the kubelet, its container runs on; the next one needs some of
    them. moved: the VFs' devices are in the pod's network, as a CNI plugin does it; else only its
    cgroup shows that it runs.
    """
    return with_more_grace(lambda grace: forced_once(c, hers, mine, moved, grace))


def forced_once(c, hers, mine, moved, grace):
    until(lambda: len(c.allocatable()[VF]) == len(c.vf), "the VFs of earlier pods to be free")
    old = c.new(container("main", 0, hers, then=DEAF), grace=grace)
    c.wait_running(old, ["main"])
    process, taken = c.running(old)["main"], vfs_of(c, old)
    bring_back = c.move_away(sorted(taken)) if moved else lambda: None
    try:
        c.backend.delete(old)
        until(lambda: old not in c.held(), "the kubelet to forget the pod")
        new = c.new(container("main", 0, mine))
        said = None
        while c.runs(process):
            check(not c.running(new), "a container runs with VFs of another one that still runs")
            said = waiting(c, new) or refused(c, new) or said
            time.sleep(0.2)
    finally:
        bring_back()
    if not said:
        c.end(*c.live)
        raise TooQuick("no word in the pod's status while it waits")
    return new, said


def runs_in_the_end(c, new):
    """Refused, if railmated had told the kubelet in time that the VFs are not there; else it
    waits."""
    if refused(c, new):
        c.end(new)
        until(lambda: len(c.allocatable()[VF]) == len(c.vf), "the VFs to be free")
        new = c.new(container("main", 0, 8))
    c.wait_running(new, ["main"])
    return new


@scenario(where=is_newest)
def an_early_pod_waits_for_containers_that_only_their_cgroup_shows(c):
    new, said = forced(c, 60, 8, moved=False)
    runs_in_the_end(c, new)
    return said


@late(where=is_newest)
def a_late_pod_waits_for_containers_that_only_their_cgroup_shows(c):
    new, said = forced(c, 60, 8, moved=False)
    check_late(c, runs_in_the_end(c, new), "main", 0, 8)
    return said


@late(where=is_newest)
def a_late_pod_waits_for_containers_that_live_on(c):
    new, said = forced(c, 60, 8, moved=True)
    # On a busy machine the last word may be that of a slot whose container is not created yet.
    check(VF in said or VF.replace("/", "_") in said,
          f"the text does not say what is missing: {said}")
    check_late(c, runs_in_the_end(c, new), "main", 0, 8)
    until(lambda: c.cdi_slots() == all_slots(c), "the CDI specs of the pod that is gone to go")
    return said


@late(where=is_newest)
def a_late_pod_gets_other_vfs_than_those_of_containers_that_live_on(c):
    with_more_grace(lambda grace: gets_others(c, grace))


def gets_others(c, grace):
    old = c.new(container("main", 1, 4, then=DEAF), grace=grace)
    c.wait_running(old, ["main"])
    process, taken = c.running(old)["main"], vfs_of(c, old)
    bring_back = c.move_away(sorted(taken))
    try:
        c.backend.delete(old)
        until(lambda: old not in c.held(), "the kubelet to forget the pod")
        new = c.run(container("main", 1, 4))
        in_time = c.runs(process)
        check(not in_time or not taken & vfs_of(c, new), "a VF is in two live containers")
        until(lambda: not c.runs(process), "the old container to end", LIMIT + grace)
    finally:
        bring_back()
    if not in_time:
        c.end(*c.live)
        raise TooQuick("the old container ended before the new one ran")
    check_late(c, new, "main", 1, 4)


# --- given away twice ---

def lose_reservation(c, plugins, deadline):
    """
    Makes the kubelet forget that it gave a VF away (docs/design/kubelet.md §2.2): a pod becomes
    inactive and somebody asks for a List while railmated has not answered Allocate. Returns the pod
    that has the VF; None: the other's time was up too soon.
    """
    dying = c.new(container("main", 0, 1, then=DEAF), grace=3, deadline=deadline)
    if until(lambda: refused(c, dying) or "main" in c.running(dying),
             "the pod to run, or its time to be up") is not True:
        c.end(dying)
        return None
    c.report(dying, "main")
    until(lambda: f'pod="default/{c.name_of(dying)}"' in c.killings(),
          "the kubelet to end a pod whose time is up")
    gate = plugins.newest().calls
    gate.close(pass_first=1)  # GetPreferredAllocation
    name = c.new(container("main", 0, 1))
    until(gate.somebody.is_set, "Allocate")
    until(lambda: dying not in c.held(), "a List without the other pod")
    gate.open.set()
    c.wait_running(name, ["main"])
    return name


@contextlib.contextmanager
def between(c):
    plugins, *options = c.relay_plugins()
    try:
        with railmated_with(c, *options):
            yield plugins
    finally:
        plugins.close()


def given_twice(c, look):
    """The kubelet offers the VF of a container that runs: it stays where it is, and the next pod
    gets another one."""
    provoked = False
    with between(c) as plugins:
        for deadline in DEADLINES:
            first = lose_reservation(c, plugins, deadline)
            if not first:
                continue
            lost = c.held()[first]["main"][VF][0]
            calls = plugins.newest().calls
            calls.record()
            second = c.run(container("main", 0, 1))
            provoked = lost.encode() in calls.recorded
            if provoked:
                break
            c.end(first, second)
        check(provoked, "not provoked: the kubelet did not offer the VF again")
        check(not vfs_of(c, first) & vfs_of(c, second), "a VF is in two live containers")
        check(lost not in c.held()[second]["main"][VF],
              "the second pod has the device of the first one")
        for name in (first, second):
            look(c, name)
        c.end(first, second)


@scenario(where=is_newest)
def the_kubelet_gives_a_vf_away_twice_early(c):
    return given_twice(c, lambda c, name: check_container(c, name, "main", 0, 1))


@late(where=is_newest)
def the_kubelet_gives_a_slot_away_twice(c):
    return given_twice(c, lambda c, name: check_late(c, name, "main", 0, 1))


# --- killed ---

@contextlib.contextmanager
def dead_kubelet(c):
    c.kubelet_dies()
    try:
        yield
    finally:
        c.kubelet_comes_back()


def kubelet_dies_at(c, gate, bound):
    """
    While railmated waits at this gate for PodResources; bound: railmated has all it needs. False:
    the new kubelet refused the pod, as it does when it comes to it before the plugins of GPUs and
    VFs have registered.
    """
    gate.close()
    name = c.new(container("main", 2, 2))
    until(gate.somebody.is_set, "PodResources to be asked in PreStartContainer")
    with dead_kubelet(c):
        gate.open.set()
        if bound:
            until(lambda: len(c.cdi_slots()) == 2, "the binding")
            bound = c.explain(name)[0]["decision"]["chosen"]
    said = until(lambda: refused(c, name) or "main" in c.running(name),
                 "the pod to run, or to be refused")
    if said is True:
        _, vfs, _ = check_late(c, name, "main", 2, 2)
        check(not bound or bound == vfs, f"bound to {bound}, runs with {vfs}")
        check_cdi(c)
    else:
        check("no healthy devices" in said, f"the pod was refused: {said}")
    c.end(name)
    until(lambda: not c.cdi_slots(), "the CDI specs to go")
    return said is True


@late(where=is_newest)
def the_kubelet_dies_while_a_container_is_bound(c):
    """Before railmated knows which container starts, and when it has bound and nobody hears of
    it."""
    until(lambda: not c.cdi_slots(), "the CDI specs of others to go")
    relay, *options = c.relay_pod_resources()
    tries = []
    try:
        with railmated_with(c, *options):
            for gate, bound in ((relay.calls, False), (relay.answers, True)):
                tries.append(next((n for n in range(5) if kubelet_dies_at(c, gate, bound)), None))
    finally:
        relay.close()
    check(None not in tries, "the new kubelet refused the pod each time")
    return f"{sum(tries)} pods refused by a kubelet that came to them before the plugins registered"


@late(where=is_newest)
def railmated_is_killed_while_pods_come_and_go(c):
    """Those that run keep their VFs, those that wait get theirs from the next one; explain tells in
    between."""
    old = {c.run(container("main", 1, 1)): (1, 1) for _ in range(2)}
    had = {name: (c.running(name), vfs_of(c, name)) for name in old}
    new = {c.new(container("main", gpus, gpus)): (gpus, gpus) for gpus in (1, 2, 2)}
    until(lambda: set(new) <= set(c.held()), "the pods to be admitted")
    status = c.stop_railmate(c.newest_railmate(), "SIGKILL")
    check(status, "railmated was killed and says that all is well")
    name = next(iter(old))
    told = c.explain_inside(name)
    check(all(vf in told for vf in had[name][1]),
          f"the ledger does not tell the VF of {name}: {told}")
    c.start_railmate()
    c.wait_registered()
    for name in new:
        c.wait_running(name, ["main"])
    for name, before in had.items():
        equal((c.running(name), vfs_of(c, name)), before, f"container and VFs of {name}")
    free = set(c.vf) - set().union(*(vfs for _, vfs in had.values()))
    check_in_order(c, new, free)
    check_cdi(c)
    for name in (*old, *new):
        told = c.explain_inside(name)
        check(all(vf in told for vf in vfs_of(c, name)),
              f"railmated does not tell the VFs of {name}: {told}")
    c.end(*old)
    until(lambda: c.cdi_slots() == all_slots(c), "the CDI specs of deleted pods to go")


# --- a runtime without CDI ---

def no_cdi(c):
    return getattr(c.backend, "runtime", "").startswith("1.6.")


def refusal(c):
    """What railmated says instead of registering its pool."""
    name = c.newest_railmate()
    said = until(
        lambda: [line for line in c.railmate_log(name).splitlines() if "not registered" in line],
        "a word about CDI")
    time.sleep(1)
    check(not c.allocatable().get(VF), "slots are on offer although the runtime cannot do CDI")
    return said[0].split("kubelet: ", 1)[-1]


@scenario(where=no_cdi)
def a_late_pool_where_there_is_no_cdi(c):
    """
    railmated asks the runtime, and the resource is not there; so it is with --cdi=off. What that is
    good for: told by --cdi=on that it knows better, it serves the pool, and the container has its
    slots' names and no VF.
    """
    c.want_binding("early")
    c.stop_railmate(c.newest_railmate())
    c.set_pool("late")
    c.start_railmate()
    said = refusal(c)
    check(f"containerd {c.backend.runtime}" in said and "needs CDI" in said,
          f"the sentence does not help: {said}")
    c.stop_railmate(c.newest_railmate())
    c.start_railmate("--cdi=off")
    told = refusal(c)
    check("--cdi=off" in told and "needs CDI" in told, f"the sentence does not help: {told}")
    with railmated_with(c, "--cdi=on"):
        name = c.run(container("main", 1, 1))
        report = c.report(name, "main")
        check("RAILMATE_RDMA_VF_SLOTS" in report.env, "the container does not know its slots")
        check(not report.devices and "NCCL_IB_HCA" not in report.env,
              "this runtime can do CDI after all")
        c.end(name)
        c.set_pool("early")
    check_container(c, c.run(container("main", 1, 1)), "main", 1, 1)
    return said
