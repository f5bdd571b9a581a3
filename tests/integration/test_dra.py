#!/usr/bin/python3
"""GPUs that DRA drivers give: which are a container's, and whom the VFs are near, late and
early."""

import itertools
import json
import os
import re
import socket
import subprocess

import https
import kubepb
from harness import GPU, VF, Case, Daemon, main, program, vfs_of
from https import reply
from late import LateCase, vfs_in
from optimum import assignment, best_total
from test_early import decision

DRIVER = "gpu.nvidia.com"


class Gpus:
    """The GPUs of a node, as NVIDIA's driver names its devices: by minor number."""

    def __init__(self, node):
        self.machine = node.topo()
        self.free = {v["pci"] for v in self.machine.topo["vfs"]}

    def name(self, i):
        return f"gpu-{i}"

    def claim(self, name, **requests):
        """The argument of `admit` for a claim: its requests, each with the numbers of its GPUs."""
        devices = [f"{DRIVER}/{r}={self.name(i)}" for r, gpus in requests.items() for i in gpus]
        return f"claim={name}:" + ",".join(devices)

    def judge(self, case, started, gpus):
        """The VFs of a container are the best that were free for these GPUs."""
        chosen, mine = vfs_in(started), [self.machine.gpus[i] for i in gpus]
        case.assertLessEqual(set(chosen), self.free)
        total, pairs = assignment(self.machine, mine, chosen)
        case.assertEqual(total, best_total(self.machine, mine, self.free, len(chosen)), pairs)
        self.free -= set(chosen)


class Late(LateCase):
    def test_each_container_has_a_claim_of_its_own(self):
        """Whichever of them starts first, and in the order of the kubelet's calls."""
        for order, containers in itertools.product(("gpu-first", "vf-first"),
                                                   (("a", "b"), ("b", "a"))):
            with self.subTest(order=order, containers=containers):
                node = self.late()
                gpus, has = Gpus(node), {"a": [1, 2], "b": [6]}
                node.kubelet.admit("p", gpus.claim("one", gpu=has["a"]),
                                   gpus.claim("two", gpu=has["b"]), f"a:{VF}=2,claim:one",
                                   f"b:claim:two/gpu,{VF}=1", order=order)
                for c in containers:
                    started = self.start(node, "p", c)[c]
                    self.assertTrue(started["started"], started["message"])
                    gpus.judge(self, started, has[c])

    def test_a_claim_that_containers_share_as_a_whole_is_of_both(self):
        node = self.late()
        gpus = Gpus(node)
        node.kubelet.admit("p", gpus.claim("ours", gpu=[2, 5]), f"a:{VF}=2,claim:ours",
                           f"b:{VF}=2,claim:ours")
        for started in self.start(node, "p").values():
            gpus.judge(self, started, [2, 5])

    def test_a_claim_of_one_gpu_serves_a_sidecar_without_one(self):
        node = self.late()
        gpus = Gpus(node)
        node.kubelet.admit("p", gpus.claim("mine", gpu=[3]), f"sidecar:agent:{VF}=1",
                           f"main:{VF}=1,claim:mine")
        for started in self.start(node, "p").values():
            gpus.judge(self, started, [3])


class ApiServer:
    """Tells what claims were given, and with `pods` what pods ask for; each as the API server lists
    it."""

    def __init__(self, server):
        self.server = server
        self.server.answer = self.answer
        self.claims, self.pods, self.status = {}, [], 200

    def give(self, name, driver=DRIVER, **requests):
        results = [{"request": r, "driver": driver, "pool": "node", "device": d}
                   for r, v in requests.items()
                   for d in v]
        self.claims[f"default/{name}"] = {
            "metadata": {"name": name}, "status": {
                "allocation": {
                    "devices": {"results": results, "config": [{"requests": ["x"]}]},
                    "nodeSelector": {}
                }
            }
        }

    def asked(self):
        """The claims of the questions so far."""
        path = r"GET /apis/resource.k8s.io/v1/namespaces/(.*)/resourceclaims\?fieldSelector=metadata.name%3D(.*) HTTP"
        return [
            "/".join(m.groups()) for m in (re.match(path, line)
                                           for line, _ in self.server.requests) if m
        ]

    def answer(self, connection):
        asked = self.asked() if "resourceclaims" in self.server.requests[-1][0] else None
        body = kubepb.pods(self.pods) if asked is None else kubepb.claims(
            self.claims[c] for c in asked[-1:] if c in self.claims)
        return reply(self.status, body)(connection)


class Shared(https.Case, LateCase):
    """Containers with requests of their own in one claim: PodResources shows both all of it."""

    def setUp(self):
        self.api = ApiServer(self.server())
        self.here = self.node()
        self.account(self.here.path("account"))

    def up(self, *options, kubelet=("--pods-api",), host="127.0.0.1"):
        fake = self.here.start_kubelet(*kubelet)
        port = str(self.api.server.port)
        argv = self.here.daemon_argv("--service-account", self.here.path("account"),
                                     "--config-file", self.config(self.here), *options)
        env = {
            "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "NODE_NAME": "node"
        }
        daemon = Daemon(argv, self.here.path("railmated.log"), stdin=subprocess.DEVNULL,
                        env={**os.environ, **env})
        self.here.processes.append(daemon)
        fake.wait(VF, 1)
        return fake, daemon, Gpus(self.here)

    def admit(self, gpus, pod="p", order="random"):
        """Container a has the GPUs 1 and 6, b has GPU 3."""
        self.api.give("c", **{"gpu-a": [gpus.name(1), gpus.name(6)], "gpu-b": [gpus.name(3)]})
        return self.here.kubelet.admit(pod, gpus.claim("c", **{"gpu-b": [3], "gpu-a": [1, 6]}),
                                       f"a:claim:c/gpu-a,{VF}=2", f"b:{VF}=1,claim:c/gpu-b",
                                       order=order)

    def start_ab(self, gpus, containers="ab"):
        for c in containers:
            started = self.start(self.here, "p", c)[c]
            self.assertTrue(started["started"], started["message"])
            gpus.judge(self, started, {"a": [1, 6], "b": [3]}[c])

    def test_each_container_gets_the_vfs_of_its_requests(self):
        _, daemon, gpus = self.up()
        for i, (order, containers) in enumerate(
                itertools.product(("gpu-first", "vf-first", "random"), ("ab", "ba"))):
            with self.subTest(order=order, containers=containers):
                self.admit(gpus, order=order)
                before = set(gpus.free)
                self.start_ab(gpus, containers)
                self.assertEqual(self.api.asked(), ["default/c"] * 2 * (i + 1))
                self.here.kubelet.ask("remove p")
                gpus.free = before
        self.assertNotIn("warning binding", daemon.stderr())
        self.assertEqual(self.api.server.requests[0][1]["Authorization"], "Bearer the-token")
        self.assertEqual(self.api.server.connections, 1)

    def test_a_cni_plugin_that_asks_first_is_told_the_same(self):
        """As railmate-cni asks: after the drivers have prepared the claim, before a container
        starts."""
        kubelet, _, gpus = self.up()
        admission, told = self.admit(gpus), {}
        kubelet.ask("prepare p")
        for c in "ba":
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(self.here.control_socket)
                s.sendall(
                    json.dumps({
                        "op": "bind", "slot": vfs_of(admission, c)[0], "namespace": "default",
                        "pod": "p", "uid": ""
                    }).encode() + b"\n")
                told[c] = {b["vf"] for b in json.loads(s.makefile().readline())["bound"]}
        for c, started in self.start(self.here, "p").items():
            self.assertEqual(set(vfs_in(started)), told[c])
            gpus.judge(self, started, {"a": [1, 6], "b": [3]}[c])

    def test_what_the_scheduler_made_of_limits_is_known_too(self):
        """DRAExtendedResource: one claim a pod, and its status says which request is whose."""
        _, _, gpus = self.up("--pod-specs=api-server", kubelet=())
        mapping = [{
            "containerName": c, "resourceName": "nvidia.com/gpu", "requestName": f"gpu-{c}"
        } for c in "ba"]
        containers = [{"name": c, "resources": {"limits": {"nvidia.com/gpu": "1", VF: "1"}}}
                      for c in "ab"]
        self.api.pods = [{
            "metadata": {"name": "p", "namespace": "default", "uid": "u"},
            "spec": {"containers": containers}, "status": {
                "phase": "Pending", "extendedResourceClaimStatus": {
                    "resourceClaimName": "c", "requestMappings": mapping
                }
            }
        }]
        self.admit(gpus)
        self.start_ab(gpus)

    def test_a_container_that_starts_again_does_not_need_the_api_server(self):
        kubelet, _, gpus = self.up()
        self.admit(gpus)
        first = self.start(self.here, "p")
        self.api.status = 503
        again = self.start(self.here, "p")
        for c in "ab":
            self.assertEqual(vfs_in(again[c]), vfs_in(first[c]))
            self.assertEqual(again[c]["env"]["RAILMATE_RDMA_VF_MAP"],
                             first[c]["env"]["RAILMATE_RDMA_VF_MAP"])
        self.assertEqual(len(self.api.asked()), 2)

    def explained(self):
        return subprocess.run([
            program("railmatectl"), "explain", "pod", "default/p", "--control-socket",
            self.here.control_socket
        ], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout

    def test_what_cannot_be_told_is_said_and_the_pod_starts(self):
        for what, words in ((403, "does not allow us to read this: HTTP 403"),
                            (200, "knows no such claim")):
            with self.subTest(what):
                self.setUp()
                _, daemon, gpus = self.up()
                self.admit(gpus)
                self.api.claims, self.api.status = {}, what
                for c, started in self.start(self.here, "p").items():
                    self.assertTrue(started["started"], started["message"])
                    self.assertIn(
                        f'pod=default/p container={c} reason="which GPUs of its claim c it has is not known',
                        daemon.stderr())
                self.assertIn(words, daemon.stderr())
                self.assertIn(words, self.explained())

    def test_an_api_server_that_does_not_answer_costs_two_seconds(self):
        _, daemon, gpus = self.up("--pod-resources-timeout", "200")
        self.admit(gpus)
        self.api.server.answer = lambda connection: True
        self.assertTrue(self.start(self.here, "p", "a")["a"]["started"])
        self.assertIn("took longer than 2000 ms", daemon.stderr())


class Early(Case):
    """VFs are chosen before the drivers give the GPUs."""

    def warnings(self, daemon):
        return [line for line in daemon.stderr().splitlines() if "by DRA" in line]

    def explained(self, node, pod):
        return subprocess.run([
            program("railmatectl"), "explain", "pod", f"default/{pod}", "--control-socket",
            node.control_socket
        ], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout

    def test_the_pool_says_once_that_it_cannot_see_them(self):
        node = self.node()
        kubelet, daemon = node.start("--pods-api")
        gpus = Gpus(node)
        for i, order in enumerate(("gpu-first", "vf-first", "random")):
            kubelet.admit(f"p{i}", gpus.claim("c", gpu=[i, 7]), f"main:claim:c,{VF}=2", order=order)
            if not i:
                self.assertEqual(self.warnings(daemon), [], "nobody has given a GPU yet")
            self.assertEqual([c["status"] for c in kubelet.ask(f"prestart p{i}")["calls"]], ["OK"])
        (line,) = self.warnings(daemon)
        self.assertIn(
            "warning kubelet: the pod has GPUs by DRA, which are not known when a pool that binds early "
            f"chooses VFs resource={VF} pod=default/p0 driver={DRIVER}", line)
        out = self.explained(node, "p2")
        self.assertIn(
            f'GPUs      unknown ({DRIVER} gives them by DRA, after an early pool has chosen; "binding": "late" '
            'sees them)', out)

    def test_how_far_they_are_is_told_all_the_same(self):
        node = self.node()
        kubelet, _ = node.start()
        gpus = Gpus(node)
        chosen = vfs_of(kubelet.admit("p", gpus.claim("c", gpu=[7]), f"main:claim:c,{VF}=1"))
        kubelet.ask("prestart p")
        d = decision(node, chosen, checked=True)
        self.assertEqual(d["real_gpus"], [gpus.machine.gpus[7]])
        self.assertEqual(d.get("real_cost", 0),
                         assignment(gpus.machine, [gpus.machine.gpus[7]], chosen)[0])

    def test_gpus_of_another_container_of_the_pod_count(self):
        node = self.node()
        kubelet, daemon = node.start()
        kubelet.admit("p", Gpus(node).claim("c", gpu=[0]), f"main:claim:c", f"net:{VF}=1")
        kubelet.ask("prestart p")
        self.assertEqual(len(self.warnings(daemon)), 1)

    def test_other_devices_of_dra_drivers_are_none_of_its_business(self):
        node = self.node()
        kubelet, daemon = node.start()
        kubelet.admit("p", "claim=c:nic.example.com/nic=mlx5-0", f"main:claim:c,{VF}=1")
        kubelet.admit("q", f"main:{GPU}=1,{VF}=1")
        kubelet.ask("prestart p")
        kubelet.ask("prestart q")
        self.assertEqual(self.warnings(daemon), [])

    def test_whose_gpus_of_a_shared_claim_are_is_not_guessed(self):
        node = self.node()
        kubelet, daemon = node.start()
        chosen = vfs_of(
            kubelet.admit("p",
                          Gpus(node).claim("c", a=[0], b=[1]), f"main:claim:c/a,{VF}=1",
                          "other:claim:c/b"), "main")
        kubelet.ask("prestart p")
        self.assertNotIn("real_gpus", decision(node, chosen, checked=True))
        self.assertEqual(len(self.warnings(daemon)), 1)


if __name__ == "__main__":
    main()
