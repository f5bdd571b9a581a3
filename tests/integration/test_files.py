#!/usr/bin/python3
"""What a container sees in /run/railmate, from Allocate to its end, in both bindings; and run
directories that do not work."""

import json
import os
import re
import shutil
import signal
import subprocess

from harness import GPU, VF, container, main, until, vfs_of
from late import LateCase, pool, vfs_in

ROCE = "l40s-no-affinity"  # Ethernet VFs


def early(name="vf", **more):
    railmate = {
        k: more.pop(k)
        for k in list(more)
        if k in ("gid", "network", "topologyFile", "cufile", "profiles", "probe")
    }
    return {
        "resourcePrefix": "rdma", "resourceName": name, "selectors": {"isRdma": True, **more},
        "railmate": railmate
    }


def late_pool(name="vf", gid=None, **selectors):
    p = pool(name, **selectors)
    if gid:
        p["railmate"]["gid"] = gid
    return p


def place(started):
    """The directory on the host that a container sees as /run/railmate; None: it has none."""
    mounts = [m for m in started["mounts"] if m["container"] == "/run/railmate"]
    assert len(mounts) <= 1, mounts
    assert all(m["read_only"] for m in mounts), mounts
    return mounts[0]["host"] if mounts else None


def files(directory):
    """Those that a container reads; one that is being written has a name with a dot."""
    texts = {}
    for name in sorted(n for n in os.listdir(directory) if n[0] != "." and n != "probe"):
        path = os.path.join(directory, name)
        assert os.stat(path).st_mode & 0o777 == 0o644, name
        with open(path, encoding="utf-8") as f:
            texts[name] = f.read()
    return texts


def conf(text):
    return dict(
        line.split("=", 1) for line in text.splitlines() if line and not line.startswith("#"))


class FilesCase(LateCase):
    def up(self, *pools, fixture=ROCE, daemon=(), resource=VF):
        node = self.node(fixture)
        node.start(daemon=("--config-file", self.config(node, *(pools or [early()])), *daemon),
                   resource=resource)
        return node

    def gids(self, node, vf, **at):
        """The VF's GID table: number of the slot → (GID, type)."""
        directory = os.path.join(node.device_dir(vf), "infiniband")
        port = os.path.join(directory, os.listdir(directory)[0], "ports", "1")
        for d in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
            shutil.rmtree(os.path.join(port, d), ignore_errors=True)
            os.makedirs(os.path.join(port, d))
        for slot in range(8):
            gid, kind = at.get(f"slot{slot}", ("0000:" * 7 + "0000", None))
            values = {"gids": gid
                      } | ({"gid_attrs/types": kind, "gid_attrs/ndevs": "net1"} if kind else {})
            for d, text in values.items():
                with open(os.path.join(port, d, str(slot)), "w", encoding="ascii") as f:
                    f.write(text + "\n")

    def addresses(self, node, vfs, slot=3):
        """As a CNI plugin and the kernel make them: link-local ones first, then the pod's, at this
        slot for RoCE v2."""
        for i, vf in enumerate(vfs):
            local, mine = f"fe80:0000:0000:0000:0000:00ff:fe00:{i:04x}", f"0000:0000:0000:0000:0000:ffff:0a00:{i + 1:04x}"
            self.gids(node, vf, slot0=(local, "IB/RoCE v1"), slot1=(local, "RoCE v2"),
                      **{f"slot{slot - 1}": (mine, "IB/RoCE v1"), f"slot{slot}": (mine, "RoCE v2")})

    def ours(self, node):
        return sorted(d for d in os.listdir(node.run_dir) if d.startswith("vf-"))


class Early(FilesCase):
    def test_after_allocate_there_is_what_is_known(self):
        node = self.up()
        got = container(node.kubelet.admit("pod", f"main:{GPU}=2,{VF}=2"))
        vfs = sorted(got["devices"][VF])
        self.assertEqual(place(got), os.path.join(node.run_dir, f"vf-{vfs[0]}"))
        self.assertEqual(got["env"]["NCCL_CONF_FILE"], "/run/railmate/nccl.conf")
        until(lambda: set(files(place(got))) >= {"nccl.conf", "map.json"}, "files")
        told = json.loads(files(place(got))["map.json"])
        self.assertEqual((told["version"], told["pod"], told["binding"]), (1, None, "early"))
        self.assertEqual({g["vf"] for g in told["gpus"]}, set(vfs))
        self.assertTrue(all(g["gid"] is None for g in told["gpus"]))
        self.assertEqual(
            conf(files(place(got))["nccl.conf"])["NCCL_IB_HCA"], got["env"]["NCCL_IB_HCA"])

    def test_at_the_start_there_is_the_truth(self):
        node = self.up()
        vfs = vfs_of(node.kubelet.admit("pod", f"main:{GPU}=2,{VF}=2"))
        self.addresses(node, vfs)  # CNI comes after Allocate
        started = self.start(node, "pod")["main"]
        got = files(place(started))
        self.assertEqual(conf(got["nccl.conf"])["NCCL_IB_GID_INDEX"], "3")
        told = json.loads(got["map.json"])
        self.assertEqual((told["pod"], told["container"]), ("default/pod", "main"))
        self.assertEqual({g["gid"]["index"] for g in told["gpus"]}, {3})
        self.assertEqual({g["gid"]["address"] for g in told["gpus"]}, {"10.0.0.1", "10.0.0.2"})

    def test_a_cufile_keeps_what_the_operator_has_in_it(self):
        base = {"fs": {"nfs": {"mount_table": {"/data": {"rdma_dev_addr_list": ["10.9.9.9"]}}}}, "denylist": {"drivers": [], "n": 1.5},
                "properties": {"allow_compat_mode": True, "max_direct_io_size_kb": 16384}}
        node = self.up(early(cufile=base))
        self.addresses(node, vfs_of(node.kubelet.admit("pod", f"main:{GPU}=2,{VF}=2")))
        got = json.loads(files(place(self.start(node, "pod")["main"]))["cufile.json"])
        base["properties"]["rdma_dev_addr_list"] = ["10.0.0.1", "10.0.0.2"]
        got["properties"]["rdma_dev_addr_list"].sort()  # in the order of the VFs
        self.assertEqual(got, base)

    def test_a_container_that_starts_again_is_told_anew(self):
        node = self.up()
        vfs = vfs_of(node.kubelet.admit("pod", f"main:{GPU}=1,{VF}=1"))
        self.addresses(node, vfs)
        started = self.start(node, "pod")["main"]
        self.addresses(node, vfs, slot=5)
        again = self.start(node, "pod")["main"]
        self.assertEqual(place(again), place(started))
        self.assertEqual(conf(files(place(again))["nccl.conf"])["NCCL_IB_GID_INDEX"], "5")

    def test_two_pools_carry_the_union(self):
        pfs = [p["netdev"] for p in self.node(ROCE).topo().topo["pfs"] if p["netdev"]]
        node = self.up(early("a", pfNames=pfs[:1]), early("b", pfNames=pfs[1:]), resource="rdma/a")
        node.kubelet.wait("rdma/b", 1)
        admission = node.kubelet.admit("pod", "main:rdma/a=1,rdma/b=2")
        got = container(admission)
        self.assertEqual([c for c in got["conflicts"] if "NCCL_IB_HCA" in json.dumps(c)], [])
        self.assertNotIn("NCCL_IB_HCA", got["env"])
        vfs = {r: sorted(v) for r, v in got["devices"].items()}
        started = self.start(node, "pod")["main"]
        self.assertTrue(started["started"], started["message"])
        places = [os.path.join(node.run_dir, f"vf-{v[0]}") for v in vfs.values()]
        self.assertIn(place(started), places)
        self.assertEqual(files(places[0]), files(places[1]))
        rdma = {v["pci"]: v["rdma"] for v in node.topo().topo["vfs"]}
        hcas = conf(files(places[0])["nccl.conf"])["NCCL_IB_HCA"]
        self.assertEqual(set(hcas[1:].split(",")),
                         {f"{rdma[v]}:1"
                          for vs in vfs.values()
                          for v in vs})
        self.assertEqual({g["resource"]
                          for g in json.loads(files(places[0])["map.json"])["gpus"]},
                         {"rdma/a", "rdma/b"})

    def test_a_fixed_gid_that_the_table_refutes_is_refused_until_it_is_there(self):
        node = self.up(early(gid="fixed:3"))
        vfs = vfs_of(node.kubelet.admit("pod", f"main:{VF}=1"))
        self.addresses(node, vfs, slot=5)
        waiting = self.start(node, "pod", timeout_ms=200)["main"]
        self.assertFalse(waiting["started"])
        self.assertRegex(waiting["message"], rf"{vfs[0]}.*\b3\b")
        self.addresses(node, vfs, slot=3)
        started = self.start(node, "pod")["main"]
        self.assertTrue(started["started"], started["message"])
        self.assertEqual(conf(files(place(started))["nccl.conf"])["NCCL_IB_GID_INDEX"], "3")

    def test_without_podresources_the_files_are_written_all_the_same(self):
        node = self.node(ROCE)
        node.start(daemon=("--config-file", self.config(node, early()), "--pod-resources", "off"))
        vfs = vfs_of(node.kubelet.admit("pod", f"main:{VF}=1"))
        self.addresses(node, vfs)
        started = self.start(node, "pod")["main"]
        self.assertEqual(conf(files(place(started))["nccl.conf"])["NCCL_IB_GID_INDEX"], "3")
        self.assertIsNone(json.loads(files(place(started))["map.json"])["pod"])

    def test_the_nodes_topology_file_is_shown(self):
        node = self.up(early(topologyFile="always"))
        _, started = self.run_pod(node, "pod", f"main:{GPU}=1,{VF}=1")
        self.assertEqual(started["env"]["NCCL_TOPO_FILE"], "/run/railmate/topology.xml")
        with open(os.path.join(node.run_dir, "topology.xml"), encoding="utf-8") as f:
            self.assertEqual(files(place(started))["topology.xml"], f.read())


class Late(FilesCase):
    def test_spec_and_files_say_what_is_true_at_the_start(self):
        node = self.up(late_pool())
        container(node.kubelet.admit("pod", f"main:{GPU}=2,{VF}=2"))
        self.addresses(node, [v["pci"] for v in node.topo().topo["vfs"]])
        started = self.start(node, "pod")["main"]
        self.assertTrue(started["started"], started["message"])
        vfs = sorted(vfs_in(started))
        self.assertEqual(place(started), os.path.join(node.run_dir, f"vf-{vfs[0]}"))
        self.assertEqual(started["env"]["NCCL_IB_GID_INDEX"], "3")
        self.assertNotIn("NCCL_CONF_FILE",
                         started["env"])  # the spec says everything; a file of the user's stays
        got = files(place(started))
        self.assertEqual(conf(got["nccl.conf"])["NCCL_IB_GID_INDEX"], "3")
        told = json.loads(got["map.json"])
        self.assertEqual((told["binding"], told["pod"]), ("late", "default/pod"))
        self.assertEqual({g["vf"] for g in told["gpus"]}, set(vfs))

    def test_a_container_that_starts_again_is_told_anew(self):
        node = self.up(late_pool())
        container(node.kubelet.admit("pod", f"main:{GPU}=1,{VF}=1"))
        everything = [v["pci"] for v in node.topo().topo["vfs"]]
        self.addresses(node, everything)
        started = self.start(node, "pod")["main"]
        self.addresses(node, everything, slot=5)
        again = self.start(node, "pod")["main"]
        self.assertEqual(vfs_in(again), vfs_in(started))
        self.assertEqual((started["env"]["NCCL_IB_GID_INDEX"], again["env"]["NCCL_IB_GID_INDEX"]),
                         ("3", "5"))
        self.assertEqual(conf(files(place(again))["nccl.conf"])["NCCL_IB_GID_INDEX"], "5")

    def test_a_fixed_gid_that_the_table_refutes_waits(self):
        node = self.up(late_pool(gid="fixed:3"))
        container(node.kubelet.admit("pod", f"main:{VF}=1"))
        everything = [v["pci"] for v in node.topo().topo["vfs"]]
        self.addresses(node, everything, slot=5)
        waiting = self.start(node, "pod", timeout_ms=200)["main"]
        self.assertFalse(waiting["started"])
        self.assertRegex(waiting["message"], r"\b3\b")
        self.addresses(node, everything, slot=3)
        started = self.start(node, "pod")["main"]
        self.assertTrue(started["started"], started["message"])
        self.assertEqual(started["env"]["NCCL_IB_GID_INDEX"], "3")

    def test_an_early_pool_beside_it_has_the_same_files(self):
        pfs = [p["netdev"] for p in self.node(ROCE).topo().topo["pfs"] if p["netdev"]]
        node = self.up(late_pool("a", pfNames=pfs[:1]), early("b", pfNames=pfs[1:]),
                       resource="rdma/a")
        node.kubelet.wait("rdma/b", 1)
        admission = node.kubelet.admit("pod", "main:rdma/a=1,rdma/b=1")
        started = self.start(node, "pod")["main"]
        self.assertTrue(started["started"], started["message"])
        both = [vfs_in(started, "rdma/a")[0], container(admission)["devices"]["rdma/b"][0]]
        places = [os.path.join(node.run_dir, f"vf-{v}") for v in both]
        self.assertIn(place(started), places)
        rdma = {v["pci"]: v["rdma"] for v in node.topo().topo["vfs"]}
        hcas = {f"{rdma[v]}:1" for v in both}
        self.assertEqual(set(started["env"]["NCCL_IB_HCA"][1:].split(",")), hcas)
        for p in places:
            self.assertEqual(set(conf(files(p)["nccl.conf"])["NCCL_IB_HCA"][1:].split(",")), hcas,
                             p)


class Probe(FilesCase):
    """/run/railmate/probe: the program of the image, on the host, mounted read-only."""

    def image(self, node, text="one"):
        os.makedirs(node.probe, exist_ok=True)
        for name in ("ld.so", "railmate-probe"):
            with open(os.path.join(node.probe, name), "w", encoding="utf-8") as f:
                f.write(text)

    def up_with(self, *pools, resource=VF):
        node = self.node(ROCE)
        self.image(node)
        node.start(daemon=("--config-file", self.config(node, *pools)), resource=resource)
        return node

    def mounted(self, node, got):
        """Is it among the mounts? As it must be, if it is."""
        mounts = [m for m in got["mounts"] if m["container"] == "/run/railmate/probe"]
        if mounts:
            self.assertEqual(mounts, [{"host": os.path.join(node.state_dir, "probe"), "container": "/run/railmate/probe",
                                       "read_only": True}])
            self.assertEqual(os.listdir(os.path.join(place(got), "probe")), [])  # what it is mounted over
            program = os.path.join(mounts[0]["host"], "railmate-probe")
            self.assertEqual(os.stat(program).st_mode & 0o7777, 0o755)
            with open(program, encoding="utf-8") as f:
                self.assertEqual(f.read(), "one")
        return bool(mounts)

    def test_a_container_has_it_unless_its_pool_does_not_want_it(self):
        for wanted in (True, False):
            for p in (early(probe=wanted), late_pool()):
                with self.subTest(p["railmate"], wanted=wanted):
                    p["railmate"]["probe"] = wanted
                    node = self.up_with(p)
                    _, started = self.run_pod(node, "pod", f"main:{GPU}=1,{VF}=1")
                    self.assertEqual(self.mounted(node, started), wanted)
                    shutil.rmtree(place(started))  # as a reboot does; the kubelet's mounts stay
                    again = self.start(node, "pod")["main"]
                    self.assertTrue(again["started"], again["message"])
                    self.assertEqual(self.mounted(node, again), wanted)
                    node.kubelet.ask("remove pod")
                    until(lambda n=node: self.ours(n) == [], "the directory is gone", 40)

    def test_two_pools_mount_the_same(self):
        pfs = [p["netdev"] for p in self.node(ROCE).topo().topo["pfs"] if p["netdev"]]
        for other in (early("b", pfNames=pfs[1:], probe=False), late_pool("b", pfNames=pfs[1:])):
            with self.subTest(other["railmate"]):
                node = self.up_with(early("a", pfNames=pfs[:1]), other, resource="rdma/a")
                node.kubelet.wait("rdma/b", 1)
                got = container(node.kubelet.admit("pod", "main:rdma/a=1,rdma/b=1"))
                self.assertEqual([c for c in got["conflicts"] if "probe" in json.dumps(c)], [])
                started = self.start(node, "pod")["main"]
                self.assertTrue(started["started"], started["message"])
                self.assertTrue(self.mounted(node, started))

    def test_without_the_program_there_is_no_mount(self):
        for p in (early(), late_pool()):
            with self.subTest(p["railmate"]):
                node = self.up(p)
                _, started = self.run_pod(node, "pod", f"main:{GPU}=1,{VF}=1")
                self.assertFalse(self.mounted(node, started))
                (line,) = [x for x in node.processes[-1].stderr().splitlines() if "railmate-probe" in x]
                self.assertRegex(line, "info .*containers get no railmate-probe")

    def test_another_start_brings_the_images_files(self):
        node = self.up_with(early())
        there = os.path.join(node.state_dir, "probe/railmate-probe")
        node.processes[-1].end()
        self.image(node, "another")
        node.start_daemon("--config-file", node.path("config.json"))
        until(lambda: open(there, encoding="utf-8").read() == "another", "the other program")
        node.kubelet.wait(VF, 1)

    def test_a_folder_that_is_gone_or_cannot_be_filled_stops_nobody(self):
        for p in (early(), late_pool()):
            with self.subTest(p["railmate"]):
                node = self.up_with(p)
                shutil.rmtree(os.path.join(node.state_dir, "probe"))
                _, started = self.run_pod(node, "pod", f"main:{GPU}=1,{VF}=1")
                self.assertFalse(self.mounted(node, started))
                node.processes[-1].end()
                with open(os.path.join(node.state_dir, "probe"), "w", encoding="utf-8"):
                    pass
                d = node.start_daemon("--config-file", node.path("config.json"))
                node.kubelet.wait(VF, 1)
                self.assertIn("railmate-probe cannot be put where containers get it from", d.stderr())
                _, started = self.run_pod(node, "other", f"main:{GPU}=1,{VF}=1")
                self.assertFalse(self.mounted(node, started))


class Lifetime(FilesCase):
    def test_the_directory_goes_with_the_pod(self):
        for p, resource in ((early(), "early"), (late_pool(), "late")):
            with self.subTest(resource):
                node = self.up(p)
                self.run_pod(node, "pod", f"main:{GPU}=2,{VF}=2")
                self.assertEqual(len(self.ours(node)), 1)
                node.kubelet.ask("remove pod")
                until(lambda: self.ours(node) == [], "the directory is gone", 40)
                self.assertTrue(os.path.exists(node.control_socket), "what is not ours stays")

    def test_a_restart_keeps_what_containers_use(self):
        node = self.up()
        vfs = vfs_of(node.kubelet.admit("pod", f"main:{GPU}=1,{VF}=1"))
        self.addresses(node, vfs)
        started = self.start(node, "pod")["main"]
        before, inode = files(place(started)), os.stat(place(started)).st_ino
        node.processes[-1].end(signal.SIGKILL)
        node.kubelet.wait(VF, "=0")
        d = node.start_daemon("--config-file", node.path("config.json"))
        node.kubelet.wait(VF, 1)
        self.assertEqual(files(place(started)), before)
        self.assertEqual(
            os.stat(place(started)).st_ino, inode, "it is mounted: another one would not be seen")
        self.assertNotIn("warning", d.stderr())
        node.kubelet.ask("remove pod")
        until(lambda: self.ours(node) == [], "the directory is gone", 40)

    def test_a_reboot_empties_the_run_directory(self):
        for p in (early(), late_pool()):
            with self.subTest(p["railmate"]):
                node = self.up(p)
                _, started = self.run_pod(node, "pod", f"main:{GPU}=1,{VF}=1")
                shutil.rmtree(place(started))
                again = self.start(node, "pod")["main"]
                self.assertTrue(again["started"], again["message"])
                self.assertIn("map.json", files(place(again)))

    def test_the_next_container_finds_nothing_of_the_last_one(self):
        node = self.up(
            early(pfNames=[
                next(p["netdev"] for p in self.node(ROCE).topo().topo["pfs"] if p["netdev"]) + "#0"
            ]))
        _, first = self.run_pod(node, "one", f"main:{VF}=1")
        with open(os.path.join(place(first), "topology.xml"), "w", encoding="utf-8") as f:
            f.write("old")
        node.kubelet.ask("remove one")
        until(
            lambda: node.kubelet.admit("two", f"main:{VF}=1")["event"] == "admitted",
            "the VF is free")
        second = self.start(node, "two")["main"]
        self.assertEqual(json.loads(files(place(second))["map.json"])["pod"], "default/two")
        self.assertNotIn("topology.xml", files(place(second)))


class Trouble(FilesCase):
    def starts_without(self, node, why):
        admission, started = self.run_pod(node, "pod", f"main:{GPU}=1,{VF}=1")
        self.assertEqual(container(admission)["mounts"], [])
        self.assertIsNone(place(started))
        self.assertNotIn("NCCL_CONF_FILE", started["env"])
        self.assertIn("NCCL_IB_HCA", started["env"])
        lines = [
            line for line in node.processes[-1].stderr().splitlines()
            if "without /run/railmate" in line
        ]
        self.assertEqual(len(lines), 1 if why else 0, lines)
        if why:
            self.assertRegex(lines[0], why)

    def test_no_run_directory_is_wanted(self):
        for p in (early(), late_pool()):
            with self.subTest(p["railmate"]):
                self.starts_without(self.up(p, daemon=("--run-dir", "none")), None)

    def test_a_run_directory_where_nothing_can_be_made(self):
        for p in (early(), late_pool()):
            with self.subTest(p["railmate"]):
                self.starts_without(self.up(p, daemon=("--run-dir", "/proc/self/fdinfo")),
                                    "/proc/self/fdinfo")

    def test_a_file_in_the_place_of_the_directory(self):
        for p in (early(), late_pool()):
            with self.subTest(p["railmate"]):
                node = self.up(p)
                for v in node.topo().topo["vfs"]:
                    with open(os.path.join(node.run_dir, f"vf-{v['pci']}"), "w", encoding="utf-8"):
                        pass
                self.starts_without(node, "exists and is not a directory")

    def test_a_link_in_the_place_of_the_directory_is_not_followed(self):
        node = self.up()
        target = node.path("elsewhere")
        os.mkdir(target)
        for v in node.topo().topo["vfs"]:
            os.symlink(target, os.path.join(node.run_dir, f"vf-{v['pci']}"))
        self.starts_without(node, "exists and is not a directory")
        self.assertEqual(os.listdir(target), [])

    def test_a_full_run_directory_fails_no_container(self):
        for p in (early(), late_pool()):
            with self.subTest(p["railmate"]):
                node = self.node(ROCE)
                os.mkdir(node.run_dir)
                if subprocess.run(
                    ["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=4", "none", node.run_dir],
                        check=False, stderr=subprocess.DEVNULL).returncode:
                    self.skipTest("cannot mount a small file system here")
                self.addCleanup(subprocess.run, ["umount", "-l", node.run_dir], check=False)
                node.start(daemon=("--config-file", self.config(node, p), "--control-socket",
                                   "none"))
                _, started = self.run_pod(node, "pod", f"main:{GPU}=1,{VF}=1")
                self.assertIsNotNone(place(started))
                until(
                    lambda n=node: re.search("files.* not complete .*No space left", n.processes[-1]
                                             .stderr()), "a line about it")

    def test_what_is_not_known_is_said_once_and_stops_nobody(self):
        node = self.up()
        admission = node.kubelet.admit("pod", f"main:{GPU}=1,{VF}=1")
        vf = vfs_of(admission)[0]
        moved = node.take_away(vf)
        self.addCleanup(node.bring_back, vf, moved)
        for link, _ in moved:
            if "infiniband_verbs" in link:  # as the kernel: this class is the same in every namespace
                os.makedirs(link)
                with open(os.path.join(link, "ibdev"), "w", encoding="ascii") as f:
                    f.write(
                        os.path.basename(next(x for x, _ in moved if "/infiniband/" in x)) + "\n")
        self.addCleanup(lambda: [shutil.rmtree(link, ignore_errors=True) for link, _ in moved])
        for _ in range(2):
            started = self.start(node, "pod")["main"]
            self.assertTrue(started["started"], started["message"])
        lines = [
            line for line in node.processes[-1].stderr().splitlines()
            if "some details of its VFs could not be read" in line
        ]
        self.assertEqual(len(lines), 1, node.processes[-1].stderr())
        self.assertIn(vf, lines[0])
        self.assertTrue(json.loads(files(place(started))["map.json"])["notes"])


if __name__ == "__main__":
    main()
