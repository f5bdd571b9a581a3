#!/usr/bin/python3
"""
The cluster of the bed, run by `run` inside its namespaces: etcd, API server, controllers and
scheduler as kubeadm would have them, as processes, and two nodes of different machines. railmate is
installed as users do it. Standard library and PyYAML only.
"""
import argparse
import base64
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "kubelet"))
import node  # noqa: E402 (the path comes first)
import crds  # noqa: E402
import scenarios  # noqa: E402
from member import Member  # noqa: E402
from node import TOP, call, die_with_parent, mount  # noqa: E402
from scenarios import GPU, VF, until  # noqa: E402
from shared import SCENARIOS  # noqa: E402
import installed, quickstart, changes, fleet, networks, suite, trouble, dra  # noqa: E402, E401, F401 (their scenarios, in this order)

DEPLOY = TOP / "deploy"
CHART = DEPLOY / "helm/railmate"
NETWORK, GATEWAY = "10.77.0.", "10.77.0.1"
SERVICES, API = "10.96.0.0/16", "10.96.0.1"  # the API server listens there itself: no kube-proxy is needed
TOKEN = "abcdef.0123456789abcdef"
MACHINES = {"node1": "hgx-h100", "node2": "dgx-a100"}
GATES = {"node1": {"PodsAPI": False},
         "node2": {}}  # as kubelets before 1.37 have it, and as later ones
PKI = pathlib.Path("/etc/kubernetes/pki")
PODS = "/api/v1/namespaces/default/pods"
START_LIMIT = 2 * node.START_LIMIT

KUBEADM = f"""
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens: [{{token: {TOKEN}, ttl: 24h0m0s}}]
localAPIEndpoint: {{advertiseAddress: {GATEWAY}, bindPort: 443}}
nodeRegistration: {{name: control, criSocket: "unix://{node.SOCKET}"}}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: VERSION
controlPlaneEndpoint: {GATEWAY}:443
encryptionAlgorithm: ECDSA-P256
networking: {{podSubnet: 10.244.0.0/16, serviceSubnet: {SERVICES}}}
etcd: {{local: {{dataDir: /run/etcd, extraArgs: [{{name: unsafe-no-fsync, value: "true"}}]}}}}
apiServer: {{extraArgs: [{{name: audit-policy-file, value: /etc/kubernetes/audit.yaml}}, {{name: audit-log-path, value: AUDIT}}]}}
# There is only one of each, and nothing starts it again when it has lost its lease.
controllerManager: {{extraArgs: [{{name: leader-elect, value: "false"}}]}}
scheduler: {{extraArgs: [{{name: leader-elect, value: "false"}}]}}
"""


# What the account of railmated does.
AUDIT = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, users: ["system:serviceaccount:kube-system:railmate"]}
- {level: None}
"""


class Cluster:
    """Also what scenarios.py asks of one: pods anywhere, and the nodes one by one in `views`."""
    DEPLOY, CHART, PKI, GATEWAY = DEPLOY, CHART, PKI, GATEWAY

    def __init__(self, args):
        self.args, self.work, self.logs = args, args.work, args.logs
        self.live, self.views, self.processes = [], {}, {}
        self.how, self.version = (), None  # None: a scenario failed, and what is there is not known
        self.backend = self

    # --- the control plane ---

    def program(self, name):
        return self.args.kubelet.parent / name

    def spawn(self, name, *argv):
        with open(self.logs / f"{name}.log", "ab") as out:
            self.processes[name] = subprocess.Popen([str(a) for a in argv],
                                                    stdin=subprocess.DEVNULL, stdout=out,
                                                    stderr=out, preexec_fn=die_with_parent)

    def make_places(self):
        """/etc may be written to: nobody else sees it."""
        call("mount", "--make-rprivate", "/")
        mount("tmpfs", self.work)
        for folder in ("etc", "etc-work", "images", "machines"):
            (self.work / folder).mkdir()
        call("mount", "-t", "overlay", "overlay", "-o",
             f"lowerdir=/etc,upperdir={self.work}/etc,workdir={self.work}/etc-work", "/etc")
        mount("tmpfs", "/run", "-o", "mode=755")
        call("ip", "link", "set", "lo", "up")
        call("ip", "link", "add", "br0", "type", "bridge")
        for address in (f"{GATEWAY}/24", f"{API}/32"):
            call("ip", "addr", "add", address, "dev", "br0")
        call("ip", "link", "set", "br0", "up")

    def kubeadm(self, *phase):
        call(self.program("kubeadm"), "init", "phase", *phase, "--config",
             "/etc/kubernetes/kubeadm.yaml", stdout=subprocess.DEVNULL)

    def start_control_plane(self):
        """What kubeadm would run as static pods: its manifests say how."""
        pathlib.Path("/etc/kubernetes").mkdir(exist_ok=True)
        said = call(self.args.kubelet, "--version", stdout=subprocess.PIPE, text=True).stdout
        self.version = re.search(r"v\d+\.\d+\.\d+", said)[0]
        pathlib.Path("/etc/kubernetes/kubeadm.yaml").write_text(
            KUBEADM.replace("VERSION", self.version).replace("AUDIT", str(self.logs / "audit.log")))
        pathlib.Path("/etc/kubernetes/audit.yaml").write_text(AUDIT)
        for phase in (("certs", "all"), ("kubeconfig", "all"), ("etcd", "local"), ("control-plane",
                                                                                   "all")):
            self.kubeadm(*phase)
        for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
            manifest = yaml.safe_load(
                pathlib.Path(f"/etc/kubernetes/manifests/{name}.yaml").read_text())
            self.spawn(name, *self.command_of(manifest["spec"]["containers"][0]["command"]))
        self.trust = self.admin_identity()
        until(lambda: self.raw("/readyz") == b"ok", "the API server", START_LIMIT)
        for phase in (("upload-config", "all"), ("bootstrap-token",)):
            self.kubeadm(*phase)

    def command_of(self, command):
        return self.program(command[0]), *command[1:]

    def admin_identity(self):
        config = yaml.safe_load(pathlib.Path("/etc/kubernetes/admin.conf").read_text())
        user = config["users"][0]["user"]
        for name in ("certificate", "key"):
            (self.work / f"admin.{name}").write_bytes(base64.b64decode(user[f"client-{name}-data"]))
        trust = ssl.create_default_context(cafile=PKI / "ca.crt")
        trust.load_cert_chain(self.work / "admin.certificate", self.work / "admin.key")
        return trust

    def raw(self, path):
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(f"https://{GATEWAY}{path}", timeout=5,
                                        context=self.trust) as answer:
                return answer.read()
        return None

    def api(self, method, path, body=None, kind="application/json"):
        """The answer; None: there is no such thing."""
        request = urllib.request.Request(f"https://{GATEWAY}{path}", method=method,
                                         data=json.dumps(body).encode() if body else None,
                                         headers={"Content-Type": kind})
        try:
            with urllib.request.urlopen(request, timeout=node.START_LIMIT,
                                        context=self.trust) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as e:
            if e.code == 404:
                return None
            raise AssertionError(
                f"{method} {path}: {e.code} {e.read().decode(errors='replace')}") from None

    @contextlib.contextmanager
    def api_away(self):
        """The API server does not answer."""
        self.processes["kube-apiserver"].send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.processes["kube-apiserver"].send_signal(signal.SIGCONT)
            until(lambda: self.raw("/readyz") == b"ok", "the API server to answer again",
                  START_LIMIT)

    def tool(self, *argv, fails=False, **options):
        """A program that a user would run; its output. fails: it may."""
        done = call(*argv, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                    limit=START_LIMIT, **options)
        words = " ".join(map(str, argv[1:]))
        scenarios.check(done.returncode == 0 or fails,
                        f"{pathlib.Path(argv[0]).name} {words}: {done.stderr.strip()}")
        return done.stdout

    def kubectl(self, *argv):
        return self.tool(self.program("kubectl"), "--kubeconfig", "/etc/kubernetes/admin.conf",
                         *argv)

    def helm(self, *argv):
        return self.tool(self.args.helm, *argv, "--kubeconfig", "/etc/kubernetes/admin.conf", "-n",
                         "kube-system", env={**os.environ, "HOME": str(self.work)})

    def define(self, *kinds):
        """The kinds of objects of operators: these, or all that are known."""
        for one in crds.definitions(self.args.crds, *kinds):
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            name = one["metadata"]["name"]
            if not self.api("GET", f"{path}/{name}"):
                self.api("POST", path, one)
            until(
                lambda n=name: any(c["type"] == "Established" and c["status"] == "True"
                                   for c in self.api("GET", f"{path}/{n}").get("status", {}).get(
                                       "conditions") or []), f"{name} to be served")

    # --- nodes ---

    def make_machines(self, *names):
        for name in names:
            folder = self.work / "machines" / name
            call(self.args.build / node.OURS["railmatectl"] / "railmatectl", "snapshot", "unpack",
                 self.args.build / "tests/fixtures" / name / "host.tree", folder.absolute())

    def make_images(self):
        for tag, command, name in ((node.PROBE, ["/bin/busybox", "sh"], "probe"),
                                   (node.PAUSE, ["/bin/busybox", "sleep", "1000000000"], "pause")):
            (self.work / f"images/{name}.tar").write_bytes(
                node.small_image(tag, self.args.busybox, command))
        for name in ("railmate", "railmate-demo"):
            (self.work / f"images/{name}.tar").symlink_to(self.args.build / f"{name}.oci.tar")
        if self.args.released:
            (self.work / "images/released.tar").symlink_to(self.args.released / "railmate.oci.tar")

    def write_bootstrap(self):
        text = call(self.program("kubectl"), "config", "view", "--raw", "--minify", "--flatten",
                    "--kubeconfig", "/etc/kubernetes/admin.conf", "-o", "json",
                    stdout=subprocess.PIPE, text=True).stdout
        config = json.loads(text)
        config["users"][0]["user"] = {"token": TOKEN}
        (self.work / "bootstrap.conf").write_text(json.dumps(config))

    def approve_serving(self):
        """The certificates by which kubelets serve: somebody has to approve them."""
        path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
        for one in self.api("GET", path)["items"]:
            if one["spec"]["signerName"] == "kubernetes.io/kubelet-serving" and not one[
                    "status"].get("conditions"):
                one["status"]["conditions"] = [{
                    "type": "Approved", "status": "True", "reason": "Bed",
                    "message": "a node of the bed"
                }]
                self.api("PUT", f"{path}/{one['metadata']['name']}/approval", one)

    def nodes(self):
        return {
            item["metadata"]["name"]: item
            for item in self.api("GET", "/api/v1/nodes")["items"]
        }

    def ready_nodes(self):
        self.approve_serving()
        return {
            name
            for name, item in self.nodes().items()
            for c in item["status"]["conditions"]
            if c["type"] == "Ready" and c["status"] == "True"
        }

    def is_serving(self, member):
        """By a certificate that is signed, as kubectl logs needs it."""
        self.approve_serving()
        with contextlib.suppress(OSError):
            with socket.create_connection((member.ip, 10250), timeout=5) as plain:
                with self.trust.wrap_socket(plain, server_hostname=member.ip):
                    return True
        return False

    def start(self):
        began = time.monotonic()
        self.make_places()
        self.make_machines(*MACHINES.values())
        self.make_images()
        self.start_control_plane()
        self.write_bootstrap()
        members = [
            Member(self, name, f"{NETWORK}{10 + i}", self.work / "machines" / machine, GATES[name])
            for i, (name, machine) in enumerate(MACHINES.items())
        ]
        for one in members:
            one.boot()
        until(lambda: self.ready_nodes() == set(MACHINES), "all nodes to be ready", START_LIMIT)
        self.views = {one.name: scenarios.Cluster(one) for one in members}
        for one in members:
            until(lambda m=one: self.is_serving(m),
                  f"the kubelet of {one.name} to have a certificate", START_LIMIT)
            until(lambda m=one: m.allocatable().get(GPU), f"GPUs of {one.name}", START_LIMIT)
        print(
            f"cluster bed: {len(members)} nodes of {self.describe()} are ready after {time.monotonic() - began:.1f} s",
            flush=True)

    @property
    def members(self):
        return [view.backend for view in self.views.values()]

    # --- installing ---

    def prepare(self, function):
        """railmate is installed as this scenario wants it: by Kustomize, or by Helm with these
        settings."""
        if self.how != function.how:
            self.uninstall()
            self.install(function.how, function.served)

    def install(self, how, served=True):
        self.how = None
        if how[0] == "kustomize":
            self.kubectl("apply", "-k", how[1] if len(how) > 1 else DEPLOY)
        else:
            self.helm("install", "railmate", CHART, *how[1:])
        self.rolled_out()
        if served:
            self.wait_served()
        self.how = how

    def apply(self, folder=DEPLOY):
        """Over what kubectl has applied before."""
        self.kubectl("apply", "-k", folder)
        self.rolled_out()
        self.wait_served()
        self.how = ("kustomize", *([folder] if folder != DEPLOY else []))

    def wait_unheld(self):
        """railmated has seen that no pod has VFs any more: the next one begins with none."""
        for one in self.members:
            until(lambda m=one: not m.holds(),
                  f"railmated on {one.name} to see that its pods are gone")

    def uninstall(self):
        if self.how:
            self.wait_unheld()
        self.remove()

    def remove(self):
        """Also under running pods."""
        if self.how is None:
            with contextlib.suppress(AssertionError):
                self.helm("uninstall", "railmate")
            self.kubectl("delete", "-k", DEPLOY / "dra", "--ignore-not-found")  # has what all others have
        elif self.how and self.how[0] == "helm":
            self.helm("uninstall", "railmate", "--wait")
        elif self.how:
            self.kubectl("delete", "-k", self.how[1] if len(self.how) > 1 else DEPLOY)
        until(lambda: not self.railmates(), "the DaemonSet's pods to go")
        for one in self.members:
            until(lambda m=one: not m.allocatable().get(VF),
                  f"the kubelet of {one.name} to notice that railmated is gone")
        self.how = ()

    def rolled_out(self):
        self.kubectl("-n", "kube-system", "rollout", "status", "ds/railmate",
                     f"--timeout={START_LIMIT:.0f}s")

    def wait_served(self, names=tuple(MACHINES)):
        """For the kubelets and for the scheduler."""
        for name in names:
            self.views[name].wait_registered()
            until(lambda n=name: self.offered(n), f"the API server to know the VFs of {name}")
            until(lambda n=name: self.has_its_pods(n), f"the kubelet of {name} to know its pods")

    def has_its_pods(self, name):
        """Before, a kubelet that starts counts the devices of pods that have ended as given, and
        refuses the first pod that needs one of them."""
        path = f"/api/v1/pods?fieldSelector=spec.nodeName%3D{name}"
        pods = {pod["metadata"]["uid"] for pod in self.api("GET", path)["items"]}
        with contextlib.suppress(AssertionError):  # it does not serve yet
            known = self.api("GET", f"/api/v1/nodes/{name}/proxy/pods")["items"] or []
            return pods <= {pod["metadata"]["uid"] for pod in known}
        return False

    def offered(self, name, resource=VF):
        """What the scheduler sees of a node."""
        return int(self.nodes()[name]["status"]["allocatable"].get(resource, 0))

    def railmates(self):
        """name → pod, of the DaemonSet."""
        path = "/api/v1/namespaces/kube-system/pods?labelSelector=app.kubernetes.io%2Fname%3Drailmate"
        return {pod["metadata"]["name"]: pod for pod in self.api("GET", path)["items"]}

    def railmate_on(self, name):
        """The newest instance of a node."""
        here = [pod for pod in self.railmates().values() if pod["spec"].get("nodeName") == name]
        return max(here, key=lambda pod: pod["metadata"]["creationTimestamp"])["metadata"]["name"]

    def railmate_log(self, name):
        """Of the node's newest instance."""
        return self.kubectl("-n", "kube-system", "logs", self.railmate_on(name), "-c", "railmated")

    def another_railmate(self, name):
        """The pod of this node is deleted; the DaemonSet makes another one."""
        old = self.railmate_on(name)
        self.api("DELETE", f"/api/v1/namespaces/kube-system/pods/{old}")
        until(lambda: old not in self.railmates(), f"{old} to go")
        self.rolled_out()

    # --- pods ---

    def pods(self, namespace="default"):
        return self.api(
            "GET", f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods")["items"]

    def new(self, *containers, on=None, annotations=None, claims=None, templates=None, **more):
        """A pod that the scheduler places; on: that may go to this node only; annotations: with a
        network of its own, too; claims, templates: name in the pod → ResourceClaim, or its template."""
        name = f"p{next(scenarios.INSTANCES)}"
        pod = scenarios.pod(name, *containers, **more)
        pod["metadata"] |= {"labels": {"bed": "pod"}, "annotations": annotations or {}}
        pod["spec"]["hostNetwork"] = not annotations
        pod["spec"]["topologySpreadConstraints"] = [{
            "maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"bed": "pod"}}
        }]
        pod["spec"]["resourceClaims"] = [
            {"name": name, key: value} for key, some in (("resourceClaimName", claims), ("resourceClaimTemplateName", templates))
            for name, value in (some or {}).items()]
        if on:
            pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": on}
        self.live.append(name)
        self.api("POST", PODS, pod)
        return name

    def run(self, *containers, **more):
        name = self.new(*containers, **more)
        self.wait_running(name, [c["name"] for c in containers])
        return name

    def wait_running(self, name, containers=("main",)):
        until(
            lambda: self.node_of(name) or scenarios.check(
                self.phase(name) != "Failed", f"{name} failed: {self.status(name)}"),
            f"a node for {name}")
        view = self.views[self.node_of(name)]
        view.wait_running(name, list(containers))
        return view

    def found(self, name):
        return self.api("GET", f"{PODS}/{name}")

    def status(self, name):
        found = self.found(name)
        return found and found["status"]

    def phase(self, name):
        return (self.status(name) or {}).get("phase")

    def node_of(self, name):
        return (self.found(name) or {"spec": {}})["spec"].get("nodeName")

    def view_of(self, name):
        return self.views[self.node_of(name)]

    def delete_by_force(self, name):
        self.api("DELETE", f"{PODS}/{name}",
                 {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})

    def end(self, *names):
        for name in names:
            self.api("DELETE", f"{PODS}/{name}")
        for name in names:
            until(lambda n=name: self.found(n) is None, f"{name} to go")
            self.live.remove(name)
        for view in self.views.values():
            until(lambda v=view: not set(names) & set(v.held()), "their devices to be given back")
            until(lambda v=view: not v.lingering(), "their processes to end")

    def describe(self):
        return f"Kubernetes {self.version.removeprefix('v')}"

    def keep_state(self, scenario):
        self.how = None  # who knows what is there
        folder = self.logs / re.sub(r"\W+", "_", scenario)
        folder.mkdir(exist_ok=True)
        for what in ("pods", "nodes", "daemonsets", "events"):
            with contextlib.suppress(AssertionError):
                (folder / f"{what}.yaml").write_text(self.kubectl("get", what, "-A", "-o", "yaml"))
        for one in self.members:
            for source, name in (("/var/log/pods", "logs"), ("/var/lib/railmate", "state"),
                                 ("/run/cdi", "cdi")):
                with contextlib.suppress(OSError, shutil.Error):
                    shutil.copytree(one.root(source), folder / one.name / name, symlinks=True)


def main():
    parser = argparse.ArgumentParser()
    for name in ("kubelet", "containerd", "runc", "busybox", "helm", "crds", "build", "logs",
                 "work"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    parser.add_argument("--cgroup", required=True)
    parser.add_argument("--released", type=pathlib.Path, help="what build-released made")
    parser.add_argument("--seconds", type=int, required=True,
                        help="when they are over, or at SIGTERM, the sum is printed")
    parser.add_argument("words", nargs="*")
    args = parser.parse_args()
    die_with_parent()
    for sig in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(sig, node.time_is_up)
    signal.alarm(args.seconds)
    os.environ["LC_ALL"] = "C.UTF-8"
    always = [f for f in SCENARIOS if f.always]
    by_helm = sum(f.how[0] == "helm" for f in always)
    if abs(2 * by_helm - len(always)) > 1:
        print(f"cluster bed: {by_helm} of {len(always)} scenarios begin with Helm: half of them should\n0 passed, 1 failed")
        return 1
    cluster = Cluster(args)
    try:
        cluster.start()
    except (AssertionError, subprocess.SubprocessError, OSError, scenarios.TimeIsUp) as e:
        print(
            f"cluster bed: the cluster did not come up: {e or 'time is up'}\nlogs: {args.logs}\n0 passed, 1 failed"
        )
        return 1
    functions = [
        f for f in (SCENARIOS if args.words else always)
        if not args.words or any(re.search(word, scenarios.title(f)) for word in args.words)
    ]
    return scenarios.run_these(cluster, functions, args.words, args.logs, "cluster")


if __name__ == "__main__":
    sys.exit(main())
