"""
The real kubelet and runtime, real VFs: what a pool that binds late gives to containers, and what
either binding makes of RDMA devices that are made again under another number, move, or stay open.
All under single-numa-node: a change of the policy costs a start of the kubelet.
"""

import json
import os
import re
import subprocess

import late
import scenarios
from bed import PCI, check, equal, output, rdma_of_vfs, scenario, shell, verbs_nodes
from harness import Process
from policies import MESSAGE, REASON
from real import LOGS, cluster
from scenarios import GPU, VF, container, until

POLICY = "single-numa-node"
LATE = {
    "resourceList": [{
        "resourcePrefix": "rdma", "resourceName": "vf", "selectors": {"isRdma": True},
        "railmate": {"binding": "late", "network": "host"}
    }]
}
ALL = 10  # VFs with an RDMA device
GATE = container(
    "gate")  # an init container: the pod is admitted, and does not start before it is let through


# --- RDMA devices that change ---

def numbers():
    """RDMA device → its verbs node's name, as the kernel has it now, in any network namespace."""
    return {rdma: os.path.basename(path) for rdma, path in verbs_nodes().items()}


def look_again(c):
    """What scenarios compare with is what is true now; a device that is in a namespace has kept its
    name."""
    now = numbers()
    for vf in c.vf.values():
        if vf["rdma"]:
            vf["uverbs"] = now.get(vf["rdma"])


def make(rdma, netns=None):
    """On the VF whose number is in its name, which may be in a namespace."""
    netdev = rdma.replace("rxe", "vf")
    inside = f"ip netns exec {netns} " if netns else ""
    shell(f"{inside}ip link set {netdev} up; {inside}rdma link add {rdma} type rxe netdev {netdev}")


def swap_numbers(one, other, netns=None):
    """Both are made again, each with the number that the other one had; `one` in that namespace. A
    new device gets the lowest number."""
    before = numbers()
    shell(f"rdma link delete {other}")
    if netns:
        shell(f"ip link set {one.replace('rxe', 'vf')} netns {netns}")
        until(lambda: one not in numbers(), f"{one} to end with the move of its interface")
    else:
        shell(f"rdma link delete {one}")
    added = [(one, netns), (other, None)]
    for rdma, where in sorted(added, key=lambda d: -int(before[d[0]].removeprefix("uverbs"))):
        make(rdma, where)
    now = numbers()
    equal((now[one], now[other]), (before[other], before[one]),
          f"numbers of {one} and {other}, swapped")


def rotate_numbers():
    """Of the VFs on each switch, everyone gets the number that another one had."""
    before = numbers()
    for bus in ("23", "63"):
        mine = sorted((rdma for rdma in before if rdma.startswith(f"rxe{bus}_")),
                      key=lambda r: int(before[r].removeprefix("uverbs")))
        shell("".join(f"rdma link delete {rdma};" for rdma in mine))
        for rdma in mine[1:] + mine[:1]:
            make(rdma)
    now = numbers()
    equal({rdma
           for rdma in now
           if now[rdma] == before[rdma]}, {"rxe67_0", "rxe67_1"},
          "RDMA devices that kept their number")


# --- pods ---

def open_nodes(c, name, main="main", instance=0):
    """Every node opens in the container: a driver is behind it."""
    opened = c.report(name, main, instance).opened
    equal({node: said
           for node, said in opened.items()
           if said}, {}, f"nodes that do not open in {name}/{main}")


def check_late(c, name, main="main", gpus=1, vfs=1, instance=0):
    """Its VFs are behind its GPUs' switch, and the nodes are theirs. Returns the VFs."""
    look_again(c)
    mine = late.check_late(c, name, main, gpus, vfs, instance)
    open_nodes(c, name, main, instance)
    check_near(c, name, *mine[:2])
    return mine[1]


def check_near(c, name, gpus, vfs):
    pairs = scenarios.assignment(c.machine, gpus, vfs)[1]
    equal({path for _, _, path in pairs}, {"PIX"}, f"paths of {name}: {pairs}")


def wait_at_gate(c, name):
    """The id of the init container: the pod is admitted, and what runs in it will hear a signal."""
    c.report(name, "gate")
    (gate, ) = until(
        lambda: [
            s for s in (c.status(name) or {}).get("initContainerStatuses", [])
            if "running" in s["state"]
        ], f"{name} to be known to wait at its gate")
    return gate["containerID"].split("//")[1]


def let_through(c, gate):
    c.ctr("-n", "k8s.io", "tasks", "kill", "--signal", "SIGTERM", gate)


def crash(c, name, main):
    c.ctr("-n", "k8s.io", "tasks", "kill", "--signal", "SIGKILL",
          c.running(name)[main].split("//")[1])


def offered(c, count, why):
    until(lambda: len(c.allocatable().get(VF, [])) == count,
          f"{count} devices to be on offer {why}")


def waits_for(c, name):
    """Why the main container does not start."""
    def said():
        for status in (c.status(name) or {}).get("containerStatuses", []):
            check("running" not in status["state"],
                  f"{name} runs, with nodes that are not all its own")
            waiting = status["state"].get("waiting", {})
            if "delete the pod" in waiting.get("message", ""):
                return waiting
        return None
    return until(said, f"{name} to be told why it does not start")


@scenario
def early_nodes_that_changed_their_owner():
    """real kubelet, early: a verbs node that became another VF's between admission and start is not
    handed out; a new pod is right"""
    with cluster(policy=POLICY) as c:
        name = c.new(container("main", 1, 5), init=[GATE])
        gate = wait_at_gate(c, name)
        vfs, before = c.held()[name]["main"][VF], numbers()
        mine = c.vf[vfs[0]]["rdma"]
        (other, ) = [
            v["rdma"] for v in c.vf.values() if v["rdma"]
            and c.machine.numa[v["pci"]] == c.machine.numa[vfs[0]] and v["pci"] not in vfs
        ]
        swap_numbers(mine, other)
        equal(numbers()[other], before[mine],
              "the owner of the node that the container would have had")
        offered(c, ALL, "after the change")
        let_through(c, gate)
        waiting = waits_for(c, name)
        for words in (vfs[0], f"/dev/infiniband/{before[other]} now",
                      f"given /dev/infiniband/{before[mine]}, which is that of {other}"):
            check(words in waiting["message"],
                  f"'{words}' is not in what the pod's status says: {waiting['message']}")
        c.end(name)
        look_again(c)
        name = c.run(container("main", 1, 6))
        scenarios.check_container(c, name, "main", 1, 6)
        open_nodes(c, name)
        said = re.sub(r"^.*desc = ", "", waiting["message"])
        return f"{waiting['reason']}: {said}"


@scenario
def a_dozen_late_pods():
    """real kubelet, late, single-numa-node: twelve pods of 1 and 2 GPUs, in both orders: one node,
    all PIX, no spec missing or left over"""
    firsts = []
    with cluster(POLICY, LATE) as c:
        before = late.unresolved(c)
        everything = {v["pci"] for v in c.vf.values() if v["rdma"]}
        equal(len(everything), ALL, "VFs with an RDMA device")
        offered(c, ALL, "when the pods of the scenario before are forgotten")
        for gpus, vfs in ((3, 3), (1, 7)):
            equal(c.failed(c.new(container("main", gpus, vfs))), f"{REASON}: {MESSAGE}",
                  f"{gpus}+{vfs}: the words of the refusal")
        for sizes in ([1, 1, 1, 1], [2, 2], [1, 1, 1, 1], [2, 2]):
            firsts += batch_of(c, sizes, everything)
        until(lambda: not c.cdi_slots(), "the CDI specs of deleted pods to go")
        equal(late.unresolved(c) - before, 0, "containers whose CDI devices were not there")
    return f"{firsts.count(GPU)} of {len(firsts)} GPU-first"


def batch_of(c, sizes, everything):
    """Pods of so many GPUs and VFs, all at once, every other one with its VFs first; which resource
    the kubelet allocated first."""
    batch = {c.new(container("main", n, n, vfs_first=i % 2)): (n, n) for i, n in enumerate(sizes)}
    for name in batch:
        c.wait_running(name, ["main"])
    chosen, held = late.check_in_order(c, batch, set(everything)), c.held()
    for name, vfs in chosen.items():
        check_together(c, name, held[name]["main"], vfs)
    late.check_cdi(c)
    firsts = [c.order(name)[0] for name in batch]
    c.end(*batch)
    return firsts


def check_together(c, name, held, vfs):
    """Behind one switch each pair, and all on the NUMA node that the slots tell."""
    gpus = [c.machine.gpu(g) for g in held[GPU]]
    nodes = {int(re.search(r"-n(\d+)-\d+$", slot)[1])
             for slot in held[VF]} | {c.machine.numa[d]
                                      for d in gpus + vfs}
    equal(len(nodes), 1, f"NUMA nodes of the slots, VFs and GPUs of {name}")
    check_near(c, name, gpus, vfs)
    open_nodes(c, name)


@scenario
def late_vfs_that_change():
    """real kubelet, late: nodes that change before the start; a VF in a namespace, with railmated
    started anew; a VF without its driver"""
    with cluster(POLICY, LATE) as c:
        name = c.new(container("left", 1, 1), container("right", 1, 1), init=[GATE])
        gate = wait_at_gate(c, name)
        rotate_numbers()
        offered(c, ALL, "after the change")
        let_through(c, gate)
        c.wait_running(name, ["left", "right"])
        (left,), (right,) = check_late(c, name, "left"), check_late(c, name, "right")
        shell("ip netns add pod")
        try:
            words = [moves(c, name, left), loses_its_driver(c, name, right)]
            late.check_cdi(c)
            c.end(name)
            offered(c, ALL - 1, f"while {left} is in a namespace that nobody's pod has")
        finally:
            shell("ip netns delete pod")
            until(lambda: os.path.exists(f"/sys/class/net/{netdev_of(c, left)}"),
                  "the interface to come back")
            make(c.vf[left]["rdma"])
        offered(c, ALL, "when it is back")
        equal(c.cdi_slots(), [], "CDI specs")
    return "; ".join(words)


def netdev_of(c, vf):
    return c.vf[vf]["rdma"].replace("rxe", "vf")


def moves(c, name, vf):
    """Its interface moves, its RDMA device is made again there with another number, railmated
    starts anew, the container crashes."""
    mine, before = c.vf[vf]["rdma"], numbers()
    swap_numbers(mine, "rxe67_1", netns="pod")
    c.stop_railmate(c.newest_railmate())
    c.start_railmate()
    c.wait_registered()
    offered(c, ALL, "after railmated's restart")
    crash(c, name, "left")
    equal(check_late(c, name, "left", instance=1), [vf], "the VF of a container that crashed")
    return f"{mine} was {before[mine]}, which is rxe67_1's now, the container has {numbers()[mine]}"


def loses_its_driver(c, name, vf):
    undo = c.break_vf(vf)
    try:
        offered(c, ALL - 1, f"while {vf} has no driver")
        crash(c, name, "right")
        (now,) = check_late(c, name, "right", instance=1)
        check(now != vf, f"{vf}, which has no driver, was given again")
    finally:
        undo()
    offered(c, ALL, "when the driver is back")
    return f"{vf} became {now}"


def contexts(rdma):
    """As `rdma resource` counts them."""
    return json.loads(output("rdma", "-j", "resource", "show", rdma))[0].get("ctx", 0)


class User:
    """A process that has the device open, as one that a container left behind."""

    def __init__(self, rdma, port):
        self.process = Process(["ibv_rc_pingpong", "-d", rdma, "-g", "0", "-p",
                                str(port)], str(LOGS / f"user-{port}.log"),
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def end(self):
        self.process.end(9)


@scenario
def a_late_vf_that_is_still_open():
    """real kubelet, late: a VF that processes have open when its pod is gone drains, and is for
    others when they end"""
    with cluster(POLICY, LATE) as c:
        name = c.run(container("main", 1, 1))
        (vf,), gpus = check_late(c, name), c.held()[name]["main"][GPU]
        rdma = rdma_of_vfs()[vf]
        users = [User(rdma, 20001), User(rdma, 20002)]
        try:
            until(lambda: contexts(rdma) == 2, f"{rdma} to be open twice")
            c.end(name)
            offered(c, ALL - 1, f"while {vf} is open")
            until(
                lambda: f"RDMA device {rdma} is open (2 contexts)" in c.railmate_log(
                    c.newest_railmate()), "railmated to say why")
            name = c.run(container("main", 1, 1))
            (other,) = check_late(c, name)
            check(other != vf, f"{vf}, which is open, was given to the next container")
        finally:
            for user in users:
                user.end()
        offered(c, ALL, "when it is closed")
        whose = "of the same GPU" if c.held()[name]["main"][GPU] == gpus else "of another GPU"
        return f"{vf} drained, the next container, {whose}, got {other}"
