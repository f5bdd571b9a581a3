"""
What has to be true of a pool that binds late, on a real kubelet with a real runtime: the VFs are
chosen when the container starts, and come to it by CDI. Beside what scenarios.py asks of a cluster:
want_binding(binding), explain(pod), cdi_slots(), device_number(node), runs(container id). Standard
library only.
"""
import time

from scenarios import (CRASH_ONCE, GPU, GPU_ENV, LIMIT, STAY, VF, check, check_optimal,
                       check_report, container, equal, scenario, until)


NEWEST = (1, 37)  # of tests/e2e/peers: what takes long is run with this one only


def has_cdi(c):
    runtime = getattr(c.backend, "runtime", None)  # of a node that is not ours, nothing is known
    return runtime and not runtime.startswith("1.6.")


def is_newest(c):
    return has_cdi(c) and c.kubelet_version >= NEWEST


def late(function=None, where=has_cdi):
    return scenario(function, binding="late", where=where)


# --- what a container has ---

def check_late(c, name, container="main", gpus=0, vfs=0, instance=0):
    """Its slots are VFs, the same ones wherever one looks; returns (its GPUs' addresses, its VFs,
    its slots)."""
    held = c.held()[name][container]
    slots, gpu_ids = held.get(VF, []), held.get(GPU, [])
    equal((len(gpu_ids), len(slots)), (gpus, vfs), f"GPUs and slots of {name}/{container}")
    report = c.report(name, container, instance)
    mine = report.env.get("PCIDEVICE_RDMA_VF", "").split(",")
    check_report(c, report, gpu_ids, mine)
    equal(report.env.get("RAILMATE_RDMA_VF_SLOTS"), ",".join(slots), "RAILMATE_RDMA_VF_SLOTS")
    binding = dict(pair.split("=") for pair in report.env.get("RAILMATE_BINDING", "").split(","))
    equal((sorted(binding), sorted(binding.values())), (slots, mine),
          "the slots and the VFs of RAILMATE_BINDING")
    return [c.machine.gpu(g) for g in gpu_ids], mine, slots


def all_slots(c):
    return sorted(slot for containers in c.held().values() for devices in containers.values()
                  for slot in devices.get(VF, []))


def check_cdi(c):
    """A spec for every slot of a live container, at once; no other, as soon as the last pods are
    known to be gone."""
    missing = set(all_slots(c)) - set(c.cdi_slots())
    check(not missing, f"slots of live containers without a CDI spec: {sorted(missing)}")
    until(lambda: c.cdi_slots() == all_slots(c), "the CDI specs of slots that nobody has to go",
          2 * LIMIT)


def unresolved(c):
    return c.kubelet_log().count("unresolvable CDI devices")


def decision(c, name):
    """The only choice for a pod of one container, as railmatectl explains it."""
    choices = c.explain(name)
    equal(len(choices), 1, f"choices for {name}")
    return choices[0]["decision"]


def check_explained(c, name, gpus, vfs, free):
    """What it says of a choice is what was true then."""
    told = decision(c, name)
    equal(sorted(told["chosen"]), vfs, f"VFs chosen for {name}, by railmatectl explain")
    equal((told["binding"], told["known"]), ("late", "known"),
          f"how {name} was bound")  # also that it has none
    equal(sorted(told.get("gpus", [])), sorted(gpus), f"GPUs of {name}, by railmatectl explain")
    equal(sum(place["vfs"] for place in told["free"]), len(free),
          f"VFs free before {name}, by railmatectl explain")


def check_in_order(c, batch, free):
    """Pods {name: (GPUs, VFs)} that started at the same time: in the order of their binding each
    had the best that was left."""
    found = {name: check_late(c, name, "main", *counts) for name, counts in batch.items()}
    for name in sorted(found, key=lambda n: decision(c, n)["number"]):
        gpus, vfs, _ = found[name]
        check(
            set(vfs) <= free,
            f"{name} was given a VF that another container has: {set(vfs) - free}")
        check_explained(c, name, gpus, vfs, free)
        if gpus:
            check_optimal(c, gpus, vfs, free)
        free -= set(vfs)
    return {name: vfs for name, (_, vfs, _) in found.items()}


# --- scenarios ---

@late
def slots_become_vfs_in_either_order(c):
    everything, taken, orders = set(c.vf), set(), []
    for i, (gpus, vfs) in enumerate([(1, 1), (2, 2), (2, 1), (1, 2), (0, 3)]):
        name = c.run(container("main", gpus, vfs, vfs_first=i % 2))
        taken |= set(check_in_order(c, {name: (gpus, vfs)}, everything - taken)[name])
        orders.append(c.order(name)[0])
    check_cdi(c)
    check("whether the container runtime supports CDI" not in c.railmate_log(c.newest_railmate()),
          "the runtime does not tell that it does CDI")
    c.end(*c.live)
    if c.kubelet_version >= (1, 34):  # those without Get are asked for a List, twice a minute
        until(lambda: not c.cdi_slots(), "the CDI specs of deleted pods to go")
    return f"{orders.count(GPU)} of 5 GPU-first"


@late
def a_late_container_that_crashes_keeps_its_vfs(c):
    name = c.new(container("main", 2, 2, then=CRASH_ONCE + STAY))
    first, second = c.report(name, "main", 0), c.report(name, "main", 1)
    check_late(c, name, "main", 2, 2, instance=1)
    for key in ("NCCL_IB_HCA", "PCIDEVICE_RDMA_VF", "RAILMATE_BINDING", GPU_ENV):
        equal(second.env[key], first.env[key], f"{key} after the restart")
    check_cdi(c)


@late
def init_containers_and_sidecars_of_late_pods(c):
    """The init container's slot comes to its successor; the sidecar keeps its own."""
    name = c.run(container("main", 2, 2), init=[container("before", 1, 1, then="exit 0\n"),
                                                container("side", 0, 1, restartPolicy="Always")])
    gpus, vfs, _ = check_late(c, name, "main", 2, 2)
    _, side, _ = check_late(c, name, "side", 0, 1)
    check(not set(side) & set(vfs), "the sidecar and the main container share a VF")
    check(
        c.report(name, "before").env.get("PCIDEVICE_RDMA_VF") in c.vf,
        "the init container had no VF")
    check_optimal(c, gpus, vfs, set(c.vf) - set(side))
    check_cdi(c)


@late(where=is_newest)
def forty_containers_at_once(c):
    """PreStartContainer is called from forty pods at a time."""
    before, began = unresolved(c), time.monotonic()
    batch = {c.new(container("main", gpus, 1)): (gpus, 1) for gpus in [1, 0, 0, 0, 0] * 8}
    for name in batch:
        c.wait_running(name, ["main"])
    took = time.monotonic() - began
    check_in_order(c, batch, set(c.vf))
    check_cdi(c)
    equal(unresolved(c) - before, 0, "containers whose CDI devices were not there")
    return f"all run after {took:.1f} s"
