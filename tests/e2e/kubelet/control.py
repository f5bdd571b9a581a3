"""
A node whose kubelet has an API server: etcd and kube-apiserver run beside it, and pods come and go
through the API, by names that may come again. A pod names its node; a scheduler and the controller
of DaemonSets run only while deploy/base does.
Standard library only.
"""
import contextlib
import json
import os
import shutil
import signal
import ssl
import subprocess
import urllib.error
import urllib.request

import node
import scenarios
from scenarios import until

ADDRESS = "10.77.0.1"  # of the API server, which refuses one that is only a loopback's
URL = f"https://{ADDRESS}:6443"
TOKEN = "bed"
PODS = "/api/v1/namespaces/default/pods"
KUBECONFIG = {
    "apiVersion": "v1", "kind": "Config", "current-context": "bed",
    "clusters": [{"name": "bed", "cluster": {"server": URL, "insecure-skip-tls-verify": True}}],
    "users": [{"name": "bed", "user": {"token": TOKEN}}],
    "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "bed"}}],
}


# deploy/ as it is, on the machine of the fixture, and a user's ConfigMap.
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: railmate-config, namespace: kube-system}
data:
  config.json: '{"resourceList": [{"resourcePrefix": "rdma", "resourceName": "vf", "selectors": {"devices": ["101e"], "isRdma": true}}]}'
"""
OVERLAY = """
resources: [%(deploy)s]
images: [{name: railmate, newName: %(image)s, newTag: %(tag)s}]
patches:
- target: {kind: DaemonSet, name: railmate}
  patch: |
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --root=/machine}
    - {op: add, path: /spec/template/spec/containers/0/volumeMounts/-, value: {name: machine, mountPath: /machine, readOnly: true}}
    - {op: add, path: /spec/template/spec/volumes/-, value: {name: machine, hostPath: {path: %(machine)s}}}
%(patches)s"""


class ControlledNode(node.Node):
    has_api, ip = True, ADDRESS
    patches = ""  # more lines of OVERLAY

    def __init__(self, args):
        super().__init__(args)
        self.kubeconfig = self.work / "kubeconfig.json"
        self.trust = ssl.create_default_context()
        self.trust.check_hostname, self.trust.verify_mode = False, ssl.CERT_NONE

    # --- the control plane ---

    def control_program(self, name):
        return self.args.kubelet.parent / name

    def start_control_plane(self):
        node.call("ip", "addr", "add", f"{ADDRESS}/32", "dev", "lo")
        keys = self.work / "keys"
        keys.mkdir()
        node.call("openssl", "genrsa", "-out", keys / "accounts.key", "2048",
                  stderr=subprocess.DEVNULL)
        (keys / "tokens").write_text(f"{TOKEN},bed,bed,system:masters\n")
        self.kubeconfig.write_text(json.dumps(KUBECONFIG))
        self.etcd = self.spawn("etcd.log", self.control_program("etcd"), "--data-dir",
                               self.work / "etcd", "--unsafe-no-fsync")
        self.apiserver = self.spawn(
            "kube-apiserver.log", self.control_program("kube-apiserver"),
            "--etcd-servers=http://127.0.0.1:2379", f"--advertise-address={ADDRESS}",
            "--endpoint-reconciler-type=none", f"--cert-dir={keys}",
            "--service-cluster-ip-range=10.96.0.0/16", "--service-account-issuer=https://bed",
            f"--service-account-key-file={keys}/accounts.key",
            f"--service-account-signing-key-file={keys}/accounts.key",
            f"--token-auth-file={keys}/tokens", "--authorization-mode=AlwaysAllow",
            "--disable-admission-plugins=ServiceAccount"
        )  # nothing makes the accounts of a namespace here

    def api(self, method, path, body=None):
        """The answer; None: there is no such thing."""
        request = urllib.request.Request(
            URL + path, method=method, data=json.dumps(body).encode() if body else None,
            headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=node.START_LIMIT,
                                        context=self.trust) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as e:
            if e.code == 404:
                return None
            raise AssertionError(
                f"{method} {path}: {e.code} {e.read().decode(errors='replace')}") from None

    def api_account(self):
        """Options by which railmated asks the API server, which has signed its certificate itself."""
        account, (host, port) = self.work / "account", URL.removeprefix("https://").split(":")
        account.mkdir(exist_ok=True)
        (account / "token").write_text(TOKEN)
        shutil.copy(self.work / "keys/apiserver.crt", account / "ca.crt")
        self.railmate_env = [f"KUBERNETES_SERVICE_HOST={host}", f"KUBERNETES_SERVICE_PORT={port}"]
        return "--service-account=/account", f"--node-name={node.NODE}", "--events=off"

    def api_is_up(self):
        with contextlib.suppress(OSError, AssertionError):
            return self.api("GET", "/api/v1/namespaces/default")
        return None

    @contextlib.contextmanager
    def api_away(self):
        """The API server does not answer."""
        self.apiserver.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.apiserver.send_signal(signal.SIGCONT)
            until(self.api_is_up, "the API server to answer again", node.START_LIMIT)

    # --- deploy/base ---

    def kubectl(self, *argv):
        done = node.call(self.control_program("kubectl"), "--kubeconfig", self.kubeconfig, "-n",
                         "kube-system", *argv, check=False, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, limit=2 * node.START_LIMIT)
        scenarios.check(done.returncode == 0, f"kubectl {' '.join(map(str, argv))}: {done.stdout}")
        return done.stdout

    @contextlib.contextmanager
    def daemon_set(self):
        """The node's railmated is the pod of deploy/base, for a while."""
        image, tag = node.RAILMATE.rsplit(":", 1)
        overlay = self.work / "overlay"
        overlay.mkdir()
        (overlay / "kustomization.yaml").write_text(
            OVERLAY % {
                "deploy": os.path.relpath(node.TOP / "deploy", overlay.resolve()), "image": image,
                "tag": tag, "machine": self.machine, "patches": self.patches
            })
        self.load_railmate_for_pods()
        for program, *more in (("kube-scheduler", ), ("kube-controller-manager",
                                                      "--controllers=daemonset-controller")):
            self.spawn(f"{program}.log", self.control_program(program), "--kubeconfig",
                       self.kubeconfig, "--leader-elect=false", f"--cert-dir={self.work}/keys",
                       *more)
        (self.work / "config.yaml").write_text(CONFIG)
        self.stop_railmate(self.newest_railmate())
        self.kubectl("apply", "-f", self.work / "config.yaml")
        self.kubectl("apply", "-k", overlay)
        try:
            self.kubectl("rollout", "status", "ds/railmate", f"--timeout={node.START_LIMIT:.0f}s")
            self.wait_registered()
            yield
        finally:
            self.kubectl("delete", "-k", overlay, "--cascade=background")
            self.kubectl("delete", "-f", self.work / "config.yaml")  # which is still there
            for pod in self.api("GET", "/api/v1/namespaces/kube-system/pods")["items"]:
                self.api("DELETE", f"/api/v1/namespaces/kube-system/pods/{pod['metadata']['name']}")
            until(lambda: not self.api("GET", "/api/v1/namespaces/kube-system/pods")["items"],
                  "the DaemonSet's pods to go")
            self.start_railmate()
            self.wait_registered()

    # --- the node ---

    def kubelet_command(self):
        return *super().kubelet_command(), "--kubeconfig", self.kubeconfig

    def start(self):
        self.start_control_plane()
        self.start_runtime()
        self.load_images()
        until(self.api_is_up, "the API server", node.START_LIMIT)
        self.start_kubelet()
        self.start_gpu_plugin()
        self.start_railmate()
        self.wait_registered()

    def not_rebooted(self):
        return super().not_rebooted() | {self.etcd.pid, self.apiserver.pid}

    # --- pods ---

    def name_of(self, pod):
        return pod

    def create(self, pod):
        pod["spec"]["nodeName"] = node.NODE
        pod["spec"]["tolerations"] = [{"operator": "Exists"}]
        self.api("POST", PODS, pod)

    def delete(self, pod):
        self.api("DELETE", f"{PODS}/{pod}")

    def delete_by_force(self, pod):
        """As kubectl delete --force --grace-period=0: the API forgets it at once, whatever its
        processes do."""
        self.api("DELETE", f"{PODS}/{pod}",
                 {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})

    def api_status(self, pod):
        found = self.api("GET", f"{PODS}/{pod}")
        return found and found["status"]

    def describe(self):
        return super().describe() + ", with an API server"
