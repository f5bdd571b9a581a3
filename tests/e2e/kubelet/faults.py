"""
What a node goes through in a bad hour: names that come again, pods that are deleted too young,
disks that are full or hang, files that are lost, an API server that is away, everything killed, a
reboot. After each of them: no VF was in two live containers at any moment, no container
that could live was harmed, and pods with VFs run. Live is a container that has a process, whatever
kubelet and railmated think.
Beside what the other scenarios ask of a cluster: processes(), small_disk(), hanging_disk(),
power_off(), boot(), and of one with an API server delete_by_force(pod), api_status(pod),
api_away(). Standard library only.
"""
import contextlib
import json
import pathlib
import threading
import time
import types

from failures import DEAF, refused
from late import all_slots, is_newest
from scenarios import LIMIT, SLOWNESS, VF, check, check_gaps, container, equal, pod, scenario, until
from tries import Late

LOOK = 0.1  # seconds between two looks at the processes


def either(function=None, *, api=False, bindings=("early", "late")):
    """The same for a pool that binds early and for one that binds late."""
    def add(f):
        for binding in bindings:
            one = types.FunctionType(f.__code__, f.__globals__, f"{binding}_{f.__name__}")
            scenario(one, binding=binding, where=is_newest, api=api)
        return f
    return add(function) if function else add


# --- what has to be true ---

@contextlib.contextmanager
def one_owner_each(c):
    """No VF is in two live containers, at any moment of the body; also where that fails."""
    doubly, done = {}, threading.Event()

    def look():
        owners = {}
        for container_id, (_, vfs) in c.processes().items():
            for vf in vfs:
                owners.setdefault(vf, set()).add(container_id)
        doubly.update({vf: ids for vf, ids in owners.items() if len(ids) > 1})

    def watch():
        while not done.wait(LOOK):
            look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        look()
        check(not doubly,
              f"{len(doubly)} VFs were in two live containers, one is {min(doubly, default=None)}")


def held_by(c, *names):
    """Of every container of these pods that runs: its process, its VFs, and those that its files
    name."""
    found, processes = {}, c.processes()
    for name in names:
        status = c.status(name) or {}
        for one in status.get("containerStatuses", []) + status.get("initContainerStatuses", []):
            if "running" not in one["state"]:
                continue
            pid, vfs = processes.get(one["containerID"].split("//")[1], (None, frozenset()))
            file = pathlib.Path(f"/proc/{pid}/root/run/railmate/map.json")
            with contextlib.suppress(OSError):
                vfs_in_file = frozenset(pair["vf"] for pair in json.loads(file.read_text())["gpus"])
                found[name, one["name"]] = pid, vfs, vfs_in_file
    return found


def check_specs(c):
    """By which the runtime would start live containers again, in pools that bind late."""
    if c.backend.binding == "late":
        until(lambda: set(all_slots(c)) <= set(c.cdi_slots()),
              "a CDI spec for each slot of a live container", 2 * LIMIT, AssertionError)


def check_unharmed(c, before):
    """The same processes with the same VFs and files, and their CDI specs."""
    equal(held_by(c, *{name
                       for name, _ in before}), before,
          "process, VFs and files of containers that live on")
    check_specs(c)


def run_in_the_end(c, *containers):
    """A pod that may be refused while VFs are still in use comes again, as its controller would do
    it."""
    def attempt():
        name = c.new(*containers)
        until(
            lambda: refused(c, name) or set(c.running(name)) == {one["name"]
                                                                 for one in containers},
            f"{name} to run")
        if refused(c, name):
            c.end(name)
            return None
        return name
    return until(attempt, "a pod that is not refused", 3 * LIMIT, AssertionError)


def check_nothing_is_stuck(c):
    """A pod with all VFs of the node runs when the others are gone."""
    c.end(*c.live)
    until(lambda: not c.processes(), "the processes of the scenario to end")
    until(lambda: len(c.allocatable()[VF]) == len(c.vf), "all VFs to be free", failure=AssertionError)
    c.end(run_in_the_end(c, container("main", 0, len(c.vf))))


# --- a pod is gone for the kubelet, its processes are not ---

def live_of(c, *but):
    return set(c.processes()) - set(but)


def process_of_new_pod(c, before):
    """Waits until a container runs that is not in before; its id."""
    return until(lambda: live_of(c, *before), "the container's process to start").pop()


@either(api=True)
def the_same_name_comes_again_by_force(c):
    """delete --force, and a StatefulSet makes the pod again. Its process ignores SIGTERM, and it
    wants most of the node's VFs."""
    many, name = len(c.vf) - 2, "web-0"
    c.live.append(name)
    with one_owner_each(c):
        c.backend.create(pod(name, container("main", 0, many, then=DEAF), grace=8))
        old = process_of_new_pod(c, ())
        c.wait_running(name, ["main"])
        c.delete_by_force(name)
        c.backend.create(pod(name, container("main", 0, many)))
        began = time.monotonic()
        while old in c.processes():
            check(time.monotonic() - began < LIMIT, "the old process does not end", Late)
            if (c.api_status(name) or {}).get("phase") == "Failed":  # as its controller does
                c.delete_by_force(name)
                c.backend.create(pod(name, container("main", 0, many)))
            time.sleep(LOOK)

        def runs():
            if (c.api_status(name) or {}).get("phase") == "Failed":
                c.delete_by_force(name)
                c.backend.create(pod(name, container("main", 0, many)))
            return live_of(c, old)
        until(runs, "the pod that came again to run")
    check_nothing_is_stuck(c)


@either(api=True)
def a_pod_of_a_name_that_was_there_before_lives_on(c):
    """The third of three: its predecessor has the name of the first, is deleted by force and lives
    on."""
    many, name = len(c.vf) - 2, "twin"
    c.live.append(name)
    with one_owner_each(c):
        c.backend.create(pod(name, container("main", 0, many)))
        c.wait_running(name, ["main"])
        first = process_of_new_pod(c, ())
        c.delete_by_force(name)  # it ends when it is asked to
        c.backend.create(pod(name, container("main", 0, many, then=DEAF), grace=8))
        old = process_of_new_pod(c, (first,))
        time.sleep(2)  # its cgroup was looked for by now
        c.delete_by_force(name)
        c.live.remove(name)
        until(lambda: name not in c.held(), "the kubelet to forget it")
        run_in_the_end(c, container("main", 0, many))
        check(old not in c.processes(), "the new pod runs beside the old one's process")
    check_nothing_is_stuck(c)


@either
def pods_that_are_deleted_young_live_on(c):
    """
    As soon as their process runs. Others are admitted meanwhile: while that goes on, what happened
    to the ones before has to wait, and nothing but the kubelet's checkpoint shows whose the process
    is.
    """
    small, tries = 8, 3
    many = len(c.vf) - small - 2
    with one_owner_each(c):
        for _ in range(tries):
            others = [f"o{i}" for i in range(small)]
            old = c.new(container("main", 0, many, then=DEAF), grace=4)
            while not (process := [i for i, (_, vfs) in c.processes().items() if len(vfs) == many]):
                if others:
                    c.live.append(others[-1])
                    c.backend.create(pod(others.pop(), container("main", 0, 1)))
                time.sleep(0.1)
            c.backend.delete(old)
            check(process[0] in c.processes(), "its process did not live on")
            run_in_the_end(c, container("main", 0, many))
            c.end(*c.live)
    check_nothing_is_stuck(c)


# --- the disk of the ledger ---

def comings_and_goings(c, rounds):
    """Pods of several sizes, each round in other places; those of the last round run."""
    names = []
    for i in range(rounds):
        c.end(*names)
        names = [
            c.run(container("main", 0, vfs)) for vfs in ((5, 1, 3), (2, 4, 4), (3, 5, 1))[i % 3]
        ]
    return names


@either
def the_disk_is_full_while_pods_come_and_go(c):
    """railmated is killed before the disk has space again: what it finds on the disk is old."""
    with c.small_disk() as fill, one_owner_each(c):
        stays = c.run(container("main", 0, 2))
        young = comings_and_goings(c, 1)
        fill()
        c.end(*young)
        young = comings_and_goings(c, 2)
        before = held_by(c, stays, *young)
        equal(len(before), 4, "containers that run")
        c.stop_railmate(c.newest_railmate(), "SIGKILL")
        c.start_railmate()
        c.wait_registered()
        run_in_the_end(c, container("main", 0, 40))
        check_unharmed(c, before)
    check_nothing_is_stuck(c)


@either
def the_disk_hangs_while_a_pod_starts(c):
    """No error, no answer: the container starts all the same, soon."""
    with c.hanging_disk() as hang:
        before = held_by(c, c.run(container("main", 0, 2)))
        with hang(), one_owner_each(c):
            began = time.monotonic()
            c.run(container("main", 0, 2))
            took = time.monotonic() - began
            check(took < 10 * SLOWNESS, f"it runs after {took:.1f} s", Late)
        check_unharmed(c, before)
        check_nothing_is_stuck(c)
    return f"runs after {took:.1f} s"


# --- what is lost ---

@scenario(binding="late", where=is_newest)
def the_specs_are_deleted_then_the_ledger(c):
    """Two of three records; the third is in the files of the containers."""
    with one_owner_each(c):
        names = comings_and_goings(c, 2)
        before = held_by(c, *names)
        c.lose_specs()
        time.sleep(8)
        c.stop_railmate(c.newest_railmate(), "SIGKILL")
        c.lose_ledger()
        c.start_railmate()
        c.wait_registered()
        run_in_the_end(c, container("main", 0, len(c.vf) - 10))
        check_unharmed(c, before)
    check_nothing_is_stuck(c)


# --- what dies ---

@either
def railmated_and_the_kubelet_are_killed(c):
    with one_owner_each(c):
        names = comings_and_goings(c, 2)
        before = held_by(c, *names)
        for first in ("kubelet", "railmated"):
            c.kubelet_dies()
            c.stop_railmate(c.newest_railmate(), "SIGKILL")
            if first == "kubelet":
                c.start_kubelet()
                c.start_railmate()
            else:
                c.start_railmate()
                c.start_kubelet()
            c.wait_registered()
            run_in_the_end(c, container("main", 0, 20))
            time.sleep(3)  # what is taken for gone is given up within some seconds
            check_unharmed(c, before)
    check_nothing_is_stuck(c)


def is_in_backoff(c, name):
    return any(one["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff"
               for one in (c.status(name) or {}).get("containerStatuses", []))


@either(api=True)
def the_api_server_is_away_while_the_kubelet_restarts(c):
    """The kubelet knows none of its pods meanwhile. One has a main container in its back-off, and a
    sidecar that runs."""
    with one_owner_each(c):
        crashes = c.new(container("main", 0, 2, then="exit 3\n"),
                        init=[container("side", 0, 1, restartPolicy="Always")])
        runs = c.run(container("main", 0, 2))
        until(lambda: is_in_backoff(c, crashes), "the main container's back-off")
        before = {
            key: found
            for key, found in held_by(c, crashes, runs).items()
            if key != (crashes, "main")
        }
        equal(len(before), 2, "containers that run")
        with c.api_away():
            c.kubelet_restart()
            time.sleep(15)
        until(lambda: c.status(crashes) and c.status(runs), "the kubelet to know its pods")
        time.sleep(3)  # a pod that the kubelet rejects is killed by its next sync
        check(not refused(c, crashes),
              f"the pod with the sidecar was refused: {refused(c, crashes)}")
        found = {key: found for key, found in held_by(c, crashes, runs).items() if key in before}
        equal(found, before, "process, VFs and files of containers that live on")
        run_in_the_end(c, container("main", 0, len(c.vf) - 5))
        check_specs(c)
    check_nothing_is_stuck(c)


# --- a reboot ---

def admitted_again(c, names):
    """Pods that were there before the power was cut run again, with VFs, in the pods that they
    were."""
    def back():
        lost = [f"{name}: {refused(c, name)}" for name in names if refused(c, name)]
        check(not lost, "refused after the reboot: " + "; ".join(lost))
        return all("main" in c.running(name) for name in names) and len(c.processes()) == len(names)
    until(back, "the pods to run again")


@either(api=True)
def a_reboot_ends_the_pods_of_a_plugin_that_is_a_pod_itself(c):
    """The kubelet admits what was there before its plugins are: no plugin in a pod can save them.
    Nothing is left of them."""
    names = [c.run(container("main", 0, vfs)) for vfs in (2, 20)]
    with one_owner_each(c):
        c.power_off()
        c.boot()
        said = [until(lambda n=name: refused(c, n), f"{name} to be refused") for name in names]
        c.start_gpu_plugin()
        c.start_railmate()
        c.wait_registered()
        check_nothing_is_stuck(c)
    return said[0]


@either(api=True)
def a_reboot_with_the_unit_before_the_kubelet_keeps_all_pods(c):
    """deploy/systemd: railmated listens when the kubelet comes."""
    with c.unit_instead():
        names = [c.run(container("main", 0, vfs)) for vfs in (2, 20)]
        with one_owner_each(c):
            for _ in range(2):
                c.power_off()
                c.start_unit()
                c.boot()
                c.start_gpu_plugin()
                admitted_again(c, names)
            c.wait_registered()
            check_nothing_is_stuck(c)


# --- an update ---

@scenario(where=is_newest, api=True)
def an_update_of_the_daemon_set(c):
    """deploy/base rolls while pods come: the old instance is ended when the new one is ready, and
    pods lose next to nothing."""
    took, lost = [], []
    with c.daemon_set(), one_owner_each(c):
        before = held_by(c, c.run(container("main", 0, 4)))
        for _ in range(3):
            c.kubectl("rollout", "restart", "ds/railmate")
            newest, names = c.gap_ms(), []
            while c.gap_ms() in (None, newest):
                names.append(c.new(container("main", 0, 1)))
                until(lambda: refused(c, names[-1]) or c.running(names[-1]),
                      "a pod to run, or to be refused")
                if len(names) > 8:
                    c.end(names.pop(0))
            c.kubectl("rollout", "status", "ds/railmate", f"--timeout={LIMIT:.0f}s")
            took.append(c.gap_ms())
            lost += [name for name in names if refused(c, name)]
            c.end(*names)
        check_unharmed(c, before)
        c.end(*c.live)
    return check_gaps(took, lost)
