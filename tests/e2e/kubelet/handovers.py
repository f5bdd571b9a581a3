"""
Instances of railmated follow one another on a node that has no time: three loops run beside it, and
the kubelet stands still for a tenth of a second while they change. Whatever the kubelet missed, it
has the list of the newest instance afterwards: a VF that sickens leaves its allocatable devices,
and comes back, and a pod runs. Standard library only.
"""
import contextlib
import os
import random
import subprocess
import sys
import threading
import time

from scenarios import Unsupported, VF, check_container, container, equal, scenario, until

HANDOVERS = int(os.environ.get("E2E_HANDOVERS", "6"))
LOOPS, FROZEN = 3, 0.1


@contextlib.contextmanager
def busy():
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"], stdin=subprocess.DEVNULL)
        for _ in range(LOOPS)
    ]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextlib.contextmanager
def kubelet_stands_still(c):
    """For a tenth of a second from about now; where the bed cannot reach its process, it goes on."""
    freeze = getattr(c.backend, "freeze_kubelet", None)
    thread = threading.Thread(target=lambda: freeze and freeze(random.random() / 50, FROZEN))
    thread.start()
    try:
        yield
    finally:
        thread.join()


def hand_over(c):
    old, name = c.newest_railmate(), c.start_railmate()
    until(lambda: c.ready(name) == "waiting", "the new instance to be ready")
    with kubelet_stands_still(c):
        equal(c.stop_railmate(old), 0, "the old instance's exit status")
    until(lambda: c.ready(name) == "serving", "the new instance to serve")


def kill(c):
    with kubelet_stands_still(c):
        c.stop_railmate(c.newest_railmate(), "SIGKILL")
        c.start_railmate()


def restart_kubelet(c):
    c.kubelet_restart(random.choice(("SIGTERM", "SIGKILL")))


def offered(c):
    return c.allocatable().get(VF, ())


def seconds_until_heard(c, vf):
    """A VF sickens and recovers; how long the kubelet went on offering it."""
    total = len(c.vf)
    until(lambda: len(offered(c)) == total, f"{total} VFs to be on offer", failure=AssertionError)
    began, undo = time.monotonic(), c.break_vf(vf)
    try:
        until(lambda: vf not in offered(c), "the sick VF to leave the offer", failure=AssertionError)
        took = time.monotonic() - began
    finally:
        undo()
    until(lambda: len(offered(c)) == total, "the VF to be back on offer", failure=AssertionError)
    return took


def rounds(c, change, n):
    """The longest that a sick VF was on offer after one of these changes."""
    longest = 0
    for i in range(n):
        change(c)
        longest = max(longest, seconds_until_heard(c, sorted(c.vf)[i % len(c.vf)]))
        if i % 5 == 0:
            name = c.run(container("main", 1, 1))
            check_container(c, name, "main", 1, 1)
            c.end(name)
    return longest


@scenario
def another_plugin_of_our_name(c):
    """It is named, and when it is gone the kubelet offers our VFs again."""
    if not hasattr(c.backend, "plugin_of_our_name"):
        raise Unsupported("no second plugin can be had here")
    words = "another device plugin has registered this name"
    began = time.monotonic()
    with c.plugin_of_our_name():
        until(lambda: words in c.railmate_log(c.newest_railmate()), "it to be named",
              failure=AssertionError)
        told = time.monotonic() - began
    began = time.monotonic()
    until(lambda: set(offered(c)) == set(c.vf), "the VFs to be on offer", failure=AssertionError)
    took = time.monotonic() - began
    seconds_until_heard(c, min(c.vf))
    check_container(c, c.run(container("main", 1, 1)), "main", 1, 1)
    return f"named {told:.1f} s after its start, all VFs on offer {took:.1f} s after its end"


@scenario
def many_hand_overs_on_a_busy_node(c):
    with busy():
        took = {
            "hand-over": rounds(c, hand_over, HANDOVERS),
            "kill": rounds(c, kill, max(2, HANDOVERS // 5)),
            "restart of the kubelet": rounds(c, restart_kubelet, max(1, HANDOVERS // 10)),
        }
    return f"{HANDOVERS} hand-overs; a sick VF left the offer within " + ", ".join(
        f"{seconds:.2f} s after a {change}" for change, seconds in took.items())
