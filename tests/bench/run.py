#!/usr/bin/python3
"""
Every figure that railmate promises, measured on this machine beside a floor or a rival in the same
run. Builds nothing; a program that the environment names (RAILMATED) is taken rather than the
build's:

    tests/bench/run.py --build DIR [--json] [--quick] [--only NAME,…]

Nothing fails because the machine is slow; the exit status is non-zero only when a figure could not
be taken, or with --strict, which is for figures that no machine changes: numbers of system calls and of wake-ups.
"""

import argparse
import collections
import glob
import contextlib
import functools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = {"RAILMATED": "cmd/railmated", "RAILMATECTL": "cmd/railmatectl",
            "FAKEKUBELET": "tests/fakekubelet/fakekubelet", "FAKEGPU": "tests/fakekubelet/fakegpu"}
GPU, VF = "nvidia.com/gpu", "rdma/vf"
OPTIONS = "GetDevicePluginOptions, same server"


def pick(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p * len(values)))]


def ran(*argv, **popen):
    return subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True, **popen).stdout


class Bench:
    def __init__(self, args):
        self.build, self.quick = args.build, args.quick
        self.figures = []

    def rounds(self, full, quick):
        return quick if self.quick else full

    def tool(self, name):
        return os.path.join(self.build, "tests/bench", name)

    def add(self, name, what, value, unit, bar=None, floor=None, floor_is=None, ratio=None,
            at_least=False, **more):
        """`ratio` None: value / floor where both are there."""
        if ratio is None and floor:
            ratio = value / floor
        met = None if bar is None else value >= bar if at_least else value <= bar
        self.figures.append({
            "name": name, "what": what, "value": value, "unit": unit, "bar": bar, "met": met,
            "floor": floor, "floor_is": floor_is, "ratio": ratio, "at_least": at_least, **more
        })

    def machine(self, node, pfs, vfs, gpus):
        """The root of `node` becomes a machine of that size."""
        with tempfile.NamedTemporaryFile("w", dir=node.dir) as tree:
            tree.write(ran(self.tool("bench_scan"), "tree", str(pfs), str(vfs), str(gpus)))
            tree.flush()
            node.unpack(tree.name)
        return node

    @contextlib.contextmanager
    def running(self, pfs, vfs, gpus, live=False, kubelet=(), wrap=(), daemon=()):
        """A machine with the fake kubelet, the GPU plugin and railmated, as what `wrap` runs:
        (node, kubelet, daemon, VF ids)."""
        import harness

        with harness.Node(None) as node:
            self.machine(node, pfs, vfs, gpus)
            if live:
                on_its_own_sys(node, wrap)
            kubelet, daemon = node.start(*kubelet, daemon=daemon)
            kubelet.wait(VF, pfs * vfs)
            ids = [d["id"] for d in kubelet.resource(VF)["devices"]]
            yield node, kubelet, daemon, sorted(ids)

    @staticmethod
    def call(node, *args, resource=VF):
        """Calls of the fake kubelet itself: a peer that is not the kubelet is held to 400 calls a
        second."""
        answer = node.kubelet.ask(" ".join(["bench", resource, *map(str, args)]), timeout=600)
        us = {
            name: {f"{p}_us": answer[name][f"{p}_ns"] / 1000
                   for p in ("p50", "p99")}
            for name in ("call", "floor")
        }
        return us | {
            f"{p}_ratio": us["call"][f"{p}_us"] / us["floor"][f"{p}_us"]
            for p in ("p50", "p99")
        }


def may_mount():
    return subprocess.run(["unshare", "--mount", "mount", "--bind", "/sys", "/sys"],
                          stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def on_its_own_sys(node, wrap=()):
    """As on a node, where the machine is /sys: railmated in a mount namespace of its own, without
    --root."""
    argv = node.daemon_argv

    def wrapped(*options):
        plain = argv(*options)
        plain[plain.index("--root") + 1] = "/"
        return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /sys && exec "$@"',
                os.path.join(node.root, "sys"), *wrap, *plain]

    node.daemon_argv = wrapped


def memory_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        fields = dict(
            line.split(":", 1) for line in f if ":" in line.rsplit(" ", 1)[0] and line[0].isupper())
    return {
        k: int(fields[k].split()[0])
        for k in ("Rss", "Pss", "Anonymous", "Shared_Clean", "Private_Clean")
    }


def cpu_ms(pid):
    """Of each thread, by its name; of threads with one name together."""
    total = collections.Counter()
    for task in glob.glob(f"/proc/{pid}/task/*"):
        with open(f"{task}/comm", encoding="ascii") as comm, open(f"{task}/schedstat",
                                                                  encoding="ascii") as times:
            total[comm.read().strip()] += int(times.read().split()[0]) / 1e6
    return total


def wakeups(pid):
    """Of all threads: how often they went to sleep."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/status"):
        with open(path, encoding="ascii") as status:
            total += int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status.read(), re.M)[1])
    return total


def idle(daemon):
    time.sleep(0.3)
    return memory_kib(daemon.pid)


# --- Allocate, and what 100,000 of them leave behind ---

def bench_allocate(b):
    rounds, paced, calls, warm_up = b.rounds((10, 1000, 8900, 1000), (2, 20, 50, 20))
    live = may_mount()
    with b.running(8, 16, 8, live) as (node, _, daemon, ids):
        eight = [i for n, i in enumerate(ids) if n % 16 == 0]
        fresh = b.call(node, "fresh", 8, *(i for k in range(16) for i in ids[k::16]))
        b.call(node, "allocate", warm_up, *eight)
        memory, runs = [idle(daemon)], []
        for _ in range(rounds):
            runs.append(b.call(node, "paced", paced, *eight))
            b.call(node, "allocate", calls, *eight)
            memory.append(idle(daemon))
    series = functools.partial(median_of, runs)
    for p in ("p99", "p50"):
        b.add(f"allocate-{p}", f"Allocate of 8 VFs{'' if live else ', below --root'}, {p}",
              series(lambda r: r["call"][f"{p}_us"]), "µs",
              floor=series(lambda r: r["floor"][f"{p}_us"]), floor_is=OPTIONS,
              ratio=series(lambda r: r[f"{p}_ratio"]), ratio_bar=1.25 if p == "p99" else None,
              ratios=[r[f"{p}_ratio"] for r in runs])
    b.add("allocate-fresh-p50", "first Allocate of 8 VFs, p50 of 16",
          fresh["call"]["p50_us"], "µs", floor=fresh["floor"]["p50_us"], floor_is=OPTIONS)
    total = warm_up + rounds * (paced + calls)
    b.add("rss", f"RSS, idle, 128 VFs, after {total:,} Allocates", memory[-1]["Rss"] / 1000 * 1.024,
          "MB", bar=12, floor=memory[0]["Rss"] / 1000 * 1.024, floor_is=f"after {warm_up:,}",
          memory_kib=memory)
    b.add("rss-anonymous", "of it anonymous", memory[-1]["Anonymous"] / 1000 * 1.024, "MB",
          floor=memory[0]["Anonymous"] / 1000 * 1.024, floor_is=f"after {warm_up:,}")


def median_of(runs, value):
    return statistics.median(value(r) for r in runs)


# --- GetPreferredAllocation ---

def bench_choice(b):
    rows = json.loads(ran(b.tool("bench_align"), "--json", str(b.rounds(10000, 100))))
    for row in rows:
        if (row["vfs"], row["gpus"], row["want"]) == (128, 8, 8):
            b.add(
                f"choice-1in{row['one_in']}",
                f"the choice alone: 8 GPUs, 8 PFs × 16 VFs, 1 in {row['one_in']} free, pick 8, p99",
                row["choose"]["p99_us"], "µs", bar=200, floor=row["floor"]["p99_us"],
                floor_is="greedy, nearest first", p50=row["choose"]["p50_us"])
    large = max((row for row in rows if row["vfs"] == 16 * 127),
                key=lambda row: row["choose"]["p50_us"])
    b.add(
        "choice-large",
        f"16 GPUs, 16 PFs × 127 VFs, the slowest question: 1 in {large['one_in']} free, pick {large['want']} for "
        f"{large['gpus'] or 'unknown'} GPUs, p99", large["choose"]["p99_us"] / 1000, "ms", bar=2,
        floor=large["floor"]["p99_us"] / 1000, floor_is="greedy, nearest first",
        p50=large["choose"]["p50_us"] / 1000)


def preferred_us(pod):
    """How long each GetPreferredAllocation of our resource took."""
    return [r["preferred_us"] for c in pod["containers"] for r in c["rpcs"] if r["resource"] == VF]


def bench_preferred(b):
    pods, rounds = 100, b.rounds(1000, 20)
    with b.running(8, 29, 8) as (node, kubelet, _, ids):
        for i in range(pods):
            kubelet.admit(f"standing{i}", f"main:{VF}=1")
        took = []
        for i in range(rounds):
            pod = kubelet.admit("pod", f"main:{GPU}=8,{VF}=8", order="gpu-first")
            took += preferred_us(pod)
            kubelet.ask("remove pod")
        held = {
            i
            for p in kubelet.ask("pods")["pods"]
            for c in p["containers"].values()
            for i in c[VF]
        }
        free = [i for i in ids if i not in held]
        raw = b.call(node, "preferred", b.rounds(2000, 20), 8, *free)
    b.add(
        "preferred-p99",
        f"GetPreferredAllocation in an admission, {pods} pods, {len(free)} VFs free, pick 8, p99",
        pick(took, 0.99) / 1000, "ms", bar=3, floor=raw["floor"]["p99_us"] / 1000, floor_is=OPTIONS,
        p50=pick(took, 0.5) / 1000, calls=len(took))
    b.add("preferred-raw-p99", "the same, called back to back, no pod in admission, p99",
          raw["call"]["p99_us"] / 1000, "ms", bar=3, floor=raw["floor"]["p99_us"] / 1000,
          floor_is=OPTIONS, p50=raw["call"]["p50_us"] / 1000)


def bench_prediction(b):
    """VFs first: who is it, which GPUs are free, which of them would the GPU plugin prefer? The
    call that asks it, and the whole."""
    pods, rounds = 100, b.rounds(500, 20)
    with b.running(8, 29, 8, kubelet=("--pods-api",)) as (node, kubelet, _, ids):
        for i in range(pods):
            kubelet.admit(f"standing{i}", f"main:{VF}=1")
        held = {
            i
            for p in kubelet.ask("pods")["pods"]
            for c in p["containers"].values()
            for i in c[VF]
        }
        floor = b.call(node, "preferred", b.rounds(2000, 20), 8,
                       *[i for i in ids if i not in held])["floor"]
        gpus = [d["id"] for d in kubelet.resource(GPU)["devices"]]
        raw = b.call(node, "preferred", b.rounds(2000, 20), 4, *gpus, resource=GPU)
        b.add("prediction-call-p99",
              f"GetPreferredAllocation of the GPU plugin: 4 of {len(gpus)} GPUs, p99",
              raw["call"]["p99_us"] / 1000, "ms", bar=2, floor=raw["floor"]["p99_us"] / 1000,
              floor_is=OPTIONS, p50=raw["call"]["p50_us"] / 1000)
        for specs in (True, False):
            if not specs:
                kubelet.quit()
                kubelet = node.start_kubelet()
                kubelet.wait(GPU, 8)
                kubelet.wait(VF, len(ids))
                for i in range(pods):
                    kubelet.admit(f"standing{i}", f"main:{VF}=1")
            took = []
            for _ in range(rounds):
                pod = kubelet.admit("pod", f"main:{GPU}=4,{VF}=4", order="vf-first")
                took += preferred_us(pod)
                kubelet.ask("remove pod")
            how = "Pods API" if specs else "no pod specs"
            b.add(f"prediction-{'specs' if specs else 'blind'}-p99",
                  f"GetPreferredAllocation, VFs first, GPUs predicted, {pods} pods, {how}, p99",
                  pick(took, 0.99) / 1000, "ms", bar=3, floor=floor["p99_us"] / 1000,
                  floor_is=OPTIONS, p50=pick(took, 0.5) / 1000, calls=len(took))


# --- late binding ---

def late_config(node):
    path = os.path.join(node.dir, "config.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(
            {
                "resourceList": [{
                    "resourcePrefix": "rdma", "resourceName": "vf", "selectors": {"isRdma": True},
                    "railmate": {"binding": "late"}
                }]
            }, f)
    return path


GID_SLOTS = 256  # of a port of ConnectX
SANDBOX = 0.06  # seconds: what a pod's sandbox and network take at least; sooner, a List would wait for the admission to be over


def fill_gids(node, vf):
    """A full-grown table: mostly empty slots, which have to be read all the same. Links to one file
    a text, for memory's sake."""
    def text(path, words):
        shared = os.path.join(node.dir, "text-" + words.replace("/", "-").replace(" ", "-"))
        if not os.path.exists(shared):
            with open(shared, "w", encoding="ascii") as f:
                f.write(words + "\n")
        if os.path.exists(path):
            os.unlink(path)
        os.link(shared, path)

    rdma = os.path.join(node.device_dir(vf), "infiniband")
    port = os.path.join(rdma, os.listdir(rdma)[0], "ports", "1")
    for d in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
        os.makedirs(os.path.join(port, d), exist_ok=True)
    for slot in range(GID_SLOTS):
        gid = ("fe80:" + "0000:" * 6 + "0001", "0000:" * 5 + "ffff:0a00:0007",
               "0000:" * 7 + "0000")[min(slot // 2, 2)]
        text(os.path.join(port, "gids", str(slot)), gid)
        if slot < 4:
            text(os.path.join(port, "gid_attrs", "types", str(slot)),
                 "RoCE v2" if slot % 2 else "IB/RoCE v1")
            text(os.path.join(port, "gid_attrs", "ndevs", str(slot)), "net1")


def started(kubelet, pod):
    """One container with 8 GPUs and 8 VFs; how long its PreStartContainer took, in microseconds."""
    kubelet.admit(pod, f"main:{GPU}=8,{VF}=8")
    time.sleep(SANDBOX)
    (call,) = kubelet.ask(f"prestart {pod}")["calls"]
    if call["status"] != "OK":
        sys.exit(f"PreStartContainer: {call['message']}")
    kubelet.ask(f"remove {pod}")
    return call["us"]


def starts(node, kubelet, machine, pods, rounds):
    """Containers that start beside `pods` others, first with the small GID tables of the tree, then
    with large ones."""
    took = {"small": [], "large": []}
    for i in range(pods):
        kubelet.admit(f"standing{i}", f"main:{VF}=1")
        kubelet.ask(f"prestart standing{i}")
    for tables, times in took.items():
        for vf in machine.topo["vfs"] if tables == "large" else ():
            fill_gids(node, vf["pci"])
        # Each of a name of its own: without cgroups nothing tells two pods of one name apart.
        times += [started(kubelet, f"pod-{tables}-{i}") for i in range(rounds)]
    return took


def bench_bind(b):
    """PreStartContainer as the kubelet calls it: PodResources List, the choice, the look at the
    VFs, CDI specs, files, the ledger on disk."""
    import harness

    pods, rounds = 100, b.rounds(500, 5)
    with harness.Node(None) as node:
        b.machine(node, 8, 29, 8)
        kubelet, _ = node.start(daemon=("--config-file", late_config(node)))
        kubelet.wait(VF, 8 * 29)
        late = starts(node, kubelet, node.topo(), pods, rounds)
        free = [d["id"] for d in kubelet.resource(VF)["devices"] if d["healthy"]][:8]
        raw = b.call(node, "preferred", b.rounds(2000, 20), 8, *free)
    with harness.Node(None) as node:
        b.machine(node, 8, 29, 8)
        kubelet, _ = node.start()
        kubelet.wait(VF, 8 * 29)
        early = starts(node, kubelet, node.topo(), pods, rounds)
    for name, what, took, bar in (
        ("bind", "PreStartContainer binds 8 VFs, {}, with List, look, CDI specs and ledger",
         late["small"], 10), ("truth-late", "the same, GID tables of {slots} slots", late["large"],
                              15),
        ("truth-early",
         "PreStartContainer of 8 VFs bound early, {}, with List, look and files, GID tables of {slots} slots",
         early["large"], 15)):
        b.add(f"{name}-p99",
              what.format(f"{pods} pods", slots=GID_SLOTS) + ", p99",
              pick(took, 0.99) / 1000, "ms", bar=bar, floor=raw["floor"]["p99_us"] / 1000,
              floor_is=OPTIONS, p50=pick(took, 0.5) / 1000, calls=len(took))


def bench_claims(b):
    """NodePrepareResources as the kubelet calls it: the claim and its pod from the API server, PodResources List, the choice,
    the look at the VFs, CDI specs, files, the ledger on disk. The API server is Python: its time is taken off."""
    import test_serve_dra

    served = []

    class Timed(test_serve_dra.ServeDra):
        def runTest(self):
            answer = self.api.answer

            def timed(connection):
                begin = time.monotonic()
                goes_on = answer(connection)
                served.append(time.monotonic() - begin)
                return goes_on

            self.api.server.answer = timed
            kubelet, _ = self.up()
            slots = self.api.devices()[:8]
            for i in range(b.rounds(300, 5)):
                claim = self.api.give("c", i % 10, f"p{i}", *(("vfs", test_serve_dra.DRIVER, s) for s in slots))
                self.api.pods.clear()
                self.api.pod(f"p{i}", main=["c"])
                kubelet.admit(f"p{i}", f"main:{GPU}=8")
                time.sleep(SANDBOX)
                before, begin = len(served), time.monotonic()
                (one,) = self.ask(kubelet, "prepare", claim).values()
                took.append(time.monotonic() - begin)
                if one["error"]:
                    sys.exit(f"NodePrepareResources: {one['error']}")
                own.append(took[-1] - sum(served[before:]))
                begin = time.monotonic()
                self.ask(kubelet, "unprepare", claim)
                floor.append(time.monotonic() - begin)
                kubelet.ask(f"remove p{i}")

    took, own, floor = [], [], []
    result = unittest.TestResult()
    unittest.TestSuite([Timed()]).run(result)  # with the class's own preparation
    for _, text in result.errors + result.failures:
        sys.exit(text)
    for name, what, times, bar in (("claims", "NodePrepareResources of 8 VFs, without the API server's own time", own, 15),
                                   ("claims-all", "the same, with a claim and a pod from an API server in Python", took, None)):
        b.add(f"{name}-p99", f"{what}, p99", pick(times, 0.99) * 1000, "ms", bar=bar, floor=pick(floor, 0.5) * 1000,
              floor_is="NodeUnprepareResources, p50", p50=pick(times, 0.5) * 1000, calls=len(times))


# --- start and restart ---

def ended(argv):
    begin = time.monotonic()
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return (time.monotonic() - begin) * 1000


def bench_start(b):
    import harness

    starts, floors = [], []
    with harness.Node(None) as node:
        b.machine(node, 16, 64, 8)
        kubelet = node.start_kubelet()
        for i in range(b.rounds(20, 2)):
            line = kubelet.send(f"wait {VF} 1024 20000")
            begin = time.monotonic()
            daemon = subprocess.Popen(node.daemon_argv(), stdin=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL)
            try:
                starts.append(kubelet.answer(line)["t"] / 1000 - begin * 1000)
            finally:
                daemon.terminate()
                daemon.wait()
            kubelet.ask(f"wait {VF} =0")
            floors.append(ended([harness.program("railmated"), "--version"]))
    b.add("start", f"process start → list of 1,024 VFs at the kubelet, p50 of {len(starts)}",
          pick(starts, 0.5), "ms", bar=80, floor=pick(floors, 0.5), floor_is="railmated --version",
          starts=starts)
    b.add("start-p99", "the same, slowest", max(starts), "ms", bar=80, floor=max(floors),
          floor_is="railmated --version")


def bench_restart(b):
    restarts = b.rounds(200, 5)
    with b.running(8, 16, 8) as (_, kubelet, _, _):
        answers = [kubelet.ask("restart")["us"] for _ in range(restarts)]
    ours, rival = ([a[r] / 1000 for a in answers] for r in (VF, GPU))
    for name, p in (("p99", 0.99), ("p50", 0.5)):
        b.add(f"restart-{name}",
              f"kubelet's socket accepts → list there, {restarts} restarts, {name}", pick(ours, p),
              "ms", bar=20 if name == "p99" else None, floor=pick(rival, p),
              floor_is="fake GPU plugin, 8 devices")


def bench_attacks(b):
    """Allocate, as tests/integration/test_attacks.py attacks the socket in every way it knows."""
    import test_attacks

    every = unittest.TestLoader().getTestCaseNames(test_attacks.Attacks)
    attacks = unittest.TestSuite(
        map(test_attacks.Attacks, b.rounds(every, ["test_rapid_resets"])))
    with contextlib.redirect_stdout(sys.stderr):
        result = unittest.TextTestRunner().run(attacks)
    if not result.wasSuccessful():
        sys.exit("an attack succeeds")
    took = {name: [pick(ms, 0.99) for ms in both] for name, both in test_attacks.Attacks.took.items()}
    worst = max(took, key=lambda name: took[name][1])
    b.add("attacked-p99", f"Allocate under the worst of {len(took)} attacks ({worst}), p99",
          took[worst][1], "ms", bar=20, floor=took[worst][0], floor_is="in calm times before it")


# --- the scan ---

def bench_scan(b):
    import harness

    sizes, per_pf = (1, 2, 4, 8, 16), {}
    for pfs in sizes:
        with harness.Node(None) as node:
            b.machine(node, pfs, 127, pfs)
            r = json.loads(ran(b.tool("bench_scan"), "time", node.root, str(b.rounds(40, 2))))
        per_pf[pfs] = r["scan"]["p50_ms"] / pfs
        if pfs in (1, 16):
            b.add(f"scan-{pfs}", f"scan + node, {pfs} PFs × 127 VFs + {pfs} GPUs, p50",
                  r["scan"]["p50_ms"], "ms", bar=60 if pfs == 16 else None,
                  floor=r["floor"]["p50_ms"],
                  floor_is=f"reading its {r['files']:,} files and links once",
                  min_ms=r["scan"]["min_ms"])
    b.add("scan-linear", "scan time of a PF, 16 PFs against 1", per_pf[16], "ms", floor=per_pf[1],
          floor_is="of 1 PF", per_pf={str(k): v for k, v in per_pf.items()})
    with harness.Node(None) as node:
        node.unpack(os.path.join(b.build, "tests/fixtures/gb300-two-planes/host.tree"))
        r = json.loads(ran(b.tool("bench_scan"), "vpd", node.root, "30"))
    b.add("scan-vpd", f"first scan of a GB300 whose {r['vpds']} VPDs take 30 ms each", r["first_ms"],
          "ms", floor=30, floor_is="one of them", again_ms=r["again_ms"])


# --- system calls, which no other program of the machine makes dearer ---

CALL = re.compile(r"(\d+) +(<\.\.\. )?(\w+)[( ]")


def may_trace():
    """Not without strace, not where tracing is forbidden, and not with sanitizers, which do not run
    under it."""
    return shutil.which("strace") and not subprocess.run(
        ["strace", "-f", "-qq", "-o", "/dev/null", os.environ["RAILMATECTL"], "--version"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode


def traced(log, *argv):
    """Every system call of a command and its children."""
    ran("strace", "-f", "-qq", "-o", log, *argv)
    with open(log, encoding="utf-8", errors="replace") as f:
        return sum(1 for m in map(CALL.match, f) if m and not m[2])


def ended_in(log, pid):
    """The tracer, which nobody waits for, has written that the process is gone."""
    for _ in range(200):
        with open(log, encoding="utf-8", errors="replace") as f:
            if any(line.startswith(f"{pid} ") and "+++ " in line for line in f):
                return
        time.sleep(0.05)
    sys.exit("strace does not end")


WAITS = ("recvmsg", "epoll_wait", "epoll_pwait")


def handled(log):
    """
    Of everything that railmated sent: the system calls since it last received or waited, and those
    until it does again, as lists of names. Not futex: whether another thread holds a lock at that
    moment is a matter of the machine's load. A thread's lines begin with its id; a call that
    another thread interrupts has two.
    """
    current, sent = {}, []
    with open(log, encoding="utf-8", errors="replace") as f:
        for m in filter(None, map(CALL.match, f)):
            thread, resumed, call = m.groups()
            calls = current.setdefault(thread, [])
            if resumed:
                continue
            if call == "sendmsg":
                sent.append((calls, []))
                current[thread] = sent[-1][1]
            elif call in WAITS:
                current[thread] = []
            elif call != "futex":
                calls.append(call)
    return sent


def bench_syscalls(b):
    """The machine is that of the scan; of Allocate, each VF is given once, as to containers that
    come and stay, then some again."""
    import harness

    if not may_trace():
        print("no strace that may trace: no system calls are counted", file=sys.stderr)
        return
    with harness.Node(None) as node:
        b.machine(node, 16, 127, 16)
        calls = traced(node.path("strace"), os.environ["RAILMATECTL"], "topo", "--root", node.root)
        b.add(
            "syscalls-scan",
            f"system calls of `railmatectl topo` a VF, 16 PFs × 127 VFs + 16 GPUs ({calls:,} in all)",
            calls / (16 * 127), "calls", bar=14)
    if not may_mount():
        return
    with tempfile.NamedTemporaryFile() as log:
        # -D: signals are for railmated
        with b.running(8, 16, 8, live=True,
                       wrap=("strace", "-D", "-f", "-q", "-o", log.name)) as (node, _, daemon, ids):
            for i in range(16):
                b.call(node, "paced", 1, *ids[i::16])
            b.call(node, "paced", 16,
                   *ids[0::16])  # the kubelet says that the containers before are gone
        ended_in(log.name, daemon.pid)
        calls = handled(log.name)
    ours, others = ([c for c in calls if ("mkdir" in c[0]) == wanted] for wanted in (True, False))
    fresh, again = ours[:16], ours[16:]
    b.add(
        "syscalls-allocate",
        "system calls between an Allocate of 8 VFs and its reply, more than of an empty call",
        statistics.median(len(before) for before, _ in fresh) -
        statistics.median(len(before) for before, _ in others), "calls", bar=12)
    b.add("syscalls-allocate-after", "on the same thread after the reply",
          statistics.median(len(after) for _, after in fresh), "calls", bar=0)
    b.add("syscalls-allocate-again",
          "the same of VFs whose containers before are gone: the line of the log",
          statistics.median(len(after) for _, after in again), "calls", bar=1)


# --- the ledger ---

def bench_ledger(b):
    """On a real disk where there is one: fsync in memory costs nothing."""
    for holds in (64, 1024):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as d:
            r = json.loads(ran(b.tool("bench_ledger"), d, str(holds), str(b.rounds(500, 5))))
        b.add(
            f"ledger-{holds}",
            f"ledger of {holds:,} holds, {r['decisions']} decisions ({r['bytes'] // 1000} kB) to disk with fsync, p50",
            r["store"]["p50_us"] / 1000, "ms", floor=r["floor"]["p50_us"] / 1000,
            floor_is="the same bytes over a file, fdatasync", p99=r["store"]["p99_us"] / 1000)
        b.add(f"ledger-text-{holds}", "of it on the rpc thread, after the answer: its text, p50",
              r["text"]["p50_us"] / 1000, "ms", p99=r["text"]["p99_us"] / 1000)


# --- verify ---

def job_log(ranks, rounds):
    """What a job of so many ranks writes: mostly channels, a few lines of others."""
    lines = []
    for rank in range(ranks):
        head = f"[1,{rank}]<stdout>:train-{rank // 8}:{100 + rank}:{200 + rank} [{rank % 8}] NCCL INFO "
        lines += [
            f"{head}NET/IB : Using " + " ".join(f"[{i}]mlx5_{i}:1/RoCE" for i in range(8)) +
            " [RO]; OOB eth0:10.1.0.4<0>", f"{head}Using network IB",
            f"{head}comm 0x1 rank {rank} nRanks {ranks} nNodes {ranks // 8} localRanks 8 localRank {rank % 8} MNNVL 0"
        ]
        for channel in range(16):
            peer = (rank + 8) % ranks
            lines += [
                f"{head}Channel {channel:02}/0 : {rank}[{rank % 8}] -> {peer}[{rank % 8}] [send] via NET/IB/{rank % 8}/GDRDMA",
                f"{head}Channel {channel:02}/0 : {rank}[{rank % 8}] -> {rank ^ 1}[{(rank ^ 1) % 8}] via P2P/CUMEM",
                f"step {channel} loss 0.25"
            ]
    return ("\n".join(lines) + "\n").encode() * rounds


def took(argv, path):
    with open(path, "rb") as stdin:
        begin = time.monotonic()
        subprocess.run(argv, check=True, stdin=stdin, stdout=subprocess.DEVNULL)
        return time.monotonic() - begin


def bench_verify(b):
    with tempfile.NamedTemporaryFile() as log:
        log.write(job_log(64, b.rounds(1000, 10)))
        log.flush()
        megabytes = os.path.getsize(log.name) / 1e6
        ours, floor = [], []
        for _ in range(b.rounds(5, 1)):
            ours.append(took([os.environ["RAILMATECTL"], "verify", "-"], log.name))
            floor.append(took(["wc", "-l"], log.name))
    rate, rival = (megabytes / statistics.median(t) for t in (ours, floor))
    b.add("verify", f"verify of a log of 64 ranks, {megabytes:,.0f} MB", rate, "MB/s", bar=100,
          at_least=True, floor=rival, floor_is="wc -l")
    stream_verify(b, b.rounds(5000, 50) * 10 ** 6)


def stream_verify(b, size):
    """As a job that runs for weeks: through a pipe, longer than the memory of a small node."""
    block = job_log(64, 10)
    began, sent = time.monotonic(), 0
    with subprocess.Popen([os.environ["RAILMATECTL"], "verify", "-"], stdin=subprocess.PIPE,
                          stdout=subprocess.DEVNULL) as proc:
        while sent < size:
            sent += proc.stdin.write(block)
        # Of the program alone: getrusage() counts what this process had when it became the program,
        # too.
        with open(f"/proc/{proc.pid}/status", encoding="utf-8") as f:
            peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM:"))
    if proc.returncode:
        sys.exit(f"railmatectl verify of a stream: exit status {proc.returncode}")
    b.add("verify-stream", f"verify of a stream of {sent / 1e9:.2f} GB",
          sent / 1e6 / (time.monotonic() - began), "MB/s", bar=100, at_least=True)
    b.add("verify-rss", "its largest RSS", peak / 1000 * 1.024, "MB", bar=8)


# --- doctor ---

def largest_fixture(build):
    return max(glob.glob(os.path.join(build, "tests/fixtures/*/host.tree")),
               key=lambda tree: sum(1 for _ in open(tree, "rb")))


def examined(root):
    """Any verdict will do, a failure will not."""
    begin = time.monotonic()
    done = subprocess.run([os.environ["RAILMATECTL"], "doctor", "--root", root, "--json"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL)
    if done.returncode not in (0, 5, 6, 7):
        sys.exit(f"railmatectl doctor: exit status {done.returncode}")
    return (time.monotonic() - begin) * 1000


def bench_doctor(b):
    import harness

    tree = largest_fixture(b.build)
    for name, what in ((
            "doctor",
            f"doctor on the largest fixture, {os.path.basename(os.path.dirname(tree))}, p50"),
                       ("doctor-large", "doctor, 16 PFs × 127 VFs + 16 GPUs, p50")):
        with harness.Node(None) as node:
            if name == "doctor":
                node.unpack(tree)
            else:
                b.machine(node, 16, 127, 16)
            took_ms = [examined(node.root) for _ in range(b.rounds(30, 2))]
            scan = json.loads(ran(b.tool("bench_scan"), "time", node.root,
                                  str(b.rounds(30, 2))))["scan"]
        b.add(name, what, statistics.median(took_ms), "ms", bar=300, floor=scan["p50_ms"],
              floor_is="scan + node alone", slowest=max(took_ms))


# --- a cluster ---

FLEET_KUBECTL = """#!/bin/sh
cd "${0%/*}" || exit
[ "$1" = get ] || exec cat "$4"
exec sed "s/^/$(printf %s "$*" | sed 's/.*items\\[\\*\\]}{"\\([0-9a-f]*\\)".*/\\1/')/" pods
"""


def fleet_answer(i, real):
    """What a node with 64 VFs says; every tenth says nothing that makes sense."""
    if i % 10 == 0:
        return {}
    links = [{**link, "rail": rail, "switch": f"unit-{i // 32}-leaf-{rail}"}
             for rail, link in enumerate(real["links"])]
    pool = {
        "resource": "rdma/vf", "binding": "early", "vfs": 64, "free": i % 64, "held": 64 - i % 64,
        "allocated": 0, "draining": 0, "in_use": 0, "unhealthy": 0
    }
    return {
        **real, "node": f"gpu-{i:04}", "verdict": ("PASS", "WARN")[i % 2], "pools": [pool],
        "links": links
    }


def fleet_shown(argv, env):
    """Seconds and the largest RSS in KiB, while its last output waits in the pipe."""
    begin = time.monotonic()
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=env,
                          pipesize=4096) as proc:
        first = proc.stdout.read(1)
        with open(f"/proc/{proc.pid}/status", encoding="utf-8") as f:
            peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM:"))
        rows = (first + proc.stdout.read()).count(b"\n")
    return time.monotonic() - begin, peak, rows


def bench_fleet(b):
    import harness

    nodes = b.rounds(1000, 100)
    with harness.Node(None) as node:
        node.unpack(os.path.join(b.build, "tests/fixtures/hgx-h100/host.tree"))
        real = json.loads(
            subprocess.run([
                os.environ["RAILMATECTL"], "status", "--json", "--root", node.root,
                "--control-socket", "none"
            ], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           check=False).stdout)
        os.mkdir(node.path("bin"))
        with open(node.path("bin", "pods"), "w", encoding="utf-8") as pods:
            for i in range(nodes):
                pods.write(f"\tpod-{i}\tgpu-{i:04}\tRunning\t\ttrue\t\n")
                with open(node.path("bin", f"pod-{i}"), "w", encoding="utf-8") as f:
                    json.dump(fleet_answer(i, real), f)
        with open(node.path("bin", "kubectl"), "w", encoding="utf-8") as f:
            f.write(FLEET_KUBECTL)
        os.chmod(node.path("bin", "kubectl"), 0o755)
        env = {**os.environ, "PATH": f"{node.path('bin')}:{os.environ['PATH']}"}
        runs = [fleet_shown([os.environ["RAILMATECTL"], "cluster", "status"], env)
                for _ in range(b.rounds(5, 1))]
    if any(rows != nodes + 2 for _, _, rows in runs):
        sys.exit(f"railmatectl cluster status: {runs[0][2]} lines of {nodes} nodes")
    b.add("fleet", f"cluster status, {nodes:,} nodes, by a kubectl that does nothing else",
          statistics.median(r[0] for r in runs), "s", bar=10)
    b.add("fleet-rss", "its largest RSS", max(r[1] for r in runs) / 1000 * 1.024, "MB", bar=100)


# --- metrics ---

@contextlib.contextmanager
def scraped(port, every):
    """Meanwhile somebody scrapes this often; yields the list of how long each took."""
    from test_metrics import get

    over, took = threading.Event(), []

    def scrape():
        while not over.wait(every):
            began = time.monotonic()
            get(port, "/metrics")
            took.append(time.monotonic() - began)

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield took
    finally:
        over.set()
        thread.join()


def bench_metrics(b):
    from test_metrics import HOST, free_port, get

    def cpu():
        """Of the server's thread; the rpc thread copies the ledger once, and is busy with 1,024
        held VFs anyhow."""
        return cpu_ms(daemon.pid)["MHD-single"]

    port, scrapes, rounds, paced = free_port(), *b.rounds((10, 10, 1000), (2, 1, 20))
    pfs, vfs, pods, each = b.rounds((16, 64, 16, 64), (4, 4, 2, 8))
    with b.running(pfs, vfs, 8,
                   daemon=(f"--metrics-address={HOST}:{port}", )) as (node, kubelet, daemon, _):
        for n in range(pods):
            kubelet.admit(f"p{n}", f"main:{VF}={each}")
            kubelet.ask(f"prestart p{n}")
        time.sleep(3)
        get(port, "/metrics")
        first, took = cpu(), []
        for _ in range(scrapes):
            time.sleep(1.05)  # what is younger is not copied anew
            began = time.monotonic()
            get(port, "/metrics")
            took.append(time.monotonic() - began)
        b.add("scrape-cpu", f"CPU of a scrape, {pfs * vfs:,} VFs, {pods * each:,} held",
              (cpu() - first) / scrapes, "ms", bar=20)
        b.add("scrape-wall", "the same, as the scraper sees it, p50",
              statistics.median(took) * 1000, "ms")
        b.add("scrape-rss", "RSS after it", idle(daemon)["Rss"] / 1000 * 1.024, "MB")
    with b.running(8, 16, 8,
                   daemon=(f"--metrics-address={HOST}:{port}", )) as (node, _, daemon, ids):
        eight, alone, beside = [i for n, i in enumerate(ids) if n % 16 == 0], [], []
        get(port, "/metrics")
        b.call(node, "allocate", paced, *eight)
        b.add("metrics-rss", "RSS, idle, 128 VFs, with metrics",
              idle(daemon)["Rss"] / 1000 * 1.024, "MB", bar=13)
        for _ in range(rounds):
            alone.append(b.call(node, "paced", paced, *eight)["call"]["p99_us"])
            with scraped(port, 0.1):
                beside.append(b.call(node, "paced", paced, *eight)["call"]["p99_us"])
    b.add("scrape-allocate-p99", "Allocate of 8 VFs beside ten scrapes a second, p99",
          statistics.median(beside), "µs", floor=statistics.median(alone), floor_is="without",
          ratio_bar=1.1)


# --- asking the kubelet who is still there, and nothing at all ---

def bench_watch(b):
    """The kubelet is asked pod by pod, 20 times a second with that many pods."""
    seconds = b.rounds(20, 1)
    pfs, vfs, pods, each = b.rounds((16, 64, 128, 8), (4, 4, 2, 8))
    with b.running(pfs, vfs, 8) as (_, kubelet, daemon, _ids):
        for n in range(pods):
            kubelet.admit(f"p{n}", f"main:{VF}={each}")
            kubelet.ask(f"prestart p{n}")
        time.sleep(b.rounds(8, 1))  # what was stored and looked at after the last one is over
        first = cpu_ms(daemon.pid).total()
        time.sleep(seconds)
        b.add("watch-cpu",
              f"CPU of a second in which nothing happens, {pfs * vfs:,} VFs, held by {pods} pods",
              (cpu_ms(daemon.pid).total() - first) / seconds, "ms")


def bench_idle(b):
    """Nothing happens for five minutes, long after the start."""
    seconds = b.rounds(300, 3)
    with b.running(8, 8, 8) as (_, _kubelet, daemon, _ids):
        time.sleep(b.rounds(10, 1))
        first, slept = cpu_ms(daemon.pid), wakeups(daemon.pid)
        time.sleep(seconds)
        slept = wakeups(daemon.pid) - slept
        minute = {
            thread: (ms - first[thread]) * 60 / seconds
            for thread, ms in cpu_ms(daemon.pid).items()
        }
    b.add("idle-cpu", "CPU of an idle minute, 64 VFs", sum(minute.values()), "ms", bar=30,
          threads=minute)
    b.add("idle-wakeups", "wake-ups in it, whatever the load", slept * 60 / seconds, "")
    for thread, ms in sorted(minute.items(), key=lambda item: -item[1])[:4]:
        if ms:
            b.add(f"idle-cpu-{thread}", f"of it {thread}", ms, "ms")


def bench_wakeups(b):
    """No matter of speed: a busy machine has fewer of them. 180 are of three threads of gRPC, which
    no setting stops."""
    seconds = b.rounds(20, 2)
    with b.running(8, 8, 8) as (_, _kubelet, daemon, _ids):
        time.sleep(b.rounds(8, 1))
        first = wakeups(daemon.pid)
        time.sleep(seconds)
        b.add("wakeups", "wake-ups of an idle minute, 64 VFs",
              (wakeups(daemon.pid) - first) * 60 / seconds, "", bar=300)


BENCHES = {
    "metrics": bench_metrics, "watch": bench_watch, "idle": bench_idle,
    "wakeups": bench_wakeups, "allocate": bench_allocate,
    "choice": bench_choice, "preferred": bench_preferred, "bind": bench_bind, "claims": bench_claims,
    "prediction": bench_prediction, "start": bench_start, "restart": bench_restart,
    "attacks": bench_attacks, "scan": bench_scan, "syscalls": bench_syscalls,
    "ledger": bench_ledger, "verify": bench_verify, "doctor": bench_doctor, "fleet": bench_fleet
}


# --- the table ---

def amount(value, unit):
    return f"{value:.1f} {unit}" if value >= 10 else f"{value:.2f} {unit}"


def bar_of(f):
    if f.get("ratio_bar"):
        return f"≤ {f['ratio_bar']} ×", "met" if f["ratio"] <= f["ratio_bar"] else "MISSED"
    if f["bar"] is None:
        return "", ""
    return f"{'≥' if f['at_least'] else '≤'} {f['bar']} {f['unit']}", "met" if f["met"] else "MISSED"


def row_of(f):
    floor = f"{amount(f['floor'], f['unit'])}  {f['floor_is']}" if f["floor"] is not None else ""
    return (f["what"], amount(f["value"], f["unit"]), *bar_of(f),
            f"{f['ratio']:.2f} ×" if f["ratio"] else "", floor)


def print_table(figures):
    rows = [("figure", "measured", "bar", "", "ratio", "floor or rival, same run"),
            *map(row_of, figures)]
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for r in rows:
        print("  ".join(
            c.rjust(w) if i in (1, 4) else c.ljust(w)
            for i, (c, w) in enumerate(zip(r, widths))).rstrip())


def machine_in_words():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")),
                     "unknown CPU")
    return f"{len(os.sched_getaffinity(0))} CPUs ({model}), Linux {os.uname().release}, load {os.getloadavg()[0]:.1f}"


def parse():
    p = argparse.ArgumentParser(description="Takes every figure that railmate promises.")
    p.add_argument("--build", required=True, help="a build directory")
    p.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    p.add_argument("--quick", action="store_true", help="a few iterations: does it run at all?")
    p.add_argument("--only", default=",".join(BENCHES), help=f"some of {','.join(BENCHES)}")
    p.add_argument("--strict", action="store_true",
                   help="exit status 1 where a bar is missed, 77 without a figure")
    args = p.parse_args()
    args.build = os.path.abspath(args.build)
    unknown = [n for n in args.only.split(",") if n not in BENCHES]
    if unknown:
        p.error(f"--only: {unknown[0]} is none of {', '.join(BENCHES)}")
    return args


def main():
    args = parse()
    for variable, path in PROGRAMS.items():
        os.environ.setdefault(variable, os.path.join(args.build, path))
    os.environ.setdefault("FIXTURES", os.path.join(args.build, "tests/fixtures"))
    sys.path.insert(0, os.path.join(HERE, "../integration"))
    sys.dont_write_bytecode = True
    machine, began, bench = machine_in_words(), time.monotonic(), Bench(args)
    for name in args.only.split(","):
        print(f"{name} …", file=sys.stderr, flush=True)
        BENCHES[name](bench)
    seconds = time.monotonic() - began
    untaken = [
        f["name"]
        for f in bench.figures
        if not (0 < f["value"] < float("inf") or (f["unit"] == "calls" and f["value"] == 0))
    ]
    if untaken:
        sys.exit(f"no figure came out: {', '.join(untaken)}")
    if args.strict and not bench.figures:
        sys.exit(77)
    if args.json:
        print(
            json.dumps({"machine": machine, "seconds": seconds, "figures": bench.figures}, indent=1,
                       ensure_ascii=False))
    else:
        print(f"{machine} at the start; took {seconds:.0f} s\n")
        print_table(bench.figures)
    if args.strict and any(f["met"] is False for f in bench.figures):
        sys.exit("a bar is missed")


if __name__ == "__main__":
    main()
