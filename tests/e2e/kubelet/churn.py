"""
Pods of all sizes that come and go, a hundred of them, in whatever order the kubelet allocates: what
each got is held against the best that was free at that moment, computed without railmate's code.
Standard library only.
"""
import random
import time

from late import all_slots, check_cdi, check_in_order, is_newest, unresolved
from scenarios import GPU, VF, check, check_container, check_optimal, container, equal, scenario, until

PODS = 100
SIZES = [1] * 8 + [2] * 4 + [4] * 2 + [8]  # GPUs, and as many VFs


class Crowd:
    """The pods of the moment, on a machine with eight GPUs."""

    def __init__(self, c, seed):
        self.c, self.draw = c, random.Random(seed)
        self.live = {}  # name → (GPUs, VFs)
        self.started, self.next = 0, self.draw.choice(SIZES)

    def gpus(self):
        return sum(len(gpus) for gpus, _ in self.live.values())

    def vfs(self):
        return {vf for _, vfs in self.live.values() for vf in vfs}

    def leave(self):
        """Some, and at least as many as the next one needs."""
        going = [name for name in self.live if self.draw.random() < 0.7]
        while self.gpus() - sum(len(self.live[n][0])
                                for n in going) + self.next > len(self.c.machine.gpus):
            going.append(self.draw.choice([n for n in self.live if n not in going]))
        self.c.end(*going)
        for name in going:
            del self.live[name]

    def arrive(self):
        """As many as there are GPUs for, all at once; {name: (GPUs, VFs)}."""
        batch, room = {}, len(self.c.machine.gpus) - self.gpus()
        while self.next <= room and self.started < PODS:
            vfs_first = self.started % 2
            batch[self.c.new(container("main", self.next, self.next,
                                       vfs_first=vfs_first))] = (self.next, self.next)
            room -= self.next
            self.started += 1
            self.next = self.draw.choice(SIZES)
        for name in batch:
            self.c.wait_running(name, ["main"])
        return batch


def crowds(c, look, each=lambda: None):
    """PODS pods; look(batch, free) says what each has, and each() is called between the batches.
    Seconds per pod."""
    crowd, began = Crowd(c, 1), time.monotonic()
    while crowd.started < PODS:
        crowd.leave()
        batch = crowd.arrive()
        crowd.live.update(look(batch, set(c.vf) - crowd.vfs()))
        each()
    took = time.monotonic() - began
    c.end(*crowd.live)
    return took / PODS


@scenario(binding="late", where=is_newest)
def a_hundred_pods_that_bind_late(c):
    """All of them optimal, whoever is first; no spec is left over, none is missing."""
    first, before = [], unresolved(c)

    def look(batch, free):
        vfs = check_in_order(c, batch, free)
        first.extend(c.order(name)[0] for name in batch)
        held = c.held()
        return {name: (held[name]["main"][GPU], vfs[name]) for name in batch}

    seconds = crowds(c, look, lambda: check_cdi(c))
    equal(unresolved(c) - before, 0, "containers whose CDI devices were not there")
    until(lambda: not c.cdi_slots() and not all_slots(c), "the last CDI specs to go")
    return f"{first.count(GPU)} of {PODS} GPU-first, all optimal, {seconds * 1000:.0f} ms a pod"


@scenario(where=is_newest)
def a_hundred_pods_that_bind_early(c):
    """GPU-first ones are all optimal; of the others it is counted how often the prediction came
    true."""
    seen = {"GPU-first": 0, "VF-first": 0, "predicted": 0, "as predicted": 0, "VF-first optimal": 0}

    def look_at(name, counts, free):
        gpus, vfs = check_container(c, name, "main", *counts)
        check(
            set(vfs) <= free,
            f"{name} was given a VF that another container has: {set(vfs) - free}")
        if c.order(name)[0] == GPU:
            seen["GPU-first"] += 1
            check_optimal(c, gpus, vfs, free)
            return gpus, vfs
        seen["VF-first"] += 1
        told = c.explain(name)[0]["decision"]
        seen["predicted"] += told["known"] == "predicted"
        seen["as predicted"] += told["known"] == "predicted" and sorted(
            told["gpus"]) == sorted(gpus)
        seen["VF-first optimal"] += is_optimal(c, gpus, vfs, free)
        return gpus, vfs

    def look(batch, free):
        found = {}
        for name in admitted(c, batch):
            found[name] = look_at(name, batch[name], free)
            free -= set(found[name][1])
        return found

    seconds = crowds(c, look)
    return ", ".join(f"{count} {what}"
                     for what, count in seen.items()) + f", {seconds * 1000:.0f} ms a pod"


def admitted(c, names):
    """In the order of admission: one pod after the other."""
    order = [pod for pod, _ in c.allocations()]
    return sorted(names, key=lambda name: order.index(c.name_of(name)))


def is_optimal(c, gpus, vfs, free):
    try:
        check_optimal(c, gpus, vfs, free)
        return True
    except AssertionError:
        return False
