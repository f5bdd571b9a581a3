#!/usr/bin/python3
"""railmated --serve=dra between the fake kubelet and an API server: a claim becomes VFs near the GPUs of its container,
which a device plugin or another DRA driver gave."""

import json
import os
import re
import signal
import subprocess

import https
import kubepb
from harness import GPU, Case, Daemon, gpus_of, main, until
from https import reply
from optimum import assignment, best_total

DRIVER, GPUS = "vf.railmate.io", "gpu.nvidia.com"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
UID = "00000000-0000-4000-8000-00000000000"


class ApiServer:
    """Has one node, claims and pods, and keeps the slices that are made."""

    def __init__(self, server):
        server.answer, self.server = self.answer, server
        self.claims, self.pods, self.slices, self.patches = {}, [], [], []

    def devices(self):
        return [d["name"] for s in self.slices for d in s["spec"]["devices"]]

    def give(self, name, number, pod, *results):
        """results: (request, driver, device), or with a share of it: its UID and VFs."""
        self.claims[name] = {
            "metadata": {"name": name, "namespace": "default", "uid": f"{UID}{number}"},
            "status": {
                "reservedFor": [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"}],
                "allocation": {"devices": {"results": [
                    {"request": r, "driver": d, "pool": "node", "device": v,
                     **({"shareID": share[0], "consumedCapacity": {"vfs": share[1]}} if share else {})}
                    for r, d, v, *share in results]}}
            }
        }
        return f"default/{name}={UID}{number}"

    def pod(self, name, **containers):
        """containers: name → the claims, or CLAIM/REQUEST, that it has."""
        parts = {c: [p.partition("/") for p in v] for c, v in containers.items()}
        claims = sorted({p[0] for v in parts.values() for p in v})
        self.pods.append({
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {
                "resourceClaims": [{"name": c, "resourceClaimName": c} for c in claims],
                "containers": [{"name": c, "resources": {"claims": [
                    {"name": p[0], **({"request": p[2]} if p[2] else {})} for p in v]}}
                    for c, v in parts.items()]
            },
            "status": {"phase": "Pending"}
        })

    def answer(self, connection):
        method, path, _ = self.server.requests[-1][0].split()
        status, body = self.do(method, path, self.server.bodies[-1])
        return reply(status, body)(connection)

    def do(self, method, path, body):
        if path.startswith("/api/v1/nodes/"):
            return 200, kubepb.metadata({"metadata": {"name": "node", "uid": "n", "resourceVersion": "1"}})
        if path == "/version":
            return 200, b'{"major": "1", "minor": "37"}'
        if path.startswith("/api/v1/pods"):
            return 200, kubepb.pods(self.pods)
        if path.startswith("/api/v1/namespaces/default/pods/"):
            found = [p for p in self.pods if path.endswith("/" + p["metadata"]["name"])]
            return (200, kubepb.unknown(b"Pod", kubepb.POD(found[0]))) if found else (404, kubepb.status("no such pod"))
        if method == "PATCH":
            self.patches.append(json.loads(body))
            return 200, b"{}"
        if method == "POST" and path == SLICES:
            item = json.loads(body)
            item["metadata"].update(name=f"s{len(self.slices)}", uid="s", resourceVersion="1", generation=1)
            self.slices.append(item)
            return 201, kubepb.metadata(item)
        if path.startswith(SLICES):
            return 200, kubepb.metadata_list(self.slices if DRIVER in path else [])
        name = re.search(r"metadata.name%3D([^&]*)", path).group(1)
        return 200, kubepb.claims([self.claims[name]] if name in self.claims else [])


class ServeDra(https.Case, Case):
    def setUp(self):
        self.api = ApiServer(self.server())
        self.here = self.node()
        self.machine = self.here.topo()
        self.free = {v["pci"] for v in self.machine.topo["vfs"]}
        self.account(self.here.path("account"))
        for folder in ("plugins", "plugins_registry"):
            os.makedirs(os.path.join(self.here.kubelet_root, folder), exist_ok=True)

    def start_daemon(self, *options):
        serve = () if any(o.startswith("--serve") for o in options) else ("--serve=dra",)
        argv = self.here.daemon_argv(*serve, "--service-account", self.here.path("account"), *options)
        env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1",
               "KUBERNETES_SERVICE_PORT": str(self.api.server.port), "NODE_NAME": "node"}
        daemon = Daemon(argv, self.here.path("railmated.log"), stdin=subprocess.DEVNULL,
                        env={**os.environ, **env})
        self.here.processes.append(daemon)
        return daemon

    def up(self, *options):
        kubelet = self.here.start_kubelet()
        self.here.start_gpu_plugin()
        daemon = self.start_daemon(*options)
        kubelet.wait(GPU, 1)
        kubelet.event("driver-found", message=DRIVER)
        until(self.api.devices, "the slices of the node")
        return kubelet, daemon

    def ask(self, kubelet, what, *claims):
        return kubelet.ask(f"dra {DRIVER} {what} {' '.join(claims)}")["claims"]

    def vfs(self, claim):
        """What the CDI devices of a prepared claim give its containers."""
        self.assertIsNone(claim["error"])
        wanted, found = {name for d in claim["devices"] for name in d["cdi"]}, set()
        for file in os.listdir(self.here.cdi):
            with open(os.path.join(self.here.cdi, file), encoding="utf-8") as f:
                spec = json.load(f)
            for device in spec["devices"]:
                if f"{spec['kind']}={device['name']}" in wanted:
                    wanted.discard(f"{spec['kind']}={device['name']}")
                    env = device["containerEdits"].get("env", []) + spec.get("containerEdits", {}).get("env", [])
                    found |= {v for e in env if e.startswith("PCIDEVICE_RDMA_VF=")
                              for v in e.partition("=")[2].split(",")}
        self.assertEqual(wanted, set())
        return sorted(found)

    def judge(self, chosen, gpus):
        self.assertLessEqual(set(chosen), self.free)
        total, pairs = assignment(self.machine, gpus, chosen)
        self.assertEqual(total, best_total(self.machine, gpus, self.free, len(chosen)), pairs)

    def prepare(self, kubelet, number, n=2):
        """A pod with GPUs of the device plugin and as many VFs by a claim. Returns the claim and its VFs."""
        pod, slots = f"p{number}", self.api.devices()[n * number:n * number + n]
        claim = self.api.give(f"c{number}", number, pod, *(("vfs", DRIVER, s) for s in slots))
        self.api.pod(pod, main=[f"c{number}"])
        gpus = gpus_of(self.machine, kubelet.admit(pod, f"main:{GPU}={n}"))
        (prepared,) = self.ask(kubelet, "prepare", claim).values()
        self.assertIsNone(prepared["error"])
        self.assertEqual([d["device"] for d in prepared["devices"]], slots)
        self.assertEqual([d["requests"] for d in prepared["devices"]], [["vfs"]] * n)
        vfs = self.vfs(prepared)
        self.judge(vfs, gpus)
        return claim, vfs

    def test_vfs_are_near_the_gpus_of_the_device_plugin(self):
        kubelet, _ = self.up()
        for number in range(4):
            claim, vfs = self.prepare(kubelet, number)
            self.assertEqual(len(vfs), 2)
            self.free -= set(vfs)
            until(lambda: all(v in json.dumps(self.api.patches) for v in vfs), "the VFs are in the claim's status")
            self.assertEqual(self.vfs(*self.ask(kubelet, "prepare", claim).values()), vfs, "once more")

    def decided(self, daemon, times):
        """The last of so many decisions, when the daemon that made it listens to signals."""
        def found():
            lines = re.findall(r"serve auto was decided .*", daemon.stderr())
            return len(lines) == times and daemon.stderr().count("the VFs of the pool were counted") == times and lines[-1]
        return until(found, f"decision {times}")

    def test_auto_is_dra_where_the_installation_is_for_it_and_the_plugin_holds_nothing(self):
        kubelet = self.here.start_kubelet()
        self.here.start_gpu_plugin()
        kubelet.wait(GPU, 1)
        daemon = self.start_daemon("--serve=auto")
        self.assertRegex(self.decided(daemon, 1), f"serve=plugin reason=.*plugins/{DRIVER} is not a folder of the host")
        kubelet.wait("rdma/vf", 1)
        kubelet.admit("early", f"main:{GPU}=1,rdma/vf=1")
        kubelet.ask("prestart early")
        ledger = os.path.join(self.here.state_dir, "ledger.json")
        until(lambda: os.path.exists(ledger) and "default" in open(ledger, encoding="utf-8").read(), "the hold on the disk")
        daemon.end()
        os.makedirs(os.path.join(self.here.kubelet_root, "plugins", DRIVER))
        os.makedirs(self.here.cdi, exist_ok=True)
        daemon = self.start_daemon("--serve=auto")
        self.assertRegex(self.decided(daemon, 2), "serve=plugin reason=.*containers hold VFs that the device plugin gave")
        daemon.end()
        os.unlink(ledger)
        daemon = self.start_daemon("--serve=auto")
        self.assertIn("serve=dra", self.decided(daemon, 3))
        until(self.api.devices, "the slices of the node")

    def holds(self):
        """VF → the claim that has it."""
        with open(os.path.join(self.here.state_dir, "ledger.json"), encoding="utf-8") as f:
            return {h["vf"]: h.get("claim") for h in json.load(f)["holds"]}

    def specs(self, uid):
        return [f for f in os.listdir(self.here.cdi) if uid in f]

    def test_an_unprepared_claim_has_no_vf_any_more(self):
        kubelet, _ = self.up()
        claim, vfs = self.prepare(kubelet, 0, n=1)
        self.assertEqual(self.holds(), {vfs[0]: f"{UID}0"})
        self.assertEqual(len(self.specs(f"{UID}0")), 1)
        for _ in range(2):
            self.assertEqual(self.ask(kubelet, "unprepare", claim), {f"{UID}0": {"error": None, "devices": []}})
            until(lambda: not self.holds(), "no VF is held")
            self.assertEqual(self.specs(f"{UID}0"), [])

    def test_a_claim_keeps_its_vfs_when_either_side_starts_again(self):
        kubelet, daemon = self.up()
        claim, vfs = self.prepare(kubelet, 0)
        since = kubelet.mark()
        daemon.end(signal.SIGKILL)
        self.start_daemon()
        kubelet.event("driver-found", since, message=DRIVER)
        until(lambda: self.ask(kubelet, "prepare", claim)[f"{UID}0"]["error"] is None, "the claim is prepared")
        self.assertEqual(self.vfs(*self.ask(kubelet, "prepare", claim).values()), vfs)
        since = kubelet.mark()
        kubelet.ask("down")
        kubelet.ask("up")
        kubelet.event("driver-found", since, message=DRIVER)
        self.assertEqual(self.vfs(*self.ask(kubelet, "prepare", claim).values()), vfs)

    def test_each_container_is_near_the_gpus_of_its_own_requests(self):
        kubelet, _ = self.up()
        a, b = self.api.devices()[:2]
        claim = self.api.give("c", 0, "p", ("gpu-a", GPUS, "gpu-6"), ("gpu-b", GPUS, "gpu-1"),
                              ("vf-a", DRIVER, a), ("vf-b", DRIVER, b))
        self.api.pod("p", a=["c/gpu-a", "c/vf-a"], b=["c/gpu-b", "c/vf-b"])
        kubelet.admit("p", "a:cpu=0", "b:cpu=0")
        (prepared,) = self.ask(kubelet, "prepare", claim).values()
        for device, gpu in ((a, 6), (b, 1)):
            mine = [d for d in prepared["devices"] if d["device"] == device]
            vfs = self.vfs({"error": None, "devices": mine})
            self.judge(vfs, [self.machine.gpus[gpu]])
            self.free -= set(vfs)

    def test_a_share_of_a_pf_is_vfs_of_it(self):
        config = self.here.path("exact.json")
        with open(config, "w", encoding="utf-8") as f:
            json.dump({"resourceList": [{"resourcePrefix": "rdma", "resourceName": "vf", "selectors": {"isRdma": True},
                                         "railmate": {"dra": "exact"}}]}, f)
        kubelet, _ = self.up("--config-file", config)
        shares = [f"{UID}{i}" for i in "ab"]
        for number, pf in enumerate(self.api.devices()[:2]):
            pod, name = f"p{number}", f"c{number}"
            claim = self.api.give(name, number, pod, *(("vfs", DRIVER, pf, s, 2) for s in shares))
            self.api.pod(pod, main=[name])
            kubelet.admit(pod, f"main:{GPU}=1")
            (prepared,) = self.ask(kubelet, "prepare", claim).values()
            self.assertIsNone(prepared["error"])
            self.assertEqual([(d["device"], d["share"], len(d["cdi"])) for d in prepared["devices"]],
                             [(pf, s, 2) for s in shares])
            vfs = self.vfs(prepared)
            self.assertEqual(len(vfs), 4)
            self.assertEqual({self.pf_of(v) for v in vfs}, {pf.removeprefix("rdma-vf-")})

    def pf_of(self, vf):
        """In the form of a device's name."""
        pf = os.path.basename(os.path.realpath(os.path.join(self.here.root, "sys/bus/pci/devices", vf, "physfn")))
        return re.sub("[:.]", "-", pf)

    def test_a_claim_that_cannot_be_prepared_says_why_and_waits(self):
        kubelet, daemon = self.up()
        (slot,) = self.api.devices()[:1]
        claim = self.api.give("c", 0, "p", ("vfs", DRIVER, slot))
        (refused,) = self.ask(kubelet, "prepare", claim).values()
        self.assertIn("no pod that the claim is reserved for is known", refused["error"])
        self.assertEqual(refused["devices"], [])
        self.assertIn(f"a claim is not prepared uid={UID}0", daemon.stderr())
        self.api.pod("p", main=["c"])
        kubelet.admit("p", f"main:{GPU}=1")
        (prepared,) = self.ask(kubelet, "prepare", claim).values()
        self.assertEqual(len(self.vfs(prepared)), 1)


if __name__ == "__main__":
    main()
