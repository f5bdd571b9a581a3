"""
What has to be true on a real kubelet, whatever runs it: node.py's standalone one, or the cluster of
hack/kind-e2e.
Each scenario looks at what the container itself printed and at what PodResources says. Standard
library only.

A cluster has: topo(), create(pod), delete(name), status(name), log(name, container, instance),
held(), held_by_get(name), allocatable(), devinfo(id), order(name), running(name), describe(),
keep_state(scenario); and, or else raises Unsupported: kubelet_restart(signal), start_railmate(),
stop_railmate(name, signal), newest_railmate(), railmate_log(name), ready(name), gap_ms(),
break_vf(id), wait_registered().
"""
import contextlib
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../integration"))
from optimum import Machine, assignment, best_total  # noqa: E402 (the path comes first)
from tries import AGAIN, Late, Tries  # noqa: E402

GPU, VF = os.environ.get("E2E_GPU", "nvidia.com/gpu"), "rdma/vf"
GPU_ENV = "NVIDIA_VISIBLE_DEVICES" if GPU.startswith("nvidia") else "GPU_DEVICES"
SLOWNESS = float(os.environ.get("E2E_SLOWNESS", "1"))  # of this machine: an emulated one is slower
LIMIT = 60 * SLOWNESS  # seconds for anything that a pod or a daemon does
IMAGE = "railmate.test/probe:1"
# The runtime's device rules say so; a node that is allowed and has no driver behind it says
# something else.
REFUSED = ("not permitted", "denied")
TAKE_OVERS = 5
# tests/bench/RESULTS.md holds 50 ms against quiet machines; a registration that is tried again
# takes a second or more.
GAP_MS = 500
TOO_SOON = 20  # ms: a kubelet that refuses pods so soon after its socket is there leaves no time to register
NCCL_MAX = 32  # it drops the rest without a word
INSTANCES = itertools.count(1)

REPORT = """
echo BEGIN
env | sed 's/^/env /'
for d in /dev/infiniband/*; do
	[ -e "$d" ] || continue
	echo "dev $d $(stat -c '%t %T' "$d")"
	echo "open $d $( { : <"$d"; } 2>&1 )"
done
for f in /run/railmate/*.conf /run/railmate/*.json; do
	[ -e "$f" ] && sed "s|^|file ${f##*/} |" "$f"
done
echo "write $( { : >/run/railmate/ours; } 2>&1 )"
echo "probe $(/run/railmate/probe/railmate-probe --version 2>&1)"
echo END
"""
SETUP = "/bin/busybox --install -s /tmp; PATH=/tmp\n"
STAY = "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done\n"
CRASH_ONCE = "if [ ! -e /keep/crashed ]; then touch /keep/crashed; exit 7; fi\n"


class TimeIsUp(BaseException):
    """Of the whole run: nothing that waits or cleans up may catch it."""


class Unsupported(Exception):
    """This kind of cluster cannot do that."""


def until(true, what, limit=LIMIT, failure=Late):
    """Polls; returns what `true` returned. failure: Late, or what is wrong however late it is."""
    deadline = time.monotonic() + limit
    while True:
        value = true()
        if value:
            return value
        if time.monotonic() > deadline:
            raise failure(f"{what}: not within {limit} s")
        time.sleep(0.05 * SLOWNESS)


def check(condition, sentence, failure=AssertionError):
    if not condition:
        raise failure(sentence)


def equal(found, expected, what):
    check(found == expected, f"{what}: {found!r}, not {expected!r}")


def devices_of(pod):
    """container → resource → sorted ids, of a pod as podres prints it: the kubelet's order
    changes."""
    return {
        c["name"]: {resource: sorted(ids)
                    for resource, ids in c["devices"].items()}
        for c in pod["containers"]
    }


# --- pods ---

def container(name, gpus=0, vfs=0, then=STAY, vfs_first=False, **more):
    """vfs_first: so it is written, which makes it more likely that the kubelet allocates them
    first."""
    limits = {resource: str(count) for resource, count in ((GPU, gpus), (VF, vfs)) if count}
    if vfs_first:
        limits = dict(reversed(limits.items()))
    return {
        "name": name, "image": IMAGE, "imagePullPolicy": "Never",
        "command": ["/bin/busybox", "sh", "-c", SETUP + REPORT + then],
        "resources": {"limits": limits}, "volumeMounts": [{"name": "keep",
                                                           "mountPath": "/keep"}], **more
    }


def pod(name, *containers, init=(), grace=2, deadline=None):
    """deadline: seconds after which the kubelet ends it."""
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "hostNetwork": True, "terminationGracePeriodSeconds": grace, "restartPolicy": "Always",
            "automountServiceAccountToken": False, "containers": list(containers),
            "initContainers": list(init), "volumes": [{"name": "keep", "emptyDir": {}}],
            **({"activeDeadlineSeconds": deadline} if deadline else {})
        }
    }


class Report:
    """What a container saw."""

    def __init__(self, text):
        lines = text.split("BEGIN\n", 1)[1].split("END\n", 1)[0].splitlines()
        self.env = dict(line[4:].split("=", 1)
                        for line in lines
                        if line.startswith("env ") and "=" in line)
        self.devices = {
            line.split()[1]: line.split()[2:]
            for line in lines
            if line.startswith("dev ")
        }
        self.opened = {
            line.split()[1]: line.split(" ", 2)[2]
            for line in lines
            if line.startswith("open ")
        }
        self.files = {}  # of /run/railmate: name → lines
        for _, name, text in (line.split(" ", 2) for line in lines if line.startswith("file ")):
            self.files.setdefault(name, []).append(text)
        self.written, self.probe = (next(line for line in lines if line.startswith(word))
                                    for word in ("write ", "probe "))


class Cluster:
    """A backend with what scenarios need beside it: names that were never used before, and the
    machine's matrix."""

    def __init__(self, backend):
        self.backend, self.live = backend, []
        self.machine = Machine(backend.topo())
        self.vf = {v["pci"]: v for v in self.machine.topo["vfs"]}

    def __getattr__(self, name):
        return getattr(self.backend, name)

    def new(self, *containers, **more):
        name = f"p{next(INSTANCES)}"
        self.live.append(name)
        self.backend.create(pod(name, *containers, **more))
        return name

    def run(self, *containers, init=()):
        """A pod whose containers all run and have reported."""
        name = self.new(*containers, init=init)
        self.wait_running(name, [c["name"] for c in containers])
        return name

    def wait_running(self, name, containers):
        def up():
            status = self.status(name) or {}
            if status.get("phase") == "Failed":
                raise AssertionError(
                    f"{name} failed: {status.get('reason')}: {status.get('message')}")
            return set(containers) <= set(self.running(name))
        until(up, f"containers of {name} to run")
        for c in containers:
            self.report(name, c)

    def failed(self, name):
        """The message of a pod that the kubelet refuses."""
        def refused():
            status = self.status(name) or {}
            check(not self.running(name), f"{name} runs, but should have been refused")
            return status.get("phase") == "Failed" and status
        status = until(refused, f"{name} to be refused")
        return f"{status.get('reason')}: {status.get('message')}"

    def report(self, name, container, instance=0):
        text = until(lambda: (t := self.log(name, container, instance)) and "END\n" in t and t,
                     f"report {instance} of {name}/{container}")
        return Report(text)

    def end(self, *names):
        """Deletes; waits until nothing of them is left."""
        for name in names:
            self.backend.delete(name)
        for name in names:
            until(lambda n=name: self.status(n) is None, f"{name} to go")
            self.live.remove(name)
        until(lambda: not set(names) & set(self.held()), "their devices to be given back")
        if hasattr(self.backend, "lingering"):  # of a node that is not ours, nothing is known
            until(lambda: not self.backend.lingering(), "their processes to end")
        if hasattr(self.backend, "settle"):
            self.backend.settle()

    def taken(self, but=()):
        """Every VF that PodResources says some pod holds."""
        return {vf for name, containers in self.held().items() if name not in but
                for devices in containers.values() for vf in devices.get(VF, [])}

    def free(self, but=()):
        return set(self.allocatable().get(VF, [])) - self.taken(but)


PROBES = {"absent": 0}


@contextlib.contextmanager
def probe_may_be_absent():
    """A railmated without its folder gives the container none: of the last release, or as a program of the machine."""
    PROBES["absent"] += 1
    try:
        yield
    finally:
        PROBES["absent"] -= 1


def check_container(c, name, container, gpus, vfs, instance=0):
    """What it saw is what PodResources says it holds; returns (its GPUs' addresses, its VFs)."""
    held = c.held()[name][container]
    mine = sorted(held.get(VF, []))
    equal((len(held.get(GPU, [])), len(mine)), (gpus, vfs), f"GPUs and VFs of {name}/{container}")
    check_report(c, c.report(name, container, instance), held.get(GPU, []), mine)
    for vf in mine:
        equal((c.devinfo(vf) or {}).get("pci", {}).get("pci-address"), vf,
              "the address in the VF's device-info file")
    return [c.machine.gpu(g) for g in held.get(GPU, [])], mine


def check_report(c, report, gpu_ids, vfs):
    nodes = [c.vf[vf]["uverbs"] for vf in vfs] + ["rdma_cm"] if vfs else []
    equal(report.devices, {f"/dev/infiniband/{n}": c.device_number(n)
                           for n in nodes}, "device nodes in the container")
    for node, words in report.opened.items():
        check(not any(refusal in words for refusal in REFUSED),
              f"{node} cannot be opened in the container: {words}")
    equal(set(filter(None,
                     report.env.get(GPU_ENV, "").split(","))), set(gpu_ids), "the GPUs' variable")
    if not vfs:
        check(not any(k.startswith(("NCCL_", "RAILMATE_", "PCIDEVICE_")) for k in report.env),
              "variables without VFs")
        equal(report.files, {}, "files without VFs")
        return
    equal(report.env.get("PCIDEVICE_RDMA_VF"), ",".join(vfs), "PCIDEVICE_RDMA_VF")
    equal(report.env.get("RAILMATE_RDMA_VF_VFS"), ",".join(vfs), "RAILMATE_RDMA_VF_VFS")
    hcas = ",".join(f"{c.vf[vf]['rdma']}:1" for vf in vfs[:NCCL_MAX])
    equal(report.env.get("NCCL_IB_HCA"), "=" + hcas, "NCCL_IB_HCA")
    check_files(c, report, vfs)


def check_files(c, report, vfs):
    """What the container sees in /run/railmate; it cannot write there."""
    pairs = json.loads("\n".join(report.files.get("map.json", ["{}"]))).get("gpus", [])
    equal({(p["vf"], p["hca"])
           for p in pairs}, {(vf, c.vf[vf]["rdma"])
                             for vf in vfs}, "VFs in map.json")
    if "NCCL_CONF_FILE" in report.env:
        equal(report.env["NCCL_CONF_FILE"], "/run/railmate/nccl.conf", "NCCL_CONF_FILE")
        check(f"NCCL_IB_HCA={report.env['NCCL_IB_HCA']}" in report.files.get("nccl.conf", []),
              "nccl.conf names other HCAs")
    check("Read-only" in report.written,
          f"the container can write into /run/railmate: {report.written}")
    # Its image has one static program, and no C library.
    check(report.probe.startswith("probe railmate-probe ") or (PROBES["absent"] and "not found" in report.probe),
          f"the container cannot execute the probe: {report.probe}")


def check_optimal(c, gpus, vfs, free):
    """No other choice of free VFs is closer to these GPUs."""
    found, best = assignment(c.machine, gpus, vfs)[0], best_total(c.machine, gpus, free | set(vfs),
                                                                  len(vfs))
    equal(found, best, f"total distance of {vfs} to {gpus}")


# --- scenarios ---

SCENARIOS = []


def scenario(function=None, *, binding="early", where=lambda c: True, api=False):
    """binding: of the pool. where: does it belong to this pair of kubelet and runtime? api: to a
    node with an API server?"""
    def add(f):
        f.binding, f.where, f.api = binding, where, api
        SCENARIOS.append(f)
        return f
    return add(function) if function else add


def one_pod(c, gpus, vfs, **more):
    """A pod of one container, checked; (its name, were GPUs first)."""
    free = c.free()
    name = c.run(container("main", gpus, vfs, **more))
    mine = check_container(c, name, "main", gpus, vfs)
    order = c.order(name)
    if order == [GPU, VF]:
        check_optimal(c, *mine, free)
    return name, order == [GPU, VF]


@scenario
def gpus_first_and_vfs_first(c):
    """Pods until the kubelet's map gave both orders; GPU-first ones are optimal."""
    firsts = []
    while not (True in firsts and False in firsts) or len(firsts) < 6:
        check(len(firsts) < 40, f"only one order in {len(firsts)} pods: {set(firsts)}")
        pods = [one_pod(c, 1, 1, vfs_first=i % 2) for i in range(4)]
        firsts += [gpus_first for _, gpus_first in pods]
        c.end(*(name for name, _ in pods))
    return f"{firsts.count(True)} of {len(firsts)} GPU-first, all of those optimal"


@scenario
def one_two_four_eight_gpus(c):
    """As many VFs as GPUs, half as many, and all GPUs of the machine."""
    first = 0
    shapes = [(1, 1), (2, 2), (2, 1), (4, 4), (8, 8), (8, 4)]
    for gpus, vfs in shapes:
        name, gpus_first = one_pod(c, gpus, vfs)
        first += gpus_first
        c.end(name)
    return f"{first} of {len(shapes)} GPU-first"


@scenario
def two_containers_of_a_pod(c):
    name = c.run(container("left", 2, 2), container("right", 2, 2), container("plain"))
    left, right = check_container(c, name, "left", 2, 2), check_container(c, name, "right", 2, 2)
    check(not set(left[1]) & set(right[1]), "two containers share a VF")
    check_report(c, c.report(name, "plain"), [], [])
    if c.order(name) == [GPU, VF] * 2:
        check_optimal(c, *left, c.free((name,)))
        check_optimal(c, *right, c.free((name,)) - set(left[1]))


@scenario
def an_init_container_holds_gpus_first(c):
    """Its devices come back to the container after it; what that one holds is what it sees."""
    name = c.run(container("main", 2, 2), init=[container("before", 1, 1, then="exit 0\n")])
    gpus, vfs = check_container(c, name, "main", 2, 2)
    early = c.report(name, "before").env
    check(early["PCIDEVICE_RDMA_VF"] in vfs,
          "the VF of the init container did not come to its successor")
    check(c.machine.gpu(early[GPU_ENV]) in gpus, "nor did its GPU")


@scenario
def a_sidecar_keeps_its_vf(c):
    name = c.run(container("main", 1, 1), init=[container("side", 0, 1, restartPolicy="Always")])
    _, side = check_container(c, name, "side", 0, 1)
    gpus, vfs = check_container(c, name, "main", 1, 1)
    check(side != vfs, "the sidecar and the main container share a VF")
    if c.order(name)[1:] == [GPU, VF]:
        check_optimal(c, gpus, vfs, c.free((name,)) - set(side))


@scenario
def a_container_that_crashes_keeps_its_vfs(c):
    name = c.new(container("main", 2, 2, then=CRASH_ONCE + STAY))
    # In this order: while the second one is created and does not run yet, the kubelet removes the
    # first one with its log.
    first = c.report(name, "main", 0)
    second = c.report(name, "main", 1)
    check_container(c, name, "main", 2, 2, instance=1)
    equal(second.devices, first.devices, "device nodes after the restart")
    for key in ("NCCL_IB_HCA", "PCIDEVICE_RDMA_VF", GPU_ENV):
        equal(second.env[key], first.env[key], f"{key} after the restart")
    equal(len(c.order(name)), 2, "allocations of a container that restarted once")


@scenario
def vfs_of_a_deleted_pod_are_used_again(c):
    total = len(c.allocatable()[VF])
    first = c.run(container("main", 0, total))
    check_container(c, first, "main", 0, total)
    c.end(first)
    second = c.run(container("main", 0, total))
    check_container(c, second, "main", 0, total)


@scenario
def a_pod_of_the_two_plugins_agrees_in_list_and_get(c):
    name = c.run(container("main", 1, 1))
    by_list, by_get = c.held()[name], c.held_by_get(name)
    if by_get is None:
        return "this kubelet has no Get"
    equal(by_get, by_list, "PodResources Get beside List")
    return None


@scenario
def the_kubelet_restarts_under_running_pods(c):
    """Nothing that runs is touched, and railmate is back before the first admission."""
    for _ in range(3):  # a busy machine may keep us waiting once
        told, too_late = restarts(c)
        if not too_late:
            return told
        c.end(*c.live)
    raise Late(f"railmate is too late each time: {told}")


def restarts(c):
    """(What to tell, did a kubelet refuse a pod for which we came too late?)"""
    busy = [c.run(container("main", 1, 1)) for _ in range(2)]
    # The kubelet admits this one anew, and kills it if the resource of its init container is not
    # back by then.
    anew = c.run(container("main", 2, 2), init=[container("before", 0, 1, then="exit 0\n")])
    ids, held = {p: c.running(p) for p in (*busy, anew)}, c.held()
    took, lost, too_late = [], "", False
    for sig in ("SIGTERM", "SIGKILL", "SIGTERM"):
        took.append(c.kubelet_restart(sig))
        denied, registered = c.denied_and_registered()
        if denied is not None and not lost:
            lost = f"; a pod was refused after {denied:.0f} ms, our Register had come after {registered:.0f}"
            too_late = TOO_SOON < denied < registered
        same = busy if lost else [*busy, anew]
        until(lambda: all(c.running(p) == ids[p] for p in same),
              "the pods to run as before the restart", failure=AssertionError)
        equal({p: c.held().get(p)
               for p in same}, {p: held[p]
                                for p in same}, "devices after the restart")
    time.sleep(3)  # a pod that the kubelet rejects is killed by its next sync
    equal({p: c.running(p)
           for p in same}, {p: ids[p]
                            for p in same}, "containers after the restart")
    name = c.run(container("main", 1, 1))
    _, vfs = check_container(c, name, "main", 1, 1)
    check(not set(vfs) & {vf
                          for p in busy
                          for vf in held[p]["main"][VF]}, "a VF was given away twice")
    told = "registered again " + ", ".join(
        f"{ms:.0f}" for ms in took) + " ms after kubelet.sock appeared" + lost
    return told, too_late


def survives(c, stop, since="the start of the new one"):
    """Ends railmated as stop does; a new one takes over, nothing that runs is touched."""
    name = c.run(container("main", 2, 2))
    ids, held = c.running(name), c.held()[name]
    began = stop()
    c.wait_registered()
    took = time.monotonic() - began
    equal(c.running(name), ids, "containers after railmated's restart")
    equal(c.held()[name], held, "devices after railmated's restart")
    other = c.run(container("main", 2, 2))
    _, vfs = check_container(c, other, "main", 2, 2)
    check(not set(vfs) & set(held["main"][VF]), "a VF was given away twice")
    return f"allocatable again {took * 1000:.0f} ms after {since}"


def restarted_by(c, sig):
    status = c.stop_railmate(c.newest_railmate(), sig)
    until(lambda: not c.allocatable().get(VF), "the kubelet to notice that railmated is gone")
    began = time.monotonic()
    c.start_railmate()
    return began, status


@scenario
def railmated_restarts(c):
    status = None

    def stop():
        nonlocal status
        began, status = restarted_by(c, "SIGTERM")
        return began
    told = survives(c, stop)
    equal(status, 0, "railmated's exit status after SIGTERM")
    return told


@scenario
def railmated_is_killed(c):
    return survives(c, lambda: restarted_by(c, "SIGKILL")[0])


def take_over(c):
    """Milliseconds in which the kubelet refuses pods with VFs."""
    old, name = c.newest_railmate(), c.start_railmate()
    until(lambda: c.ready(name) == "waiting", "the new instance to be ready")
    equal(c.stop_railmate(old), 0, "the old instance's exit status")
    until(lambda: c.ready(name) == "serving", "the new instance to serve")
    c.wait_registered()
    return until(c.gap_ms, "the end of the old list and a new one, in the kubelet's log")


def check_gaps(took, lost=()):
    """Of updates: the kubelet refuses a pod that comes while it has no devices, and pods come one
    after the other."""
    words = f"no devices for {', '.join(f'{ms:.0f}' for ms in took)} ms"
    check(statistics.median(took) <= GAP_MS * SLOWNESS, f"{words}, {GAP_MS} are allowed", Late)
    check(len(lost) <= len(took), f"{words}: {len(lost)} pods were refused: {lost}")
    return f"{words}, {len(lost)} pods refused"


@scenario
def a_second_instance_takes_over(c):
    """The update of deploy/base: the new one starts before the old one ends, and waits for the
    ledger."""
    took = []

    def stop():
        took.extend(take_over(c) for _ in range(TAKE_OVERS))
        return time.monotonic()
    survives(c, stop)
    return check_gaps(took)


@scenario
def too_few_vfs_say_so_in_the_pods_status(c):
    total = len(c.allocatable()[VF])
    name = c.run(container("main", 0, total - 1))
    message = c.failed(c.new(container("main", 0, 2)))
    check(VF in message, f"the pod's status does not name {VF}: {message}")
    check_container(c, c.run(container("main", 0, 1)), "main", 0, 1)
    check_container(c, name, "main", 0, total - 1)
    return message


@scenario
def a_sick_vf_is_never_given(c):
    total = len(c.allocatable()[VF])
    gpu = c.machine.gpus[0]
    sick = min(c.vf, key=lambda vf: (c.machine.rank[gpu, vf], vf))
    undo = c.break_vf(sick)
    try:
        until(lambda: len(c.allocatable()[VF]) == total - 1 and sick not in c.allocatable()[VF],
              f"{sick} to be sick")
        name = c.run(container("main", 8, total - 1))
        _, vfs = check_container(c, name, "main", 8, total - 1)
        check(sick not in vfs, "a sick VF was given to a container")
    finally:
        undo()
    until(lambda: len(c.allocatable()[VF]) == total, f"{sick} to be well again")


@scenario
def a_vf_that_sickens_stays_with_its_pod(c):
    name = c.run(container("main", 1, 1))
    ids = c.running(name)
    _, vfs = check_container(c, name, "main", 1, 1)

    def health():
        return {r["resourceID"]: r["health"] for s in c.status(name).get("containerStatuses", [])
                for a in s.get("allocatedResourcesStatus", []) for r in a["resources"]}.get(vfs[0])

    undo = c.break_vf(vfs[0])
    try:
        until(lambda: vfs[0] not in c.allocatable()[VF], f"{vfs[0]} to be sick")
        equal(c.running(name), ids, "containers of a pod whose VF is sick")
        equal(c.held()[name]["main"][VF], vfs, "its devices")
        if health():
            until(lambda: health() == "Unhealthy", "the pod's status to say that its VF is sick")
    finally:
        undo()
    until(lambda: vfs[0] in c.allocatable()[VF], f"{vfs[0]} to be well again")
    return None if health() else "this kubelet has no health in the pod's status"


@scenario
def a_resource_that_nobody_offers(c):
    """A kubelet that was never told of a resource refuses the pod, or runs it without: it must not
    harm others."""
    lost = container("main")
    lost["resources"]["limits"] = {"rdma/nobody": "1", GPU: "1"}
    name = c.new(lost)
    told = until(
        lambda: (c.status(name) or {}).get("phase") in ("Failed", "Running") and c.status(name),
        "an answer")
    if told["phase"] == "Running":
        check_report(c, c.report(name, "main"), c.held()[name]["main"][GPU], [])
        words = "runs without it"
    else:
        words = f"{told['reason']}: {told['message']}"
        check("rdma/nobody" in words, f"the pod's status does not name the resource: {words}")
    check_container(c, c.run(container("main", 1, 1)), "main", 1, 1)
    return words


def specs_of(items):
    """(name, uid) → kind and extended limits of each container, of pods as the kubelet shows them."""
    def limits(c):
        found = c.get("resources", {}).get("limits", {})
        return {resource: int(count) for resource, count in found.items() if "/" in resource}

    def containers(spec):
        for c in spec.get("initContainers") or []:
            yield c["name"], "sidecar" if c.get("restartPolicy") == "Always" else "init", limits(c)
        for c in spec["containers"]:
            yield c["name"], "app", limits(c)

    return {(i["metadata"]["name"], i["metadata"]["uid"]): list(containers(i["spec"]))
            for i in items}


def told_of(answer):
    equal(answer["why"], None, "why pod specs could not be had")
    return {(p["name"], p["uid"]): [(c["name"], c["kind"], c["limits"]) for c in p["containers"]]
            for p in answer["pods"]}


def asks_for_specs(c, words, *options):
    """railmated started anew with these options says that it knows; the pods that follow get what
    they should."""
    equal(c.stop_railmate(c.newest_railmate()), 0, "railmated's exit status")
    name = c.start_railmate(*options)
    until(lambda: words in c.railmate_log(name), f"railmated to say '{words}'")
    c.wait_registered()
    pods = [one_pod(c, 2, 1, vfs_first=i % 2)[0] for i in range(4)]
    c.end(*pods)


@scenario
def pod_specs_are_what_the_pods_say(c):
    """By the kubelet's Pods API; tenants.py has those of an API server."""
    if not getattr(c.backend, "pod_specs", None):
        raise Unsupported("this node's kubelet cannot be asked from here")
    socket = c.pods_api(True)
    if not socket:
        raise Unsupported("this kubelet has no Pods API")
    name = c.run(
        container("main", 2, 1), init=[
            container("first", 0, 1, then=""),
            {**container("agent", 0, 1), "restartPolicy": "Always"}
        ])
    answer = c.pod_specs("--pods-api", socket)
    equal(told_of(answer), specs_of(c.raw_pods()), "the Pods API")
    c.end(name)
    asks_for_specs(c, "pod specs are read source=\"kubelet's Pods API\"")
    c.pods_api(False)
    c.stop_railmate(c.newest_railmate())
    c.start_railmate()
    c.wait_registered()
    return f"answered in {answer['us'] / 1000:.1f} ms"


# --- running them ---

def title(function):
    return function.__name__.replace("_", " ")


def clean(c):
    with contextlib.suppress(ValueError):
        c.end(*c.live)


def prepare(c, function):
    """As the scenario wants it."""
    if hasattr(c.backend, "prepare"):
        c.backend.prepare(function)
    elif hasattr(c.backend, "binding"):
        c.want_binding(function.binding)
    elif function.binding != "early":
        raise Unsupported("this node's pool binds early")


def run_one(c, function, tries):
    """(verdict, a remark)."""
    try:
        prepare(c, function)
        remark = function(c)
        clean(c)
        return "ok", tries.remark(function, remark)
    except Unsupported as e:
        clean(c)
        return "skip", str(e)
    except (AssertionError, KeyError, IndexError, TypeError, OSError,
            subprocess.SubprocessError) as e:
        c.keep_state(title(function))
        what = str(e) if isinstance(e, AssertionError) else "".join(
            traceback.format_exception_only(e)).strip()
        where = traceback.extract_tb(e.__traceback__)[1]
        with contextlib.suppress(AssertionError):
            clean(c)
        c.live.clear()
        verdict = tries.verdict(function, e) or "FAIL"
        return verdict, f"{os.path.basename(where.filename)}:{where.lineno}: {what}"


def chosen(c, words):
    return [f for f in SCENARIOS if f.api == getattr(c.backend, "has_api", False) and f.where(c) and
            (not words or any(re.search(word, title(f)) for word in words))]


def run_in_time(c, functions, counts):
    """Those that time leaves no room for have failed."""
    left, tries = list(functions), Tries()
    try:
        while left:
            start = time.monotonic()
            verdict, remark = run_one(c, left[0], tries)
            print(
                f"{verdict:5} {time.monotonic() - start:5.1f} s  {title(left[0])}" +
                (f": {remark}" if remark else ""), flush=True)
            if verdict != AGAIN:
                counts[verdict] += 1
                left.pop(0)
    except TimeIsUp:
        counts["FAIL"] += len(left)
        print(
            f"FAIL  {time.monotonic() - start:5.1f} s  {title(left[0])}: time is up; {len(left) - 1} more were not begun"
        )


def run_all(backend, words, logs):
    c = Cluster(backend)
    return run_these(c, chosen(c, words), words, logs, "kubelet")


def run_these(c, functions, words, logs, bed):
    """The sum is the last line; the exit status."""
    counts = {"ok": 0, "skip": 0, "FAIL": 0}
    began = time.monotonic()
    run_in_time(c, functions, counts)
    if not any(counts.values()):
        print(f"{bed} bed: no scenario that belongs here has a name with {' or '.join(words)}")
    print(
        f"{bed} bed: {'passed' if counts['ok'] and not counts['FAIL'] else 'FAILED'}: {c.backend.describe()}, "
        f"{time.monotonic() - began:.0f} s" + (f", logs: {logs}" if counts["FAIL"] else ""))
    print(f"{counts['ok']} passed, {counts['FAIL']} failed" +
          (f", {counts['skip']} skipped" if counts["skip"] else ""))
    return 1 if counts["FAIL"] or not counts["ok"] else 0
