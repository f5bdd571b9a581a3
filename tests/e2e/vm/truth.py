"""
What containers are told of addresses that come after Allocate: a CNI plugin has moved their VFs
into the pod's network, the soft
RDMA devices are made again there, and NCCL has to take a GID that works. What it would take is
worked out here once more, from the kernel's table as it is inside the pod; and where soft RDMA
carries traffic, data moves with the values that were injected, and with no others.
"""

import ipaddress
import json
import os
import re
import subprocess

from harness import container, until, vfs_of
from bed import VF, check, equal, output, rdma_links, rdma_of_vfs, read, scenario, shell, verbs_nodes, LiveNode
from cni import CniNode, links
from events import mend
from traffic import address_of, begin_container

SLOTS = 8  # of a GID table that are looked at: nothing here has more
UNSURE = "some details of its VFs could not be read"  # railmated's words when a busy kernel answers it too late; a start is not refused for that


def pool(name, devices, **railmate):
    return {
        "resourcePrefix": "rdma", "resourceName": name,
        "selectors": {"isRdma": True,
                      "rootDevices": devices}, "railmate": {"binding": "early"} | railmate
    }


# --- a pod's network ---

class Before:
    """What is where while no VF has moved yet."""

    def __init__(self):
        self.rdma, nodes, self.links = rdma_of_vfs(), verbs_nodes(), rdma_links()
        self.number = {r: int(path.rpartition("uverbs")[2]) for r, path in nodes.items()}


class Pod:
    """A namespace with VFs in it that have soft RDMA devices: what a CNI plugin leaves when it is
    done."""

    def __init__(self, name):
        self.name, self.vfs, self.rdma, self.netdev, self.old = name, [], {}, {}, {}
        shell(f"ip netns add {name}; ip -n {name} link set lo up")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """The interfaces come back under their names; the kernel would return them as they are, and
        later."""
        for vf, dev in self.netdev.items():
            shell(
                f"ip -n {self.name} link set {dev} down; ip -n {self.name} link set {dev} name {self.old[vf]} netns 1"
            )
        shell(f"ip netns delete {self.name}")

    def take(self, vfs, before):
        """Moves them, as sriov-cni does: with names of the pod's own."""
        for i, vf in enumerate(sorted(vfs)):
            shell(f"ip link set {before.links[before.rdma[vf]]} netns {self.name} name net{i}")
        self.arrive({vf: f"net{i}" for i, vf in enumerate(sorted(vfs))}, before)
        return self

    def arrive(self, netdev, before):
        """Their interfaces are in the pod under these names. Each RDMA device gets its own number
        again: lower ones come first."""
        self.rdma = {vf: before.rdma[vf] for vf in netdev}
        self.old = {vf: before.links[rdma] for vf, rdma in self.rdma.items()}
        self.vfs, self.netdev = sorted(netdev, key=lambda vf: before.number[self.rdma[vf]]), netdev
        until(lambda: not set(self.rdma.values()) & set(verbs_nodes()),
              "the RDMA devices end with the move")
        for vf in self.vfs:
            self.ip(f"link set {netdev[vf]} addrgenmode none up")
            shell(
                f"ip netns exec {self.name} rdma link add {self.rdma[vf]} type rxe netdev {netdev[vf]}"
            )

    def ip(self, line):
        output("ip", "-n", self.name, *line.split())

    def address(self, vf, *addresses, vlan=None):
        """In this order: the table fills from below. Waits until the kernel has it there."""
        dev = f"{self.netdev[vf]}{f'.{vlan}' if vlan else ''}"
        for a in addresses:
            self.ip(f"addr add {a} dev {dev}{' nodad' if ':' in a else ''}")
            mine = ipaddress.ip_interface(a).ip
            until(lambda: mine in {e["address"]
                                   for e in self.table(vf).values()}, f"{a} in the table of {vf}")

    def no_address(self, vf, *addresses, vlan=None):
        """These go; every one, if none is named."""
        dev = f"{self.netdev[vf]}{f'.{vlan}' if vlan else ''}"
        for a in addresses:
            self.ip(f"addr del {a} dev {dev}")
        if not addresses:
            self.ip(f"addr flush dev {dev}")
        gone = {ipaddress.ip_interface(a).ip for a in addresses}
        until(lambda: not {a
                           for a in self.routable(vf)
                           if not gone or a in gone}, f"addresses to leave the table of {vf}")

    def routable(self, vf):
        return {e["address"] for e in self.table(vf).values() if not e["address"].is_link_local}

    def forget(self):
        """Every address and VLAN."""
        for link in json.loads(
                output("ip", "-j", "-d", "-n", self.name, "link", "show", "type", "vlan")):
            if link:  # others are empty objects
                self.ip(f"link delete {link['ifname']}")
        for vf in self.vfs:
            self.no_address(vf)

    def vlan(self, vf, number):
        name = f"{self.netdev[vf]}.{number}"
        self.ip(f"link add link {self.netdev[vf]} name {name} type vlan id {number}")
        self.ip(f"link set {name} addrgenmode none up")

    def table(self, vf):
        """Its GIDs as the kernel shows them inside: number → address, type, interface."""
        script = (
            f"cd /sys/class/infiniband/{self.rdma[vf]}/ports/1; for ((i = 0; i < {SLOTS}; i++)); do "
            "g=; t=; n=; { read -r g < gids/$i; read -r t < gid_attrs/types/$i; read -r n < gid_attrs/ndevs/$i; } 2> /dev/null; "
            "echo \"$i,$g,$t,$n\"; done")
        rows = [
            line.split(",")
            for line in output("ip", "netns", "exec", self.name, "bash", "-c", script).splitlines()
        ]
        return {
            int(i): {"address": unmapped(gid), "type": kind, "netdev": ndev}
            for i, gid, kind, ndev in rows
            if kind
        }

    def has(self):
        """The addresses of the pod, whichever interface they are on."""
        links = json.loads(output("ip", "-j", "-n", self.name, "addr"))
        return {ipaddress.ip_address(a["local"]) for link in links for a in link["addr_info"]}


def unmapped(gid):
    address = ipaddress.ip_address(gid)
    return address.ipv4_mapped or address


# --- what NCCL makes of it: since 2.21.5, docs/design/nccl.md §1.5 ---

def fits(entry, env):
    a = entry["address"]
    family = {"AF_INET": 4, "AF_INET6": 6}[env.get("NCCL_IB_ADDR_FAMILY", "AF_INET")]
    where = env.get("NCCL_IB_ADDR_RANGE")
    return (not a.is_link_local and int(a) != 0 and a.version == family
            and (not where or a in ipaddress.ip_network(where))
            and entry["type"] == f"RoCE v{env.get('NCCL_IB_ROCE_VERSION_NUM', '2')}")


def nccl_takes(table, env):
    if "NCCL_IB_GID_INDEX" in env:
        return int(env["NCCL_IB_GID_INDEX"])
    return next((i for i in sorted(table) if i > 0 and fits(table[i], env)), 0)


# --- what the container was told ---

def conf_of(place):
    lines = read(os.path.join(place, "nccl.conf")).splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def place_of(started):
    (mount,) = [m for m in started["mounts"] if m["container"] == "/run/railmate"]
    return mount["host"]


def start(node, pod, which="*", timeout_ms=30000):
    (got, ) = node.kubelet.ask(f"start {pod} {which} {timeout_ms}",
                               timeout_ms / 1000 + 10)["containers"]
    return got


def told(node, pod, late=False):
    """(the variables that NCCL has in the end, map.json)"""
    got = start(node, pod)
    check(got["started"], f"{pod} does not start: {got['message']}")
    place = place_of(got)
    env = {**conf_of(place), **got["env"]}
    if late:
        check("NCCL_IB_HCA" in got["env"], "a late container has its variables by CDI")
    return env, json.loads(read(os.path.join(place, "map.json")))


def surely(node, act):
    """What act() returns, which looks at a start: once more where that fails and railmated was not
    sure of VFs."""
    for _ in range(4):
        try:
            return act()
        except AssertionError:
            if UNSURE not in node.daemon.stderr():
                raise
    return act()


GID_VARIABLES = ("NCCL_IB_GID_INDEX", "NCCL_IB_ADDR_FAMILY", "NCCL_IB_ADDR_RANGE",
                 "NCCL_IB_ROCE_VERSION_NUM")


def judge(node, pod, *args, **more):
    return surely(node, lambda: judge_once(node, pod, *args, **more))


def judge_once(node, pod, meant, what, late=False, exactly=None):
    """On each VF of the pod NCCL takes the GID of an address that is meant, by the kernel's own
    table. exactly: it was told this."""
    env, picture = told(node, pod.name, late)
    said = {k: env[k] for k in GID_VARIABLES if k in env}
    present = pod.has()
    for vf in pod.vfs:
        table = pod.table(vf)
        index = nccl_takes(table, env)
        wanted = {ipaddress.ip_address(a) for a in meant[vf]}
        entry = table.get(index)
        check(
            entry and entry["address"] in wanted & present and entry["type"] == "RoCE v2",
            f"{what}: with {said} NCCL takes slot {index} of {vf}, {entry}; {sorted(map(str, wanted))} is meant; {table}"
        )
        row = next((g for g in picture["gpus"] if g["vf"] == vf), None)
        check(row, f"{what}: {vf} is not in map.json: {picture}")
        equal((row["hca"], row["netdev"]), (pod.rdma[vf], pod.netdev[vf]),
              f"{what}: {vf} in map.json")
        if row["gid"]:
            equal((row["gid"]["index"], row["gid"]["address"], row["gid"]["type"]),
                  (index, str(entry["address"]), entry["type"]),
                  f"{what}: the GID of {vf} in map.json")
    check(exactly is None or said == exactly, f"{what}: NCCL is told {said}, not {exactly}")
    return f"{what}: {', '.join(f'{k[8:]}={v}' for k, v in said.items()) or 'NCCL chooses'}"


def refusal(node, pod):
    """Why it does not start."""
    got = start(node, pod, timeout_ms=500)
    check(not got["started"],
          f"it starts with an index that cannot work: {node.daemon.stderr()[-600:]}")
    return got["message"]


def four(i):
    return f"10.80.0.{i + 1}/24"


def four_of_vlan(i):
    return f"10.81.0.{i + 1}/24"


def six(i):
    return f"fd00:80::{i + 1}/64"


def bare(address):
    return address.split("/")[0]


def both(pod, *addresses, vlan=None):
    """Each VF its own of these, in this order."""
    for i, vf in enumerate(pod.vfs):
        pod.address(vf, *(a(i) for a in addresses), vlan=vlan)


def re_added(pod):
    both(pod, four)
    for i, vf in enumerate(pod.vfs):  # with another one in its place meanwhile
        pod.no_address(vf)
        pod.address(vf, six(i), four(i))
        pod.no_address(vf, six(i))


def four_in_different_slots(pod):
    pod.address(pod.vfs[0], four(0))
    pod.address(pod.vfs[1], six(1), four(1))


def six_in_different_slots(pod):
    pod.address(pod.vfs[0], six(0))
    pod.address(pod.vfs[1], four(5), six(1))
    pod.no_address(pod.vfs[1], four(5))


def on_vlans(pod):
    for vf in pod.vfs:
        pod.vlan(vf, 100)
    both(pod, four_of_vlan, vlan=100)


def on_vlans_and_below(pod):
    on_vlans(pod)
    both(pod, four)


# What the pod's addresses are, which are meant, and what exactly NCCL is told; None: what it is
# told may vary, if that is right.
STORIES = {
    "IPv4": (lambda pod: both(pod, four), [four], {"NCCL_IB_GID_INDEX": "1"}),
    "re-added": (re_added, [four], {"NCCL_IB_GID_INDEX": "2"}),
    "IPv4 in different slots": (four_in_different_slots, [four], {}),
    "IPv6 only": (lambda pod: both(pod, six), [six], None),
    "IPv6 only, in different slots": (six_in_different_slots, [six],
                                      {"NCCL_IB_ADDR_FAMILY": "AF_INET6"}),
    "VLAN": (on_vlans, [four_of_vlan], {"NCCL_IB_GID_INDEX": "2"
                                        }),  # behind the VLAN's link-local one
    "VLAN and below it": (on_vlans_and_below, [four_of_vlan, four], None),
}


def tell(node, pod, late=False, stories=tuple(STORIES)):
    """The addresses of two VFs, one story after the other; for each, the container starts again."""
    words = []
    for what in stories:
        set_up, meant, exactly = STORIES[what]
        set_up(pod)
        mine = {vf: [bare(a(i)) for a in meant] for i, vf in enumerate(pod.vfs)}
        words.append(judge(node, pod, mine, what, late, exactly))
        pod.forget()
    return "; ".join(words)


@scenario
def addresses_that_come_after_allocate():
    """early: two VFs in a pod's network, IPv4, re-added, IPv6 only, VLAN: by nccl.conf NCCL takes a
    GID that works"""
    mend()
    with LiveNode() as node, Pod("pod1") as pod:
        node.start_all(config={"resourceList": [pool("vf", ["0000:23:00.0"])]}, vfs=4)
        before, got = Before(), container(node.admit("pod1", 2, 2))
        place = place_of(got)
        until(lambda: os.path.exists(f"{place}/nccl.conf"), "the files of the container")
        check(not set(GID_VARIABLES) & {*got["env"], *conf_of(place)},
              "GIDs were told before there was an address")
        pod.take(got["devices"][VF], before)
        return tell(node, pod)


class LateNode(CniNode):
    POOL = {"resourceList": [pool("vf", ["0000:23:00.0"], binding="late")]}
    SLOTS = 4


@scenario
def addresses_that_a_late_container_has_at_its_start():
    """late: the same, with railmate-cni and host-device, by the CDI specs"""
    mend()
    with LateNode() as node, Pod("pod1") as pod:
        node.start_late()
        before, slots = Before(), sorted(vfs_of(node.admit("pod1", 2, 2)))
        for number, slot in enumerate(slots):
            node.works("ADD", "pod1", slot, number)
        pod.arrive({address: name for name, address in links("pod1").items()}, before)
        return tell(node, pod, True, ("IPv4", "IPv6 only, in different slots", "VLAN"))


@scenario
def what_the_operator_wants_of_gids():
    """gidRange: the VLAN's addresses, not those below it; fixed: N is refused where N cannot work,
    and right where it does"""
    pools = {"resourceList": [pool("vf", ["0000:63:00.0#0-1"], gidRange="10.81.0.0/16"),
                              pool("fixed", ["0000:63:00.0#2-3"], gid="fixed:2")]}
    mend()
    with LiveNode() as node, Pod("pod1") as pod, Pod("pod2") as other:
        node.start_all(config=pools, vfs=2)
        node.kubelet.wait("rdma/fixed", 2)
        before = Before()
        a, b = sorted(vfs_of(node.kubelet.admit("pod1", f"main:{VF}=2")))
        fixed = vfs_of(node.kubelet.admit("pod2", "main:rdma/fixed=1"), resource="rdma/fixed")
        pod.take([a, b], before)
        other.take(fixed, before)
        for i, vf in enumerate([a, b]):
            pod.vlan(vf, 100)
            pod.address(vf, four(i))
            pod.address(vf, four_of_vlan(i), vlan=100)
        meant = {a: [bare(four_of_vlan(0))], b: [bare(four_of_vlan(1))]}
        words = [
            judge(node, pod, meant, "the range of the VLAN", exactly={"NCCL_IB_GID_INDEX": "3"})
        ]
        pod.no_address(b, four(1))
        pod.no_address(b, four_of_vlan(1), vlan=100)
        pod.address(b, four_of_vlan(1), vlan=100)
        pod.address(b, four(1))
        words.append(
            judge(node, pod, meant, "in different slots",
                  exactly={"NCCL_IB_ADDR_RANGE": "10.81.0.0/16"}))

        (vf,) = other.vfs
        other.address(vf, four(7))
        refused = surely(node, lambda: refusal(node, "pod2"))
        for word in ("fixed", "2", vf):
            check(word in refused, f"the refusal does not say '{word}': {refused}")
        other.address(vf, four(8))
        words.append(
            judge(node, other, {vf: [bare(four(8))]}, "fixed:2",
                  exactly={"NCCL_IB_GID_INDEX": "2"}))
        return "; ".join(words) + f"; before: {refused}"


# --- traffic ---

# All that they know is what railmate gave them, but for the peer's address; INDEX is there to be
# wrong.
ENDS = r"""
value() { sed -n "s/^$1=//p" "$NCCL_CONF_FILE"; }
hca=$(value NCCL_IB_HCA)
hca=${hca#=}
index=${INDEX:-$(value NCCL_IB_GID_INDEX)}
[ -n "$index" ] || exit 9
exec timeout 25 $TOOL "$index" -d "${hca%:*}" -i "${hca#*:}" $PEER 2>&1
"""
WRITE = "ib_write_bw -F -s 65536 -n 20 -x"
PINGPONG = "ibv_rc_pingpong -n 20 -g"  # ib_write_bw looks at the GIDs before it asks the kernel, this one does not
LISTENS = ":4853 "  # 18515, of both


def listens():
    return any(LISTENS in line and " 0A " in line for line in read("/proc/net/tcp").splitlines())


class End:
    """A container of one VF."""

    def __init__(self, node, name, got):
        self.name, (self.vf,) = name, sum(got["devices"].values(), [])
        self.netdev = rdma_links()[rdma_of_vfs()[self.vf]]
        started = start(node, "pod", name)
        check(started["started"], f"{name} does not start: {started['message']}")
        self.env = {"NCCL_CONF_FILE": started["env"]["NCCL_CONF_FILE"]}
        self.nodes = [(d["host"], d["container"]) for d in started["device_nodes"]]
        self.mounts = [(place_of(started), "/run/railmate")]
        self.index = conf_of(place_of(started)).get("NCCL_IB_GID_INDEX")

    def begin(self, tool, peer="", index=""):
        env = {**self.env, "TOOL": tool, "PEER": peer, "INDEX": index}
        return begin_container(self.name, ENDS, env, self.nodes, self.mounts)


def both_ends(node, one, two):
    ends = End(node, "one", one), End(node, "two", two)
    equal([end.index for end in ends], ["1", "2"], "the indexes that were given")
    return ends


def between(tool, server, client, index=""):
    """(whether data moved, what both said)"""
    one, said = server.begin(tool), ""
    try:
        until(lambda: listens() or one.poll() is not None, "the server to listen")
        two = client.begin(tool, address_of(server.netdev), index)
        said = two.communicate(timeout=60)[0]
        works = two.returncode == 0 and one.wait(30) == 0
    finally:
        subprocess.run(["/programs/runc", "delete", "--force", server.name],
                       stderr=subprocess.DEVNULL, check=False)
        said += one.communicate(timeout=60)[0]
    return works, said


@scenario
def an_rdma_write_works_with_what_was_injected():
    """two containers of a pod on the host's network: a write works with the GID index of each one's
    nccl.conf, with no other"""
    mend()
    with LiveNode() as node:
        node.start_all(
            config={"resourceList": [pool("vf", ["0000:23:00.0"]),
                                     pool("far", ["0000:63:00.0"])]}, vfs=4)
        node.kubelet.wait("rdma/far", 4)
        admission = node.kubelet.admit("pod", f"one:{VF}=1", "two:rdma/far=1")
        one, two = (container(admission, name) for name in ("one", "two"))
        far = rdma_links()[rdma_of_vfs()[two["devices"]["rdma/far"][0]]]
        mine = address_of(far)
        shell(
            f"ip addr del {mine}/24 dev {far}; ip addr add fd00:63::1/64 dev {far} nodad; ip addr add {mine}/24 dev {far}"
        )
        server, client = surely(node, lambda: both_ends(node, one, two))
        shell(f"selfroute {server.netdev} {address_of(server.netdev)} {client.netdev} {mine}")
        works, said = between(WRITE, server, client)
        check(works, f"no write: {said[-800:]}")
        speed = re.findall(r"^ *65536 +20 +[\d.]+ +([\d.]+)", said, re.M)
        check(speed, f"no bandwidth in: {said[-800:]}")
        words = [f"{speed[0]} MB/s"]
        for wrong in (server.index,
                      "5"):  # the peer's, which is an IPv6 address here, and an empty slot
            works, said = between(PINGPONG, server, client, wrong)
            reason = [
                line.strip() for line in said.splitlines() if re.search("sgid|modify QP", line)
            ]
            check(not works and reason,
                  f"index {wrong} works, or fails for another reason: {said[-800:]}")
            words.append(f"{wrong}: {reason[0]}")
        works, said = between(PINGPONG, server, client)
        check(works, f"nor does it work with the right one: {said[-800:]}")
        return f"indexes {server.index} and {client.index}; {'; '.join(words)}"
