"""
What a bed makes of the machine that it runs on, and puts back: namespaces, a cgroup, some sysctls;
and how much patience this machine wants. Standard library only.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import time

from bed import Lacking

TO_SAY_SO = 30  # seconds more for the sum
QUIET = 0.1  # seconds: two quiet cores of ours take 0.06
SLOWEST = 8  # beyond that, more patience is no help
PROC = pathlib.Path("/proc/sys")
SYSCTLS = ["vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
           "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"]
NOTED = "/run/railmate-e2e-sysctls"  # what they were, while a bed runs; empty otherwise


def check_machine():
    if platform.system() != "Linux" or os.geteuid() != 0:
        raise Lacking("root on Linux")
    for tool in ("unshare", "mount", "ip"):
        if not shutil.which(tool):
            raise Lacking(f"the program {tool}")
    if subprocess.run(["unshare", "-m", "-n", "-p", "-f", "true"],
                      stderr=subprocess.DEVNULL).returncode != 0:
        raise Lacking("the right to make mount, network and process namespaces")
    if not cgroup_mounts() or not all(os.access(mount, os.W_OK) for mount in cgroup_mounts()):
        raise Lacking("cgroups that can be written")


def read_sysctls():
    found = {}
    for name in SYSCTLS:
        with contextlib.suppress(OSError):
            found[name] = (PROC / name).read_text()
    return found


def write_sysctls(values):
    for name, value in values.items():
        with contextlib.suppress(OSError):
            path = PROC / name
            if path.read_text() != value:
                path.write_text(value)


def locked(file, how):
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def kept_sysctls():
    """
    The kubelet sets some for the whole machine. Several beds may run beside each other: the first
    one notes what was there, the last one puts it back. What a bed that was killed has noted is
    still there, and counts.
    """
    with open(NOTED, "a+", encoding="ascii") as noted:
        if locked(noted, fcntl.LOCK_EX):
            noted.seek(0)
            if not noted.read():
                json.dump(read_sysctls(), noted)
                noted.flush()
        fcntl.flock(noted, fcntl.LOCK_SH)
        try:
            yield
        finally:
            if locked(noted, fcntl.LOCK_EX):
                noted.seek(0)
                write_sysctls(json.load(noted))
                noted.truncate(0)


def cgroup_mounts():
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        return [
            pathlib.Path(line.split()[1])
            for line in mounts
            if line.split()[2] in ("cgroup", "cgroup2")
        ]


def remove_cgroup(top):
    for path, _, _ in os.walk(top, topdown=False):
        for _ in range(50):  # the last process of it may still be on its way out
            try:
                os.rmdir(path)
                break
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.1)


@contextlib.contextmanager
def own_cgroup(name):
    """A cgroup in every hierarchy, for all that the kubelet and the runtime start; gone
    afterwards."""
    tops = [mount / name for mount in cgroup_mounts()]
    try:
        for top in tops:
            top.mkdir()
            for limit in ("cpuset.cpus", "cpuset.mems"):  # an empty cpuset takes no process
                if (top / limit).exists() and not (top / limit).read_text().strip():
                    (top / limit).write_text((top.parent / limit).read_text())
        yield "/" + name
    finally:
        for top in tops:
            if top.exists():
                remove_cgroup(top)


@contextlib.contextmanager
def one_at_a_time(build):
    """Of those that build there: hack/e2e runs two beds beside each other."""
    build.mkdir(exist_ok=True)
    with open(build / "bed.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def take_time():
    """What a node does most: processes that start and compute, as many as there are cores."""
    began = time.monotonic()
    some = [
        subprocess.Popen([
            sys.executable, "-S", "-c",
            "import hashlib\nfor _ in range(24): hashlib.sha256(bytes(1 << 20))"
        ]) for _ in range(2)
    ]
    for one in some:
        one.wait()
    for _ in range(20):
        subprocess.run(["true"])
    return time.monotonic() - began


def slowness():
    """How much slower this machine is than ours at this moment; E2E_SLOWNESS knows better."""
    if "E2E_SLOWNESS" not in os.environ:
        factor = min(SLOWEST, max(1, sorted(take_time() for _ in range(5))[2] / QUIET))
        os.environ["E2E_SLOWNESS"] = f"{factor:.1f}"
    return float(os.environ["E2E_SLOWNESS"])


def node_of(child):
    """The process that unshare started: the first one in its namespace."""
    return int(pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()[0])


def run_inside(bed, argv, limit):
    """In namespaces that end with us, whatever happens; their exit status. What runs there watches
    its time itself."""
    child = subprocess.Popen(
        ["unshare", "-m", "-n", "-p", "-f", "--mount-proc", "--kill-child", *argv],
        stdin=subprocess.DEVNULL,
        start_new_session=True)  # a signal to our group is no signal to unshare

    def asked_to_end(*_):
        with contextlib.suppress(OSError, IndexError):
            os.kill(node_of(child), signal.SIGTERM)

    signal.signal(signal.SIGTERM, asked_to_end)
    try:
        return child.wait(limit + TO_SAY_SO)
    except subprocess.TimeoutExpired:
        print(
            f"{bed} bed: not done within {limit} s, and it does not say how far it came\n0 passed, 1 failed"
        )
        return 1
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
