"""railmatectl from its users' side: requests that are refused, files that cannot be written, output
that is one object."""
import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

from program import CTL, FIXTURES, TOP, ProgramTest, machine, run

HGX = "hgx-h100"


class Topo(ProgramTest):
    def test_json_is_one_object_and_nothing_else(self):
        topo = self.one_object(run(CTL, "topo", "--json", "--root", machine(HGX)))
        self.assertEqual([p["resource"] for p in topo["pools"]], ["rdma/vf"])
        self.assertEqual(len(topo["gpus"]), 8)
        self.assertEqual(len(topo["paths"]), 8 * (len(topo["pfs"]) + len(topo["vfs"])))

    def test_text_names_every_gpu_and_nic(self):
        done = run(CTL, "topo", "--root", machine(HGX))
        self.assertEqual(done.returncode, 0, done.stderr)
        for i in range(8):
            self.assertRegex(done.stdout, rf"(?m)^GPU{i} ")
            self.assertRegex(done.stdout, rf"(?m)^NIC{i} ")
        self.assertIn("pool rdma/vf: 64 VFs, 64 healthy", done.stdout)

    def test_wide_names_the_cards_whose_vpd_is_read(self):
        line = "NIC0   is NVIDIA ConnectX-8, serial number MT2511X00001\n"
        for name, argv, there in (("gb300-like", ["--wide"], True), ("gb300-like", [], False),
                                  (HGX, ["--wide"], False)):
            done = run(CTL, "topo", "--root", machine(name), *argv)
            self.assertEqual(line in done.stdout, there, (name, argv))
            self.assertEqual("serial number" in done.stdout, there, (name, argv))

    def test_wide_has_slots_and_the_rdma_devices_of_vfs(self):
        usual, wide = (run(CTL, "topo", "--root", machine(HGX), *args).stdout
                       for args in ((), ("--wide", )))
        self.assertLessEqual(max(map(len, usual.splitlines())), 100)
        for text in ("32 GT/s x16", "mlx5_12 … mlx5_19 (8)"):
            self.assertNotIn(text, usual)
            self.assertIn(text, wide)
        for form in ("--json", "--svg", "--nccl-xml"):
            self.refused(run(CTL, "topo", "--wide", form, "--root", machine(HGX)), 2, "--wide")

    def test_a_machine_with_nothing_is_an_answer(self):
        with tempfile.TemporaryDirectory() as empty:
            topo = self.one_object(run(CTL, "topo", "--json", "--root", empty))
            self.assertEqual((topo["gpus"], topo["pfs"], topo["vfs"], topo["paths"]),
                             ([], [], [], []))
            done = run(CTL, "topo", "--root", empty)
            self.assertEqual(done.returncode, 0)
            self.assertIn("no GPUs", done.stdout)

    def test_a_gpu_without_a_driver_is_named_from_pci_ids(self):
        with tempfile.TemporaryDirectory() as top:
            run(CTL, "snapshot", "unpack", FIXTURES / HGX / "host.tree", top)
            shutil.rmtree(f"{top}/proc/driver")
            ids = pathlib.Path(top, "usr/share/misc/pci.ids")
            ids.unlink()
            self.assertRegex(run(CTL, "topo", "--root", top).stdout, r"(?m)^GPU0 .* NVIDIA$")
            ids.write_text("10de  Maker\n\t2330  Best GPU\n", encoding="utf-8")
            self.assertRegex(
                run(CTL, "topo", "--root", top).stdout, r"(?m)^GPU0 .* Maker Best GPU$")

    def test_this_machine_is_scanned_without_complaint_about_root(self):
        self.one_object(run(CTL, "topo", "--json"))

    def test_a_root_that_is_not_there_is_named(self):
        self.refused(run(CTL, "topo", "--root", "/no/such/root"), 1, "/no/such/root")

    def test_a_refused_config_is_named(self):
        path = self.write("{")
        self.refused(run(CTL, "topo", "--root", machine(HGX), "--config", path), 3, str(path))
        self.refused(run(CTL, "topo", "--config", "/no/such/file"), 3, "/no/such/file")
        self.refused(run(CTL, "topo", "--config", "/tmp"), 3, "/tmp", "regular file")

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_a_full_disk_is_a_failure(self):
        done = run("sh", "-c", f"exec {CTL} topo --root {machine(HGX)} >/dev/full")
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)


class Simulate(ProgramTest):
    def simulate(self, *argv):
        return run(CTL, "simulate", "--root", machine(HGX), "--pods", "60", *argv)

    def test_json_has_every_policy_and_the_same_pods_for_each(self):
        day = self.one_object(self.simulate("--json"))
        self.assertEqual(
            (day["resource"], day["pods"], day["seed"], day["load_min"], day["load_max"]),
            ("rdma/vf", 60, 1, 60, 95))
        self.assertEqual(len({p["name"] for p in day["policies"]}), len(day["policies"]))
        for p in day["policies"]:
            self.assertEqual((p["pods"], p["refused"], p["pairs"]),
                             (60, 0, day["policies"][0]["pairs"]), p["name"])
            self.assertEqual(sum(p["classes"].values()), p["pairs"], p["name"])
            self.assertGreaterEqual(p["rank"], p["best_rank"], p["name"])
            if p["name"] in ("early-gpu-first", "late"):
                self.assertEqual(p["best"], p["pairs"], p["name"])

    def test_the_seed_makes_the_day(self):
        first = self.simulate()
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertEqual(self.simulate("--seed", "1").stdout, first.stdout)
        self.assertNotEqual(self.simulate("--seed", "2").stdout, first.stdout)
        self.assertNotEqual(self.simulate("--load", "30").stdout, first.stdout)

    def test_every_policy_is_in_the_manual(self):
        page = (TOP / "deploy/man/railmatectl.1").read_text(encoding="utf-8")
        for p in self.one_object(self.simulate("--json"))["policies"]:
            self.assertRegex(page, rf"(?m)^\.It Li (\S+ , )?{p['name']} ")

    def test_what_is_no_day_is_refused_by_a_sentence(self):
        for option, *words in (("--pods", "0", "--pods"), ("--pods", "many", "--pods", "many"),
                               ("--pods", "1000001", "1000000"), ("--seed", "-1", "--seed", "-1"),
                               ("--load", "0", "--load"), ("--load", "90-60", "90-60"),
                               ("--load", "60-101", "60-101"), ("--load", "60-", "60-"),
                               ("--pool", "no/pool", "no/pool", "rdma/vf")):
            self.refused(self.simulate(option, words[0]), 3, *words[1:])
        self.refused(self.simulate("more"), 2, "more")
        self.assertEqual(self.simulate("--days", "7").returncode, 2)

    def test_a_machine_that_holds_no_pod_is_refused(self):
        done = run(CTL, "simulate", "--root", machine("odd-empty"))
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("no pod fits on this machine: 0 GPUs, 0 VFs in the pool rdma/vf", done.stderr)


class Plan(ProgramTest):
    def plan(self, *argv):
        return run(CTL, "plan", "--root", machine(HGX), *argv)

    def gpus(self):
        return [
            g["pci"]
            for g in self.one_object(run(CTL, "topo", "--json", "--root", machine(HGX)))["gpus"]
        ]

    def test_a_pool_that_leaves_data_direct_alone_is_as_without(self):
        pool = {"resourceName": "vf", "resourcePrefix": "rdma", "selectors": {"isRdma": True}}
        plans = []
        for keys in ({}, {"env": {"NCCL_IB_DATA_DIRECT": "1"}}, {"profiles": ["nccl", "ucx"]},
                     {"profiles": ["none"]}, {"profiles": ["ucx"]}, {"profiles": ["nvshmem"]},
                     {"profiles": ["nccl", "ucx"], "env": {"NCCL_IB_DATA_DIRECT": "0"}},
                     {"profiles": ["ucx"], "env": {"UCX_IB_DIRECT_NIC": "on"}},
                     {"env": {"NCCL_IB_DATA_DIRECT": "0"}}, {"env": {"NCCL_IB_DATA_DIRECT": "00"}},
                     {"profiles": ["ucx"], "env": {"UCX_IB_DIRECT_NIC": "n"}},
                     {"profiles": ["nvshmem"], "env": {"NVSHMEM_DISABLE_DATA_DIRECT": "true"}},
                     {"profiles": ["mscclpp", "ofi"]}):
            config = self.write(json.dumps({"resourceList": [{**pool, "railmate": keys}]}))
            argv = ("plan", "--root", machine("gb300-like"), "--gpus", "0008:06:00.0", "--vfs",
                    "2", "--config", config)
            done = run(CTL, *argv, "--json")
            self.assertNotIn("left alone", done.stderr)
            plans.append(self.one_object(done))
            text = run(CTL, *argv).stdout
            used = len(plans) <= 8
            self.assertEqual("PXB via data direct 0008:03:00.0\n" in text, used, keys)
            self.assertIn(f"\ncost {2 if used else 6} (", text)
            topo = run(CTL, "topo", "--root", machine("gb300-like"), "--config", config).stdout
            self.assertEqual("via data direct" in topo, used, keys)
            self.assertEqual("PXB" in topo.split("\n\n")[1], used, keys)
        # One VF of each NIC of the socket, where all are equally far.
        self.assertEqual([p["chosen"] for p in plans],
                         [["0002:03:00.1", "0002:03:00.2"]] * 8 +
                         [["0000:03:00.1", "0002:03:00.1"]] * 5)
        for plan, used in zip(plans, [True] * 8 + [False] * 5):
            pairs = plan["pairs"]
            self.assertEqual([p["class"] for p in pairs], ["PXB" if used else "NODE"] * 2)
            self.assertEqual([p.get("data_direct") for p in pairs],
                             ["0008:03:00.0" if used else None] * 2)
            self.assertEqual(json.loads(plan["env"]["RAILMATE_RDMA_VF_MAP"]), pairs)

    def test_pools_that_differ_in_data_direct_are_each_as_they_are(self):
        pools = [{"resourceName": name, "resourcePrefix": "rdma",
                  "selectors": {"isRdma": True, "pfNames": pfs},
                  "railmate": {"env": {"NCCL_IB_DATA_DIRECT": value}}}
                 for name, value, pfs in (("with", "1", ["enp3s0np0", "enP2p3s0np0"]),
                                          ("without", "0", ["enP16p3s0np0", "enP18p3s0np0"]))]
        config = self.write(json.dumps({"resourceList": pools}))
        for pool, gpu, want in (("with", "0008:06:00.0", "PXB"), ("without", "0018:06:00.0",
                                                                  "NODE")):
            plan = self.one_object(
                run(CTL, "plan", "--root", machine("gb300-like"), "--config", config, "--pool",
                    f"rdma/{pool}", "--gpus", gpu, "--vfs", "1", "--json"))
            self.assertEqual([p["class"] for p in plan["pairs"]], [want])

    def test_gives_each_gpu_the_vf_behind_its_switch(self):
        for gpu in self.gpus():
            plan = self.one_object(self.plan("--json", "--gpus", gpu, "--vfs", "1"))
            self.assertEqual([p["class"] for p in plan["pairs"]], ["PIX"])
            self.assertEqual(plan["cost"], 0)
            self.assertTrue(plan["env"]["NCCL_IB_HCA"].startswith("="))
            self.assertRegex(plan["devices"][0]["host"], r"^/dev/infiniband/uverbs\d+$")

    def test_runner_up_is_another_choice_and_not_cheaper(self):
        plan = self.one_object(self.plan("--json", "--gpus", self.gpus()[0], "--vfs", "1"))
        self.assertNotEqual(plan["runner_up"]["chosen"], plan["chosen"])
        self.assertGreaterEqual(plan["runner_up"]["cost"], plan["cost"])

    def test_text_shows_pairs_cost_env_and_nodes(self):
        done = self.plan("--gpus", ",".join(self.gpus()[:2]), "--vfs", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(re.findall(r"(?m)^  GPU .* PIX$", done.stdout)), 2)
        for word in ("cost 0", "\n  NCCL_CONF_FILE=/run/railmate/nccl.conf\n", "NCCL_IB_HCA==",
                     "/dev/infiniband/uverbs", " at /run/railmate, read-only\n"):
            self.assertIn(word, done.stdout)

    def two_pools(self, **railmate):
        pools = [{
            "resourcePrefix": "rdma", "resourceName": name,
            "selectors": {"isRdma": True, "pfNames": [pf]}, "railmate": railmate
        } for name, pf in (("a", "ibp24s0"), ("b", "ibp64s0"))]
        return self.write(json.dumps({"resourceList": pools}))

    def test_a_pool_that_cannot_be_served_leaves_the_others(self):
        good = {"resourcePrefix": "rdma", "resourceName": "a", "selectors": {"isRdma": True},
                "railmate": {"env": {"NCCL_OF_NEXT_YEAR": "1", "NCCL_IB_SL": "99"}}}
        bad = [{"resourceName": "fpga",
                "deviceType": "accelerator"}, {"resourceName": "sf", "deviceType": "auxNetDevice"},
               {"resourceName": "v", "selectors": {"vdpaType": "vhost"}},
               {"resourceName": "t", "selectors": {"vendors": ["0x1"]}}]
        done = self.plan("--config", self.write(json.dumps({"resourceList": [*bad, good]})),
                         "--vfs", "1", "--json")
        plan = self.one_object(done)
        self.assertEqual(plan["env"]["NCCL_OF_NEXT_YEAR"], "1")
        self.assertNotIn("NCCL_IB_SL", plan["env"])
        for word in ("accelerator", "auxNetDevice", "vdpaType", "0x1", "NCCL_OF_NEXT_YEAR",
                     "NCCL_IB_SL"):
            self.assertIn(word, done.stderr)

    def test_a_vf_of_vfio_pci_comes_with_its_nodes(self):
        path = self.write(
            json.dumps({
                "resourceList": [{
                    "resourceName": "dpdk",
                    "selectors": {"drivers": ["vfio-pci"], "needVhostNet": True}
                }]
            }))
        plan = self.one_object(
            run(CTL, "plan", "--root", machine("odd-no-rdma"), "--config", path, "--vfs", "1",
                "--json"))
        self.assertEqual([d["host"] for d in plan["devices"]],
                         ["/dev/vfio/vfio", "/dev/vfio/2", "/dev/vhost-net", "/dev/net/tun"])
        (info,) = json.loads(plan["env"]["PCIDEVICE_INTEL_COM_DPDK_INFO"]).values()
        self.assertEqual(info["vfio"], {"dev-mount": "/dev/vfio/2", "mount": "/dev/vfio/vfio"})
        self.assertEqual(info["vhost"],
                         {"net-mount": "/dev/vhost-net", "tun-mount": "/dev/net/tun"})

    def test_what_pools_have_to_agree_on_is_in_the_file_alone(self):
        path = self.two_pools()
        plan = self.one_object(
            self.plan("--config", path, "--pool", "rdma/a", "--vfs", "1", "--json"))
        self.assertNotIn("NCCL_IB_HCA", plan["env"])
        self.assertRegex(plan["nccl_conf"]["NCCL_IB_HCA"], r"^=mlx5_\d+:1$")
        text = self.plan("--config", path, "--pool", "rdma/a", "--vfs", "1").stdout
        self.assertIn(
            "/run/railmate/nccl.conf, before the container's network is known\n  NCCL_IB_HCA==mlx5_",
            text)

    def test_late_pools_have_everything_in_the_environment(self):
        plan = self.one_object(
            self.plan("--config", self.two_pools(binding="late"), "--pool", "rdma/a", "--vfs", "1",
                      "--json"))
        self.assertEqual(plan["env"]["NCCL_IB_HCA"], plan["nccl_conf"]["NCCL_IB_HCA"])
        self.assertNotIn("NCCL_CONF_FILE", plan["env"])

    def test_notes_tell_what_is_not_as_it_was_asked_for(self):
        path = self.two_pools(env={"NCCL_IB_OOO_RQ": "1", "NCCL_IB_SL": "3"})
        plan = self.one_object(
            self.plan("--config", path, "--pool", "rdma/a", "--vfs", "3", "--json"))
        shared = [n for n in plan["notes"] if "share one port of their PF" in n]
        self.assertEqual(len(shared), 1, plan["notes"])
        self.assertEqual([n for n in plan["notes"] if n not in shared],
                         ["NCCL_IB_OOO_RQ is read from release 2.30 on; earlier ones ignore it"])
        text = self.plan("--config", path, "--pool", "rdma/a", "--vfs", "3").stdout
        self.assertEqual([line[6:] for line in text.splitlines() if line.startswith("note: ")],
                         plan["notes"])

    def test_a_pool_that_gives_no_files_has_none(self):
        plan = self.one_object(
            self.plan("--config", self.two_pools(profiles=["none"]), "--pool", "rdma/a", "--vfs",
                      "1", "--json"))
        self.assertEqual((plan["mounts"], plan["nccl_conf"]), ([], {}))
        self.assertFalse([name for name in plan["env"] if name.startswith("NCCL_")])

    def test_gpus_have_addresses_uuids_and_numbers(self):
        gpu = self.one_object(run(CTL, "topo", "--json", "--root", machine(HGX)))["gpus"][1]
        for names in (gpu["pci"], gpu["uuid"], "1"):
            plan = self.one_object(self.plan("--json", "--gpus", names, "--vfs", "1"))
            self.assertEqual([p["gpu"] for p in plan["pairs"]], [gpu["pci"]])

    def test_gpus_may_be_unknown(self):
        plan = self.one_object(self.plan("--json", "--vfs", "2"))
        self.assertEqual(plan["pairs"], [])
        self.assertEqual(len(plan["chosen"]), 2)

    def test_refuses_what_cannot_be(self):
        gpu = self.gpus()[0]
        vf = self.one_object(self.plan("--json", "--gpus", gpu, "--vfs", "1"))["chosen"][0]
        cases = [
            (["--gpus", "nonsense", "--vfs", "1"], "nonsense"),
            (["--gpus", "0000:00:00.0", "--vfs", "1"], "no GPU 0000:00:00.0"),
            (["--gpus", "99", "--vfs", "1"], "no GPU 99"),
            (["--gpus", "GPU-none", "--vfs", "1"], "no GPU GPU-none"),
            (["--gpus", "one", "--vfs", "1"], "'one' is not a PCI address"),
            (["--gpus", f"{gpu},{gpu}", "--vfs", "1"], "twice"),
            (["--gpus", f"{gpu},", "--vfs", "1"], "empty item"),
            (["--gpus", gpu, "--vfs", "0"], "--vfs"),
            (["--gpus", gpu, "--vfs", "-1"], "--vfs"),
            (["--gpus", gpu, "--vfs", "65"], "65 VFs asked for, 64"),
            (["--gpus", gpu, "--vfs", "1", "--pool", "no/such"], "no/such"),
            (["--gpus", gpu, "--vfs", "1", "--free", "0000:ff:00.0"], "0000:ff:00.0"),
            (["--gpus", gpu, "--vfs", "2", "--free", vf], "2 VFs asked for, 1"),
            (["--gpus", gpu, "--vfs", "1", "--must", "0000:ff:00.0"], "0000:ff:00.0"),
        ]
        for argv, words in cases:
            with self.subTest(argv=argv):
                self.refused(self.plan(*argv), 3, words)

    def test_must_is_honoured_and_has_to_be_free(self):
        topo = self.one_object(run(CTL, "topo", "--json", "--root", machine(HGX)))
        far = topo["vfs"][-1]["pci"]
        plan = self.one_object(
            self.plan("--json", "--gpus",
                      self.gpus()[0], "--vfs", "2", "--must", far))
        self.assertIn(far, plan["chosen"])
        near = topo["vfs"][0]["pci"]
        self.refused(
            self.plan("--gpus",
                      self.gpus()[0], "--vfs", "1", "--free", near, "--must", far), 3, "not free")

    def test_several_pools_need_a_name(self):
        path = self.write(
            '{"resourceList": [{"resourceName": "a", "selectors": {"isRdma": true, "pfNames": ["ibp24s0"]}},'
            '{"resourceName": "b", "selectors": {"isRdma": true, "pfNames": ["ibp64s0"]}}]}')
        self.refused(self.plan("--config", path, "--vfs", "1"), 3, "intel.com/a, intel.com/b")
        plan = self.one_object(
            self.plan("--config", path, "--json", "--vfs", "1", "--pool", "intel.com/b"))
        self.assertEqual(plan["resource"], "intel.com/b")


class Snapshot(ProgramTest):
    def test_unpack_and_capture_is_the_same_text(self):
        text = run(CTL, "snapshot", "--root", machine(HGX))
        self.assertEqual(text.returncode, 0, text.stderr)
        with tempfile.TemporaryDirectory() as top:
            tree = self.write(text.stdout, "host.tree")
            self.assertEqual(run(CTL, "snapshot", "unpack", tree, top).returncode, 0)
            again = run(CTL, "snapshot", "--root", top)
            self.assertEqual(again.stdout, text.stdout)
            self.assertEqual(run(CTL, "topo", "--json", "--root", top).stdout,
                             run(CTL, "topo", "--json", "--root", machine(HGX)).stdout)

    def test_scrub_leaves_no_uuid_and_keeps_the_topology(self):
        text = run(CTL, "snapshot", "--root", machine(HGX), "--scrub").stdout
        before = self.one_object(run(CTL, "topo", "--json", "--root", machine(HGX)))
        for gpu in before["gpus"]:
            self.assertNotIn(gpu["uuid"], text)
        with tempfile.TemporaryDirectory() as top:
            run(CTL, "snapshot", "unpack", self.write(text, "host.tree"), top)
            after = self.one_object(run(CTL, "topo", "--json", "--root", top))
            self.assertEqual(after["paths"], before["paths"])
            self.assertEqual(len({g["uuid"] for g in after["gpus"]}), 8)

    def test_refuses_a_tree_that_leaves_its_directory(self):
        for line in ("f ../x = 1\n", "f /etc/x = 1\n", "l a -> /tmp\nf a/x = 1\n", "nonsense\n"):
            with tempfile.TemporaryDirectory() as top, self.subTest(line=line):
                done = run(CTL, "snapshot", "unpack", self.write(line, "host.tree"), top)
                self.refused(done, 1, "line")
                self.assertEqual(list(pathlib.Path(top).iterdir()), [])

    def test_unpack_makes_the_directory_and_takes_it_back_when_it_refuses(self):
        with tempfile.TemporaryDirectory() as top:
            self.refused(
                run(CTL, "snapshot", "unpack", self.write("nonsense\n", "host.tree"), f"{top}/m"),
                1, "line")
            self.assertEqual(os.listdir(top), [])
            self.refused(run(CTL, "snapshot", "unpack", self.write("", "host.tree"), f"{top}/a/b"),
                         1, f"{top}/a/b")
            good = FIXTURES / HGX / "host.tree"
            self.assertEqual(run(CTL, "snapshot", "unpack", good, f"{top}/m").returncode, 0)
            self.refused(run(CTL, "snapshot", "unpack", good, f"{top}/m"), 1, "not empty")

    def test_unpack_takes_no_option_of_capture(self):
        self.refused(run(CTL, "snapshot", "unpack", "--scrub", "a", "b"), 2, "takes no option")

    def test_names_the_file_it_cannot_write(self):
        done = run(CTL, "snapshot", "--root", machine(HGX), "-o", "/no/such/dir/x")
        self.refused(done, 1, "/no/such/dir/x")


@unittest.skipIf("RAILMATE_EMULATED" in os.environ, "what lies beside it is what lies beside qemu")
class Probe(ProgramTest):
    """The program is not the machine's: it lies beside a copy of railmatectl."""

    def setUp(self):
        top = tempfile.TemporaryDirectory(prefix="railmate-cli-")
        self.addCleanup(top.cleanup)
        self.top = pathlib.Path(top.name)
        self.ctl = self.top / "railmatectl"
        shutil.copy(CTL, self.ctl)

    def store(self):
        program = self.top / "railmate-probe"
        program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 3\n')
        program.chmod(0o755)

    def test_its_options_and_its_exit_status_are_those_of_the_program(self):
        self.store()
        done = run(self.ctl, "probe", "--map", "/tmp", "--json", "--seconds", "2")
        self.assertEqual((done.returncode, done.stdout.split(), done.stderr),
                         (3, ["--map", "/tmp", "--json", "--seconds", "2"], ""))

    def test_what_a_process_was_told_lies_in_its_own_root(self):
        self.store()
        for argv, words in ((["--pid", "77"], ["--map=/proc/77/root/run/railmate", "--pid", "77"]),
                            (["--pid=77"], ["--map=/proc/77/root/run/railmate", "--pid=77"]),
                            (["--pid", "7/.."], ["--pid", "7/.."]),
                            (["--pid", "77", "--map", "x"], ["--pid", "77", "--map", "x"])):
            self.assertEqual(run(self.ctl, "probe", *argv).stdout.split(), words)

    def test_elsewhere_it_says_where_it_can_run(self):
        self.store()
        self.refused(run(self.ctl, "probe", "--json"), 4, "kubectl railmate probe POD", "--pid PID")

    def test_without_the_program_it_says_so(self):
        self.refused(run(self.ctl, "probe", "--map", "/tmp"), 4,
                     f"cannot run {self.top}/railmate-probe: No such file or directory")


class CommandLine(ProgramTest):
    def test_wrong_command_lines_exit_2(self):
        for argv in ([], ["nonsense"], ["topo", "extra"], ["plan"], ["topo", "--nonsense"],
                     ["snapshot", "unpack"], ["plan", "--vfs"]):
            with self.subTest(argv=argv):
                done = run(CTL, *argv)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertNotEqual(done.stderr, "")

    def test_help_and_version_go_to_standard_output(self):
        self.assertIn("usage: railmatectl", run(CTL, "--help").stdout)
        self.assertRegex(run(CTL, "--version").stdout, r"^railmatectl \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main()
