"""
Real processes on real unix sockets in a temporary directory: a machine unpacked from a fixture, the
fake kubelet, the fake GPU plugin, railmated. Standard library only. The programs are named by the
environment (CMakeLists.txt sets it):
RAILMATED, RAILMATECTL, FAKEKUBELET, FAKEGPU, FIXTURES.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
import weakref

from optimum import Machine
from tries import Late

GPU, VF = "nvidia.com/gpu", "rdma/vf"
PATIENCE = 40  # seconds; nothing here takes one unless the machine is very busy


def program(name):
    path = os.environ.get(name.upper())
    if not path:
        raise SystemExit(f"the environment variable {name.upper()} must name the program {name}")
    return path


def until(true, what, timeout=PATIENCE):
    """Polls; returns what `true` returned."""
    deadline = time.monotonic() + timeout
    while True:
        value = true()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Late(f"{what}: not within {timeout} s")
        time.sleep(0.005)


def replace(path, text):
    """Whoever reads it meanwhile has the old text, or the new one."""
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.rename(path + ".new", path)


def pairs(line):
    """What a line of railmated's log says as key=value."""
    return {key: re.sub(r"\\(.)", r"\1", value[1:-1]) if value[0] == '"' else value
            for key, value in re.findall(r' ([a-z_]+)=("(?:[^"\\]|\\.)*"|\S+)', line)}


# A killed test must not leave daemons behind: they get the kernel's signal when we are gone.
LEASH = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


class Process:
    """A child with its standard error in a file; always ended by its own handle."""

    def __init__(self, argv, log, **popen):
        self.argv, self.log = argv, log
        with open(log, "ab") as err:
            self.child = subprocess.Popen([*LEASH, *argv], stderr=err, **popen)

    @property
    def pid(self):
        return self.child.pid

    def stderr(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def end(self, sig=signal.SIGTERM):
        """Exit status; a sanitizer's report or an abort makes it non-zero."""
        if self.child.poll() is None:
            self.child.send_signal(sig)
        try:
            return self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise AssertionError(f"{self.argv[0]} does not end:\n{self.stderr()}") from None

    def fds(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def rss_kib(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


class FakeKubelet(Process):
    """Commands in, events out; `ask` returns the answer of its command."""

    def __init__(self, directory, root, log, *options):
        super().__init__(
            [program("fakekubelet"), "--kubelet-dir", directory, "--kubelet-root", root, *options],
            log, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.events, self.changed = [], threading.Condition()
        self.sent = []  # for every line sent, where its answer can begin
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.event("up")

    def read(self):
        for line in self.child.stdout:
            with self.changed:
                self.events.append(json.loads(line))
                self.changed.notify_all()
        with self.changed:
            self.events.append({"event": "gone"})
            self.changed.notify_all()

    def await_event(self, wanted, what, since=0, timeout=PATIENCE):
        looked_at = since  # each event once: there are thousands

        def found():
            nonlocal looked_at
            for e in self.events[looked_at:]:
                if wanted(e):
                    return e
                if e["event"] == "gone":
                    raise AssertionError(f"the fake kubelet ended:\n{self.stderr()}")
            looked_at = len(self.events)
            return None

        with self.changed:
            event = self.changed.wait_for(found, timeout)
            if not event:
                raise Late(f"{what}: not within {timeout} s; last events: {self.events[-5:]}")
            return event

    def event(self, name, since=0, timeout=PATIENCE, **fields):
        return self.await_event(
            lambda e: e["event"] == name and all(e.get(k) == v for k, v in fields.items()),
            f"event {name} {fields or ''}", since, timeout)

    def count(self, name, since=0, **fields):
        with self.changed:
            return sum(e["event"] == name and all(e.get(k) == v for k, v in fields.items())
                       for e in self.events[since:])

    def mark(self):
        """Where the events of now begin: for `since`."""
        with self.changed:
            return len(self.events)

    def send(self, command):
        """Returns the line number; with "&" at its end the fake kubelet goes on reading before it
        is answered."""
        self.sent.append(self.mark())
        self.child.stdin.write(command + "\n")
        self.child.stdin.flush()
        return len(self.sent)

    def answer(self, line, timeout=PATIENCE):
        return self.await_event(lambda e: e.get("line") == line, f"answer to command {line}",
                                self.sent[line - 1], timeout)

    def ask(self, command, timeout=PATIENCE):
        answer = self.answer(self.send(command), timeout)
        if answer["event"] == "error":
            raise AssertionError(f"{command}: {answer['message']}")
        return answer

    def wait(self, resource, count):
        answer = self.ask(f"wait {resource} {count} {PATIENCE * 1000}", PATIENCE + 5)
        if answer["event"] != "reached":
            raise AssertionError(f"{resource}: {answer['allocatable']} allocatable, not {count}")

    def resource(self, name):
        return next((r for r in self.ask("list")["resources"] if r["name"] == name), None)

    def admit(self, pod, *containers, order="random"):
        return self.ask(f"admit {pod} order={order} {' '.join(containers)}")

    def quit(self):
        with contextlib.suppress(OSError, ValueError):
            self.child.stdin.close()  # the end of the script
        try:
            status = self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return self.end(signal.SIGKILL)
        finally:
            self.reader.join(PATIENCE)
            self.child.stdout.close()
        return status


class Daemon(Process):
    """railmated."""


@contextlib.contextmanager
def uninterrupted():
    """Cleaning up is not given up half-way for an impatient second Ctrl-C."""
    before = {s: signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)


def temporary_parent():
    """Memory when there is enough: a fixture is some thousand small files."""
    shm = "/dev/shm"
    if "TMPDIR" in os.environ or not os.access(shm, os.W_OK):
        return None
    free = os.statvfs(shm)
    return shm if free.f_bavail * free.f_frsize > 128 << 20 else None


class Node:
    """One machine with everything that runs on it; no fixture: an empty root. A context manager;
    leaves nothing behind."""

    def __init__(self, fixture="hgx-h100"):
        self.dir = tempfile.mkdtemp(prefix="railmate-", dir=temporary_parent())
        # Also when nobody comes to __exit__; the processes are on the leash.
        self.remove = weakref.finalize(self, shutil.rmtree, self.dir, ignore_errors=True)
        self.root = os.path.join(self.dir, "root")
        self.kubelet_dir = os.path.join(self.dir, "dp")
        self.kubelet_root = os.path.join(self.dir, "kubelet")
        self.devinfo = os.path.join(self.dir, "devinfo")
        self.cdi = os.path.join(self.dir, "cdi")
        self.run_dir = os.path.join(self.dir, "run")
        self.control_socket = os.path.join(self.run_dir, "railmate.sock")
        self.state_dir = os.path.join(self.dir, "state")
        self.probe = os.path.join(self.dir, "image-probe")  # not there, unless a test makes it
        self.processes, self.kubelet = [], None
        for d in (self.root, self.kubelet_dir, self.kubelet_root, self.devinfo):
            os.mkdir(d)
        if fixture:
            self.unpack(os.path.join(os.environ["FIXTURES"], fixture, "host.tree"))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        with uninterrupted():
            problems = self.stop_all()
            self.remove()
        if problems and kind is None:
            raise AssertionError("\n".join(problems))

    def stop_all(self):
        """The youngest first; what did not end well. Who has said nothing yet may not have come as
        far as to catch the signal."""
        problems = []
        for p in reversed(self.processes):
            try:
                status = p.quit() if isinstance(p, FakeKubelet) else p.end()
            except AssertionError as e:
                status = str(e)
            if status == -signal.SIGTERM and not p.stderr():
                continue
            if status not in (0, -signal.SIGKILL):
                problems.append(
                    f"{os.path.basename(p.argv[0])} ends with {status}:\n{p.stderr()[-4000:]}")
        return problems

    def unpack(self, tree):
        subprocess.run([program("railmatectl"), "snapshot", "unpack", tree, self.root], check=True,
                       stdin=subprocess.DEVNULL, timeout=PATIENCE)

    def topo(self):
        out = subprocess.run([program("railmatectl"), "topo", "--root", self.root, "--json"],
                             check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, timeout=PATIENCE).stdout
        return Machine(json.loads(out))

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    # --- processes ---

    def start_kubelet(self, *options):
        self.kubelet = FakeKubelet(self.kubelet_dir, self.kubelet_root,
                                   self.path(f"kubelet{len(self.processes)}.log"), "--cdi-dir",
                                   self.cdi, *options)
        self.processes.append(self.kubelet)
        return self.kubelet

    def start_gpu_plugin(self, *options):
        p = Process(
            [program("fakegpu"), "--root", self.root, "--kubelet-dir", self.kubelet_dir, *options],
            self.path(f"gpu{len(self.processes)}.log"), stdin=subprocess.DEVNULL)
        self.processes.append(p)
        return p

    def daemon_argv(self, *options):
        return [
            program("railmated"), "--root", self.root, "--kubelet-dir", self.kubelet_dir,
            "--kubelet-root", self.kubelet_root, "--devinfo-dir", self.devinfo, "--control-socket",
            self.control_socket, "--run-dir", self.run_dir, "--state-dir", self.state_dir,
            "--probe", self.probe, "--cdi-dir", self.cdi, "--rescan", "0", "--metrics-address", "none",
            "--pod-resources-timeout",
            str(PATIENCE * 1000), *options
        ]

    def start_daemon(self, *options):
        d = Daemon(self.daemon_argv(*options), self.path(f"railmated{len(self.processes)}.log"),
                   stdin=subprocess.DEVNULL)
        self.processes.append(d)
        return d

    def start(self, *kubelet_options, daemon=(), gpu=(), resource=VF):
        """The usual: everything up, GPUs and VFs allocatable. Returns (kubelet, daemon)."""
        kubelet = self.start_kubelet(*kubelet_options)
        self.start_gpu_plugin(*gpu)
        d = self.start_daemon(*daemon)
        kubelet.wait(GPU, 1)
        kubelet.wait(resource, 1)
        return kubelet, d

    def doctor(self):
        """What railmatectl finds."""
        return json.loads(
            subprocess.run([program("railmatectl"), "doctor", "--root", self.root, "--json"],
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE,
                           check=False).stdout)

    def release(self, vf, *options):
        return subprocess.run(
            [program("railmatectl"), "release", vf, "--control-socket", self.control_socket,
             *options], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)

    # --- the tree, changed while it is in use ---

    def device_dir(self, bdf):
        return os.path.realpath(os.path.join(self.root, "sys/bus/pci/devices", bdf))

    def remove_device(self, bdf):
        """As a hot-unplug: the function and its links are gone. Returns what `restore_device`
        needs."""
        link = os.path.join(self.root, "sys/bus/pci/devices", bdf)
        target, real = os.readlink(link), self.device_dir(bdf)
        os.unlink(link)
        os.rename(real, self.path(f"removed-{bdf}"))
        return link, target, real

    def remove_pf(self, netdev):
        """The PF of that name and its VFs. Returns its address, and a call that puts them back."""
        machine = self.topo()
        pf = next(f["pci"] for f in machine.topo["pfs"] if f["netdev"] == netdev)
        vfs = [v for v in machine.place if machine.place[v] == pf and v != pf]
        removed = {f: self.remove_device(f) for f in (*vfs, pf)}
        return pf, lambda: [self.restore_device(*item) for item in removed.items()]

    def restore_device(self, bdf, removed):
        link, target, real = removed
        os.rename(self.path(f"removed-{bdf}"), real)
        os.symlink(target, link)

    def unbind(self, bdf, driver=None):
        """Takes the function's driver away, its RDMA and net devices with it; binds another if
        named."""
        d = self.device_dir(bdf)
        link = os.path.join(d, "driver")
        old = os.readlink(link)
        os.unlink(link)
        for name in ("infiniband", "infiniband_verbs", "net"):
            shutil.rmtree(os.path.join(d, name), ignore_errors=True)
        if driver:
            os.symlink(os.path.join(os.path.dirname(old), driver), link)

    def take_away(self, bdf):
        """Its devices are in a container's network namespace, out of sight. Returns what
        `bring_back` needs."""
        moved = []
        for kind in ("infiniband", "infiniband_verbs", "net"):
            here = os.path.join(self.device_dir(bdf), kind)
            for name in os.listdir(here) if os.path.exists(here) else ():
                link = os.path.join(self.root, "sys/class", kind, name)
                moved.append((link, os.readlink(link)))
                os.unlink(link)
            if os.path.exists(here):
                os.rename(here, self.path(f"away-{bdf}-{kind}"))
        return moved

    def bring_back(self, bdf, moved):
        for kind in ("infiniband", "infiniband_verbs", "net"):
            if os.path.exists(self.path(f"away-{bdf}-{kind}")):
                os.rename(self.path(f"away-{bdf}-{kind}"), os.path.join(self.device_dir(bdf), kind))
        for link, target in moved:
            os.symlink(target, link)

    def write(self, relative, text):
        with open(os.path.join(self.root, relative), "w", encoding="utf-8") as f:
            f.write(text)


# --- what an admission brought ---

def container(admission, name=None):
    if admission["event"] != "admitted":
        raise AssertionError(f"pod {admission.get('pod')} was rejected: {admission.get('message')}")
    return next(c for c in admission["containers"] if name is None or c["name"] == name)


def vfs_of(admission, name=None, resource=VF):
    return container(admission, name)["devices"].get(resource, [])


def gpus_of(machine, admission, name=None, resource=GPU):
    return sorted(machine.gpu(i) for i in container(admission, name)["devices"].get(resource, []))


class Case(unittest.TestCase):
    """One node a test."""

    longMessage = True

    def node(self, fixture="hgx-h100"):
        n = Node(fixture)
        n.__enter__()
        self.addCleanup(n.__exit__, None, None, None)
        return n


def main():
    unittest.main(verbosity=2)
