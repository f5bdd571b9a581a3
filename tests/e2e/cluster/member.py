#!/usr/bin/python3
"""
A node of the cluster: containerd, a kubelet that joined by a bootstrap token, a GPU plugin. Member
is its handle outside; what runs in its mount, network, process, IPC and host name namespaces is
this file as a program. Its disk outlives it.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "kubelet"))
import node  # noqa: E402 (the path comes first)
import scenarios  # noqa: E402
from containerd import containerd_config  # noqa: E402
from machine import cgroup_mounts, remove_cgroup  # noqa: E402
from node import PAUSE, SOCKET, call, die_with_parent, mount  # noqa: E402
from scenarios import until  # noqa: E402

KUBELET_CONF = node.KUBELET_ROOT / "kubelet.conf"
STANDARD, SLICES = "resource.kubernetes.io", "/apis/resource.k8s.io/v1/resourceslices"
DISK = {"lib": "/var/lib", "log": "/var/log", "opt": "/opt"}  # what outlives a reboot

# The network of pods: the node's own range, by Debian's plugins. Pods of other nodes are not
# reached.
NETWORK = """{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipam": {"type": "host-local", "routes": [{"dst": "0.0.0.0/0"}],
   "ranges": [{{range $i, $range := .PodCIDRRanges}}{{if $i}}, {{end}}[{"subnet": "{{$range}}"}]{{end}}]}}]}
"""

# The machine of the fixture stands where a container of railmated looks for one, and where what is
# run in it by kubectl exec does; its manifests are what users apply, unchanged.
RUNC = """#!/bin/sh
case " $* " in *" create "* | *" exec "*) /usr/bin/python3 -S -E %(edit)s %(machine)s "$@" || exit 1 ;; esac
exec %(runc)s "$@"
"""


def kubelet_config(cgroup, here, gates):
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False}, "webhook": {"enabled": True},
            "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"}
        },
        "authorization": {"mode": "Webhook"},
        "rotateCertificates": True,
        "serverTLSBootstrap": True,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "failCgroupV1": False,
        "makeIPTablesUtilChains": False,
        "localStorageCapacityIsolation": False,
        "evictionHard": {
            "memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%"
        },
        "containerRuntimeEndpoint": "unix://" + SOCKET,
        "resolvConf": "",
        "nodeStatusUpdateFrequency": "2s",
        "nodeStatusReportFrequency": "10s",
        "syncFrequency": "5s",  # of the volume of a ConfigMap
        "volumePluginDir": str(here / "volume-plugins"),
        "featureGates": gates,
    }


class Member(node.Node):  # pylint: disable=super-init-not-called
    """Knows of node.Node what looks at a node; its daemons are the cluster's business."""

    def __init__(self, cluster, name, ip, machine, gates):
        self.cluster, self.args, self.name, self.ip = cluster, cluster.args, name, ip
        self.here = cluster.work / name
        self.logs = cluster.logs / name
        self.machine = self.here / "machine"
        self.seen_lines, self.env = {}, None
        self.cgroup = f"{cluster.args.cgroup}/{name}"
        self.gates = gates
        for folder in ("disk", "net.d"):
            (self.here / folder).mkdir(parents=True)
        for folder in DISK:
            (self.here / "disk" / folder).mkdir()
        self.logs.mkdir()
        self.set_machine(machine)
        self.write_files()

    def set_machine(self, machine):
        """For containers that start from now on."""
        link = self.here / "new-machine"
        link.symlink_to(machine)
        link.rename(self.machine)

    def write_files(self):
        values = {
            "runc": self.args.runc, "machine": self.machine, "edit": HERE / "bundle.py"
        }
        (self.here / "containerd.toml").write_text(
            containerd_config(PAUSE, "/opt/cni/bin", self.here / "net.d",
                              {"BinaryName": str(self.here / "runc")},
                              conf_template=str(self.here / "network.template")))
        (self.here / "network.template").write_text(NETWORK)
        (self.here / "runc").write_text(RUNC % values)
        (self.here / "runc").chmod(0o755)
        (self.here / "no-gpu-driver").touch()
        (self.here / "kubelet.json").write_text(
            json.dumps(kubelet_config(self.cgroup, self.here, self.gates)))
        plugins = self.here / "disk/opt/cni/bin"
        plugins.mkdir(parents=True)
        for plugin in pathlib.Path("/usr/lib/cni").iterdir():
            (plugins / plugin.name).symlink_to(plugin)

    def add_plugin(self, name, *argv):
        """One of ours, behind those that the pods' network has already."""
        plugin = self.here / "disk/opt/cni/bin" / name
        plugin.write_text(f"#!/bin/sh\nexec {shlex.join(map(str, argv))}\n")
        plugin.chmod(0o755)
        (path,) = (self.here / "net.d").iterdir()
        network = json.loads(path.read_text())
        network["plugins"] = [one for one in network["plugins"] if one["type"] != name
                              ] + [{"type": name}]
        hidden = path.with_name(f".{path.name}")
        hidden.write_text(json.dumps(network))
        hidden.rename(path)

    # --- on and off ---

    def boot(self):
        for top in (place / self.cgroup.strip("/") for place in cgroup_mounts()):
            top.mkdir(exist_ok=True)
            for limit in ("cpuset.cpus", "cpuset.mems"):  # an empty cpuset takes no process
                if (top / limit).exists() and not (top / limit).read_text().strip():
                    (top / limit).write_text((top.parent / limit).read_text())
        with open(self.logs / "node.log", "ab") as log:
            self.process = subprocess.Popen([
                "unshare", "-m", "-n", "-p", "-i", "-u", "-f", "--mount-proc", "--kill-child", "sh",
                "-c", 'read go; exec "$@"', "sh", sys.executable, "-B",
                str(HERE / "member.py"), self.name, self.ip,
                *map(str, (self.here, self.logs, self.args.containerd, self.args.kubelet,
                           self.args.build, self.args.busybox))
            ], stdin=subprocess.PIPE, stdout=log, stderr=log, preexec_fn=die_with_parent)
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        self.pid = until(lambda: [int(pid) for pid in children.read_text().split()],
                         "the node's namespaces")[0]
        until(lambda: os.readlink(f"/proc/{self.pid}/ns/net") != os.readlink("/proc/self/ns/net"),
              "the node's network")
        call("ip", "link", "add", f"v-{self.name}", "type", "veth", "peer", "name", "eth0", "netns",
             self.pid)
        call("ip", "link", "set", f"v-{self.name}", "master", "br0", "up")
        self.process.stdin.write(b"go\n")
        self.process.stdin.close()

    def power_off(self):
        """As when somebody pulls the plug: no process gets to say anything, and what is left is
        what is on the disk."""
        self.process.kill()
        self.process.wait()
        call("ip", "link", "del", f"v-{self.name}", check=False, stderr=subprocess.DEVNULL)
        for top in (place / self.cgroup.strip("/") for place in cgroup_mounts()):
            if top.exists():
                remove_cgroup(top)

    def root(self, path):
        """Of a file of the node, its name for us. An absolute link in it would be one of ours."""
        return pathlib.Path(f"/proc/{self.pid}/root") / str(path).lstrip("/")

    def inside(self, *argv, check=True, **options):
        done = call("nsenter", "-t", self.pid, "-m", "-n", "-p", "-i", "-u", *argv, check=False,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        scenarios.check(done.returncode == 0 or not check,
                        f"{self.name}: {shlex.join(map(str, argv))}: {done.stderr.strip()}")
        return done.stdout

    def process_of(self, name):
        """The only process of the node that is called like this, outside of its containers."""
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if ((folder / "comm").read_text().strip() == name and
                        os.readlink(folder / "ns/pid") == os.readlink(f"/proc/{self.pid}/ns/pid")):
                    return int(folder.name)
        return None

    def container_process(self, name):
        """The same in a container."""
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (folder / "comm").read_text().strip() == name and f"{self.cgroup}/kubepods" in (
                        folder / "cgroup").read_text():
                    return int(folder.name)
        return None

    @contextlib.contextmanager
    def gpus_by_dra(self):
        """A driver of DRA offers them in place of the plugin."""
        gpus = {}
        for i, gpu in enumerate(sorted(self.topo()["gpus"], key=lambda gpu: gpu["pci"])):
            place = (self.machine / "sys/bus/pci/devices" / gpu["pci"]).resolve()
            root = next(part for part in place.parts if re.fullmatch("pci[0-9a-f]{4}:[0-9a-f]{2}", part))
            gpus[f"gpu-{i}"] = {"uuid": gpu.get("uuid", ""), f"{STANDARD}/pciBusID": gpu["pci"], f"{STANDARD}/pcieRoot": root}
        (self.here / "gpus.json").write_text(json.dumps(gpus))
        self.exchange("fakegpu", "gpu-driver")
        try:
            until(lambda: not self.cluster.offered(self.name, scenarios.GPU), "the scheduler to know that the GPU plugin is gone")
            yield gpus
        finally:
            self.exchange("gpu-driver", "fakegpu")
            self.cluster.api("DELETE", f"{SLICES}?fieldSelector=spec.driver%3Dgpu.nvidia.com,spec.nodeName%3D{self.name}")
            until(lambda: self.cluster.offered(self.name, scenarios.GPU), f"GPUs of {self.name}")

    @contextlib.contextmanager
    def hanging_disk_preloaded(self):
        """For instances of railmated that start from now on (bundle.py)."""
        (self.here / "hanging-disk").mkdir()
        shutil.copy(self.args.build / node.OURS["hanging_disk.so"] / "hanging_disk.so", self.here / "hanging-disk")
        try:
            yield
        finally:
            shutil.rmtree(self.here / "hanging-disk")

    @contextlib.contextmanager
    def disk_that_hangs(self, what):
        """what: "hangs", or "hangs.folder" (../kubelet/hanging_disk.c)."""
        file = self.here / "hanging-disk" / what
        file.touch()
        try:
            yield
        finally:
            file.unlink()

    def exchange(self, old, new):
        """One of the node's services for another one."""
        (self.here / f"no-{old}").touch()
        pid = self.process_of(old)
        os.kill(pid, signal.SIGTERM)
        until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), f"{old} to end")
        (self.here / f"no-{new}").unlink()

    @contextlib.contextmanager
    def without_kubelet(self, sig=signal.SIGKILL):
        """It ends, and starts again afterwards."""
        (self.here / "no-kubelet").touch()
        try:
            pid = self.process_of("kubelet")
            os.kill(pid, sig)
            until(lambda: not pathlib.Path(f"/proc/{pid}").exists(),
                  f"the kubelet of {self.name} to end")
            yield
        finally:
            (self.here / "no-kubelet").unlink()
            until(lambda: self.process_of("kubelet"), f"the kubelet of {self.name} to start")

    # --- what scenarios ask ---

    def ctr_command(self):
        return ("nsenter", "-t", self.pid, "-m", "-n", "-p", self.args.containerd / "usr/bin/ctr",
                "--address", SOCKET)

    def podres_command(self):
        return "nsenter", "-t", self.pid, "-m", self.program("podres")

    def name_of(self, pod):
        return pod

    def status(self, pod):
        return self.cluster.status(pod)

    def raw_pods(self):
        return [pod for pod in self.cluster.pods(None) if pod["spec"].get("nodeName") == self.name]

    def log(self, pod, container, instance):
        lines = []
        for file in self.root("/var/log/pods").glob(f"*_{pod}_*/{container}/{instance}.log"):
            lines += [
                line.split(" ", 3)[3]
                for line in file.open(encoding="utf-8")
                if line.count(" ") >= 3
            ]
        return "".join(lines)

    def devinfo(self, vf):
        try:
            return json.loads(
                self.root(f"/run/k8s.cni.cncf.io/devinfo/dp/rdma-vf-{vf}-device.json").read_text())
        except FileNotFoundError:
            return None

    def holds(self):
        """By railmated's ledger: those of pods that are gone stay for some seconds."""
        try:
            return json.loads(self.root("/var/lib/railmate/ledger.json").read_text())["holds"]
        except FileNotFoundError:
            return []

    def cdi_slots(self):
        slots = []
        for file in self.root("/run/cdi").glob("*.json"):
            with contextlib.suppress(FileNotFoundError):  # it goes this moment
                slots += [device["name"] for device in json.loads(file.read_text())["devices"]]
        return sorted(slots)

    def processes(self):
        """Of this node's containers: the cgroup tells."""
        def is_here(pid):
            with contextlib.suppress(OSError):  # it ends this moment
                return f"{self.cgroup}/" in pathlib.Path(f"/proc/{pid}/cgroup").read_text()
            return False

        return {
            container: (pid, vfs)
            for container, (pid, vfs) in super().processes().items()
            if is_here(pid)
        }

    def lingering(self):
        known = {item["metadata"]["uid"] for item in self.raw_pods()}
        found = set()
        for top in (node.CGROUP / "pids", node.CGROUP):
            for folder, _, files in os.walk(
                    top / self.cgroup.strip("/") / "kubepods"):  # what goes meanwhile is left out
                name = os.path.basename(folder)
                with contextlib.suppress(OSError):
                    if name.startswith("pod") and "pids.current" in files and int(
                            pathlib.Path(folder, "pids.current").read_text()):
                        found.add(name.removeprefix("pod"))
        return found - known

    def explain(self, pod, *options):
        return json.loads(
            self.inside(self.program("railmatectl"), "explain", "pod", f"default/{pod}", "--json",
                        *options))["choices"]


# --- in its namespaces ---

class Inside:
    """The node's process 1."""

    def __init__(self, args):
        self.args, self.here, self.logs = args, args.here, args.logs
        runtime = args.containerd / "usr/bin"
        self.ctr = [runtime / "ctr", "--address", SOCKET, "-n", "k8s.io"]
        self.env = {**os.environ, "PATH": f"{runtime}:{os.environ['PATH']}"}
        self.daemons = {}

    def spawn(self, name, *argv, **env):
        with open(self.logs / f"{name}.log", "ab") as out:
            return subprocess.Popen(
                [str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env={**self.env, **{key: str(value)
                                    for key, value in env.items()}})

    def say(self, *words):
        print(f"{time.strftime('%H:%M:%S')}", *words, flush=True)

    def make_places(self):
        call("mount", "--make-rprivate", "/")
        socket.sethostname(self.args.name)
        call("ip", "link", "set", "lo", "up")
        call("ip", "addr", "add", f"{self.args.ip}/24", "dev", "eth0")
        call("ip", "link", "set", "eth0", "up")
        call("ip", "route", "add", "default", "via", self.args.ip.rpartition(".")[0] + ".1")
        mount("tmpfs", "/run", "-o", "mode=755")
        for name, place in DISK.items():
            call("mount", "--bind", self.here / "disk" / name, place)
        for folder in node.FOLDERS:
            folder.mkdir(parents=True, exist_ok=True)
        node.POD_RESOURCES.chmod(0o750)
        node.private_dev(self.here / "machine")
        call("mount", "--make-rshared", "/")

    def start_containerd(self):
        self.spawn("containerd", self.args.containerd / "usr/bin/containerd", "--config",
                   self.here / "containerd.toml")
        until(
            lambda: "Server:" in call(*self.ctr, "version", check=False, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True).stdout, "containerd",
            node.START_LIMIT)
        have = call(*self.ctr, "images", "list", "-q", stdout=subprocess.PIPE,
                    text=True).stdout.split()
        for image in sorted(self.here.parent.glob("images/*.tar")):
            if not have:
                call(*self.ctr, "images", "import", "--local", image, stdout=subprocess.DEVNULL)
        self.say("containerd is up, images are imported")

    def start_unit(self):
        """deploy/systemd, where this node has it: what comes after it waits for the word that it is
        ready."""
        if not (self.here / "unit").exists():
            return
        line = re.search(r"^ExecStart=/usr/bin/railmated(.*)$", node.UNIT.read_text(), re.M)[1]
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
            systemd.bind("/run/notify")
            systemd.settimeout(node.START_LIMIT)
            self.spawn("railmated-unit", self.args.build / "cmd/railmated", *line.split(), "--root",
                       self.here / "machine", NOTIFY_SOCKET="/run/notify", NODE_NAME=self.args.name)
            scenarios.equal(systemd.recv(100), b"READY=1", "what the unit says to systemd")
        self.say("the unit is ready")

    def look_after(self):
        """Who is not there is started, like a service of systemd; everybody who lost their parent
        is ours to reap."""
        kubelet = (self.args.kubelet, "--config", self.here / "kubelet.json", "--hostname-override",
                   self.args.name, "--node-ip", self.args.ip, "--bootstrap-kubeconfig",
                   self.here.parent / "bootstrap.conf", "--kubeconfig", KUBELET_CONF, "--cert-dir",
                   node.KUBELET_ROOT / "pki", "--v", "4")
        gpus = (self.args.build / node.OURS["fakegpu"] / "fakegpu", "--root", self.here / "machine",
                "--kubelet-dir", node.PLUGINS, "--resource", scenarios.GPU)
        driver = (self.args.kubelet.parent / "gpu-driver", "/etc/kubernetes/admin.conf",
                  self.args.name, self.here / "gpus.json")
        running = {}
        while True:
            for name, argv in (("kubelet", kubelet), ("fakegpu", gpus), ("gpu-driver", driver)):
                if name not in running.values() and not (self.here / f"no-{name}").exists():
                    running[self.spawn(name, *argv).pid] = name
                    self.say(name, "starts")
            with contextlib.suppress(ChildProcessError):
                while pid := os.waitpid(-1, os.WNOHANG)[0]:
                    running.pop(pid, None)
            time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser()
    for name in ("name", "ip"):
        parser.add_argument(name)
    for name in ("here", "logs", "containerd", "kubelet", "build", "busybox"):
        parser.add_argument(name, type=pathlib.Path)
    args = parser.parse_args()
    die_with_parent()
    os.environ["LC_ALL"] = "C.UTF-8"
    inside = Inside(args)
    inside.make_places()
    inside.start_unit()
    inside.start_containerd()
    inside.look_after()


if __name__ == "__main__":
    sys.exit(main())
