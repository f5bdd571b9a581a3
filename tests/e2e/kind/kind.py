#!/usr/bin/python3
"""
The cluster of hack/kind-e2e: one node of kind, in which the DaemonSet of deploy/ serves the machine
of a fixture. scenarios.py says what has to be true. With podman this runs in namespaces of its own.
Standard library only.
"""
import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "kubelet"))
import late  # noqa: E402, F401 (the path comes first; its scenarios come behind those of scenarios.py)
import node  # noqa: E402
import node_image  # noqa: E402
import scenarios  # noqa: E402
from node import TOP, call  # noqa: E402
from scenarios import until  # noqa: E402

MODULES = "scenarios", "late"  # whose scenarios can be had here: the others want a kubelet and a disk of their own
CLUSTER = "railmate-e2e"
NODE = f"{CLUSTER}-control-plane"
OWN_IMAGE = "localhost/railmate-kind-node:1"
MANY = 300 * scenarios.SLOWNESS  # seconds for what takes long: the cluster, its images
NAMESPACE = "kube-system"
DEMO = "railmate-demo"

# podman in namespaces of its own: what it keeps lies in the work folder, and its runtime asks for
# nothing that the machine may deny.
CONTAINERS_CONF = """[engine]
runtime = "edited"
cgroup_manager = "cgroupfs"
events_logger = "file"
[engine.runtimes]
edited = ["%s"]
[network]
network_backend = "cni"
"""
STORAGE_CONF = """[storage]
driver = "overlay"
graphroot = "%s"
runroot = "/run/containers/storage"
"""
RUNTIME = """#!/usr/bin/python3
import json, os, pathlib, sys
args = sys.argv[1:]
if "create" in args or "run" in args:
    bundle = next((args[i + 1] for i, word in enumerate(args) if word in ("-b", "--bundle")), None)
    path = pathlib.Path(bundle or next((word.split("=", 1)[1] for word in args if word.startswith("--bundle=")), "."), "config.json")
    spec = json.loads(path.read_text())
    spec["process"].pop("rlimits", None)
    spec["process"].pop("oomScoreAdj", None)
    path.write_text(json.dumps(spec))
os.execv("%s", ["runc", *args])
"""


class Podman:
    """Its places; then kind and podman find each other."""

    def __init__(self, work, runc):
        conf = work / "containers"
        conf.mkdir()
        runtime = conf / "runtime"
        runtime.write_text(RUNTIME % runc)
        runtime.chmod(0o755)
        (conf / "containers.conf").write_text(CONTAINERS_CONF % runtime)
        (conf / "storage.conf").write_text(STORAGE_CONF % (conf / "storage"))
        os.environ |= {
            "CONTAINERS_CONF": str(conf / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(conf / "storage.conf"),
            "KIND_EXPERIMENTAL_PROVIDER": "podman"
        }

    @staticmethod
    def make_places():
        call("mount", "--make-rprivate", "/")
        node.mount("tmpfs", "/run", "-o", "mode=755")
        for folder in ("/etc/cni", "/var/lib/cni"):
            os.makedirs(folder, exist_ok=True)
            node.mount("tmpfs", folder)
        os.makedirs("/etc/cni/net.d", exist_ok=True)
        os.makedirs("/lib/modules",
                    exist_ok=True)  # kind mounts it, whether a kernel has modules or not
        call("ip", "link", "set", "lo", "up")
        # podman wants a default route; nothing is behind it.
        for words in (["link", "add", "wan", "type", "veth", "peer", "name", "wan0"], [
                "addr", "add", "10.77.1.1/24", "dev", "wan"
        ], ["link", "set", "wan", "up"], ["link", "set", "wan0",
                                          "up"], ["route", "add", "default", "via", "10.77.1.2"]):
            call("ip", *words)
        call("mount", "--make-rshared", "/")


def overlay(binding, machine):
    """deploy/ on the machine of a fixture: what a user's own kustomization would be."""
    late = ["../deploy/components/late"] if binding == "late" else []
    mounts = [{
        "op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": f"--root={machine}"
    }, {
        "op": "add", "path": "/spec/template/spec/containers/0/args/-",
        "value": f"--runtime-socket={node.SOCKET}"
    }, {
        "op": "replace", "path": "/spec/template/spec/containers/0/args/0",
        "value": "--log-level=debug"
    }, {
        "op": "add", "path": "/spec/template/spec/containers/0/volumeMounts/-",
        "value": {"name": "machine", "mountPath": str(machine), "readOnly": True}
    }, {
        "op": "add", "path": "/spec/template/spec/volumes/-",
        "value": {"name": "machine", "hostPath": {"path": str(machine)}}
    }]
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": ["../deploy"], "components": [*late, "../deploy/components/runtime"],
        "patches": [{
            "target": {"kind": "DaemonSet", "name": "railmate"}, "patch": json.dumps(mounts)
        }]
    }


def pools(binding):
    pool = {
        "resourcePrefix": "rdma", "resourceName": "vf",
        "selectors": {"devices": ["101e"], "isRdma": True}, "railmate": {"binding": binding}
    }
    return {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "railmate-config", "namespace": NAMESPACE},
        "data": {"config.json": json.dumps({"resourceList": [pool]})}
    }


class KindNode(node.Node):  # pylint: disable=super-init-not-called
    """Knows of node.Node what looks at a node. The work folder has the same path outside and inside
    of the node's container."""
    pod_specs = None  # the kubelet is asked from its own machine only

    def __init__(self, args):
        self.args, self.logs, self.work = args, args.logs, args.work
        self.env, self.railmates, self.binding = dict(os.environ), {}, None
        self.machine, self.image = args.work / "machine", args.work / "railmate.oci.tar"
        self.gone, self.killed = {}, None  # what instances said that are no more; the one that the kubelet starts again

    # --- the cluster ---

    def inside(self, *argv, **options):
        return call(self.args.provider, "exec", NODE, *argv, stdout=subprocess.PIPE, text=True,
                    **options).stdout

    def kubectl(self, *argv, **options):
        return call(self.args.kubectl, *argv, stdout=subprocess.PIPE, text=True, **options).stdout

    def make_cluster(self):
        verbose = {
            "kind": "InitConfiguration",
            "nodeRegistration": {"kubeletExtraArgs": [{"name": "v", "value": "4"}]}
        }
        kubelet = {
            "kind": "KubeletConfiguration", "failCgroupV1": False,
            "localStorageCapacityIsolation": False
        }
        networking = {"networking": {"kubeProxyMode": "none"}
                      } if self.args.provider == "podman" else {}
        config = {
            "kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4", **networking, "nodes": [{
                "role": "control-plane",
                "kubeadmConfigPatches": [json.dumps(verbose),
                                         json.dumps(kubelet)],
                "extraMounts": [{"hostPath": str(self.work), "containerPath": str(self.work)}]
            }]
        }
        file = self.work / "kind.json"
        file.write_text(json.dumps(config))
        image = ["--image", self.args.image] if self.args.image else []
        with open(self.logs / "kind.log", "ab") as log:
            call(self.args.kind, "create", "cluster", "--name", CLUSTER, "--config", file,
                 "--retain", "--wait", "180s", *image, limit=MANY, stdout=log, stderr=log)

    def make_own_image(self):
        """Debian's part of it is made once a machine."""
        archive = self.work / "node.tar"
        cache = self.args.kind.parent
        node_image.make(archive, cache, cache / "files", self.args.kubelet, self.args.containerd,
                        self.args.runc, self.args.busybox)
        changes = [word for change in node_image.IMAGE_CHANGES for word in ("--change", change)]
        call("podman", "import", *changes, archive, OWN_IMAGE, limit=MANY,
             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        archive.unlink()
        self.args.image = OWN_IMAGE

    def load_images(self):
        self.load_pod_images()
        for name in ("railmate.oci.tar", "railmate-demo.oci.tar"):
            shutil.copy(self.args.build / name, self.work)
            self.ctr("-n", "k8s.io", "images", "import", self.work / name)

    def make_machine(self):
        self.machine.mkdir()
        call(self.args.build / "cmd/railmatectl", "snapshot", "unpack",
             self.args.build / node.MACHINE, self.machine)
        script = ["set -e", "mkdir -p /dev/infiniband"]
        for file in (*self.machine.glob("sys/class/infiniband_verbs/uverbs*/dev"),
                     *self.machine.glob("sys/class/misc/rdma_cm/dev")):
            major, minor = file.read_text().split(":")
            script.append(
                f"mknod -m 666 /dev/infiniband/{file.parent.name} c {int(major)} {int(minor)}")
        self.inside("sh", "-c", "\n".join(script))

    def start_gpu_plugin(self, *options):
        """In the node, below a folder with the libraries of this machine."""
        root = self.work / "root"
        with contextlib.suppress(FileExistsError):
            root.mkdir()
            for program in ("tests/fakekubelet/fakegpu", "tests/e2e/kubelet/podres"):
                shutil.copy(self.args.build / program, root)
                said = call("ldd", self.args.build / program, stdout=subprocess.PIPE, text=True)
                for library in re.findall(r"(/\S+) \(0x", said.stdout):
                    (root / library.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(library, root / library.lstrip("/"))
            for path in (node.KUBELET_ROOT, self.machine):
                (root / str(path).lstrip("/")).mkdir(parents=True, exist_ok=True)
                self.inside("mount", "--rbind", path, root / str(path).lstrip("/"))
        self.spawn("fakegpu.log", self.args.provider, "exec", NODE, "chroot", root, "/fakegpu",
                   "--root", self.machine, "--kubelet-dir", node.PLUGINS, "--resource",
                   scenarios.GPU, *options)

    def start(self):
        if self.args.provider == "podman":
            self.make_own_image()
        self.make_cluster()
        self.versions = json.loads(self.kubectl("get", "node", NODE, "-o",
                                                "json"))["status"]["nodeInfo"]
        self.runtime = re.search(r"//v?(\d+\.\d+\.\d+)",
                                 self.versions["containerRuntimeVersion"])[1]
        self.make_machine()
        self.load_images()
        self.start_gpu_plugin()
        shutil.copytree(TOP / "deploy", self.work / "deploy", symlinks=True)
        self.want_binding("early")

    @property
    def kubelet_version(self):
        return tuple(int(word) for word in re.findall(r"\d+", self.versions["kubeletVersion"])[:2])

    # --- railmate: the DaemonSet ---

    def apply(self):
        self.kubectl("apply", "-f", "-", input=json.dumps(pools(self.binding)))
        folder = self.work / "overlay"
        folder.mkdir(exist_ok=True)
        (folder / "kustomization.yaml").write_text(json.dumps(overlay(self.binding, self.machine)))
        self.kubectl("apply", "-k", folder)

    def instances(self):
        found = json.loads(
            self.kubectl("-n", NAMESPACE, "get", "pods", "-l", "app.kubernetes.io/name=railmate",
                         "-o", "json"))["items"]
        return {pod["metadata"]["name"]: pod for pod in found}

    def start_railmate(self, *options):
        """Returns the pod's name. Beside an instance that is there: the update of the DaemonSet."""
        if options:
            raise scenarios.Unsupported("the DaemonSet's options stay as they are")
        if self.killed:
            return self.started_again()
        old = set(self.instances())
        if old and self.railmates:
            self.kubectl("-n", NAMESPACE, "rollout", "restart", "ds/railmate")
        else:
            self.apply()
        (name, ) = until(lambda: set(self.instances()) - old, "a pod of the DaemonSet",
                         node.START_LIMIT)
        self.railmates[name] = None
        until(lambda: "railmated starts" in self.railmate_log(name), f"{name} to start",
              node.START_LIMIT)
        return name

    def restarts(self, name):
        return self.instances()[name]["status"]["containerStatuses"][0]["restartCount"]

    def started_again(self):
        """The kubelet does that."""
        (name, count), self.killed = self.killed, None
        until(lambda: self.restarts(name) > count, f"{name} to be started again", node.START_LIMIT)
        del self.gone[name]
        self.railmates[name] = None
        return name

    def stop_railmate(self, name, sig="SIGTERM"):
        """The DaemonSet goes with its only pod; where a new one is there, the update ends the old
        one by itself."""
        self.gone[name] = self.railmate_log(name)
        del self.railmates[name]
        if sig == "SIGKILL":
            self.killed = name, self.restarts(name)
            self.inside("pkill", "-KILL", "-x", "railmated")
            return 128 + signal.SIGKILL
        if not self.railmates:
            self.kubectl("-n", NAMESPACE, "delete", "ds", "railmate")
        until(lambda: name not in self.instances(), f"{name} to go", node.START_LIMIT)
        return 0

    def railmate_log(self, name):
        if name in self.gone:
            return self.gone[name]
        done = call(self.args.kubectl, "-n", NAMESPACE, "logs", name, "-c", "railmated",
                    check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return done.stdout

    def ready(self, name):
        done = call(self.args.kubectl, "-n", NAMESPACE, "exec", name, "-c", "railmated", "--",
                    "railmatectl", "ready", node.READY, check=False, stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL, text=True)
        return done.stdout.strip()

    def want_binding(self, binding):
        """As an operator changes it: another ConfigMap, another set of mounts."""
        if binding == self.binding:
            return
        for name in list(self.railmates):
            self.stop_railmate(name)
        self.binding = binding
        self.start_railmate()
        self.wait_registered()

    def rescan(self):
        self.inside("pkill", "-HUP", "-x", "railmated")

    # --- what scenarios ask ---

    def ctr_command(self):
        return self.args.provider, "exec", NODE, "ctr"

    def podres_command(self):
        return self.args.provider, "exec", NODE, "chroot", self.work / "root", "/podres"

    def name_of(self, pod):
        return pod

    def create(self, pod):
        pod["spec"][
            "nodeName"] = NODE  # the kubelet decides, not the scheduler, as with a static pod
        self.kubectl("apply", "-f", "-", input=json.dumps(pod))

    def delete(self, pod):
        self.kubectl("delete", "pod", pod, "--wait=false", "--ignore-not-found")

    def raw_pods(self):
        return json.loads(self.kubectl("get", "pods", "-o", "json"))["items"]

    def log(self, pod, container, instance):
        pattern = f"/var/log/pods/default_{pod}_*/{container}/{instance}.log"
        text = self.inside("sh", "-c", f"cat {pattern} 2>/dev/null", check=False)
        return "".join(
            line.split(" ", 3)[3] for line in text.splitlines(True) if line.count(" ") >= 3)

    def kubelet_log(self):
        return self.inside("journalctl", "-u", "kubelet", "-o", "cat", "--no-pager")

    def kubelet_lines(self, words):
        return [line for line in self.kubelet_log().splitlines() if words in line]

    def devinfo(self, vf):
        text = self.inside("sh", "-c", f"cat {node.DEVINFO}/rdma-vf-{vf}-device.json 2>/dev/null",
                           check=False)
        return json.loads(text) if text else None

    def explain(self, pod, *options):
        text = self.kubectl("-n", NAMESPACE, "exec", "ds/railmate", "-c", "railmated", "--",
                            "railmatectl", "explain", "pod", f"default/{pod}", "--json", *options)
        return json.loads(text)["choices"]

    def explain_inside(self, pod):
        return self.kubectl("-n", NAMESPACE, "exec", "ds/railmate", "-c", "railmated", "--",
                            "railmatectl", "explain", "pod", f"default/{pod}")

    def cdi_slots(self):
        text = self.inside("sh", "-c", "cat /var/run/cdi/*.json 2>/dev/null", check=False)
        slots, decoder, at = [], json.JSONDecoder(), 0
        while at < len(text.rstrip()):
            spec, at = decoder.raw_decode(text, at)
            slots += [device["name"] for device in spec["devices"]]
            while at < len(text) and text[at].isspace():
                at += 1
        return sorted(slots)

    def lingering(self):
        return set()  # the kubelet's own pods are in the way, and nothing here deletes by force

    def kubelet_restart(self, sig="SIGTERM"):
        raise scenarios.Unsupported("the kubelet of kind is not ours to kill")

    def describe(self):
        return f"kind with {self.args.provider}, kubelet {self.versions['kubeletVersion'].removeprefix('v')}, {self.versions['containerRuntimeVersion']}"

    def keep_state(self, scenario):
        folder = self.logs / scenario.replace(" ", "_")
        folder.mkdir(exist_ok=True)
        for name, argv in (("pods.yaml", ("get", "pods", "-A", "-o",
                                          "yaml")), ("events.txt", ("get", "events", "-A")),
                           ("railmate.log", ("-n", NAMESPACE, "logs", "-l",
                                             "app.kubernetes.io/name=railmate", "--tail=-1"))):
            with contextlib.suppress(subprocess.SubprocessError):
                (folder / name).write_text(self.kubectl(*argv))
        (folder / "kubelet.log").write_text(self.kubelet_log())


# --- the demo ---

def the_demo_in_a_minute(c):
    """The commands of deploy/overlays/demo: no GPU, no privilege."""
    began = time.monotonic()
    c.kubectl("apply", "-k", c.work / "deploy/overlays/demo")
    try:
        c.kubectl("wait", f"job/{DEMO}", "--for=condition=complete",
                  f"--timeout={node.START_LIMIT:.0f}s", limit=2 * node.START_LIMIT)
        said = c.kubectl("logs", f"job/{DEMO}")
    finally:
        c.kubectl("delete", "-k", c.work / "deploy/overlays/demo", "--ignore-not-found")
    scenarios.check("PIX" in said, f"the demo shows no pair:\n{said}")
    return f"done after {time.monotonic() - began:.0f} s"


the_demo_in_a_minute.binding = "early"


def main():
    parser = argparse.ArgumentParser()
    for name in ("kind", "kubectl", "build", "logs", "work", "runc", "busybox"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    for name in ("kubelet", "containerd"):
        parser.add_argument("--" + name, type=pathlib.Path)
    parser.add_argument("--provider", choices=("docker", "podman"), required=True)
    parser.add_argument("--image")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--seconds", type=int, required=True,
                        help="when they are over, or at SIGTERM, the sum is printed")
    parser.add_argument("words", nargs="*")
    args = parser.parse_args()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    for sig in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(sig, node.time_is_up)
    signal.alarm(args.seconds)
    os.environ |= {
        "LC_ALL": "C.UTF-8", "KUBECONFIG": str(args.work / "kubeconfig"),
        "PATH": f"{args.kubectl.parent}:{os.environ['PATH']}"
    }
    if args.provider == "podman":
        Podman.make_places()
        Podman(args.work, args.runc / "usr/sbin/runc")
    kind = KindNode(args)
    try:
        began = time.monotonic()
        kind.start()
        print(
            f"kind bed: {kind.describe()}: railmate's VFs are on offer after {time.monotonic() - began:.0f} s",
            flush=True)
        c = scenarios.Cluster(kind)
        demo = [
            f for f in (the_demo_in_a_minute, )
            if not args.words or any(word in scenarios.title(f) for word in args.words)
        ]
        ours = [f for f in scenarios.chosen(c, args.words) if f.__module__ in MODULES]
        return scenarios.run_these(c, [*demo, *ours], args.words, args.logs, "kind")
    except (AssertionError, subprocess.SubprocessError, OSError, scenarios.TimeIsUp) as e:
        print(
            f"kind bed: the cluster did not come up: {e or 'time is up'}\nlogs: {args.logs}\n0 passed, 1 failed"
        )
        return 1
    finally:
        if not args.keep or args.provider == "podman":
            signal.alarm(0)
            call(args.kind, "delete", "cluster", "--name", CLUSTER, check=False, limit=MANY,
                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
