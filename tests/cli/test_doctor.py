"""railmatectl doctor from its users' side: verdicts and exit statuses, the manifests, what it
refuses, machines that rot."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

import yaml

from program import CTL, FIXTURES, TOP, ProgramTest, machine, run

SOUND, UNWELL, VIRTUAL, AMD = "hgx-h100", "odd-unwell", "azure-nd-h100-v5", "mi300x-baremetal"
PASS, WARN, FAIL, UNKNOWN = 0, 5, 6, 7
GPU = "sys/bus/pci/devices/0000:1b:00.0"
PORT = "sys/bus/pci/devices/0000:17:02.0"


def doctor(root, *args):
    return run(CTL, "doctor", "--root", root, *args)


def checks():
    return [line.split()[0] for line in run(CTL, "doctor", "--list").stdout.splitlines()]


class DoctorTest(ProgramTest):
    def copy(self, name):
        """A machine of one's own, to spoil."""
        top = tempfile.mkdtemp(prefix="railmate-cli-")
        self.addCleanup(shutil.rmtree, top, True)
        self.assertEqual(
            run(CTL, "snapshot", "unpack", FIXTURES / name / "host.tree", top).returncode, 0)
        return pathlib.Path(top)

    def check(self, root, name, verdict, *words):
        """One check alone: its verdict, its exit status, and words of its findings."""
        done = doctor(root, "--only", name, "--json")
        report = json.loads(done.stdout)
        self.assertEqual([c["id"] for c in report["checks"]], [name])
        self.assertEqual(
            (report["checks"][0]["verdict"], done.returncode),
            ({PASS: "PASS", WARN: "WARN", FAIL: "FAIL", UNKNOWN: "UNKNOWN"}[verdict], verdict),
            done.stdout)
        text = " ".join(f["finding"] for f in report["checks"][0]["findings"])
        for word in words:
            self.assertIn(word, text)
        return report["checks"][0]["findings"]


class Containers(DoctorTest):
    def verdicts(self, command):
        """As a kubelet's container that has /sys, of a machine of ours, and no verbs nodes."""
        done = run("unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c",
                   f'mount --bind "$1/sys" /sys || exit 99; {command}', "-", machine(SOUND), CTL,
                   env={**os.environ, "KUBERNETES_SERVICE_HOST": "10.0.0.1"})
        if done.returncode == 99 or "unshare failed" in done.stderr:
            self.skipTest("no mounts here: " + done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["live"], report["container"]), (True, True))
        return {c["id"]: c["verdict"] for c in report["checks"]}

    @unittest.skipUnless(os.geteuid() == 0 and "RAILMATE_EMULATED" not in os.environ,
                         "makes a mount, and is the first process")
    def test_that_of_a_job_is_judged_and_railmates_own_is_not(self):
        job = self.verdicts('"$2" doctor --json; exit $?')
        self.assertEqual((job["uverbs"], job["port"], job["pkey"]), ("FAIL", None, None))
        self.assertIsNotNone(job["memlock"])
        own = self.verdicts('exec "$2" doctor --json')  # the first process
        self.assertEqual((own["uverbs"], own["port"], own["pkey"]), ("PASS", "PASS", "PASS"))
        self.assertEqual((own["memlock"], own["shm"]), (None, None))
        self.assertNotIn("FAIL", own.values())


class Verdicts(DoctorTest):
    def test_the_exit_status_is_the_worst_verdict(self):
        self.assertEqual(doctor(machine(UNWELL)).returncode, FAIL)
        self.assertEqual(doctor(machine(UNWELL), "--only", "path,link").returncode, WARN)
        self.assertEqual(doctor(machine(UNWELL), "--only", "storage").returncode, PASS)
        self.assertEqual(doctor(machine(VIRTUAL), "--only", "path,acs").returncode, UNKNOWN)

    def test_a_sound_machine_passes_everything_that_files_can_tell(self):
        report = json.loads(doctor(machine(SOUND), "--json").stdout)
        self.assertEqual({c["verdict"]
                          for c in report["checks"]} - {"PASS", "UNKNOWN", None}, set())
        done = doctor(
            machine(SOUND), "--only",
            "driver,vfs,path,numa,link,iommu,acs,relaxed-ordering,payload,gpudirect,storage,boot-args"
        )
        self.assertEqual(done.returncode, PASS, done.stdout)

    def test_a_redirecting_bridge_between_gpu_and_nic_is_named(self):
        found = self.check(machine(UNWELL), "acs", WARN, "0000:17:01.0", "0000:17:00.0",
                           "SV RR CR UF", "PIX")
        self.assertEqual({f["subject"] for f in found}, {"0000:17:01.0", "0000:17:00.0"})
        for f in found:
            self.assertEqual(f["kernel_arg"], "pci=disable_acs_redir=" + f["subject"])
            self.assertEqual(set(f["fix"]), {"grub", "openshift", "talos"})

    def test_in_a_virtual_machine_hidden_switches_are_unknown(self):
        self.check(machine(VIRTUAL), "acs", UNKNOWN, "does not show the switches")
        self.check(machine("vm-igb-hwlike"), "acs", UNKNOWN, "the host's are hidden")

    def test_each_vfs_driver_counts(self):
        self.check(machine(UNWELL), "driver", FAIL, "VF 0000:18:00.2 is bound to vfio-pci",
                   "VF 0000:18:00.3 has no driver")

    def test_amd_machines_are_asked_what_rccl_asks(self):
        self.check(machine(AMD), "rccl-host", WARN, "iommu=pt", "numa_balancing=1")
        self.check(machine(AMD), "gpudirect-amd", PASS)
        self.assertIsNone(
            json.loads(doctor(machine(AMD), "--json", "--only",
                              "gpudirect").stdout)["checks"][0]["verdict"])

    def test_text_has_the_verdict_first_the_worst_next_and_every_check_once(self):
        text = doctor(machine(UNWELL)).stdout
        self.assertTrue(text.startswith("verdict: FAIL\n  FAIL:    driver\n"))
        order = [w for w in re.findall(r"(?m)^(FAIL|WARN|UNKNOWN|PASS) ", text)]
        self.assertEqual(order, sorted(order, key=["FAIL", "WARN", "UNKNOWN", "PASS"].index))
        self.assertIn("  fix on Ubuntu, RHEL: ", text)
        head = text.split("\n\n")[0]
        for name in checks():
            self.assertRegex(head, rf"[ \n]{name}(,|$|\n)")

    def test_this_machine_is_read_without_harm(self):
        report = json.loads(run(CTL, "doctor", "--json").stdout)
        self.assertIs(report["live"], True)
        self.assertIn(report["container"], (True, False, None))


class Rot(DoctorTest):
    """What vanishes or makes no sense is unknown or a finding, never a PASS, a crash or a guess."""

    def rewrite(self, root, path, data):
        (root / path).unlink()
        (root / path).write_bytes(data)

    def test_configuration_space_of_any_length_is_never_off(self):
        root = self.copy(UNWELL)
        path = "sys/bus/pci/devices/0000:17:01.0/config"
        whole = (root / path).read_bytes()
        for length in (0, 1, 63, 64, 65, 255, 256, 257, 259, 260, 263):
            self.rewrite(root, path, whole[:length])
            found = self.check(root, "acs", WARN)
            self.assertEqual([f["verdict"] for f in found if f["subject"] == "0000:17:01.0"],
                             ["UNKNOWN"], length)
        (root / path).unlink()
        self.check(root, "acs", WARN, "cannot be read")
        os.mkdir(root / path)
        self.check(root, "acs", WARN, "cannot be read")

    def test_configuration_space_full_of_noise_ends(self):
        root = self.copy(UNWELL)
        for fill in (b"\x00", b"\xff", b"\x10", b"\x0d\x00\x01\x10", bytes(range(256))):
            for port in ("0000:17:00.0", "0000:17:01.0", "0000:16:00.0"):
                self.rewrite(root, f"sys/bus/pci/devices/{port}/config", (fill * 4096)[:4096])
            done = doctor(root, "--only", "acs,payload,relaxed-ordering")
            self.assertIn(done.returncode, (WARN, UNKNOWN), done.stderr)
            self.assertNotIn("PASS acs", done.stdout)

    def test_a_group_type_that_says_nonsense_is_unknown(self):
        root = self.copy(SOUND)
        kind = (root / GPU / "iommu_group").resolve() / "type"
        for value in (b"", b"identity or so\n", b"\xff\xfe\n", b"x" * 5000):
            kind.write_bytes(value)
            self.check(root, "iommu", UNKNOWN, "0000:1b:00.0")
        kind.write_text("DMA-FQ\n", encoding="ascii")
        self.check(root, "iommu", WARN, "although the command line asks")

    def test_the_command_line_may_be_anything(self):
        root = self.copy(SOUND)
        for value in (b"", b'"', b"pci=\x00pci=noats", b"a" * 20000, b"pci=,,,= iommu", b"\xff"):
            (root / "proc/cmdline").write_bytes(value)
            self.assertIn(doctor(root, "--only", "boot-args,iommu").returncode, (PASS, UNKNOWN))
        (root / "proc/cmdline").unlink()
        self.check(root, "boot-args", UNKNOWN)

    def test_without_modules_to_look_at_gpudirect_is_unknown(self):
        root = self.copy(SOUND)
        shutil.rmtree(root / "sys/module")
        (root / "proc/driver/nvidia/version").unlink()
        self.check(root, "gpudirect", UNKNOWN)
        self.check(root, "storage", UNKNOWN)
        (root / "sys/module").mkdir()
        (root / "proc/driver/nvidia/version").write_text(
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module", encoding="ascii")
        self.check(root, "gpudirect", WARN)

    def test_a_machine_of_which_half_is_gone_is_still_told(self):
        root = self.copy(SOUND)
        shutil.rmtree((root / PORT).resolve())
        done = doctor(root)
        self.assertIn(done.returncode, (WARN, FAIL, UNKNOWN), done.stderr)
        self.assertIn("verdict:", done.stdout)

    def test_an_empty_folder_has_no_rdma_device(self):
        with tempfile.TemporaryDirectory() as empty:
            self.check(empty, "vfs", FAIL, "No RDMA device")
            self.assertEqual(doctor(empty, "--only", "boot-args").returncode, UNKNOWN)


class Manifest(DoctorTest):
    ARGS = ["iommu=pt", 'pci="disable_acs_redir=0000:17:01.0;0000:17:00.0"']

    def manifest(self, name, platform, *args):
        done = doctor(machine(name), "--fix-manifest", platform, *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_openshift_takes_a_machineconfig(self):
        config = yaml.safe_load(self.manifest(UNWELL, "openshift"))
        self.assertEqual((config["apiVersion"], config["kind"]),
                         ("machineconfiguration.openshift.io/v1", "MachineConfig"))
        self.assertEqual(config["metadata"]["labels"],
                         {"machineconfiguration.openshift.io/role": "worker"})
        self.assertRegex(config["metadata"]["name"], r"^99-[a-z0-9-]+$")
        self.assertEqual(config["spec"]["kernelArguments"], self.ARGS)
        self.assertEqual(config["spec"]["config"]["ignition"]["version"], "3.2.0")

    def test_openshift_takes_the_role_of_its_pool(self):
        config = yaml.safe_load(self.manifest(UNWELL, "openshift", "--role", "gpu-h100"))
        self.assertEqual(
            config["metadata"], {
                "name": "99-gpu-h100-railmate",
                "labels": {"machineconfiguration.openshift.io/role": "gpu-h100"}
            })

    def test_a_module_that_is_missing_is_loaded_at_boot(self):
        root = self.copy(SOUND)
        shutil.rmtree((root / "sys/class/misc/rdma_cm").resolve())
        args = ["--root", root, "--only", "modules", "--fix-manifest"]
        config = yaml.safe_load(run(CTL, "doctor", *args, "openshift").stdout)["spec"]
        self.assertEqual([(f["path"], f["contents"]["source"])
                          for f in config["config"]["storage"]["files"]],
                         [("/etc/modules-load.d/railmate.conf", "data:,rdma_ucm%0A")])
        self.assertNotIn("kernelArguments", config)
        self.assertEqual(yaml.safe_load(run(CTL, "doctor", *args, "talos").stdout),
                         {"machine": {"kernel": {"modules": [{"name": "rdma_ucm"}]}}})
        shell = re.search(r"(?m)^# +(printf .*) > /etc/modules-load.d/railmate.conf$",
                          run(CTL, "doctor", *args, "grub").stdout).group(1)
        self.assertEqual(
            subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout,
            "rdma_ucm\n")

    def test_peer_memory_is_loaded_at_boot_where_it_can_be(self):
        """The closed driver; not on OpenShift, where the GPU operator's ClusterPolicy loads it, and
        not where the RDMA core has no peer memory."""
        root = self.copy(SOUND)
        version = root / "proc/driver/nvidia/version"
        version.write_text(version.read_text().replace("Open Kernel Module", "Kernel Module"))
        shutil.rmtree(root / "sys/module/nvidia_peermem")
        args = ["--root", root, "--only", "gpudirect", "--fix-manifest"]
        self.assertEqual(yaml.safe_load(run(CTL, "doctor", *args, "talos").stdout),
                         {"machine": {"kernel": {"modules": [{"name": "nvidia_peermem"}]}}})
        self.assertIn("nvidia_peermem > /etc/modules-load.d/", run(CTL, "doctor", *args, "grub").stdout)
        on_openshift = run(CTL, "doctor", *args, "openshift")
        self.assertEqual((on_openshift.returncode, on_openshift.stdout), (0, ""))
        symbols = root / "proc/kallsyms"
        text = "".join(line for line in (symbols.read_text() if symbols.exists() else "").splitlines(True)
                       if "peer_memory" not in line)
        symbols.write_text(text + "0000000000000000 T ib_register_client\t[ib_core]\n")
        self.assertEqual(run(CTL, "doctor", *args, "talos").stdout, "")

    def test_talos_takes_a_patch(self):
        self.assertEqual(yaml.safe_load(self.manifest(UNWELL, "talos")),
                         {"machine": {"install": {"extraKernelArgs": self.ARGS},
                                      "kernel": {"modules": [{"name": "nvidia_peermem"}]}}})

    def test_grub_takes_a_file_that_a_shell_reads(self):
        text = self.manifest(UNWELL, "grub")
        shell = "GRUB_CMDLINE_LINUX=quiet\n" + text + 'printf %s "$GRUB_CMDLINE_LINUX"'
        value = subprocess.run(["sh", "-eu", "-c", shell], capture_output=True, text=True,
                               check=True).stdout
        self.assertEqual(value, "quiet " + " ".join(self.ARGS))
        # What GRUB's own language, which has a shell's quotes and ends commands by ';', makes of
        # it.
        self.assertEqual(shlex.split(value)[1:], [a.replace('"', "") for a in self.ARGS])
        grubby = re.search(r"(?m)^# +grubby (.*)$", text).group(1)
        self.assertEqual(shlex.split(grubby),
                         ["--update-kernel=ALL", "--args=" + " ".join(self.ARGS)])

    def test_amd_gets_what_rccl_asks_for(self):
        patch = yaml.safe_load(self.manifest(AMD, "talos"))
        self.assertEqual(patch["machine"]["install"]["extraKernelArgs"],
                         ["iommu=pt", "numa_balancing=disable"])

    def test_only_limits_it(self):
        patch = yaml.safe_load(self.manifest(UNWELL, "talos", "--only", "iommu"))
        self.assertEqual(patch["machine"]["install"]["extraKernelArgs"], ["iommu=pt"])

    def test_nothing_to_change_is_nothing_to_apply(self):
        for platform in ("grub", "openshift", "talos"):
            done = doctor(machine(SOUND), "--fix-manifest", platform, "--only", "iommu,acs")
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            self.assertIn("no finding can be fixed", done.stderr)

    def test_what_is_unknown_is_not_in_it_and_said(self):
        done = doctor(machine(VIRTUAL), "--fix-manifest", "grub")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("acs is unknown", done.stderr)

    def test_what_could_not_be_in_it_is_not_missed(self):
        done = doctor(machine(UNWELL), "--fix-manifest", "grub")
        self.assertEqual(done.returncode, 0)
        self.assertIn("iommu=pt", done.stdout)
        self.assertEqual(done.stderr, "")


class CommandLine(DoctorTest):
    def test_every_check_is_listed_once(self):
        self.assertGreater(len(checks()), 20)
        self.assertEqual(len(set(checks())), len(checks()))

    def test_every_check_is_in_the_manual(self):
        manual = (TOP / "deploy/man/railmatectl.1").read_text(encoding="utf-8")
        section = manual.split(".Sh DOCTOR\n")[1].split("\n.Sh ")[0]
        self.assertEqual(re.findall(r"(?m)^\.It Li ([a-z0-9-]+)", section), checks())

    def test_the_documents_show_what_it_prints(self):
        page = (TOP / "docs/troubleshooting.md").read_text(encoding="utf-8")
        args, shown = re.search(r"(?ms)^```\n# railmatectl doctor (.*?)\n(.*?)^```$", page).groups()
        self.assertEqual(doctor(machine(UNWELL), *args.split()).stdout, shown)

    def test_what_makes_no_sense_is_refused(self):
        for args, words in (
            (["--only", "acs,magic"], ["magic", "relaxed-ordering"]),
            (["--only", ""], ["empty"]),
            (["--fix-manifest", "lilo"], ["lilo", "openshift"]),
            (["--fix-manifest", "grub", "--json"], ["--json"]),
            (["--role", "gpu"], ["--role", "openshift"]),
            (["--fix-manifest", "talos", "--role", "gpu"], ["--role", "openshift"]),
            (["--fix-manifest", "openshift", "--role", "GPU nodes"], ["--role", "GPU nodes"]),
            (["--list", "--only", "acs"], ["--only"]),
            (["--list", "--json"], ["--json"]),
            (["acs"], ["acs"]),
        ):
            with self.subTest(args=args):
                self.refused(doctor(machine(SOUND), *args), 2, *words)
        self.refused(doctor("/no/such/root"), 1, "/no/such/root")
        self.refused(doctor(machine(SOUND), "--topology-hints", self.write("{", "hints.json")), 3,
                     "hints.json")
        self.refused(doctor(machine(SOUND), "--config", self.write("{", "odd.json")), 3, "odd.json")

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_a_full_disk_is_a_failure_and_no_verdict(self):
        done = run("sh", "-c", f"exec {CTL} doctor --root {machine(SOUND)} >/dev/full")
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)


if __name__ == "__main__":
    unittest.main()
