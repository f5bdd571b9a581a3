"""Who holds which VF, on a real kernel: open devices, network namespaces, a restart in between."""

import os
import subprocess

from bed import VF, LiveNode, check, equal, rdma_of_vfs, scenario, shell
from events import ALL, mend
from harness import Process, until, vfs_of


def start_pod(node):
    """Pod p with one VF, admitted and started: the VF."""
    vf, = vfs_of(node.admit("p", 1, 1))
    node.kubelet.ask("prestart p")
    return vf


@scenario
def an_open_device_drains():
    """a VF that a process still has open when its pod is gone is offered to nobody until it is
    closed"""
    mend()
    with LiveNode() as node:
        node.start_all(vfs=ALL)
        vf = start_pod(node)
        rdma = rdma_of_vfs()[vf]
        # a container: process and network namespaces of its own
        user = Process([
            "unshare", "--pid", "--net", "--fork", "--kill-child", "ibv_rc_pingpong", "-d", rdma,
            "-g", "0"
        ], node.path("user.log"), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        node.processes.append(user)
        until(
            lambda: shell(f"rdma -j resource show {rdma} | grep -o '\"ctx\":[0-9]*' || true").strip(
            ) == '"ctx":1', f"{rdma} is open", 40)
        node.kubelet.ask("remove p")
        until(lambda: node.unhealthy() == {vf}, "it drains", 40)
        why = f'reason="its RDMA device {rdma} is open (1 context)"'
        check(
            any(f"still in use and its holder is gone: it is withheld until it is idle vf={vf} " in
                line and " pod=default/p " in line and why in line
                for line in node.daemon.stderr().splitlines()), "it says why")
        user.end(9)
        until(lambda: not node.unhealthy(), "it is free again", 40)
        return f"{vf}, {rdma}"


@scenario
def a_restart_knows_what_is_out_of_sight():
    """railmated starts anew while a VF is in a container's network: it stays listed, drains, and
    comes back"""
    mend()
    with LiveNode() as node:
        node.start_all(vfs=ALL)
        vf = start_pod(node)
        rdma = rdma_of_vfs()[vf]
        netdev, = os.listdir(f"/sys/bus/pci/devices/{vf}/net")
        until(lambda: f'"netdev":"{netdev}"' in shell(f"cat {node.state_dir}/ledger.json"),
              "the hold is on disk")
        shell(f"ip netns add pod; ip link set {netdev} netns pod")
        equal(node.daemon.end(), 0, "exit status")
        node.kubelet.wait(VF, "=0")
        node.daemon = node.start_daemon()
        node.kubelet.wait(VF, f"={ALL}")
        equal(node.unhealthy(), set(), "unhealthy VFs")
        node.kubelet.ask("remove p")
        until(lambda: node.unhealthy() == {vf}, "it drains", 40)
        shell("ip netns delete pod")
        until(lambda: os.path.exists(f"/sys/class/net/{netdev}"), "the netdev is back")
        shell(f"ip link set {netdev} up; rdma link add {rdma} type rxe netdev {netdev}")
        until(lambda: not node.unhealthy(), "it is free again", 40)
        return f"{vf}, {netdev}"
