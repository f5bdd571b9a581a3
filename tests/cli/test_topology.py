"""railmatectl topo --nccl-xml and --topology-hints from their users' side."""
import json
import unittest

from program import CTL, DAEMON, ProgramTest, machine, run

HGX, AZURE, MI300X = "hgx-h100", "azure-nd-h100-v5", "mi300x-baremetal"


def group(gpu, nic, **more):
    return {"gpus": [gpu], "nics": [nic], **more}


class NcclXml(ProgramTest):
    def xml(self, name, *args):
        done = run(CTL, "topo", "--root", machine(name), "--nccl-xml", *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_the_file_is_all_that_is_printed(self):
        done = self.xml(HGX)
        self.assertTrue(done.stdout.startswith('<system version="1">\n'))
        self.assertTrue(done.stdout.endswith("</system>\n"))
        self.assertIn(
            '"auto" would not use this file: NCCL finds everything of this node by itself',
            done.stderr)

    def test_rccls_has_another_version(self):
        one, two = self.xml(MI300X), self.xml(MI300X, "--rccl")
        self.assertTrue(two.stdout.startswith('<system version="2">\n'))
        self.assertEqual(one.stdout.splitlines()[1:], two.stdout.splitlines()[1:])
        self.assertIn('class="0x120000"', two.stdout)

    def test_the_reason_is_said(self):
        self.assertIn(
            '"auto" would use this file: this virtual machine hides its PCIe switches, and Azure ND H100 v5 describes them',
            self.xml(AZURE).stderr)

    def test_a_wrong_command_line_is_refused(self):
        self.refused(run(CTL, "topo", "--rccl", "--root", machine(HGX)), 2, "--nccl-xml")
        self.refused(run(CTL, "topo", "--json", "--nccl-xml", "--root", machine(HGX)), 2,
                     "one at a time")

    def test_a_machine_without_gpus_and_nics_has_no_file(self):
        done = run(CTL, "topo", "--nccl-xml", "--root", machine("odd-empty"))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("neither a GPU nor an RDMA NIC", done.stderr)


class Hints(ProgramTest):
    def hints(self, value):
        return self.write(value if isinstance(value, str) else json.dumps(value), "hints.json")

    def topo(self, name, hints):
        return run(CTL, "topo", "--json", "--root", machine(name), "--topology-hints",
                   self.hints(hints))

    def test_hints_win_over_the_known_instance_type(self):
        topo = self.one_object(
            self.topo(AZURE, {"groups": [group("0001:00:00.0", "0104:00:00.0", numa=1)]}))
        classes = {(p["gpu"], p["nic"]): p["class"] for p in topo["paths"]}
        self.assertEqual(classes["0001:00:00.0", "0104:00:00.0"], "PIX")
        self.assertEqual(classes["0001:00:00.0", "0101:00:00.0"], "SYS")
        self.assertTrue(topo["hints"].endswith("/hints.json"), topo["hints"])

    def test_the_choice_follows_the_hints(self):
        path = self.hints({"groups": [group("0001:00:00.0", "0104:00:00.0")]})
        plan = self.one_object(
            run(CTL, "plan", "--root", machine(AZURE), "--json", "--vfs", "1", "--gpus",
                "0001:00:00.0", "--topology-hints", path))
        self.assertEqual((plan["chosen"], plan["cost"]), (["0104:00:00.0"], 0))
        self.assertEqual(plan["env"]["NCCL_TOPO_FILE"], "/run/railmate/topology.xml")

    def test_the_operator_decides_on_the_file(self):
        def plan(name, **railmate):
            path = self.write(
                json.dumps({
                    "resourceList": [{
                        "resourcePrefix": "rdma", "resourceName": "vf",
                        "selectors": {"isRdma": True}, "railmate": railmate
                    }]
                }))
            return self.one_object(
                run(CTL, "plan", "--root", machine(name), "--config", path, "--json", "--vfs",
                    "1"))["env"]

        self.assertNotIn("NCCL_TOPO_FILE", plan(AZURE, topologyFile="never"))
        self.assertNotIn("NCCL_TOPO_FILE", plan(HGX))
        self.assertEqual(
            plan(HGX, topologyFile="always")["NCCL_TOPO_FILE"], "/run/railmate/topology.xml")
        self.assertEqual(plan(HGX, topologyFile="always", profiles=["rccl"])["NCCL_TOPO_FILE"],
                         "/run/railmate/topology-rccl.xml")

    def test_the_file_has_the_groups_of_the_hints(self):
        path = self.hints({
            "groups": [group("0001:00:00.0", "0104:00:00.0", numa=1)], "linkSpeed": 16,
            "linkWidth": 8
        })
        done = run(CTL, "topo", "--nccl-xml", "--root", machine(AZURE), "--topology-hints", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("ffff:ff:"), 1)
        self.assertIn(
            '<pci busid="ffff:ff:01.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="8">',
            done.stdout)

    def test_an_address_that_is_not_there_is_a_note(self):
        done = self.topo(AZURE, {"groups": [group("0001:00:00.0", "0999:00:00.0")]})
        self.assertEqual(done.returncode, 0)
        self.assertIn("0999:00:00.0 is not on this machine", done.stderr)

    def test_hints_for_a_machine_that_shows_its_switches_are_a_note(self):
        done = self.topo(HGX, {"groups": [group("0000:1b:00.0", "0000:40:00.0")]})
        self.assertEqual(done.returncode, 0)
        self.assertIn("does not hide its PCIe switches", done.stderr)
        self.assertIsNone(json.loads(done.stdout)["hints"])

    def test_a_wrong_file_is_refused_with_its_line(self):
        twice = '{"groups": [\n{"gpus": ["0001:00:00.0"],\n"nics": ["0001:00:00.0"]}]}'
        path = self.hints(twice)
        for argv in ((CTL, "topo", "--root", machine(AZURE)), (CTL, "plan", "--vfs", "1", "--root",
                                                               machine(AZURE)),
                     (CTL, "simulate", "--root", machine(AZURE))):
            self.refused(run(*argv, "--topology-hints", path), 3, f"{path}:3: ", "line 2 already")
        done = run(DAEMON, "--check-config", "--topology-hints", path)
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn(f"{path}:3: ", done.stderr)
        self.refused(run(CTL, "topo", "--topology-hints", "/no/such/file"), 3, "/no/such/file")

    def test_an_unknown_key_is_a_warning(self):
        done = self.topo(
            AZURE, '{"groups": [{"gpus": ["0001:00:00.0"], "nics": ["0101:00:00.0"], "node": 1}]}')
        self.assertEqual(done.returncode, 0)
        self.assertIn("unknown key 'node'", done.stderr)


if __name__ == "__main__":
    unittest.main()
