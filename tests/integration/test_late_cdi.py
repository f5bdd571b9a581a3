#!/usr/bin/python3
"""Late binding and the runtime's CDI directory: specs come, go, are lost, foreign, edited, and
cannot be written."""

import json
import os
import shutil
import signal
import subprocess

from harness import GPU, VF, container, main, program, until, vfs_of
from late import LateCase, pool, vfs_in


class Specs(LateCase):
    def specs(self, node):
        return sorted(os.listdir(node.cdi)) if os.path.isdir(node.cdi) else []

    def path_of(self, node, slot):
        return os.path.join(node.cdi, f"railmate.io-vf_{slot}.json")

    def test_one_spec_a_container_and_none_before_the_start(self):
        node = self.late()
        admission = node.kubelet.admit("pod", f"main:{GPU}=2,{VF}=2")
        self.assertEqual(self.specs(node), [])
        self.start(node, "pod")
        slots = sorted(vfs_of(admission))
        self.assertEqual(self.specs(node), [f"railmate.io-vf_{slots[0]}.json"])
        with open(self.path_of(node, slots[0]), encoding="utf-8") as f:
            spec = json.load(f)
        self.assertEqual([d["name"] for d in spec["devices"]], slots)
        self.assertEqual((spec["cdiVersion"], spec["kind"]), ("0.5.0", "railmate.io/vf"))

    def test_the_spec_goes_with_its_pod(self):
        node = self.late()
        self.run_pod(node, "pod", f"main:{GPU}=1,{VF}=1")
        node.kubelet.ask("remove pod")
        self.run_pod(node, "next", f"main:{VF}=1")
        until(lambda: len(self.specs(node)) == 1, "one spec")

    def test_the_spec_goes_with_its_pod_where_the_pool_is_early_by_then(self):
        node = self.late()
        self.run_pod(node, "pod", f"main:{GPU}=1,{VF}=1")
        self.run_pod(node, "stays", f"main:{GPU}=1,{VF}=1")
        node.processes[-1].end(signal.SIGTERM)
        node.kubelet.wait(VF, "=0")
        early = {**pool(), "railmate": {"binding": "early"}}
        node.start_daemon("--config-file", self.config(node, early))
        node.kubelet.wait(VF, 1)
        self.assertEqual(len(self.specs(node)), 2)
        node.kubelet.ask("remove pod")
        until(lambda: len(self.specs(node)) == 1, "its spec to go")

    def test_a_reboot_empties_the_directory(self):
        node = self.late()
        _, first = self.run_pod(node, "pod", f"main:{GPU}=2,{VF}=2")
        os.rename(node.cdi, node.cdi + ".before")  # at once: the daemon writes into it
        again = self.start(node, "pod")["main"]
        self.assertTrue(again["started"], again["message"])
        self.assertEqual(vfs_in(again), vfs_in(first))

    def test_specs_of_others_stay(self):
        node = self.late()
        os.mkdir(node.cdi)
        os.mkdir(os.path.join(node.cdi, "folder"))
        foreign = os.path.join(node.cdi, "nvidia.json")
        with open(foreign, "w", encoding="utf-8") as f:
            f.write('{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": []}')
        with open(os.path.join(node.cdi, "broken.json"), "w", encoding="utf-8") as f:
            f.write("{")
        self.run_pod(node, "pod", f"main:{GPU}=1,{VF}=1")
        node.processes[-1].end(signal.SIGTERM)
        node.kubelet.wait(VF, "=0")
        node.start_daemon("--config-file", node.path("config.json"))
        node.kubelet.wait(VF, 1)
        self.run_pod(node, "next", f"main:{VF}=1")
        self.assertEqual(len(self.specs(node)), 5)

    def test_a_spec_edited_by_hand_is_told_and_replaced(self):
        node = self.late()
        admission, first = self.run_pod(node, "pod", f"main:{GPU}=1,{VF}=1")
        path = self.path_of(node, vfs_of(admission)[0])
        with open(path, "w", encoding="utf-8") as f:
            f.write('{"cdiVersion": "0.5.0", "kind": "railmate.io/vf", "devices": []}')
        again = self.start(node, "pod")["main"]
        self.assertTrue(again["started"], again["message"])
        self.assertEqual(vfs_in(again), vfs_in(first))
        until(
            lambda: "was changed by another program; it is written again" in node.processes[-1].
            stderr(), "a line about it")

    def test_a_directory_that_is_read_only(self):
        """Writing fails for root too: the directory is a file system mounted read-only, or else
        something that is none."""
        node = self.late()
        container(node.kubelet.admit("pod", f"main:{GPU}=1,{VF}=1"))
        os.symlink("/proc/self/fdinfo", node.cdi)  # nobody can make a file there
        waiting = self.start(node, "pod", timeout_ms=200)["main"]
        self.assertFalse(waiting["started"])
        self.assertIn(f"write CDI spec {node.cdi}", waiting["message"])
        os.unlink(node.cdi)
        started = self.start(node, "pod")["main"]
        self.assertTrue(started["started"], started["message"])

    def test_a_full_disk(self):
        node = self.late()
        os.mkdir(node.cdi)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=2", "none", node.cdi],
                          check=False, stderr=subprocess.DEVNULL).returncode:
            self.skipTest("cannot mount a small file system here")
        self.addCleanup(subprocess.run, ["umount", "-l", node.cdi], check=False)
        with open(os.path.join(node.cdi, "filler"), "w", encoding="utf-8"):
            pass
        container(node.kubelet.admit("pod", f"main:{GPU}=1,{VF}=1"))
        waiting = self.start(node, "pod", timeout_ms=200)["main"]
        self.assertIn("No space left on device", waiting["message"])
        os.unlink(os.path.join(node.cdi, "filler"))
        started = self.start(node, "pod")["main"]
        self.assertTrue(started["started"], started["message"])

    def test_the_ledger_is_lost(self):
        node = self.late()
        _, first = self.run_pod(node, "pod", f"main:{GPU}=4,{VF}=4")
        node.processes[-1].end(signal.SIGKILL)
        shutil.rmtree(node.state_dir)
        node.kubelet.wait(VF, "=0")
        node.start_daemon("--config-file", node.path("config.json"))
        node.kubelet.wait(VF, 1)
        _, other = self.run_pod(node, "other", f"main:{GPU}=4,{VF}=4")
        self.assertFalse(set(vfs_in(other)) & set(vfs_in(first)))
        again = self.start(node, "pod")["main"]
        self.assertEqual(vfs_in(again), vfs_in(first))

    def test_an_old_ledger_does_not_beat_newer_specs(self):
        """The state directory cannot be opened for a while: what was decided meanwhile counts when
        its old ledger is back."""
        node = self.late()
        total = node.kubelet.resource(VF)["allocatable"]
        _, first = self.run_pod(node, "first", f"main:{GPU}=1,{VF}=1")
        until(lambda: vfs_in(first)[0] in [h["vf"] for h in self.ledger(node)["holds"]],
              "the ledger has it")
        node.processes[-1].end(signal.SIGTERM)
        os.rename(node.state_dir, node.state_dir + ".away")
        with open(node.state_dir, "w", encoding="utf-8"):
            pass  # a file in the place of the directory
        node.kubelet.wait(VF, "=0")
        d = node.start_daemon("--config-file", node.path("config.json"))
        node.kubelet.wait(VF, 1)
        node.kubelet.ask("remove first")
        node.kubelet.wait(VF, f"={total}")
        admission, second = self.run_pod(node, "second", f"main:{GPU}=1,{VF}=1")
        spec = f"railmate.io-vf_{vfs_of(admission)[0]}.json"
        self.assertIn(spec, self.specs(node))
        self.assertIn("the directory is tried again", d.stderr())
        d.end(signal.SIGKILL)
        os.unlink(node.state_dir)
        os.rename(node.state_dir + ".away", node.state_dir)
        node.kubelet.wait(VF, "=0")
        node.start_daemon("--config-file", node.path("config.json"))
        node.kubelet.wait(VF, 1)
        _, third = self.run_pod(node, "third", f"main:{GPU}=1,{VF}=1")
        self.assertFalse(set(vfs_in(second)) & set(vfs_in(third)), "two containers with one VF")
        self.assertIn(spec, self.specs(node), "the spec of a container that runs was removed")
        again = self.start(node, "second")["main"]
        self.assertEqual(vfs_in(again), vfs_in(second))

    def test_specs_that_are_removed_come_back(self):
        node = self.late()
        self.run_pod(node, "pod", f"main:{GPU}=2,{VF}=2")
        (name,) = self.specs(node)
        with open(os.path.join(node.cdi, name), encoding="utf-8") as f:
            before = f.read()
        os.unlink(os.path.join(node.cdi, name))
        until(lambda: self.specs(node) == [name], "the spec is back")
        with open(os.path.join(node.cdi, name), encoding="utf-8") as f:
            self.assertEqual(f.read(), before)

    def test_ledger_and_specs_are_lost_and_map_json_knows(self):
        node = self.late()
        _, first = self.run_pod(node, "pod", f"main:{GPU}=4,{VF}=4")
        node.processes[-1].end(signal.SIGKILL)
        shutil.rmtree(node.state_dir)
        shutil.rmtree(node.cdi)
        node.kubelet.wait(VF, "=0")
        node.start_daemon("--config-file", node.path("config.json"))
        node.kubelet.wait(VF, 1)
        _, other = self.run_pod(node, "other", f"main:{GPU}=4,{VF}=4")
        self.assertFalse(set(vfs_in(other)) & set(vfs_in(first)))

    def test_while_a_vf_is_not_known_none_of_its_pool_is_given(self):
        node = self.late()
        self.run_pod(node, "pod", f"main:{GPU}=4,{VF}=4")
        node.processes[-1].end(signal.SIGKILL)
        for lost in (node.state_dir, node.cdi):
            shutil.rmtree(lost)
        for name in os.listdir(node.run_dir):
            if name.startswith("vf-"):
                os.unlink(os.path.join(node.run_dir, name, "map.json"))
        node.kubelet.wait(VF, "=0")
        node.start_daemon("--config-file", node.path("config.json"))
        node.kubelet.wait(VF, "=4")  # those of the pod, and nothing that could be theirs
        shown = subprocess.run([
            program("railmatectl"), "explain", "pool", VF, "--control-socket", node.control_socket
        ], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout
        self.assertRegex(shown, r"in use .*which container main of pod default/pod has")
        node.kubelet.ask("remove pod")
        node.kubelet.wait(VF, "=64")
        container(node.kubelet.admit("other", f"main:{GPU}=1,{VF}=1"))
        self.assertTrue(self.start(node, "other")["main"]["started"])

    def test_the_verbs_node_is_that_of_the_start(self):
        """Its number changes between Allocate and the start: today's peers hand out the wrong
        one."""
        node = self.late()
        container(node.kubelet.admit("pod", f"main:{GPU}=8,{VF}=8"))
        moved = {}
        for v in node.topo().topo["vfs"]:
            d = os.path.join(node.device_dir(v["pci"]), "infiniband_verbs")
            old = os.listdir(d)[0]
            moved[v["pci"]] = old + "9"
            os.rename(os.path.join(d, old), os.path.join(d, old + "9"))
        started = self.start(node, "pod")["main"]
        nodes = {d["host"] for d in started["device_nodes"]} - {"/dev/infiniband/rdma_cm"}
        self.assertEqual(nodes, {f"/dev/infiniband/{moved[v]}" for v in vfs_in(started)})


if __name__ == "__main__":
    main()
