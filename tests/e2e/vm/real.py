"""
The real kubelet in the guest: bed A's node (tests/e2e/kubelet/node.py) on the live root, railmated
a process of the machine. It starts once a boot; a scenario says what it needs:

    with cluster(policy="restricted", config={"resourceList": […]}) as c:
        name = c.run(scenarios.container("main", gpus=2, vfs=2))

c is what the scenarios of bed A get; its pods are gone afterwards. Standard library only.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import types

import node
import scenarios
from bed import PCI, SHARE, check, shell, write

PROGRAMS = pathlib.Path("/programs")  # ./guest copies them into memory: over 9p they are too slow
WORK = pathlib.Path("/work")
LOGS = pathlib.Path("/var/log/bed")
CGROUP = "/bed"
# What the built-in pool is, without its "auto".
EARLY = {
    "resourceList": [{
        "resourcePrefix": "rdma", "resourceName": "vf", "selectors": {"isRdma": True},
        "railmate": {"binding": "early"}
    }]
}
FRESH = 0.4  # seconds, or as long as the last answer took


class RealNode(node.Node):
    """containerd, the kubelet and the GPU plugin stay; the kubelet's policy and railmated's pools
    change."""

    def __init__(self):
        WORK.mkdir(exist_ok=True)
        super().__init__(
            types.SimpleNamespace(logs=LOGS, work=WORK, cgroup=CGROUP, build=PROGRAMS,
                                  kubelet=PROGRAMS / "kubelet", runc=PROGRAMS / "runc",
                                  busybox=PROGRAMS / "busybox"))
        self.policy = self.config = None
        self.pods_now, self.fresh_until = None, 0

    def make_machine(self):
        node.memory_folders(WORK)
        LOGS.mkdir()
        os.mkdir("/sys/fs/cgroup" + CGROUP)
        write("/sys/fs/cgroup/cgroup.subtree_control", "+cpu +cpuset +memory +pids +io")
        node.call("mount", "--make-rshared", "/")
        return pathlib.Path("/")

    def runtime_dir(self):
        return PROGRAMS

    def program(self, name):
        return PROGRAMS / name

    def start(self):
        self.start_containerd()
        self.load_pod_images()
        self.start_gpu_plugin("--poll", "200")

    def want(self, policy, config):
        """The kubelet with this policy, railmated with this configuration (None: EARLY), all
        registered."""
        if policy != self.policy:
            if self.kubelet:
                self.wait_for_free_vfs()
                self.kubelet.terminate()
                self.kubelet.wait(node.START_LIMIT)
            self.policy, self.kubelet_options = policy, {"topologyManagerPolicy": policy}
            self.start_kubelet()
        if config != self.config or not self.railmates:
            for name in list(self.railmates):
                self.stop_railmate(name)
            self.config = config
            self.start_railmate()
        self.wait_registered()

    def wait_for_free_vfs(self):
        """Pods here have no cgroups of their own: of one that ended unseen, before a kubelet that
        is new, railmated keeps the VFs for ten minutes."""
        ledger = node.STATE / "ledger.json"
        with contextlib.suppress(AssertionError):  # what a scenario means to leave
            scenarios.until(
                lambda: not ledger.exists() or not json.loads(ledger.read_text()).get("holds"),
                "all VFs to be free", 15 * scenarios.SLOWNESS)

    def shown_by(self, pod):
        """Which kubelets have shown railmated this pod with its VFs."""
        holds = json.loads((node.STATE / "ledger.json").read_text()).get("holds", [])
        return {hold.get("kubelet") for hold in holds if hold["pod"] == self.name_of(pod)}

    def note_shown(self, pod):
        self.before = self.shown_by(pod)

    def wait_until_shown(self, pod):
        """By a kubelet that started since: one that ends before that keeps its VFs for ten minutes,
        as above."""
        scenarios.until(lambda: self.shown_by(pod) and not self.shown_by(pod) & self.before,
                        f"the new kubelet to show railmated {pod}")

    def start_kubelet(self):
        self.pods_now = None  # the old one's
        return super().start_kubelet()

    def start_railmate(self, *options):
        self.n_started += 1
        name = f"railmated-{self.n_started}"
        (WORK / "config.json").write_text(json.dumps(self.config or EARLY))
        options = ("--config-file", WORK / "config.json", "--probe", PROGRAMS / "probe", *options)
        self.railmates[name] = self.spawn(f"{name}.log", self.program("railmated"), "--log-level",
                                          "debug", *options)
        scenarios.until(lambda: "railmated starts" in self.railmate_log(name), f"{name} to start",
                        node.START_LIMIT)
        return name

    def signal_railmate(self, name, sig):
        self.railmates[name].send_signal(getattr(signal, sig))

    def stop_railmate(self, name, sig="SIGTERM"):
        self.signal_railmate(name, sig)
        return self.railmates.pop(name).wait(node.START_LIMIT)

    def raw_pods(self):
        """
        For a moment what it was: scenarios poll, and as often as they can they would take most of
        the core, of which the pods that they wait for have none too much.
        """
        began = time.monotonic()
        if self.pods_now is None or began >= self.fresh_until:
            self.pods_now = super().raw_pods()
            now = time.monotonic()
            self.fresh_until = now + max(FRESH, now - began)
        return self.pods_now

    def break_vf(self, vf):
        """Its driver lets it go; returns how to undo that."""
        link = pathlib.Path(PCI, vf, "physfn").resolve()
        bus = link.name[5:7]
        index = next(p.name[6:] for p in link.glob("virtfn*") if p.resolve().name == vf)
        write("/sys/bus/pci/drivers/igbvf/unbind", vf)
        return lambda: shell(f"vf_bind {bus} {index}; rxe_up {bus} {index}")


def save_logs():
    """For the host."""
    with contextlib.suppress(OSError, shutil.Error):
        shutil.copytree(LOGS, f"{SHARE}/node", dirs_exist_ok=True)


class Started:
    """The boot's only node, or why there is none: the first scenario waits for it, the others do
    not again."""

    kind, node, error = RealNode, None, None

    @classmethod
    def get(cls):
        if cls.node is None and cls.error is None:
            try:
                started = cls.kind()
                started.start()
                cls.node = started
            except (AssertionError, OSError, subprocess.SubprocessError) as e:
                cls.error = str(e)
                save_logs()
        check(cls.error is None, f"the node did not come up: {cls.error}")
        return cls.node


@contextlib.contextmanager
def cluster(policy="none", config=None):
    real = Started.get()
    real.want(policy, config)
    c = scenarios.Cluster(real)
    try:
        yield c
        scenarios.clean(c)
    except Exception:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            real.keep_state(f"{policy}-{len(os.listdir(LOGS))}")
        save_logs()
        with contextlib.suppress(AssertionError):
            scenarios.clean(c)
        raise
