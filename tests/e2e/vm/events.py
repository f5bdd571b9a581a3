"""
The hardware changes while railmated runs (without its timer: --rescan 0). For each change: what the
kubelet was told, and how long after the kernel was done. A VF that vanished is never allocated, a
VF in a pod never drops off the list.
"""

import os
import select
import socket
import statistics
import struct
import time

from harness import until
from tries import Late
from bed import (LIMIT, PCI, VF, LiveNode, and_see, check, check_answer, equal, monitor, output,
                 read, scenario, shell, verbs_nodes, vf_address, write)

ALL = 10  # VFs with an RDMA device: four each of the PFs on the switches, two of the third


def mend():
    """The machine as it was at boot, whatever the scenario before left of it."""
    shell(
        "for n in $(ip netns list | cut -d' ' -f1); do ip netns delete $n; done; echo 1 > /sys/bus/pci/rescan"
    )
    for bus, vfs, rdma in (("23", 7, 4), ("63", 7, 4), ("67", 4, 2)):
        pf = f"{PCI}/0000:{bus}:00.0"
        if not os.path.exists(f"/sys/class/net/pf{bus}") or read(f"{pf}/sriov_numvfs") != str(vfs):
            write(f"{pf}/sriov_numvfs", "0")
            shell(f"pf_up {bus}; vfs_up {bus} {vfs}")
        for v in range(vfs):
            if not os.path.exists(f"/sys/class/net/vf{bus}_{v}"):
                shell(f"vf_bind {bus} {v}")
            if v < rdma and not os.path.exists(f"/sys/class/infiniband/rxe{bus}_{v}"):
                shell(f"rxe_up {bus} {v}")
    output("ip", "link", "set", "pf63", "up")


def pci_write(address, name, value):
    write(f"{PCI}/{address}/{name}", value)


def vfs_with_rdma(bus, first, last):
    shell(f"rxe_up {bus} $(seq {first} {last})")


def hold_one(node, vf):
    """A pod that holds exactly this VF. Pods before it get the others, and go."""
    for i in range(len(node.listed())):
        admission = node.admit(f"hold{i}", 0, 1)
        if admission["containers"][0]["devices"][VF] == [vf]:
            for k in range(i):
                node.kubelet.ask(f"remove hold{k}")
            return
    raise AssertionError(f"{vf} was never given")


def never_given(node, vfs):
    """The kubelet cannot get these: not by preference, not by exhausting the pool, not by asking
    for them."""
    free = len(node.listed() - node.unhealthy() - node.held())
    refused = node.admit("greedy", 0, free + 1)
    equal(refused["event"], "rejected", "a pod that wants one more than is free")
    admission = node.admit("all", 0, free)
    check(not set(admission["containers"][0]["devices"][VF]) & set(vfs), "a vanished VF was given")
    node.kubelet.ask("remove all")
    for vf in vfs:
        node.refused(vf)


def kernel_has(bus, numvfs):
    equal(read(f"{PCI}/0000:{bus}:00.0/sriov_numvfs"), str(numvfs), f"VFs of {bus}")


@scenario
def sriov_numvfs_to_0_to_4_to_7():
    """sriov_numvfs 7 → 0 → 4 → 0 → 7 while running"""
    pf = "0000:23:00.0"
    mend()
    with LiveNode() as node:
        node.start_all(vfs=ALL)
        mine = {vf_address("23", v) for v in range(4)}
        held = vf_address("23", 1)
        hold_one(node, held)
        words = [node.change("0", lambda: pci_write(pf, "sriov_numvfs", "0"), ALL - 4,
                             at_once=lambda: [node.refused(vf) for vf in sorted(mine)])]
        until(lambda: node.listed() & mine == {held}, "those that no container holds to leave")
        equal(node.unhealthy(), {held}, "unhealthy VFs")
        never_given(node, sorted(mine))
        words.append(node.silent("4, without RDMA devices", lambda: shell("vfs_up 23 4")))
        never_given(node, sorted(mine))
        words.append(node.change("4, with", lambda: vfs_with_rdma("23", 0, 3), ALL))
        check_answer(node.admit("after", 0, ALL - 1))
        node.kubelet.ask("remove after")
        words.append(node.change("0", lambda: pci_write(pf, "sriov_numvfs", "0"), ALL - 4))
        shell("vfs_up 23 7")
        words.append(node.change("7", lambda: vfs_with_rdma("23", 0, 6), ALL + 3))
        check(held in node.listed(), "the held VF dropped off the list")
        shell("for v in 4 5 6; do rdma link delete rxe23_$v; done")
        kernel_has("23", 7)
        return "; ".join(words)


@scenario
def a_vf_is_unbound_and_bound():
    """a VF is unbound and bound"""
    mend()
    with LiveNode() as node:
        node.start_all(vfs=ALL)
        vf = vf_address("63", 2)
        hold_one(node, vf)
        words = [
            node.change("unbound", lambda: write("/sys/bus/pci/drivers/igbvf/unbind", vf), ALL - 1,
                        at_once=lambda: node.refused(vf, "no driver"))
        ]
        equal(node.unhealthy(), {vf}, "unhealthy VFs")
        sentence = node.refused(vf, "no driver", "igbvf")
        words.append(node.silent("bound", lambda: shell("vf_bind 63 2")))
        node.refused(vf, "no RDMA device")
        words.append(node.change("RDMA device made", lambda: vfs_with_rdma("63", 2, 2), ALL))
        node.kubelet.ask("remove " + node.kubelet.ask("pods")["pods"][0]["name"])
        check_answer(node.admit("after", 0, ALL))
        return "; ".join(words) + f"; Allocate said: {sentence}"


@scenario
def the_link_of_a_pf_goes_down_and_up():
    """the link of a PF goes down and up: the cable, then the interface"""
    carrier = "/sys/class/net/pf63/carrier"
    mend()
    with LiveNode() as node:
        node.start_all(vfs=ALL)
        mine = {vf_address("63", v) for v in range(4)}
        words = [
            node.change_seen("cable out", lambda: monitor("set_link igb1 off"), carrier, "0",
                             ALL - 4)
        ]
        equal(node.unhealthy(), mine, "unhealthy VFs")
        words.append(
            node.change_seen("cable in", lambda: monitor("set_link igb1 on"), carrier, "1", ALL))
        words.append(node.change("interface down", lambda: shell("ip link set pf63 down"), ALL - 4))
        equal(node.unhealthy(), mine, "unhealthy VFs")
        words.append(
            node.change_seen("interface up", lambda: shell("ip link set pf63 up"), carrier, "1",
                             ALL))
        shell("for v in 0 1 2 3; do ip link set vf63_$v down; ip link set vf63_$v up; done"
              )  # igbvf waits for it
        return "; ".join(words)


class LinkMessages:
    """What the kernel says of links (rtnetlink), as railmated hears it."""
    RTMGRP_LINK, RTM_NEWLINK, LOWER_UP = 1, 16, 1 << 16
    SILENCE_S = 1.1

    def __enter__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.socket.bind((0, self.RTMGRP_LINK))
        return self

    def __exit__(self, *_):
        self.socket.close()

    def until_silent(self):
        """The kernel tells a change at once, unless there was one in the second before
        (net/core/link_watch.c)."""
        while select.select([self.socket], [], [], self.SILENCE_S)[0]:
            self.socket.recv(1 << 16)

    def down(self, netdev):
        """When it said that this one has no carrier, in seconds."""
        index = socket.if_nametoindex(netdev)
        while select.select([self.socket], [], [], LIMIT)[0]:
            data, at = self.socket.recv(1 << 16), time.monotonic()
            (kind,), (about, flags) = struct.unpack_from("=H", data, 4), struct.unpack_from("=iI", data, 20)
            if (kind, about) == (self.RTM_NEWLINK, index) and not flags & self.LOWER_UP:
                return at
        raise Late(f"the kernel does not say that {netdev} has no carrier")


SETTLE_MS = 200  # that railmated waits before it looks for devices that appear
LOST_MS = 2000  # that the median loss may take: the guest is emulated, on a machine that others use


@scenario
def a_lost_carrier_is_told_at_once():
    """the cables of three PFs are pulled seven times: from the loss to the list in the kubelet"""
    cables = (0, "23", 4), (1, "63", 4), (2, "67", 2)
    heard, lost, found = [], [], []  # milliseconds

    def turn(node, messages, cable, on):
        number, bus, _ = cable
        said = []
        act = and_see(lambda: monitor(f"set_link igb{number} {'on' if on else 'off'}"),
                      f"/sys/class/net/pf{bus}/carrier", str(int(on)))
        at_once = None if on else lambda: said.append(messages.down(f"pf{bus}"))
        left = sum(vfs for other, _, vfs in cables if (other <= number) == on)
        _, done, told = node.times(act, left, at_once)
        (found if on else lost).append((told - done) * 1e3)
        heard.extend((at - done) * 1e3 for at in said)

    mend()
    # igbvf looks every two seconds whether its PF has a link, and the kernel counts what it finds.
    shell("for d in /sys/class/net/vf*; do ip link set ${d##*/} down; done")
    with LiveNode() as node, LinkMessages() as messages:
        node.start_all(vfs=ALL)
        for _ in range(7):
            for cable in cables:
                messages.until_silent()
                turn(node, messages, cable, False)
            for cable in cables:
                turn(node, messages, cable, True)
    words = [f"{what} {statistics.median(ms):.0f} ms, at most {max(ms):.0f}"
             for what, ms in (("the kernel says so after", heard), ("the kubelet is told after", lost),
                              ("of a link that is back after", found))]
    check(min(lost) < SETTLE_MS and statistics.median(lost) < LOST_MS, f"a lost link is not told at once: {words}", Late)
    return f"{len(lost)} losses: {'; '.join(words)}"


@scenario
def a_vf_moves_into_a_namespace():
    """a VF's netdev moves into a network namespace, and its RDMA device is made again there, with
    another number"""
    mend()
    with LiveNode() as node:
        node.start_all(vfs=ALL)
        vf = vf_address("63", 1)
        hold_one(node, vf)
        before = verbs_nodes()
        words = [
            node.silent("moved", lambda: shell("ip netns add pod; ip link set vf63_1 netns pod"))
        ]
        until(lambda: "rxe63_1" not in verbs_nodes(), "rxe63_1 ends")
        # rxe67_1, with the highest number, takes the one that is free now, and leaves its own.
        shell("rdma link delete rxe67_1; rdma link add rxe67_1 type rxe netdev vf67_1")
        node.settle()
        words.append(
            node.silent(
                "made again there", lambda: shell(
                    "ip -n pod link set vf63_1 up; ip netns exec pod rdma link add rxe63_1 type rxe netdev vf63_1"
                )))
        now = verbs_nodes()
        equal((now["rxe67_1"], now["rxe63_1"]), (before["rxe63_1"], before["rxe67_1"]),
              "the numbers, swapped")
        equal(node.unhealthy(), set(), "unhealthy VFs")
        check(vf in node.listed(), "the VF in the pod dropped off the list")
        check_answer(node.admit("others", 0, ALL - 1))
        words.append(
            node.change("namespace gone, and the RDMA device", lambda: shell("ip netns delete pod"),
                        ALL - 1))
        equal(node.unhealthy(), {vf}, "unhealthy VFs")
        node.refused(vf, "no RDMA device")
        words.append(node.change("made again here", lambda: vfs_with_rdma("63", 1, 1), ALL))
        return "; ".join(words)


@scenario
def rdma_devices_of_other_namespaces_are_hidden():
    """RDMA namespaces in exclusive mode: the same picture as in shared mode"""
    def mode():
        return output("rdma", "system").split()[1]

    mend()
    with LiveNode() as node:
        equal(mode(), "shared", "mode at boot")
        node.start_all(vfs=ALL)
        before = node.topo().topo
        words = [node.silent("exclusive", lambda: shell("rdma system set netns exclusive"))]
        try:
            equal(mode(), "exclusive", "mode")
            equal(node.topo().topo, before, "topo")
            check_answer(node.admit("all", 0, ALL))
            with LiveNode() as other:
                other.start_all(vfs=ALL)
                check_answer(other.admit("all", 0, ALL))
            words.append("a railmated that starts then lists the same")
        finally:
            shell("rdma system set netns shared")
        return "; ".join(words)


@scenario
def a_nic_is_removed_and_found_again():
    """a NIC is removed from the bus and found again"""
    mend()
    with LiveNode() as node:
        node.start_all(vfs=ALL)
        mine = {vf_address("67", v) for v in range(2)}
        held = max(mine)
        hold_one(node, held)
        words = [node.change("removed", lambda: pci_write("0000:67:00.0", "remove", "1"), ALL - 2)]
        equal(node.unhealthy(), mine, "unhealthy VFs")
        never_given(node, sorted(mine))
        check(held in node.listed(), "the held VF dropped off the list")
        write("/sys/bus/pci/rescan", "1")
        check(os.path.exists(f"{PCI}/0000:67:00.0"), "the rescan does not find the NIC")
        shell("pf_up 67; vfs_up 67 4")
        words.append(
            node.change("found, VFs and RDMA devices made", lambda: vfs_with_rdma("67", 0, 1), ALL))
        return "; ".join(words)
