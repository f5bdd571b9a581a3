#!/usr/bin/python3
"""The topology file of a node: there when it is needed, the same for every container, following
hints and hardware."""

import json
import os
import shutil
import signal
import subprocess

from harness import GPU, VF, gpus_of, main, program, until, vfs_of
from test_files import FilesCase, early, place

AZURE = "azure-nd-h100-v5"


def read(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return None


class TopologyFile(FilesCase):
    def printed(self, node, *args):
        return subprocess.run(
            [program("railmatectl"), "topo", "--nccl-xml", "--root", node.root, *args], check=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            timeout=60).stdout

    def kept(self, node, name="topology.xml"):
        return read(os.path.join(node.run_dir, name))

    def hints(self, node, **hints):
        path = node.path("hints.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(hints, f)
        return path

    def test_a_machine_that_hides_its_switches_is_told_of(self):
        node = self.up(early(), fixture=AZURE)
        admission, started = self.run_pod(node, "one", f"main:{GPU}=1,{VF}=1", order="gpu-first")
        self.assertEqual(started["env"]["NCCL_TOPO_FILE"], "/run/railmate/topology.xml")
        self.assertEqual(self.kept(node), self.printed(node))
        self.assertEqual(read(os.path.join(place(started), "topology.xml")), self.kept(node))
        self.assertEqual(
            vfs_of(admission)[0][:4], {
                "0001": "0101", "0002": "0102", "0003": "0103", "0008": "0104", "0009": "0105",
                "000a": "0106", "000b": "0107", "000c": "0108"
            }[gpus_of(node.topo(), admission)[0][:4]])
        _, other = self.run_pod(node, "two", f"main:{GPU}=2,{VF}=2")
        self.assertEqual(read(os.path.join(place(other), "topology.xml")), self.kept(node))

    def test_a_machine_that_nccl_sees_right_has_none(self):
        node = self.node()
        os.makedirs(node.run_dir)
        for name in ("topology.xml", "topology-rccl.xml"):
            with open(os.path.join(node.run_dir, name), "w", encoding="utf-8") as f:
                f.write("of a daemon before")
        node.start(daemon=("--config-file", self.config(node, early())))
        _, started = self.run_pod(node, "pod", f"main:{GPU}=1,{VF}=1")
        self.assertNotIn("NCCL_TOPO_FILE", started["env"])
        self.assertIsNone(self.kept(node))
        self.assertIsNone(self.kept(node, "topology-rccl.xml"))

    def test_never_is_never(self):
        node = self.up(early(topologyFile="never"), fixture=AZURE)
        _, started = self.run_pod(node, "pod", f"main:{GPU}=1,{VF}=1")
        self.assertNotIn("NCCL_TOPO_FILE", started["env"])
        self.assertIsNone(self.kept(node))

    def test_rccl_has_its_own(self):
        node = self.up(early(topologyFile="always", profiles=["rccl"]))
        _, started = self.run_pod(node, "pod", f"main:{GPU}=1,{VF}=1")
        self.assertEqual(started["env"]["NCCL_TOPO_FILE"], "/run/railmate/topology-rccl.xml")
        self.assertEqual(self.kept(node, "topology-rccl.xml"), self.printed(node, "--rccl"))
        self.assertIsNone(self.kept(node))

    def test_the_file_follows_the_hardware(self):
        node = self.up(early(topologyFile="always"))
        daemon = node.processes[-1]
        before = self.kept(node)
        self.assertEqual(before, self.printed(node))
        gpu = node.topo().topo["gpus"][0]["pci"]
        removed = node.remove_device(gpu)
        daemon.child.send_signal(signal.SIGHUP)
        until(lambda: gpu not in self.kept(node), "the file without the GPU")
        self.assertEqual(self.kept(node), self.printed(node))
        node.restore_device(gpu, removed)
        daemon.child.send_signal(signal.SIGHUP)
        until(lambda: self.kept(node) == before, "the file as it was")

    def test_a_device_in_a_container_does_not_change_the_file(self):
        node = self.up(early(), fixture=AZURE)
        daemon, before = node.processes[-1], self.kept(node)
        moved = node.take_away("0103:00:00.0")
        shutil.rmtree(node.device_dir("0108:00:00.0"))  # something that is seen
        os.unlink(os.path.join(node.root, "sys/bus/pci/devices/0108:00:00.0"))
        daemon.child.send_signal(signal.SIGHUP)
        until(lambda: self.kept(node) != before, "the file without another NIC")
        self.assertIn('"0103:00:00.0"', self.kept(node))
        node.bring_back("0103:00:00.0", moved)

    def test_vfs_follow_the_hints(self):
        node = self.node(AZURE)
        gpus = [g["pci"] for g in node.topo().topo["gpus"]]
        nics = [f"01{i:02x}:00:00.0" for i in range(8, 0, -1)]
        path = self.hints(node, groups=[{"gpus": [g], "nics": [n]} for g, n in zip(gpus, nics)])
        node.start(daemon=("--config-file", self.config(node, early()), "--topology-hints", path))
        admission, started = self.run_pod(node, "pod", f"main:{GPU}=1,{VF}=1", order="gpu-first")
        self.assertEqual(vfs_of(admission),
                         [dict(zip(gpus, nics))[gpus_of(node.topo(), admission)[0]]])
        self.assertEqual(read(os.path.join(place(started), "topology.xml")),
                         self.printed(node, "--topology-hints", path))

    def test_hints_that_are_wrong_are_left_out_with_the_line(self):
        node = self.node(AZURE)
        path = self.hints(node, groups=[])
        _, d = node.start(daemon=("--config-file", self.config(node, early()), "--topology-hints",
                                  path))
        self.assertRegex(d.stderr(), f"{path}:1: .*; the file is left out")


if __name__ == "__main__":
    main()
