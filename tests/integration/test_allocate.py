#!/usr/bin/python3
"""What a container gets with its VFs, and what the pod's status says when it cannot get them."""

import json
import os
import subprocess

from harness import GPU, VF, Case, container, main, program, vfs_of


class Allocate(Case):
    def one_pod(self, node, gpus=2, vfs=2):
        return node.kubelet.admit("pod", f"main:{GPU}={gpus},{VF}={vfs}", order="gpu-first")

    def test_device_nodes_are_the_verbs_devices_of_the_vfs(self):
        node = self.node()
        node.start()
        admission = self.one_pod(node)
        uverbs = {v["pci"]: v["uverbs"] for v in node.topo().topo["vfs"]}
        want = {f"/dev/infiniband/{uverbs[v]}"
                for v in vfs_of(admission)} | {"/dev/infiniband/rdma_cm"}
        nodes = container(admission)["device_nodes"]
        self.assertEqual({d["host"] for d in nodes}, want)
        self.assertEqual(len(nodes), len(want), "a device node twice")
        self.assertTrue(
            all(d["container"] == d["host"] and d["permissions"] == "rw" for d in nodes), nodes)

    def test_environment_names_the_vfs(self):
        node = self.node()
        node.start()
        admission = self.one_pod(node)
        chosen, env = vfs_of(admission), container(admission)["env"]
        rdma = {v["pci"]: v["rdma"] for v in node.topo().topo["vfs"]}
        self.assertEqual(set(env["PCIDEVICE_RDMA_VF"].split(",")), set(chosen))
        self.assertEqual(set(json.loads(env["PCIDEVICE_RDMA_VF_INFO"])), set(chosen))
        self.assertTrue(env["NCCL_IB_HCA"].startswith("="), env["NCCL_IB_HCA"])
        self.assertEqual(set(env["NCCL_IB_HCA"][1:].split(",")), {f"{rdma[v]}:1" for v in chosen})
        self.assertTrue(any(k.startswith("RAILMATE_") for k in env), env)
        self.assertEqual(container(admission)["conflicts"], [])

    def test_device_info_files_are_written(self):
        node = self.node()
        node.start()
        chosen = vfs_of(self.one_pod(node))
        texts = []
        for name in os.listdir(node.devinfo):
            with open(os.path.join(node.devinfo, name), encoding="utf-8") as f:
                texts.append(json.load(f))
        self.assertLessEqual(set(chosen), {t["pci"]["pci-address"] for t in texts})

    def test_only_ours_asks_to_be_called_before_the_start(self):
        node = self.node()
        node.start()
        self.one_pod(node)
        self.assertEqual([(c["resource"], c["status"])
                          for c in node.kubelet.ask("prestart pod")["calls"]], [(VF, "OK")])

    def victim(self, node):
        """One of the VFs that a pod gets who asks for all of them; nobody had it, so nothing looks
        at it before."""
        return node.kubelet.resource(VF)["devices"][0]["id"]

    def all_of_them(self, node):
        return self.one_pod(node, 1, node.kubelet.resource(VF)["allocatable"])

    def rejected(self, node, vf):
        refused = self.all_of_them(node)
        self.assertEqual((refused["event"], refused["reason"]),
                         ("rejected", "UnexpectedAdmissionError"))
        self.assertIn("Allocate failed due to rpc error: code =", refused["message"])
        self.assertIn(vf, refused["message"])
        return refused["message"]

    def recovers(self, node, vf, daemon):
        """After the next look at the hardware the VF is not offered, and pods are served."""
        count = node.kubelet.resource(VF)["allocatable"]
        daemon.child.send_signal(1)
        node.kubelet.wait(VF, f"={count - 1}")
        self.assertNotIn(vf, vfs_of(self.all_of_them(node)))

    def admissions(self, node):
        """The condition of the status document."""
        text = subprocess.run([
            program("railmatectl"), "explain", "pool", "--json", "--control-socket",
            node.control_socket
        ], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout
        return next(c["problem"] for c in json.loads(text)["conditions"]
                    if c["what"] == "admissions")

    def test_vf_without_driver_fails_the_pod_with_a_sentence(self):
        node = self.node()
        _, daemon = node.start()
        vf = self.victim(node)
        self.assertIsNone(self.admissions(node))
        node.unbind(vf)
        self.rejected(node, vf)
        self.assertRegex(
            self.admissions(node),
            rf"^a pod was refused {VF} within the last 10 minutes, and \d\d VFs of it are free: ")
        self.recovers(node, vf, daemon)  # all that are left are given
        self.assertIsNone(self.admissions(node))

    def test_vf_bound_to_vfio_fails_the_pod_and_names_the_driver(self):
        node = self.node()
        _, daemon = node.start()
        vf = self.victim(node)
        node.unbind(vf, "vfio-pci")
        self.assertIn("vfio-pci", self.rejected(node, vf))
        self.recovers(node, vf, daemon)

    def test_vf_that_vanished_fails_the_pod_with_a_sentence(self):
        node = self.node()
        _, daemon = node.start()
        vf = self.victim(node)
        node.remove_device(vf)
        self.rejected(node, vf)
        self.recovers(node, vf, daemon)


if __name__ == "__main__":
    main()
