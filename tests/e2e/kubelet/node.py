#!/usr/bin/python3
"""
The node of the bed, run by `run` inside its namespaces: containerd, a standalone kubelet with
static pods, a GPU plugin, railmated from its image. Implements what scenarios.py asks of a cluster.
Standard library only. tests/e2e/vm has another node made of this one.
"""
import argparse
import contextlib
import ctypes
import functools
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import time
import urllib.request

import churn  # noqa: F401 (its scenarios come behind those of scenarios.py)
import failures  # noqa: F401
import faults  # noqa: F401
import handovers  # noqa: F401
import late  # noqa: F401
import relay
import scenarios
import storm  # noqa: F401
import tenants  # noqa: F401
from containerd import containerd_config
from scenarios import until

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent.parent
UNIT = TOP / "deploy/systemd/railmated.service"
MACHINE = "tests/fixtures/hgx-h100/host.tree"
KUBELET_ROOT = pathlib.Path("/var/lib/kubelet")
PLUGINS = KUBELET_ROOT / "device-plugins"
POD_RESOURCES = KUBELET_ROOT / "pod-resources"
PODS_API = KUBELET_ROOT / "pods-api"
DEVINFO = pathlib.Path("/var/run/k8s.cni.cncf.io/devinfo/dp")
CDI, RUN, STATE = pathlib.Path("/var/run/cdi"), pathlib.Path("/run/railmate"), pathlib.Path(
    "/var/lib/railmate")
FOLDERS = PLUGINS, POD_RESOURCES, PODS_API, DEVINFO, CDI, RUN, STATE
CGROUP = pathlib.Path("/sys/fs/cgroup")
SOCKET, READY = "/run/containerd/containerd.sock", pathlib.Path("/run/railmated/ready")
RAILMATE, PROBE, PAUSE = "docker.io/library/railmate:e2e", "railmate.test/probe:1", "railmate.test/pause:1"
NODE = "node"
OURS = {
    "railmatectl": "cmd", "railmated": "cmd", "hanging_disk.so": "tests/e2e/kubelet",
    "fakegpu": "tests/fakekubelet", "podres": "tests/e2e/kubelet", "podspecs": "tests/integration"
}  # where the build has them
START_LIMIT = 60 * scenarios.SLOWNESS
ENDED = '"Mark all resources Unhealthy for resource" resourceName="rdma/vf"'  # in the kubelet's log, when our list has ended


def kubelet_config(work, cgroup, runtime, more):
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "staticPodPath": str(work / "manifests"),
        "fileCheckFrequency": "1s",
        "syncFrequency": "5s",
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "readOnlyPort": 10255,
        "address": "127.0.0.1",
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "cgroupRoot": cgroup,
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "failCgroupV1": False,
        "makeIPTablesUtilChains": False,
        "localStorageCapacityIsolation": False,
        "evictionHard": {
            "memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%"
        },
        "containerRuntimeEndpoint": f"unix://{runtime}",
        "volumePluginDir": str(work / "volume-plugins"),
        "resolvConf": "",
        **more,
    }


# --- the machine that the kubelet sees ---

def call(*argv, check=True, limit=START_LIMIT, **options):
    nothing = {} if "input" in options else {"stdin": subprocess.DEVNULL}
    return subprocess.run([str(a) for a in argv], check=check, timeout=limit, **nothing, **options)


def ms_of_day(clock):
    """Of HH:MM:SS.ssssss, as the kubelet's log has it."""
    hours, minutes, seconds = map(float, clock.split(":"))
    return ((hours * 60 + minutes) * 60 + seconds) * 1000


def mount(kind, target, *options):
    call("mount", "-t", kind, *options, kind, target)


def private_dev(machine):
    """A /dev of our own, with the RDMA nodes of the fixture: their numbers are real, no driver
    stands behind."""
    dev = pathlib.Path("/run/dev")
    dev.mkdir()
    mount("tmpfs", dev, "-o", "mode=755")
    for name in ("null", "zero", "full", "random", "urandom", "tty", "kmsg", "console"):
        with contextlib.suppress(FileNotFoundError):
            there = os.stat(f"/dev/{name}")
            os.mknod(dev / name, there.st_mode, there.st_rdev)
            os.chmod(dev / name, stat.S_IMODE(there.st_mode))
    (dev / "fd").symlink_to("/proc/self/fd")
    for name in ("shm", "pts", "infiniband"):
        (dev / name).mkdir()
    mount("devpts", dev / "pts", "-o", "newinstance,ptmxmode=0666,mode=620")
    (dev / "ptmx").symlink_to("pts/ptmx")
    for file in [
            *machine.glob("sys/class/infiniband_verbs/uverbs*/dev"),
            *machine.glob("sys/class/misc/rdma_cm/dev")
    ]:
        major, minor = file.read_text().split(":")
        node = dev / "infiniband" / file.parent.name
        os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(int(major), int(minor)))
        os.chmod(node, 0o666)
    call("mount", "--move", dev, "/dev")


def memory_folders(work):
    """Everything that the kubelet and the runtime write lies in memory."""
    for target in ("/run", "/var/lib", "/var/log", work):
        mount("tmpfs", target)
    for folder in (*FOLDERS, work / "manifests", work / "pools", work / "relay/plugins",
                   work / "relay/pod-resources"):
        folder.mkdir(parents=True, exist_ok=True)
    POD_RESOURCES.chmod(0o750)


# --- images ---

def tar_of(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, mode, data in entries:
            info = tarfile.TarInfo(name)
            info.mode = mode
            if data is None:
                info.type = tarfile.DIRTYPE
            elif isinstance(data, str):
                info.type, info.linkname = tarfile.SYMTYPE, data
            else:
                info.size = len(data)
            tar.addfile(info, io.BytesIO(data) if info.size else None)
    return out.getvalue()


def image_archive(tags, layer, config):
    """One layer under these names, as `docker save` would write it."""
    text = json.dumps({
        "architecture": "amd64", "os": "linux", "config": config,
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}
    }).encode()
    name = hashlib.sha256(text).hexdigest() + ".json"
    manifest = json.dumps([{"Config": name, "RepoTags": tags, "Layers": ["layer.tar"]}]).encode()
    return tar_of([("layer.tar", 0o644, layer), (name, 0o644, text),
                   ("manifest.json", 0o644, manifest)])


def small_image(tag, busybox, command):
    """One static program and those of its applets that examples run."""
    with open(busybox, "rb") as file:
        program = file.read()
    layer = tar_of([("bin", 0o755, None), ("tmp", 0o1777, None), ("bin/busybox", 0o755, program),
                    *((f"bin/{applet}", 0o777, "busybox") for applet in ("sh", "cat", "sleep"))])
    return image_archive([tag], layer, {"Entrypoint": command, "Env": ["PATH=/bin"]})


# --- the node ---

class Node:
    """A cluster of one node, as scenarios.py wants it."""
    has_api, ip = False, "127.0.0.1"
    socket, runtime_name = SOCKET, "containerd"  # of the kubelet's runtime
    runtime_mounts = ()  # where it has some beside those below /run

    def __init__(self, args):
        self.args, self.logs, self.work = args, args.logs, args.work
        self.machine = self.make_machine()
        self.env = {**os.environ, "PATH": f"{self.runtime_dir()}:{os.environ['PATH']}"}
        self.image = args.build / "railmate.oci.tar"
        self.kubelet, self.railmates, self.n_started, self.binding = None, {}, 0, "early"
        # Without, a pod's containers are in /k8s.io, outside of our cgroup, and stay there when all
        # is over.
        self.kubelet_options = {"cgroupsPerQOS": True}
        self.seen_lines, self.railmate_env = {}, []

    @functools.cached_property
    def kubelet_version(self):
        version = call(self.args.kubelet, "--version", stdout=subprocess.PIPE, text=True).stdout
        return tuple(map(int, re.search(r"v(\d+)\.(\d+)", version).groups()))

    def make_machine(self):
        """Namespaces are ours already; returns the root that railmated looks at."""
        call("mount", "--make-rprivate", "/")
        call("ip", "link", "set", "lo", "up")
        memory_folders(self.work)
        machine = self.work / "machine"
        machine.mkdir()
        call(self.program("railmatectl"), "snapshot", "unpack", self.args.build / MACHINE, machine)
        private_dev(machine)
        call("mount", "--make-rshared", "/")
        return machine

    def runtime_dir(self):
        return self.args.containerd / "usr/bin"

    def program(self, name):
        return self.args.build / OURS[name] / name

    def spawn(self, log, *argv, **env):
        with open(self.logs / log, "ab") as out:
            return subprocess.Popen(
                [str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env={**self.env, **{name: str(value)
                                    for name, value in env.items()}})

    def ctr_command(self):
        return self.runtime_dir() / "ctr", "--address", SOCKET

    def ctr(self, *args, check=True):
        done = call(*self.ctr_command(), *args, check=False, env=self.env, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, text=True)
        scenarios.check(done.returncode == 0 or not check,
                        f"ctr {' '.join(map(str, args))}: {done.stderr.strip()}")
        return done.stdout

    def start_runtime(self):
        """The one that the kubelet asks."""
        self.start_containerd()

    def start_containerd(self):
        version = call(self.runtime_dir() / "containerd", "--version", stdout=subprocess.PIPE,
                       text=True).stdout
        self.runtime = re.search(r" v?(\d+\.\d+\.\d+)", version).group(1)
        config = self.work / "containerd.toml"
        config.write_text(
            containerd_config(PAUSE, self.work / "cni/bin", self.work / "cni/net.d",
                              {"BinaryName": str(self.args.runc)}, self.runtime.startswith("1.")))
        self.spawn("containerd.log", self.runtime_dir() / "containerd", "--config", config)
        until(lambda: "Server:" in self.ctr("version", check=False), "containerd", START_LIMIT)

    def load_pod_images(self):
        """From files that the node sees under the same names."""
        for tag, command in ((PROBE, ["/bin/busybox",
                                      "sh"]), (PAUSE, ["/bin/busybox", "sleep", "1000000000"])):
            file = self.work / "image.tar"
            file.write_bytes(small_image(tag, self.args.busybox, command))
            self.load_pod_image(file, tag)

    def load_pod_image(self, file, _):
        self.ctr("-n", "k8s.io", "images", "import", file)

    def load_railmate_for_pods(self):
        self.ctr("-n", "k8s.io", "images", "import", self.image)
        name = next(n for n in self.ctr("-n", "k8s.io", "images", "list", "-q").split()
                    if "railmate:" in n)
        self.ctr("-n", "k8s.io", "images", "tag", "--force", name, RAILMATE)

    def load_images(self):
        self.load_pod_images()
        self.ctr("-n", "railmate", "images", "import", self.image)
        names = self.ctr("-n", "railmate", "images", "list", "-q").split()
        self.ctr("-n", "railmate", "images", "tag", names[0], RAILMATE)

    @staticmethod
    def socket_birth():
        try:
            return (PLUGINS / "kubelet.sock").stat().st_ctime
        except FileNotFoundError:
            return None

    def kubelet_command(self):
        return (self.args.kubelet, "--hostname-override", NODE, "--node-ip", self.ip, "--root-dir",
                KUBELET_ROOT, "--v", "4", "--cert-dir", self.work / "certificates")

    def start_kubelet(self):
        """Returns when its registration socket appeared; the one of a predecessor may still lie
        there."""
        old = self.socket_birth()
        config = self.work / "kubelet.json"
        config.write_text(
            json.dumps(
                kubelet_config(self.work, self.args.cgroup, self.socket, self.kubelet_options)))
        self.kubelet = self.spawn("kubelet.log", *self.kubelet_command(), "--config", config)
        until(lambda: self.socket_birth() != old and self.raw_pods() is not None, "the kubelet",
              START_LIMIT)
        return self.socket_birth()

    def start(self):
        self.start_runtime()
        self.load_images()
        self.start_kubelet()
        self.start_gpu_plugin()
        self.start_railmate()
        self.wait_registered()

    def start_gpu_plugin(self, *options):
        self.spawn("fakegpu.log", self.program("fakegpu"), "--root", self.machine, "--kubelet-dir",
                   PLUGINS, "--resource", scenarios.GPU, *options)

    def wait_registered(self, resource=scenarios.VF):
        for name in (resource, scenarios.GPU):
            until(lambda n=name: self.allocatable().get(n), f"devices of {name}", START_LIMIT)

    # --- what scenarios ask ---

    def topo(self):
        return json.loads(
            call(self.program("railmatectl"), "topo", "--json", "--root", self.machine,
                 stdout=subprocess.PIPE, text=True).stdout)

    def name_of(self, pod):
        return f"{pod}-{NODE}"

    def create(self, pod):
        name = pod["metadata"]["name"]
        hidden = self.work / f".{name}"
        hidden.write_text(json.dumps(pod))
        hidden.rename(self.work / "manifests" / f"{name}.json")

    def delete(self, pod):
        (self.work / "manifests" / f"{pod}.json").unlink(missing_ok=True)

    def raw_pods(self):
        try:
            with urllib.request.urlopen("http://127.0.0.1:10255/pods", timeout=5) as answer:
                return json.load(answer).get("items") or []
        except OSError:
            return None

    def status(self, pod):
        for item in self.raw_pods() or []:
            if item["metadata"]["name"] == self.name_of(pod):
                return item["status"]
        return None

    def log(self, pod, container, instance):
        """What the container printed, without what the runtime writes before every line: time, stream,
        and P where the line goes on in the next one."""
        for file in pathlib.Path("/var/log/pods").glob(
                f"*_{self.name_of(pod)}_*/{container}/{instance}.log"):
            lines = (line.split(" ", 3) for line in file.open(encoding="utf-8"))
            return "".join(line[3].removesuffix("\n") if line[2] == "P" else line[3]
                           for line in lines if len(line) == 4)
        return ""

    def podres_command(self):
        return (self.program("podres"),)

    def podres(self, *args):
        done = call(*self.podres_command(), POD_RESOURCES / "kubelet.sock", *args, check=False,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def podres_answer(self, what):
        """No answer is not an empty one."""
        return until(lambda: (answer := self.podres(what)) is not None and [answer],
                     f"PodResources to answer '{what}'")[0]

    def held(self):
        """pod → container → resource → sorted ids, of every pod that PodResources lists."""
        return {
            pod["name"].removesuffix("-" + NODE): scenarios.devices_of(pod)
            for pod in self.podres_answer("list")
        }

    def held_by_get(self, pod):
        answer = self.podres("get", "default", self.name_of(pod))
        return answer and scenarios.devices_of(answer)

    def allocatable(self):
        return self.podres_answer("allocatable")

    def devinfo(self, vf):
        """The device-info file of a VF, or None."""
        try:
            return json.loads((DEVINFO / f"rdma-vf-{vf}-device.json").read_text())
        except FileNotFoundError:
            return None

    def kubelet_log(self):
        return (self.logs / "kubelet.log").read_text(errors="replace")

    def kubelet_lines(self, words):
        """The log's lines with these words. What was read once is not read again: there are 20 MB
        in the end."""
        log = self.seen_lines.setdefault(words, {"at": 0, "lines": []})
        with (self.logs / "kubelet.log").open("rb") as file:
            file.seek(log["at"])
            text = file.read()
        whole = text[:text.rfind(b"\n") + 1]
        log["at"] += len(whole)
        log["lines"] += [
            line for line in whole.decode(errors="replace").splitlines() if words in line
        ]
        return log["lines"]

    def allocations(self):
        """(pod, resource) in the order in which the kubelet allocated them; it says so with
        --v=4."""
        found = self.kubelet_lines('"Making allocation request for device plugin"')
        words = [(re.search(r'pod="default/([^"]*)"',
                            line), re.search(r'resourceName="([^"]*)"', line)) for line in found]
        return [(pod[1], resource[1]) for pod, resource in words]

    def order(self, pod):
        """The resources of a pod as they were allocated."""
        return [resource for name, resource in self.allocations() if name == self.name_of(pod)]

    def running(self, pod):
        """The id of every container of the pod that runs: equal ids are the same, never restarted
        containers."""
        status = self.status(pod) or {}
        return {
            c["name"]: c["containerID"]
            for c in status.get("containerStatuses", [])
            if "running" in c["state"]
        }

    # --- what it does to itself ---

    def kubelet_restart(self, sig="SIGTERM"):
        """Milliseconds from the new kubelet.sock to our Register, as the kubelet's log has it."""
        log = self.logs / "kubelet.log"
        before = log.stat().st_size
        self.kubelet.send_signal(getattr(signal, sig))
        self.kubelet.wait(START_LIMIT)
        born = self.start_kubelet()

        def registered():
            text = log.read_bytes()[before:].decode(errors="replace")
            return re.search(r'^I\d{4} (\S+).*Got registration request.*"rdma/vf"', text, re.M)

        found = until(registered, "registration after the kubelet's restart", START_LIMIT)
        now = ms_of_day(time.strftime("%H:%M:%S", time.localtime(born))) + born % 1 * 1000
        self.wait_registered()
        return (ms_of_day(found[1]) - now) % 86400000

    def denied_and_registered(self):
        """
        Milliseconds from the newest kubelet's registration socket to its first refusal of a pod
        (None: it refused none), and to our
        Register. A kubelet that has it dials back before it counts our devices: it may refuse a pod
        in between.
        """
        text = self.kubelet_log()
        newest = text[text.rfind("\n", 0, text.rfind("Starting device plugin registration server")
                                 ) + 1:]
        began = ms_of_day(newest.split()[1])
        lines = (re.search(rf"^I\d{{4}} (\S+).*{words}", newest, re.M)
                 for words in ("Pod admission denied", 'Got registration request.*"rdma/vf"'))
        return [line and (ms_of_day(line[1]) - began) % 86400000 for line in lines]

    def gap_ms(self):
        """From the newest end of our list to the next list, as the kubelet's log has it; None:
        there is no such pair yet."""
        ends = self.kubelet_lines(ENDED)
        lists = self.kubelet_lines('"State pushed for device plugin" resource="rdma/vf"')
        if not ends or not lists:
            return None
        gap = ms_of_day(lists[-1].split()[1]) - ms_of_day(ends[-1].split()[1])
        return gap if gap > 0 else None

    @contextlib.contextmanager
    def plugin_of_our_name(self):
        """Another device plugin registers our resource, with this node's GPUs as its devices."""
        rival = self.spawn("rival.log", self.program("fakegpu"), "--root", self.machine,
                           "--kubelet-dir", PLUGINS, "--resource", scenarios.VF, "--endpoint",
                           "other.sock")
        try:
            yield
        finally:
            rival.terminate()
            rival.wait(START_LIMIT)

    def freeze_kubelet(self, after, seconds):
        time.sleep(after)
        self.kubelet.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.kubelet.send_signal(signal.SIGCONT)

    def kubelet_dies(self):
        self.kubelet.kill()
        self.kubelet.wait(START_LIMIT)

    def kubelet_comes_back(self):
        self.start_kubelet()
        self.wait_registered()

    def killings(self):
        """The kubelet's lines about containers that it ends."""
        return "\n".join(self.kubelet_lines("Killing container with a grace period"))

    def relay_pod_resources(self):
        """A relay, and railmated's options by which it asks there."""
        front = self.work / "relay/pod-resources/kubelet.sock"
        return relay.Relay(front, POD_RESOURCES / "kubelet.sock"), "--kubelet-root=/relay"

    def relay_plugins(self):
        """As in the kubelet's own folder the checkpoint is there: it has the UIDs of pods."""
        checkpoint = self.work / "relay/plugins/kubelet_internal_checkpoint"
        if not checkpoint.is_symlink():
            checkpoint.symlink_to(PLUGINS / checkpoint.name)
        return relay.Plugins(self.work / "relay/plugins", PLUGINS), "--kubelet-dir=/relay/plugins"

    def pods_api(self, gate):
        """The kubelet anew, with this gate on or off. Its socket; None: this one has no such
        gate."""
        if self.kubelet_version < (1, 36):
            return None
        self.kubelet_options["featureGates"] = {"PodsAPI": gate}
        self.kubelet_restart()
        return PODS_API / "pods-api.sock"

    def pod_specs(self, *source):
        """What tests/integration/podspecs prints."""
        done = subprocess.run([self.program("podspecs"), *source], input="fetch 5000\n",
                              stdout=subprocess.PIPE, text=True, timeout=START_LIMIT)
        return json.loads(done.stdout)

    def own_folder(self, name):
        """The emptyDir of deploy/base."""
        folder = self.work / name
        folder.mkdir()
        return folder

    def start_railmate(self, *options):
        """From the image, with the rights and mounts of deploy/base/daemonset.yaml. Returns its
        name."""
        self.n_started += 1
        name = f"railmated-{self.n_started}"
        binds = [(PLUGINS, PLUGINS, "rw"), (POD_RESOURCES, POD_RESOURCES, "ro"),
                 (PODS_API, PODS_API, "ro"), (DEVINFO, DEVINFO, "rw"), (CDI, CDI, "rw"),
                 (RUN, RUN, "rw"), (STATE, STATE, "rw"), (CGROUP, CGROUP, "ro"),
                 (self.machine, "/machine", "ro"), (self.work / "pools", "/etc/pcidp", "ro"),
                 (self.work / "relay", "/relay", "rw"), (self.socket, self.socket, "rw"),
                 (self.own_folder(name), READY.parent, "rw")]
        account = self.work / "account"
        if account.exists():
            binds.append((account, "/account", "ro"))
        mounts = [a for src, dst, mode in binds
                  for a in ("--mount", f"type=bind,src={src},dst={dst},options=rbind:{mode}")]
        self.railmates[name] = self.spawn(
            f"{name}.log", *self.ctr_command(), "-n", "railmate", "run", "--rm", "--net-host",
            "--read-only", "--seccomp", "--runc-binary", self.args.runc, "--cgroup",
            f"{self.args.cgroup}/{name}", *mounts,
            *(word for variable in self.railmate_env for word in ("--env", variable)), RAILMATE,
            name, "/usr/bin/railmated", "--root", "/machine", "--log-level", "debug",
            "--runtime-socket", self.socket, f"--ready-file={READY}", *options)
        until(lambda: "railmated starts" in self.railmate_log(name), f"{name} to start",
              START_LIMIT)
        return name

    def want_binding(self, binding):
        """railmated serves its pool like this from now on; started anew if that is a change, on a
        node without pods."""
        if binding == self.binding:
            return
        for name in list(self.railmates):
            self.stop_railmate(name)
        self.set_pool(binding)
        self.start_railmate()
        self.wait_registered()

    def set_pool(self, binding):
        """What the next railmated will read."""
        self.binding = binding
        selectors = {"devices": ["101e"], "isRdma": True}  # the VFs, and no RDMA device beside them
        pool = {"resourcePrefix": "rdma", "resourceName": "vf", "selectors": selectors,
                "railmate": {"binding": binding}}
        (self.work / "pools/config.json").write_text(json.dumps({"resourceList": [pool]}))

    def railmate_log(self, name):
        return (self.logs / f"{name}.log").read_text(errors="replace")

    def ready(self, name):
        """As the probe of deploy/base sees it: "waiting", "serving"; "": not ready."""
        return self.ctr("-n", "railmate", "tasks", "exec", "--exec-id",
                        f"ready-{time.monotonic_ns()}", name, "/usr/bin/railmatectl", "ready",
                        READY, check=False).strip()

    def signal_railmate(self, name, sig):
        self.ctr("-n", "railmate", "task", "kill", "--signal", sig, name)

    def stop_railmate(self, name, sig="SIGTERM"):
        """Its exit status as ctr tells it."""
        self.signal_railmate(name, sig)
        process = self.railmates.pop(name)
        status = process.wait(START_LIMIT)
        self.ctr("-n", "railmate", "containers", "delete", name, check=False)
        return status

    def newest_railmate(self):
        return list(self.railmates)[-1]

    def rescan(self):
        for name in self.railmates:
            self.signal_railmate(name, "SIGHUP")

    def explain(self, pod, *options):
        """What railmatectl says of it: from the daemon, or from the ledger."""
        done = call(self.program("railmatectl"), "explain", "pod", f"default/{self.name_of(pod)}",
                    "--json", *options, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    text=True)
        scenarios.equal(done.returncode, 0, f"railmatectl explain's exit status: {done.stderr}")
        return json.loads(done.stdout)["choices"]

    def explain_inside(self, pod):
        """The same as text by the program of the image: in railmated's container, or where none
        runs in its own."""
        what = "/usr/bin/railmatectl", "explain", "pod", f"default/{self.name_of(pod)}"
        if self.railmates:
            return self.ctr("-n", "railmate", "tasks", "exec", "--exec-id", "explain",
                            self.newest_railmate(), *what)
        return self.ctr("-n", "railmate", "run", "--rm", "--read-only", "--runc-binary",
                        self.args.runc, "--cgroup", f"{self.args.cgroup}/explain", "--mount",
                        f"type=bind,src={STATE},dst={STATE},options=rbind:ro", RAILMATE, "explain",
                        *what)

    def cdi_slots(self):
        """Of every CDI spec that is there, one for each container: the slots that it is for."""
        slots = []
        for file in CDI.glob("*.json"):
            with contextlib.suppress(FileNotFoundError):  # it goes this moment
                slots += [device["name"] for device in json.loads(file.read_text())["devices"]]
        return sorted(slots)

    def lingering(self):
        """UIDs of pods that the kubelet has forgotten and that have processes."""
        known = {item["metadata"]["uid"] for item in self.raw_pods() or []}
        found = set()
        for top in (CGROUP / "pids", CGROUP):
            for folder, _, files in os.walk(top / self.args.cgroup.strip("/") /
                                            "kubepods"):  # what goes meanwhile is left out
                name = os.path.basename(folder)
                with contextlib.suppress(OSError):
                    if name.startswith("pod") and "pids.current" in files and int(
                            pathlib.Path(folder, "pids.current").read_text()):
                        found.add(name.removeprefix("pod"))
        return found - known

    def device_number(self, node):
        """As stat prints it for a node of /dev/infiniband: both halves in hexadecimal."""
        kind = "misc" if node == "rdma_cm" else "infiniband_verbs"
        return [
            f"{int(n):x}" for n in (self.machine / "sys/class" / kind / node /
                                    "dev").read_text().split(":")
        ]

    def runs(self, container_id):
        """Is that container's process still there, whatever the kubelet thinks?"""
        tasks = self.ctr("-n", "k8s.io", "tasks", "list").splitlines()
        return any(line.split()[0] == container_id.split("//")[1] and "RUNNING" in line
                   for line in tasks)

    def device_dir(self, vf):
        return (self.machine / "sys/bus/pci/devices" / vf).resolve()

    def processes(self):
        """container id → (its first process, its VFs), of every container that has VFs and a
        process, whatever the kubelet thinks."""
        found = {}
        for folder in sorted(pathlib.Path("/proc").glob("[0-9]*"), key=lambda p: int(p.name)):
            with contextlib.suppress(OSError):
                vfs = re.search(rb"(?:^|\0)PCIDEVICE_RDMA_VF=([^\0]*)",
                                (folder / "environ").read_bytes())
                place = vfs and re.search(r"/pod[^/\n]+/(?:crio-)?([0-9a-f]{64})",
                                          (folder / "cgroup").read_text())
                if place:
                    found.setdefault(place[1],
                                     (int(folder.name), frozenset(vfs[1].decode().split(","))))
        return found

    # --- its disk, and what is lost ---

    def another_railmate(self):
        self.stop_railmate(self.newest_railmate())
        self.start_railmate()
        self.wait_registered()

    @contextlib.contextmanager
    def small_disk(self):
        """The state directory on a disk of its own, with room for the probe; gives the function
        that fills it."""
        self.stop_railmate(self.newest_railmate())
        mount("tmpfs", STATE, "-o", "size=16m")
        self.start_railmate()
        self.wait_registered()

        def fill():
            with open(STATE / "filling", "wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(bytes(4096))
        try:
            yield fill
        finally:
            self.stop_railmate(self.newest_railmate())
            call("umount", "-l", STATE)
            self.lose_ledger()
            self.start_railmate()
            self.wait_registered()

    @contextlib.contextmanager
    def hanging_disk(self):
        """A railmated whose disk can hang; gives the context in which it does."""
        shutil.copy(self.program("hanging_disk.so"), self.work / "relay")
        sign = self.work / "relay/hangs"
        self.railmate_env = ["LD_PRELOAD=/relay/hanging_disk.so", "DISK_HANGS=/relay/hangs"]

        @contextlib.contextmanager
        def hang():
            sign.touch()
            try:
                yield
            finally:
                sign.unlink()
        try:
            self.another_railmate()
            yield hang
        finally:
            self.railmate_env = []
            self.another_railmate()

    def lose_specs(self):
        for file in CDI.glob("*.json"):
            file.unlink()

    def lose_sockets(self):
        for file in PLUGINS.glob("rdma_*.sock"):
            file.unlink()

    @staticmethod
    def ledger():
        return STATE / "ledger.json"

    def lose_ledger(self):
        self.ledger().unlink(missing_ok=True)

    # --- the unit of deploy/systemd ---

    def start_unit(self):
        """railmated as the unit starts it, and what comes after it waits for: the word that it is
        ready."""
        line = re.search(r"^ExecStart=/usr/bin/railmated(.*)$", UNIT.read_text(), re.M)[1]
        config = self.work / "pools/config.json"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
            systemd.bind(str(self.work / "notify"))
            systemd.settimeout(START_LIMIT)
            self.unit = self.spawn("railmated-unit.log", self.program("railmated"), *line.split(),
                                   "--root", self.machine, "--runtime-socket", self.socket,
                                   *(["--config-file", config] if config.exists() else []),
                                   NOTIFY_SOCKET=self.work / "notify")
            scenarios.equal(systemd.recv(100), b"READY=1", "what the unit says to systemd")
        (self.work / "notify").unlink()

    @contextlib.contextmanager
    def unit_instead(self):
        """The node's railmated is the unit, for a while."""
        self.stop_railmate(self.newest_railmate())
        self.start_unit()
        self.wait_registered()
        try:
            yield
        finally:
            self.unit.terminate()
            self.unit.wait(START_LIMIT)
            self.start_railmate()
            self.wait_registered()

    # --- the power is cut ---

    def not_rebooted(self):
        """Processes that are not of the node."""
        return {1, os.getpid()}

    def power_off(self):
        """No process gets to say anything. /run and the cgroups are gone, /var is still there."""
        while pids := {int(p.name)
                       for p in pathlib.Path("/proc").glob("[0-9]*")} - self.not_rebooted():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):  # orphans are ours: this is process 1
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            time.sleep(0.05)
        self.railmates.clear()
        with open("/proc/self/mounts", encoding="utf-8") as file:
            mounts = [line.split()[1] for line in file]
        for place in reversed(
            [m for m in mounts
             if m.startswith(("/run/", f"{KUBELET_ROOT}/pods/", *self.runtime_mounts))]):
            call("umount", "-l", place, check=False)
        for item in pathlib.Path("/run").iterdir():
            shutil.rmtree(item) if item.is_dir() and not item.is_symlink() else item.unlink()
        for folder in FOLDERS:
            folder.mkdir(parents=True, exist_ok=True)
        for top in (place / self.args.cgroup.strip("/") for place in [CGROUP, *CGROUP.glob("*")]):
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    if pathlib.Path(folder) != top:  # which is the kubelet's root
                        os.rmdir(folder)

    def boot(self):
        """As far as a kubelet that has started; the plugins come later, as pods do."""
        self.start_runtime()
        self.start_kubelet()

    def break_vf(self, vf):
        """Its driver lets it go; returns how to undo that."""
        link = self.device_dir(vf) / "driver"
        driver = os.readlink(link)
        hidden = self.work / f"hidden-{vf}"
        hidden.mkdir()
        link.unlink()
        parts = [p for p in ("infiniband", "infiniband_verbs", "net") if (link.parent / p).is_dir()]
        for part in parts:
            shutil.move(link.parent / part, hidden / part)
        self.rescan()

        def undo():
            for part in parts:
                shutil.move(hidden / part, link.parent / part)
            hidden.rmdir()
            link.symlink_to(driver)
            self.rescan()
        return undo

    def move_away(self, vfs):
        """Their interfaces and RDMA devices are in another network namespace; returns how to undo
        that."""
        away = [(self.device_dir(vf) / part, self.work / f"away-{vf}-{part}")
                for vf in vfs
                for part in ("infiniband", "infiniband_verbs", "net")
                if (self.device_dir(vf) / part).is_dir()]
        for here, there in away:
            shutil.move(here, there)
        self.rescan()

        def undo():
            for here, there in away:
                shutil.move(there, here)
            self.rescan()
        return undo

    def describe(self):
        version = call(self.args.kubelet, "--version", stdout=subprocess.PIPE,
                       text=True).stdout.split()[-1]
        return f"kubelet {version.removeprefix('v')}, {self.runtime_name} {self.runtime}"

    def keep_state(self, scenario):
        """What is worth a look after a failure."""
        folder = self.logs / re.sub(r"\W+", "_", scenario)
        folder.mkdir(exist_ok=True)
        (folder / "pods.json").write_text(json.dumps(self.raw_pods(), indent=1))
        (folder / "pod-resources.json").write_text(json.dumps(self.podres("list"), indent=1))
        for source, name in (("/var/log/pods", "logs"), (CDI, "cdi"), (STATE, "state")):
            with contextlib.suppress(OSError, shutil.Error):
                shutil.copytree(source, folder / name, symlinks=True, dirs_exist_ok=True)


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def time_is_up(*_):
    """Once: what is said then takes a moment, too."""
    for sig in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(sig, signal.SIG_IGN)
    raise scenarios.TimeIsUp


def main():
    parser = argparse.ArgumentParser()
    for name in ("kubelet", "containerd", "runc", "busybox", "build", "logs", "work"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    for name in ("crio", "crun"):
        parser.add_argument("--" + name, type=pathlib.Path, help="the folder; it is the kubelet's runtime, instead of containerd")
    parser.add_argument("--cgroup", required=True)
    parser.add_argument("--seconds", type=int, required=True,
                        help="when they are over, or at SIGTERM, the sum is printed")
    parser.add_argument("--api", action="store_true",
                        help="with an API server, and the scenarios that want one")
    parser.add_argument("words", nargs="*")
    args = parser.parse_args()
    die_with_parent()
    for sig in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(sig, time_is_up)
    signal.alarm(args.seconds)
    os.environ["LC_ALL"] = "C.UTF-8"
    kinds = [Node]
    if args.api:
        import control  # which imports this file
        kinds = [control.ControlledNode]
    if args.crio:
        import crio  # as well
        kinds.insert(0, crio.Crio)
    node = type("BedNode", tuple(kinds), {})(args)
    try:
        node.start()
    except (AssertionError, subprocess.SubprocessError, OSError, scenarios.TimeIsUp) as e:
        print(
            f"kubelet bed: the node did not come up: {e or 'time is up'}\nlogs: {args.logs}\n0 passed, 1 failed"
        )
        return 1
    return scenarios.run_all(node, args.words, args.logs)


if __name__ == "__main__":
    sys.exit(main())
