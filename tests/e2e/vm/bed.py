"""
What the scenarios share, in the guest: the daemons on the live machine (tests/integration/harness.py), shell helpers
(lib/guest.sh), changes of the hardware with the time the kubelet was told, and the lines of the report.
"""

import json
import os
import signal
import subprocess
import sys
import time
import traceback

import harness
from harness import Node, Process
from optimum import Machine, assignment, best_total
from tries import AGAIN, Late, Tries

SHARE = "/share"
AMD, NVIDIA, VF = "amd.com/gpu", "nvidia.com/gpu", "rdma/vf"
ALLOCATE = "/v1beta1.DevicePlugin/Allocate"
PCI = "/sys/bus/pci/devices"
LIMIT = 90  # seconds a scenario may take


def check(true, sentence, failure=AssertionError):
    if not true:
        raise failure(sentence)


def equal(a, b, sentence):
    check(a == b, f"{sentence}: {a!r} is not {b!r}")


def output(*argv, stdin=None):
    run = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=LIMIT)
    check(run.returncode == 0, f"{argv[0]} ends with {run.returncode}: {run.stderr.strip()[-500:]}")
    return run.stdout


def shell(line):
    """With the functions of lib/guest.sh."""
    return output("/bin/bash", "-euc", f". /bed/guest.sh; {line}")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read().strip()


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def vf_address(bus, index):
    return os.path.basename(os.readlink(f"{PCI}/0000:{bus}:00.0/virtfn{index}"))


def rdma_links():
    """RDMA device → netdev, as `rdma link` has it."""
    return {link["ifname"]: link.get("netdev") for link in json.loads(output("rdma", "-j", "link"))}


def verbs_nodes():
    """RDMA device → path of its verbs node, as the kernel has it now."""
    base = "/sys/class/infiniband_verbs"
    return {
        read(f"{base}/{u}/ibdev"): f"/dev/infiniband/{u}"
        for u in os.listdir(base)
        if u.startswith("uverbs")
    }


def rdma_of_vfs():
    """VF address → its RDMA device, by way of the netdev that `rdma link` names."""
    return {os.path.basename(os.path.realpath(f"/sys/class/net/{netdev}/device")): name
            for name, netdev in rdma_links().items() if netdev}


def check_answer(admission):
    """Nodes and names that the container got are those that the kernel has for its VFs, now."""
    answer, chosen = harness.container(admission), sorted(harness.vfs_of(admission))
    rdma, nodes = rdma_of_vfs(), verbs_nodes()
    want = {nodes[rdma[v]] for v in chosen} | {"/dev/infiniband/rdma_cm"}
    equal({d["host"] for d in answer["device_nodes"]}, want, "device nodes")
    for d in answer["device_nodes"]:
        check(os.path.exists(d["host"]), f"{d['host']} is not there")
        equal((d["container"], d["permissions"]), (d["host"], "rw"), d["host"])
    equal(answer["env"]["PCIDEVICE_RDMA_VF"].split(","), chosen, "PCIDEVICE_RDMA_VF")
    equal(answer["env"]["NCCL_IB_HCA"], "=" + ",".join(f"{rdma[v]}:1" for v in chosen),
          "NCCL_IB_HCA")


def monitor(command):
    """A command for QEMU's monitor, which the host passes on."""
    write(f"{SHARE}/monitor.new", command + "\n")
    os.rename(f"{SHARE}/monitor.new", f"{SHARE}/monitor")


def and_see(act, path, value):
    """act(), and the wait until that file has this value."""
    def act_and_see():
        act()
        harness.until(lambda: read(path) == value, f"{path} becomes {value}")
    return act_and_see


class LiveNode(Node):
    """railmated, the fake kubelet and the fake GPU plugin on this machine; `inside` goes before every command line."""

    def __init__(self, root="/", gpu=AMD, inside=()):
        super().__init__(None)
        self.root, self.gpu, self.inside = root, gpu, list(inside)

    def topo(self):
        argv = [*self.inside, os.environ["RAILMATECTL"], "topo", "--json", "--root", self.root]
        return Machine(json.loads(output(*argv)))

    def start_gpu_plugin(self, *options):
        p = Process([
            *self.inside, os.environ["FAKEGPU"], "--root", self.root, "--kubelet-dir",
            self.kubelet_dir, "--resource", self.gpu, *options
        ], self.path("gpu.log"), stdin=subprocess.DEVNULL)
        self.processes.append(p)
        return p

    def daemon_argv(self, *options):
        argv = [*self.inside, *super().daemon_argv(*options)]
        if self.root == "/":
            at = argv.index("--root")
            del argv[at:at + 2]  # as it is started on a node
        return argv

    def start_all(self, *kubelet_options, config=None, vfs=1):
        options = ()
        if config:
            write(self.path("config.json"), json.dumps(config))
            options = ("--config-file", self.path("config.json"))
        self.start_kubelet(*kubelet_options)
        self.start_gpu_plugin()
        self.daemon = self.start_daemon(*options)
        self.kubelet.wait(self.gpu, 4)
        self.kubelet.wait(VF, vfs)
        return self.kubelet

    def admit(self, pod, gpus, vfs, order="gpu-first"):
        demands = [f"{r}={n}" for r, n in ((self.gpu, gpus), (VF, vfs)) if n]
        return self.kubelet.admit(pod, f"main:{','.join(demands)}", order=order)

    def admit_best(self, machine, free, pod, gpus, vfs):
        """Admits GPU-first, demands the optimum, returns the admission; takes its VFs from `free`."""
        admission = self.admit(pod, gpus, vfs)
        mine = harness.gpus_of(machine, admission, resource=self.gpu)
        chosen = harness.vfs_of(admission)
        equal((len(mine), len(chosen)), (gpus, vfs), f"{pod}: GPUs and VFs")
        check(set(chosen) <= free, f"{pod}: got {chosen}, of which some are not free")
        total, pairs = assignment(machine, mine, chosen)
        best = best_total(machine, mine, free, vfs)
        equal(total, best, f"{pod}: {pairs}: total, best total")
        free -= set(chosen)
        return admission

    def unhealthy(self):
        return {d["id"] for d in self.kubelet.resource(VF)["devices"] if not d["healthy"]}

    def held(self):
        containers = [
            c for pod in self.kubelet.ask("pods")["pods"] for c in pod["containers"].values()
        ]
        return {vf for c in containers for vf in c.get(VF, [])}

    def listed(self):
        return {d["id"] for d in self.kubelet.resource(VF)["devices"]}

    def allocate(self, vf):
        """Allocate of one VF, whatever the kubelet thinks of it."""
        name = vf.encode().hex()
        body = f"0a{len(vf) + 2:02x}0a{len(vf):02x}{name}"
        return self.kubelet.ask(f"call {VF} {ALLOCATE} {body}")

    def refused(self, vf, *words):
        """The sentence with which Allocate of this VF is refused."""
        answer = self.allocate(vf)
        check(answer["status"] != "OK", f"Allocate of {vf} was answered, it had to be refused")
        for word in (vf, *words):
            check(word in answer["message"],
                  f"the refusal of {vf} does not say '{word}': {answer['message']}")
        return answer["message"]

    def times(self, act, allocatable, at_once=None):
        """
        Changes the hardware by act() and waits until the kubelet was told of so many allocatable VFs: when act() began
        and ended, and when it was told, in seconds. at_once() is called in the time between.
        """
        since = self.kubelet.mark()
        began = time.monotonic()
        act()
        done = time.monotonic()
        if at_once:
            at_once()
        told = self.kubelet.event("list", since, resource=VF, allocatable=allocatable)
        return began, done, told["t"] / 1e6

    def change(self, what, act, allocatable, at_once=None):
        """The same in words: in milliseconds after the kernel was done; negative when the kubelet knew before that."""
        began, done, told = self.times(act, allocatable, at_once)
        return f"{what}: kernel {(done - began) * 1e3:.0f} ms, told {(told - done) * 1e3:+.0f} ms"

    def change_seen(self, what, act, path, value, allocatable):
        """As change(), where act() only asks for a change: it is there when the file has that value."""
        return self.change(what, and_see(act, path, value), allocatable)

    def silent(self, what, act, seconds=1.5):
        """The change must not be told at all."""
        since = self.kubelet.mark()
        act()
        time.sleep(seconds)
        equal(self.lists_since(since), [], f"{what}: lists sent")
        return f"{what}: nothing told"

    def settle(self, seconds=1.5):
        """Until what was changed before has been told."""
        while True:
            since = self.kubelet.mark()
            time.sleep(seconds)
            if not self.lists_since(since):
                return

    def lists_since(self, mark):
        return [
            e for e in self.kubelet.events[mark:] if e["event"] == "list" and e["resource"] == VF
        ]


# --- the report ---

SCENARIOS = []


def scenario(function):
    """Its first line of documentation is its name; what it returns is printed beside the verdict."""
    SCENARIOS.append(function)
    return function


class TooLong(Late):
    pass


def on_alarm(_signo, _frame):
    raise TooLong(f"not done within {LIMIT} s")


def run_one(function, tries):
    began = time.monotonic()
    signal.alarm(LIMIT)
    try:
        verdict, words = "ok", tries.remark(function, function()) or ""
    except Exception as e:  # whatever it is, the next scenario is run
        traceback.print_exc()
        verdict = tries.verdict(function, e) or "FAILED"
        words = " ".join(str(e).split()) or type(e).__name__
    finally:
        signal.alarm(0)
    return {"scenario": function.__doc__.strip().split("\n")[0], "verdict": verdict,
            "seconds": round(time.monotonic() - began, 1), "words": words}


def run_all(modules, words):
    """Scenarios of these; one JSON object a line into the share."""
    signal.signal(signal.SIGALRM, on_alarm)
    failed, tries = False, Tries()
    left = [f for f in SCENARIOS
            if f.__module__ in modules and (not words or any(w in f.__name__ for w in words))]
    with open(f"{SHARE}/results", "w", encoding="utf-8") as results:
        while left:
            print(f"--- {left[0].__name__} {time.monotonic():.0f}", file=sys.stderr, flush=True)
            line = run_one(left[0], tries)
            print(json.dumps(line), file=results, flush=True)
            if line["verdict"] != AGAIN:
                failed |= line["verdict"] != "ok"
                left.pop(0)
    return 1 if failed else 0
