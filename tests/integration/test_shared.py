#!/usr/bin/python3
"""HCAs that containers share (--shared-config), beside the VFs that each container has alone."""

import json
import pathlib
import signal
import subprocess

from harness import GPU, VF, Case, container, main, program, until, vfs_of
from test_metrics import HOST, free_port, get

HCA = "rdma/hca"
RAILS = {
    "resourceName": "hca", "rdmaHcaMax": 20,
    "selectors": {"vendors": ["15b3"], "ifNames": ["ibp24s0", "ibp64s0"]}
}


def entry(name, *names, **more):
    return {"resourceName": name, "rdmaHcaMax": 9, "selectors": {"ifNames": names}, **more}


class Shared(Case):
    def config(self, node, *entries, **more):
        path = node.path("shared.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"periodicUpdateInterval": 300, "configList": entries, **more}, f)
        return path

    def begin(self, *entries, daemon=()):
        node = self.node()
        kubelet, d = node.start(daemon=("--shared-config", self.config(node, *entries), *daemon))
        kubelet.wait(HCA, 20)
        return node, kubelet, d

    def test_every_container_gets_all_hcas(self):
        _, kubelet, _ = self.begin(RAILS)
        listed = kubelet.resource(HCA)
        self.assertEqual(sorted(d["id"] for d in listed["devices"]), sorted(map(str, range(20))))
        self.assertFalse(listed["pre_start"] or listed["preferred_allocation"]
                         or any(d["numa"] for d in listed["devices"]))
        got = [container(kubelet.admit(f"p{i}", f"main:{HCA}=1"), "main") for i in range(20)]
        self.assertEqual(len({json.dumps(c["device_nodes"]) for c in got}), 1)
        nodes = [n["host"] for n in got[0]["device_nodes"]]
        self.assertEqual((len(nodes), nodes[-1]), (3, "/dev/infiniband/rdma_cm"))
        self.assertEqual({n["permissions"] for n in got[0]["device_nodes"]}, {"rwm"})
        self.assertRegex(got[0]["env"]["NCCL_IB_HCA"], r"^=mlx5_\d+:1,mlx5_\d+:1$")
        self.assertNotIn("PCIDEVICE_RDMA_HCA", got[0]["env"])

    def test_shares_of_several_resources_have_one_list(self):
        """Whichever value the kubelet keeps: of one HCA each, of several, of one that two have, and of
        a resource whose profile has no list."""
        ucx = {"railmate": {"profiles": ["nccl", "ucx"], "env": {"NCCL_IB_TC": "106"}}}
        _, kubelet, _ = self.begin(
            RAILS, entry("a", "ibp79s0", **ucx), entry("b", "ibp94s0", "ibp64s0", **ucx),
            entry("none", "ibp154s0", railmate={"profiles": ["none"]}))
        for name in ("a", "b", "none"):
            kubelet.wait(f"rdma/{name}", 9)
        wants = [["hca"], ["a"], ["a", "b"], ["b", "hca"], ["hca", "a", "b", "none"]]
        got = [container(kubelet.admit(f"p{i}", "main:" + ",".join(f"rdma/{r}=1" for r in want)), "main")
               for i, want in enumerate(wants)]
        lists = {c["env"]["NCCL_IB_HCA"] for c in got}
        self.assertEqual(len(lists), 1, lists)
        self.assertEqual(lists.pop().count("mlx5_"), 4)
        self.assertEqual({len(c["env"]["UCX_NET_DEVICES"].split(",")) for c in got[1:]}, {3})
        self.assertNotIn("UCX_NET_DEVICES", got[0]["env"])
        self.assertEqual([c["env"].get("NCCL_IB_TC") for c in got], [None] + 4 * ["106"])
        self.assertEqual([len({n["host"] for n in c["device_nodes"]}) - 1 for c in got], [2, 1, 3, 3, 5])
        alone = container(kubelet.admit("q", "main:rdma/none=1"), "main")
        self.assertNotIn("NCCL_IB_HCA", alone["env"])

    def test_nixl_has_its_hcas_alone_and_no_tcp(self):
        loose = {"railmate": {"profiles": ["nixl"], "env": {"UCX_NET_DEVICES": "eth0"}}}
        strict = {"railmate": {"profiles": ["nixl"], "strictTransport": True}}
        _, kubelet, _ = self.begin(RAILS, entry("a", "ibp79s0", **loose), entry("b", "ibp94s0", **strict))
        for name, tls in (("a", None), ("b", "^tcp")):
            kubelet.wait(f"rdma/{name}", 9)
            env = container(kubelet.admit(name, f"main:rdma/{name}=1"), "main")["env"]
            self.assertRegex(env["UCX_NET_DEVICES"], r"^mlx5_\d+:1,mlx5_\d+:1$")
            self.assertEqual(env.get("UCX_TLS"), tls)
            self.assertNotIn("NCCL_IB_HCA", env)

    def test_a_share_is_not_held(self):
        node, kubelet, d = self.begin(RAILS)
        kubelet.admit("p", f"main:{HCA}=3")
        kubelet.admit("v", f"main:{VF}=1")
        self.assertEqual(kubelet.ask("start p")["event"], "started")
        d.end(signal.SIGTERM)
        ledger = "".join(p.read_text() for p in pathlib.Path(node.state_dir).iterdir())
        self.assertIn(VF, ledger)
        self.assertNotIn(HCA, ledger)

    def ctl(self, node, *argv):
        done = subprocess.run([program("railmatectl"), *argv, "--control-socket",
                               node.control_socket, "--state-dir", node.state_dir],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout

    def shares(self, node):
        return json.loads(self.ctl(node, "explain", "pool", "--json")[1])["shared"][0]["containers"]

    def test_who_has_shares_is_said(self):
        """By explain, status and their JSON; a pod that goes is gone there as well."""
        none = {"resourceName": "none", "rdmaHcaMax": 5, "selectors": {"ifNames": ["nothing"]}}
        port = free_port()
        node, kubelet, _ = self.begin(RAILS, none, daemon=(f"--metrics-address={HOST}:{port}",))
        kubelet.admit("p", f"main:{HCA}=3,{VF}=1", f"side:{HCA}=1")
        kubelet.admit("q", f"main:{HCA}=2")
        until(lambda: len(self.shares(node) or []) == 3, "three containers with shares")
        self.assertEqual(
            {(s["namespace"], s["pod"], s["container"], s["shares"]) for s in self.shares(node)},
            {("default", "p", "main", 3), ("default", "p", "side", 1), ("default", "q", "main", 2)})
        code, text = self.ctl(node, "explain", "pool", HCA)
        self.assertEqual(code, 0)
        self.assertIn(f"{HCA} (binding shared): 2 HCAs: 2 free; 6 of 20 shares are given\n", text)
        self.assertIn(f"  shares    2 of {HCA}: container main of pod default/q\n", text)
        self.assertEqual(self.ctl(node, "explain", "pod", "default/q"),
                         (0, f"  shares    2 of {HCA}: container main of pod default/q\n"))
        value = json.loads(self.ctl(node, "explain", "pod", "default/p", "--json")[1])
        self.assertEqual(len(value["choices"]), 1)
        self.assertEqual([(s["container"], s["shares"]) for s in value["shares"]],
                         [("main", 3), ("side", 1)])
        self.assertEqual(self.ctl(node, "explain", "pod", "default/r")[0], 3)
        code, text = self.ctl(node, "status", "--root", node.root, "--no-doctor")
        self.assertEqual(code, 5)
        self.assertIn("  pool rdma/none has no HCA\n", text)
        self.assertIn(f"{HCA} (binding shared): 2 HCAs: 2 free; 6 of 20 shares are given\n", text)
        metrics = get(port, "/metrics")[1]
        self.assertIn(f'railmate_pool_shares{{resource="{HCA}"}} 20\n', metrics)
        self.assertIn(
            f'railmate_pool_shares_held{{resource="{HCA}",namespace="default",pod="q",container="main"}} 2\n',
            metrics)
        kubelet.ask("remove p")
        until(lambda: {s["pod"] for s in self.shares(node)} == {"q"}, "p to be gone")
        kubelet.ask("remove q")  # which has nothing else, and the kubelet writes nothing
        until(lambda: not self.shares(node), "q to be gone")

    def test_without_podresources_who_has_shares_is_not_known(self):
        node, kubelet, _ = self.begin(RAILS, daemon=("--pod-resources=off",))
        kubelet.admit("p", f"main:{HCA}=3")
        self.assertIsNone(self.shares(node))
        self.assertIn("2 free; 20 shares, who has them is not known\n",
                      self.ctl(node, "explain", "pool", HCA)[1])

    def test_vfs_are_served_beside_them_and_none_is_shared(self):
        node, kubelet, _ = self.begin(
            {**RAILS, "selectors": {"vendors": ["15b3"], "drivers": ["mlx5_core"]}})
        vfs = vfs_of(kubelet.admit("v", f"main:{GPU}=2,{VF}=2"))
        shared = container(kubelet.admit("s", f"main:{HCA}=1"), "main")
        text = shared["env"]["RAILMATE_RDMA_HCA_VFS"]
        self.assertFalse(set(text.split(",")) & {d["id"] for d in kubelet.resource(VF)["devices"]})
        self.assertEqual(len(vfs), 2)

    def test_a_restart_of_the_kubelet_brings_them_back(self):
        _, kubelet, _ = self.begin(RAILS)
        kubelet.ask("restart")
        until(lambda: (kubelet.resource(HCA) or {}).get("registered"), "registered again")
        kubelet.wait(HCA, 20)

    def test_a_resource_without_an_hca_is_not_registered(self):
        _, kubelet, d = self.begin(
            RAILS, {"resourceName": "none", "rdmaHcaMax": 5, "selectors": {"ifNames": ["nothing"]}})
        self.assertNotIn("rdma/none", {r["name"] for r in kubelet.ask("list")["resources"]})
        self.assertIn("rdma/none: no HCA matches", d.stderr())

    def test_one_bad_entry_leaves_the_others(self):
        _, _, d = self.begin({"resourceName": "bad", "selectors": {"ifNames": ["x"]}}, RAILS)
        self.assertIn("configList[0]: has no rdmaHcaMax", d.stderr())

    def test_a_file_that_is_refused_leaves_the_vfs(self):
        bad = {"configList": [{"resourceName": "bad", "selectors": {"ifNames": ["x"]}}]}
        for text in json.dumps(bad), "[", None:
            with self.subTest(text):
                node = self.node()
                path = self.put(node, "shared.json", text)
                _, d = node.start(daemon=("--shared-config", path))
                self.assertRegex(d.stderr(), f"{path}.*; the file is left out")
                for option in ("--check-config", "--strict-config"):
                    self.assertEqual(self.ends(node, option, "--shared-config", path), 3)

    def test_a_file_of_pools_that_is_refused_leaves_the_hcas(self):
        node = self.node()
        shared = self.config(node, RAILS)
        kubelet = node.start_kubelet()
        accelerator = {"resourceName": "gpu", "deviceType": "accelerator"}
        path = self.put(node, "config.json", json.dumps({"resourceList": [accelerator]}))
        d = node.start_daemon("--shared-config", shared, "--config-file", path)
        kubelet.wait(HCA, 20)
        self.assertIn("'accelerator' is not served by railmate", d.stderr())
        self.assertEqual([r["name"] for r in kubelet.ask("list")["resources"]], [HCA])
        container(kubelet.admit("p", f"main:{HCA}=1"), "main")
        none = self.put(node, "none.json", "{}")
        self.assertEqual(self.ends(node, "--shared-config", none, "--config-file", path), 3)

    def put(self, node, name, text):
        """None: there is no such file."""
        path = node.path(name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        return path

    def ends(self, node, *options):
        return subprocess.run(node.daemon_argv(*options), stdin=subprocess.DEVNULL, timeout=60,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              check=False).returncode


if __name__ == "__main__":
    main()
