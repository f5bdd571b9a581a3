"""
railmate-probe in containers with two VFs of soft RDMA: its traffic beside perftest's and the kernel's counters, in roots
with glibc, with busybox alone and with nothing; and containers that are broken, each with its sentence and exit status.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess

import bed
from bed import LiveNode, check, equal, output, rdma_links, read, scenario, shell, verbs_nodes, write
from traffic import BANDWIDTH, HOST_NETWORK, Grant, received, spec
from truth import conf_of, place_of, start

GOOD, BROKEN, SLOW, NOT_MEASURED = 0, 1, 3, 4
PROGRAM = "/programs/railmate-probe"
KIT = ("/programs/probe", "/run/railmate/probe")  # the program as containers have it, with a loader and a C library of its own
NO_IPC_LOCK = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_SETUID", "CAP_SETGID")
MEMORY_MAX = 100 << 10  # KiB
SOME_SECONDS = ("--seconds", str(6 * float(read(f"{bed.SHARE}/slowness"))))  # enough for all of its runs

# What it took is the last line: KiB, seconds.
MEASURED = """
import resource, subprocess, sys, time
began = time.monotonic()
status = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, time.monotonic() - began)
sys.exit(status)
"""


def route_all(netdevs, addresses):
    """From each VF to each other one over the wire; after selfroute of two."""
    lines = []
    for i, (own, netdev) in enumerate(zip(addresses, netdevs)):
        lines += [f"sysctl -qw net.ipv4.conf.{netdev}.rp_filter=0 net.ipv4.conf.{netdev}.accept_local=1",
                  f"ip route flush table {200 + i} 2> /dev/null || true", f"ip rule add pref 10 iif {netdev} lookup local 2> /dev/null || true"]
        lines += [f"ip rule add pref 20 from {own} to {a} lookup {200 + i}; ip route add {a}/32 dev {netdev} src {own} table {200 + i}"
                  for a in addresses if a != own]
    shell("; ".join(lines))


class Container(Grant):
    """A pod with four GPUs and its VFs that has started, and the way between the first two."""

    def __init__(self, node, vfs):
        super().__init__(node, vfs)
        started = start(node, "pod")
        check(started["started"], f"the pod does not start: {started['message']}")
        self.place = place_of(started)
        self.env = {"PATH": os.environ["PATH"], "FIRST_ADDRESS": self.addresses[0]}
        self.conf = conf_of(self.place)
        self.map = json.loads(read(f"{self.place}/map.json"))
        self.route()

    def verbs(self, i):
        return verbs_nodes()[self.devices[i]]

    def without_verbs(self):
        return [n for n in self.nodes if "uverbs" not in n[0]]

    def run(self, argv, nodes=None, env=(), place=None, root="/", mounts=(), change=None):
        """(exit status, standard output, standard error). change: of the runtime's specification."""
        bundle = "/run/bundle-probe"
        os.makedirs(bundle, exist_ok=True)
        config = spec("probe", argv, {**self.env, **dict(env)}, nodes or self.nodes,
                      [(place or self.place, "/run/railmate"), *mounts])
        config["mounts"].append({
            "destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["size=1g"]
        })
        config["root"]["path"] = f"{bundle}/rootfs" if root == "/" else root
        if root == "/" and not os.path.ismount(f"{bundle}/rootfs"):
            os.makedirs(f"{bundle}/rootfs", exist_ok=True)
            output("mount", "--bind", "/", f"{bundle}/rootfs")
        if change:
            change(config)
        write(f"{bundle}/config.json", json.dumps(config))
        ran = subprocess.run(["/programs/runc", "run", "--bundle", bundle, "probe"],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=bed.LIMIT, check=False)
        return ran.returncode, ran.stdout, ran.stderr

    def probe(self, *options, program=(PROGRAM, ), **how):
        """(exit status, its JSON)"""
        status, said, complained = self.run([*program, "--json", *options], **how)
        with contextlib.suppress(ValueError):
            return status, json.loads(said)
        raise AssertionError(f"railmate-probe ends with {status}: {said[-400:]}{complained[-400:]}")

    def measured(self, *options):
        """(exit status, its JSON, KiB, seconds); it may take so much memory."""
        status, said, complained = self.run(["/usr/bin/python3", "-c", MEASURED, PROGRAM, "--json", *options])
        said, _, took = said.rstrip().rpartition("\n")
        check(said, f"railmate-probe ends with {status}: {complained[-400:]}")
        memory, seconds = took.split()
        check(int(memory) <= MEMORY_MAX, f"it took {memory} KiB")
        return status, json.loads(said), int(memory), float(seconds)

    @contextlib.contextmanager
    def told(self, change):
        """A folder as /run/railmate in which change(element) was called for each VF of map.json."""
        place = "/run/told"
        shutil.copytree(self.place, place, dirs_exist_ok=True)
        changed = json.loads(json.dumps(self.map))
        for element in changed["gpus"]:
            change(element)
        write(f"{place}/map.json", json.dumps(changed))
        try:
            yield place
        finally:
            shutil.rmtree(place)


@contextlib.contextmanager
def container(vfs=2):
    with LiveNode() as node:
        node.probe = KIT[0]
        node.start_all(config=HOST_NETWORK, vfs=10)
        yield Container(node, vfs)


def in_image(root):
    """As options of probe(): by what railmated puts into the container."""
    return {"program": (f"{KIT[1]}/railmate-probe", ), "root": root, "mounts": [KIT]}


def of(result, **wanted):
    return [m for m in result["measures"] if all(m[k] == v for k, v in wanted.items())]


def check_measures(result, devices):
    """Loopbacks and the pair with each operation, verified; both ways at once."""
    cells = [(d, d) for d in devices] + [tuple(devices)]
    equal({(m["from"], m["to"], m["op"])
           for m in of(result, together=False)},
          {(*c, op) for c in cells for op in ("write", "read", "send")}, "what was measured")
    equal({(m["from"], m["to"])
           for m in of(result, together=True)}, {tuple(devices), tuple(reversed(devices))},
          "what was measured at once")
    for m in result["measures"]:
        check(m["verified"] and m["outcome"] == "good" and m["gbps"] > 0, f"a measure: {m}")
        check(m["together"] or m["usec"] > 0, f"no time of small messages: {m}")
        check(m["expect_gbps"] is None, f"soft RDMA has an expectation: {m}")


def perftest(c):
    """Gb/s of ib_write_bw from the first VF to the second."""
    env = {
        "NCCL_IB_HCA": ",".join(f"{d}:1" for d in reversed(c.devices)),
        "NCCL_IB_GID_INDEX": c.conf["NCCL_IB_GID_INDEX"], "FIRST_ADDRESS": c.addresses[1]
    }
    status, said, _ = c.run(["/bin/bash", "-c", BANDWIDTH.replace("-F", "-F --report_gbits")],
                            env=env)
    speed = re.findall(r"^ *65536 +100 +[\d.]+ +([\d.]+)", said, re.M)
    check(status == 0 and speed, f"ib_write_bw ends with {status}: {said[-800:]}")
    return float(speed[0])


@scenario
def probe_measures_the_vfs_of_a_container():
    """railmate-probe measures two VFs as perftest and the kernel's counters do, within 100 MB"""
    with container() as c:
        before = [received(d) for d in c.devices]
        status, result, memory, _ = c.measured(*SOME_SECONDS)
        equal((status, result["outcome"]), (GOOD, "good"), f"the outcome: {result['findings']}")
        check_measures(result, c.devices)
        for d, was in zip(c.devices, before):
            check(received(d) - was > 3 * 4 * 64, f"{d} received {received(d) - was} packets")

        tries = []
        for _ in range(3):
            (pair, ) = of(result, together=False, op="write", **dict(zip(("from", "to"), c.devices)))
            tries.append((pair["gbps"], perftest(c)))
            if tries[-1][0] >= 0.9 * tries[-1][1]:
                break
            _, result = c.probe(*SOME_SECONDS)
        words = ", ".join(f"{ours:.3f} of {theirs:.3f}" for ours, theirs in tries)
        check(tries[-1][0] >= 0.9 * tries[-1][1], f"Gb/s of perftest's: {words}")
        return f"{words} Gb/s of perftest's, {memory >> 10} MiB"


@scenario
def probe_measures_eight_vfs_in_ten_seconds():
    """railmate-probe of a pod with eight VFs: each pair, within its time and 100 MB"""
    with container(vfs=8) as c:
        route_all(c.netdevs, c.addresses)
        status, result, memory, seconds = c.measured()
        late = {f["id"] for f in result["findings"]} - {"no-rate", "rails-apart"}
        equal(status, NOT_MEASURED if late else GOOD, f"exit status: {result['findings']}")
        check(late <= {"out-of-time"}, f"{late}")
        limit = 10 + 6 * float(read(f"{bed.SHARE}/slowness"))
        check(seconds <= limit, f"it took {seconds:.1f} s")
        measured = of(result, together=False)
        check({m["from"] for m in measured} == set(c.devices), "a VF was not measured")
        for m in result["measures"]:
            check(m["verified"] and m["gbps"] > 0, f"a measure: {m}")
        return f"{len(result['measures'])} measures in {seconds:.1f} s, {memory >> 10} MiB; {' '.join(late)}"


@scenario
def probe_runs_in_images_without_its_libraries():
    """railmate-probe with the loader that it has in containers: an empty root, and one with busybox alone"""
    with container() as c:
        empty, small = "/run/empty-root", "/run/small-root"
        for d in (f"{empty}/dev", f"{small}/bin"):
            os.makedirs(d, exist_ok=True)
        shutil.copy("/bin/busybox", f"{small}/bin/sh")
        for root in (empty, small):
            status, result = c.probe(*SOME_SECONDS, **in_image(root))
            equal(status, GOOD, f"in {root}: {result['findings']}")
            check_measures(result, c.devices)
        equal(set(os.listdir(empty)) & {"lib", "lib64", "usr"}, set(), "libraries of that root")


# --- what is broken ---

BROKEN_SETUPS = []


def broken(*ids, status=BROKEN):
    """A generator of a container: its changes, then what probe() needs to know, then the way back."""
    def add(function):
        BROKEN_SETUPS.append((function, set(ids), status))
        return function
    return add


@broken("uverbs-absent")
def no_node(c):
    """a VF's node is not there"""
    yield {"nodes": c.without(c.verbs(1))}


@broken("uverbs-number")
def foreign_node(c):
    """another VF's node under its name"""
    other = next(d for d in sorted(rdma_links()) if d not in c.devices)
    yield {"nodes": [*c.without(c.verbs(1)), (verbs_nodes()[other], c.verbs(1))]}


@broken("uverbs-cgroup")
def denied_node(c):
    """the device cgroup denies a node"""
    def deny(config):
        number = os.minor(os.stat(c.verbs(1)).st_rdev)
        rules = config["linux"]["resources"]["devices"]
        config["linux"]["resources"]["devices"] = [r for r in rules if r.get("minor") != number]
    yield {"change": deny}


@broken("gid-gone")
def gid_gone(c):
    """a VF has lost its address"""
    shell(f"ip addr del {c.addresses[1]}/24 dev {c.netdevs[1]}")
    yield {}
    shell(f"ip addr add {c.addresses[1]}/24 dev {c.netdevs[1]}")


@broken("gid-changed")
def gid_moved(c):
    """a VF's address is at another index"""
    a, dev = c.addresses[1], c.netdevs[1]
    shell(f"ip addr del {a}/24 dev {dev}; ip addr add 10.99.0.1/24 dev {dev}; ip addr add {a}/24 dev {dev}")
    yield {}
    shell(f"ip addr flush dev {dev}; ip addr add {a}/24 dev {dev}")


@broken("gid-index")
def wrong_index(c):
    """NCCL_IB_GID_INDEX of an image names an empty entry"""
    yield {"env": {"NCCL_IB_GID_INDEX": "9"}}


@broken("gid-link-local")
def link_local(c):
    """NCCL_IB_GID_INDEX of an image names the link-local GID"""
    yield {"env": {"NCCL_IB_GID_INDEX": "0"}}


@broken("port-down")
def port_down(c):
    """a VF's interface is down"""
    shell(f"ip link set {c.netdevs[1]} down")
    yield {}
    shell(f"ip link set {c.netdevs[1]} up")


@broken("memlock")
def little_memlock(c):
    """64 KiB may be locked"""
    def limit(config):
        for sort in config["process"]["capabilities"]:
            config["process"]["capabilities"][sort] = list(NO_IPC_LOCK)
        config["process"]["rlimits"] = [{"type": "RLIMIT_MEMLOCK", "soft": 65536, "hard": 65536}]
    yield {"change": limit}


# A port is bound to its netdev, and where no route says otherwise the kernel takes every IPv4 address to be on its link: what
# is missing shows when ARP asks.
def silence(c, silent):
    for dev in c.netdevs:
        shell(f"sysctl -qw net.ipv4.conf.{dev}.arp_ignore={8 if silent else 0}; ip neigh flush dev {dev} nud all")


@broken("no-route")
def no_route(c):
    """nobody answers for the address of the other VF of the rail"""
    silence(c, True)
    with c.told(lambda e: e.update(rail=0)) as place:
        yield {"place": place}
    silence(c, False)


@broken("retry-exceeded")
def nobody_there(c):
    """the other VF's address is that of a machine that is off"""
    for i in (0, 1):
        shell(f"ip neigh replace {c.addresses[1 - i]} lladdr 02:00:00:99:99:99 nud permanent dev {c.netdevs[i]}")
    with c.told(lambda e: e.update(rail=0)) as place:
        yield {"place": place}
    for i in (0, 1):
        shell(f"ip neigh del {c.addresses[1 - i]} dev {c.netdevs[i]}")


@broken("mtu-small", "mtu-mismatch", status=SLOW)
def small_mtu(c):
    """a VF's interface has a small MTU"""
    shell(f"ip link set {c.netdevs[1]} mtu 700")
    yield {}
    shell(f"ip link set {c.netdevs[1]} mtu 1500")


@broken("hca-gone")
def renamed(c):
    """a VF's RDMA device has another name now"""
    shell(f"rdma dev set {c.devices[1]} name other0")
    yield {}
    shell(f"rdma dev set other0 name {c.devices[1]}")


@broken("hca-foreign")
def swapped(c):
    """map.json names each VF's device for the other one"""
    def swap(element):
        element["hca"] = c.devices[1 - c.devices.index(element["hca"])]
    with c.told(swap) as place:
        yield {"place": place}


@broken("port-absent")
def no_such_port(c):
    """map.json names port 2"""
    with c.told(lambda e: e.update(port=2)) as place:
        yield {"place": place}


@broken("no-hca", status=NOT_MEASURED)
def no_rdma(c):
    """map.json names no RDMA device"""
    with c.told(lambda e: e.update(hca=None)) as place:
        yield {"place": place, "nodes": c.without_verbs()}


@broken("no-map", status=NOT_MEASURED)
def no_vfs(c):
    """map.json has no VF"""
    with c.told(lambda e: None) as place:
        write(f"{place}/map.json", json.dumps({**c.map, "gpus": []}))
        yield {"place": place, "nodes": c.without_verbs()}


@broken("out-of-time", status=NOT_MEASURED)
def no_time(c):
    """less time than its runs need"""
    yield {"options": ("--seconds", "0.01")}


@broken("rails-apart", status=GOOD)
def rails(c):
    """nobody answers on the other rail: no fault"""
    silence(c, True)
    yield {}
    silence(c, False)


def break_one_by_one(setups):
    words = []
    with container() as c:
        for function, ids, wanted in setups:
            changes, what = function(c), function.__doc__
            how = next(changes)
            options = how.pop("options", SOME_SECONDS)
            try:
                status, result = c.probe(*options, **how)
            finally:
                next(changes, None)
                c.route()
            found = {f["id"]: f for f in result["findings"]}
            for f in found.values():
                print(f"{what}: {status}: {f['id']}: {f['on']}: {f['what']}", flush=True)
            check(ids <= set(found), f"{what}: found {sorted(found)}, and not {sorted(ids)}")
            equal(status, wanted, f"{what}: exit status, with {sorted(found)}")
            words.append(what)
        status, result = c.probe(*SOME_SECONDS)
        equal(status, GOOD, f"when all is mended: {result['findings']}")
    return f"{len(words)}: {'; '.join(words)}"


@scenario
def probe_says_what_is_broken():
    """railmate-probe in broken containers, each with its sentence and exit status: nodes and GIDs"""
    return break_one_by_one(BROKEN_SETUPS[:10])


@scenario
def probe_says_what_else_is_broken():
    """railmate-probe in broken containers: the way between VFs, and what they were told"""
    return break_one_by_one(BROKEN_SETUPS[10:])


TOKEN = "s3cret-s3cret"


@contextlib.contextmanager
def serving(place, *options):
    """A server beside the container, as in another one of this machine."""
    argv = [PROGRAM, "--map", place, "--serve", "--once", "--token", TOKEN, "--json", "--wait", "600", *options]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@scenario
def probe_speaks_with_a_peer():
    """railmate-probe --serve and --peer: VFs of one rail, the bytes verified; isolation; and peers that are none"""
    words = []

    def peer(wanted, status, *options, host="127.0.0.1", token=TOKEN):
        ended, result = c.probe("--peer", host, "--token", token, *options, place="/run/told-client")
        found = {f["id"]: f for f in result["findings"]}
        for f in found.values():
            print(f"peer: {ended}: {f['id']}: {f['on']}: {f['what']}", flush=True)
        check(wanted <= set(found), f"found {sorted(found)}, and not {sorted(wanted)}")
        equal(ended, status, f"exit status, with {sorted(found)}")
        words.extend(wanted)
        return result

    with container() as c:
        first, second = c.devices
        with c.told(lambda e: e.update(rail=c.devices.index(e["hca"]))) as place:
            shutil.copytree(place, "/run/told-client", dirs_exist_ok=True)
        with c.told(lambda e: e.update(rail=1 - c.devices.index(e["hca"]))) as place:
            with serving(place) as server:
                result = peer(set(), GOOD, *SOME_SECONDS)
                server.wait(bed.LIMIT)
                found = {f["id"] for f in json.loads(server.stdout.read())["findings"] if f["outcome"] != "good"}
                check(found <= {"uverbs-foreign"}, f"the server, which is in no container, found {found}")
            equal({(m["from"], m["to"].split("/")[-1], m["op"], m["together"]) for m in result["measures"]},
                  {(a, b, op, together) for a, b in ((first, second), (second, first))
                   for op, together in (("write", False), ("read", False), ("send", False), ("write", True))}, "measured")
            for m in result["measures"]:
                check(m["verified"] and m["path"] == "same host" and m["gbps"] > 0, f"a measure: {m}")
            with serving(place):
                peer({"isolation-untried"}, NOT_MEASURED, *SOME_SECONDS, "--isolation")
            with serving(place):
                peer({"peer-token"}, NOT_MEASURED, token="another-secret")
            peer({"peer-refused"}, NOT_MEASURED, "--wait", "1")
            silent = f"192.0.2.1 dev {c.netdevs[0]}"
            shell(f"ip neigh add {silent} lladdr 02:00:00:00:00:01; ip route add {silent}")
            peer({"peer-unreachable"}, NOT_MEASURED, "--wait", "1", host="192.0.2.1")
            shell(f"ip route del {silent}; ip neigh del {silent}")
            peer({"peer-name"}, NOT_MEASURED, "--wait", "1", host="no.such.invalid")
            with serving(place) as server, subprocess.Popen(["/bin/sh", "-c", f"sleep 4; kill -9 {server.pid}"]):
                peer({"peer-died"}, NOT_MEASURED, "--seconds", "60")
            with serving(place):
                silence(c, True)
                peer({"no-route"}, BROKEN, *SOME_SECONDS)
                silence(c, False)
    return ", ".join(words)
