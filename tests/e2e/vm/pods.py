"""Pods on the live machine, in both layouts of RDMA devices: soft (rxe) and as hardware has it."""

import os

import harness
from bed import AMD, NVIDIA, PCI, LiveNode, check, check_answer, equal, scenario, shell
from policies import MESSAGE, REASON, STORIES

VIEW = "/run/view"


def serve_pods(node):
    """1, 2 and 4 GPUs, then 1 and 1 beside each other; every choice the best that was free."""
    machine = node.topo()
    classes = []
    for sizes in ([(1, 1), (1, 2)], [(2, 2), (2, 1)], [(4, 4)], [(4, 2)], [(2, 4), (1, 1)]):
        free = node.listed() - node.unhealthy()
        for i, (gpus, vfs) in enumerate(sizes):
            admission = node.admit_best(machine, free, f"p{gpus}-{vfs}-{i}", gpus, vfs)
            check_answer(admission)
            classes.append(f"{gpus}+{vfs}")
        for i, (gpus, vfs) in enumerate(sizes):
            node.kubelet.ask(f"remove p{gpus}-{vfs}-{i}")
    return "GPUs+VFs " + " ".join(classes)


@scenario
def pods_on_soft_rdma():
    """GPU-first pods get the closest VFs, their nodes and names: rxe as it is"""
    with LiveNode() as node:
        node.start_all(vfs=10)
        return serve_pods(node)


@scenario
def pods_under_numa_policies():
    """restricted and single-numa-node in the fake kubelet: the same as in the real one"""
    words = []
    for policy, steps in STORIES.items():
        with LiveNode() as node:
            node.start_all("--policy", policy, vfs=10)
            tell(node, node.topo(), policy, steps)
        words.append(policy)
    return ", ".join(words)


def tell(node, machine, policy, steps):
    """As numa.py does to the real kubelet, in both orders."""
    for i, step in enumerate(steps):
        what, name = f"{policy}, {step.gpus}+{step.vfs} ({step.shows})", f"p{i}"
        admission = node.admit(name, step.gpus, step.vfs, order=("gpu-first", "vf-first")[i % 2])
        if not step.nodes:
            equal(admission["event"], "rejected", what)
            equal((admission["reason"], admission["message"]), (REASON, MESSAGE), what)
            continue
        devices = harness.gpus_of(machine, admission, resource=AMD) + harness.vfs_of(admission)
        equal(len({machine.numa[d]
                   for d in devices}), step.nodes, f"{what}: NUMA nodes of {devices}")
        if not step.stays:
            node.kubelet.ask(f"remove {name}")


def make_view():
    """Once: /sys with the soft devices where hardware has them, and the cards are NVIDIA's."""
    if os.path.ismount(f"{VIEW}/sys"):
        return
    shell(
        f"mkdir -p {VIEW}/proc; mount --bind /proc {VIEW}/proc;"
        f"for g in 24 25 64 65; do pose_as_h100 {VIEW}/sys 0000:$g:00.0; done; hardware_view {VIEW}/sys"
    )


def hardware_layout(machine):
    for v in machine.topo["vfs"]:
        if v["rdma"]:
            folder = f"{VIEW}{PCI}/{v['pci']}/infiniband/{v['rdma']}"
            check(os.path.isdir(folder), f"{folder} is not there")
    equal([g["vendor"] for g in machine.topo["gpus"]], ["10de"] * 4, "vendors")


@scenario
def pods_on_hardware_layout_below_a_root():
    """the same with the layout of hardware RDMA and H100s, below --root"""
    make_view()
    with LiveNode(root=VIEW, gpu=NVIDIA) as node:
        node.start_all(vfs=10)
        hardware_layout(node.topo())
        return serve_pods(node)


@scenario
def pods_on_hardware_layout_as_the_live_root():
    """the same as the live root: the view is mounted over /sys in the daemon's mount namespace"""
    make_view()
    inside = [
        "unshare", "-m", "/bin/sh", "-c", f"mount --rbind {VIEW}/sys /sys && exec \"$@\"", "sh"
    ]
    with LiveNode(gpu=NVIDIA, inside=inside) as node:
        node.start_all(vfs=10)
        hardware_layout(node.topo())
        return serve_pods(node)
