#!/usr/bin/python3
"""railmatectl status: what it says of a running daemon, of one that is away, of links, and its exit
status."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

from harness import GPU as GPUS
from harness import PATIENCE, VF as VFS
from harness import Case, program, until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from ledger import ledger_text

PASS, WARN, FAIL = 0, 5, 6
PORT = "sys/class/infiniband/mlx5_0/ports/1"


class Status(Case):
    def ask(self, node, *argv):
        return subprocess.run([
            program("railmatectl"), "status", "--root", node.root, "--control-socket",
            node.control_socket, "--state-dir", node.state_dir, *argv
        ], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)

    def value(self, node, code, *argv):
        done = self.ask(node, "--json", *argv)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        value = json.loads(done.stdout)
        self.assertEqual(value["verdict"], {PASS: "PASS", WARN: "WARN", FAIL: "FAIL"}[code])
        return value

    def write(self, node, path, text):
        with open(os.path.join(node.root, path), "w", encoding="utf-8") as f:
            f.write(text)

    def when_seen(self, node, daemon):
        """What was written is seen, and status says so."""
        daemon.child.send_signal(signal.SIGHUP)
        until(lambda: self.ask(node, "--no-doctor").returncode == WARN, "a WARN")
        return self.value(node, WARN, "--no-doctor")

    def test_a_node_that_is_well(self):
        node = self.node()
        kubelet, _ = node.start()
        kubelet.admit("trainer", f"main:{GPUS}=2,{VFS}=2")
        kubelet.ask("prestart trainer")
        value = self.value(node, PASS)
        version = subprocess.run([program("railmatectl"), "--version"], capture_output=True,
                                 text=True, check=True).stdout.split()[1]
        self.assertEqual((value["railmated"], value["trouble"]), (version, []))
        (pool,) = value["pools"]
        self.assertEqual((pool["resource"], pool["held"], pool["free"], pool["unhealthy"]),
                         (VFS, 2, pool["vfs"] - 2, 0))
        self.assertEqual(
            {(link["state"], link["rate_mbps"], link["wrong"])
             for link in value["links"]}, {("ACTIVE", 400000, None)})
        self.assertEqual(len(value["links"]), 8)
        self.assertEqual(
            value["placement"], {
                "pairs": {"PIX": 2, "PXB": 0, "PHB": 0, "NODE": 0, "SYS": 0}, "unknown_vfs": 0,
                "checked": 1, "best": 1
            })
        self.assertEqual((value["doctor"]["fail"], value["doctor"]["warn"]), ([], []))
        text = self.ask(node)
        self.assertEqual((text.returncode, text.stderr), (PASS, ""))
        self.assertLessEqual(len(text.stdout.splitlines()), 10)
        for line in (
                rf"PASS: node \S+, railmated {version}",
                rf"{VFS} \(binding early\): \d+ VFs: \d+ free, 2 held", "links: 8, 8 at 400 Gb/s",
                "placement: 2 pairs of GPU and VF: 2 PIX; 1 of 1 recorded choices were the best that was free"
        ):
            self.assertRegex(text.stdout, rf"(?m)^{line}$")

    def test_gpus_that_are_not_known_yet_have_no_pairs(self):
        node = self.node()
        kubelet, _ = node.start()
        kubelet.admit("trainer", f"main:{GPUS}=1,{VFS}=2")
        placement = self.value(node, PASS, "--no-doctor")["placement"]
        self.assertEqual(
            (sum(placement["pairs"].values()), placement["unknown_vfs"], placement["checked"]),
            (0, 2, 0))
        self.assertEqual(self.value(node, PASS, "--no-doctor")["pools"][0]["allocated"], 2)

    def test_pairs_are_those_of_the_gpus_that_came(self):
        """Chosen for one GPU, started with another: the class is that of the real pair, and the
        choice was not the best."""
        node = self.node()
        os.makedirs(node.state_dir)
        far = {
            "number": 1, "at_ms": 1, "resource": VFS, "namespace": "team", "pod": "p", "uid": "u",
            "container": "main", "asked": 1, "known": "predicted", "gpus": ["0000:1b:00.0"],
            "free": [["0000:18:00.0", 8]], "chosen": ["0000:18:00.1"], "pairs": [[
                "0000:1b:00.0", "0000:18:00.1", "PIX"
            ]], "checked": True, "real_gpus": ["0000:9d:00.0"], "real_cost": 4, "best_cost": 0
        }
        hold = {
            "vf": "0000:18:00.1", "resource": VFS, "namespace": "team", "pod": "p", "uid": "u",
            "container": "main", "since_ms": 1, "decision": 1
        }
        pathlib.Path(node.state_dir, "ledger.json").write_text(ledger_text([hold], [far]),
                                                               encoding="utf-8")
        value = self.value(node, FAIL, "--no-doctor")
        self.assertEqual((value["placement"]["pairs"]["SYS"], value["placement"]["best"]), (1, 0))
        self.assertIn("1 of 1 choices of VFs were not the best that was free", value["trouble"])

    def test_a_daemon_that_is_away_is_a_fail_and_the_rest_is_said(self):
        node = self.node()
        value = self.value(node, FAIL)
        self.assertEqual((value["pools"], value["railmated"], value["placement"]),
                         (None, None, None))
        self.assertIn("railmated does not run", value["trouble"][0])
        self.assertEqual(len(value["links"]), 8)
        self.assertIsNotNone(value["doctor"])
        self.assertIsNone(self.value(node, FAIL, "--no-doctor")["doctor"])

    def test_a_link_that_is_down_is_named(self):
        node = self.node()
        _, daemon = node.start()
        self.write(node, PORT + "/state", "1: DOWN\n")
        netdev = next(link["netdev"]
                      for link in self.value(node, PASS, "--no-doctor")["links"]
                      if link["rdma"] == "mlx5_0")
        self.write(node, f"sys/class/net/{netdev}/carrier", "0\n")
        value = self.when_seen(node, daemon)
        link, vfs = value["trouble"]
        self.assertEqual(link,
                         f"link 0000:18:00.0 mlx5_0 ({netdev}) is down, its RDMA port is DOWN")
        self.assertRegex(vfs, rf"^8 of \d+ VFs of {VFS} are unhealthy: ")
        self.assertEqual([link["pf"] for link in value["links"] if link["down"]], ["0000:18:00.0"])
        text = self.ask(node, "--no-doctor").stdout
        self.assertIn("links: 8, 7 at 400 Gb/s, 1 down\n", text)

    def test_a_link_that_is_slower_than_the_others_is_named(self):
        node = self.node()
        _, daemon = node.start()
        self.write(node, PORT + "/rate", "100 Gb/sec (4X EDR)\n")
        (trouble,) = self.when_seen(node, daemon)["trouble"]
        self.assertRegex(
            trouble,
            r"^link 0000:18:00.0 mlx5_0 \(\S+\) runs at 100 Gb/s, others of its kind at 400 Gb/s$")

    def test_rails_are_those_of_the_configuration_and_switches_those_of_lldp(self):
        node = self.node()
        entry = {"via": "LLDP", "chassis": [{"name": [{"value": "leaf-8"}]}],
                 "port": [{"id": [{"type": "ifname", "value": "swp1"}]}]}
        counted = self.value(node, FAIL, "--no-doctor")["links"]
        self.assertEqual([link["rail"] for link in counted], list(range(8)))
        entry["name"] = counted[0]["netdev"]
        os.makedirs(os.path.join(node.root, "run/railmate"))
        self.write(node, "run/railmate/lldp.json",
                   json.dumps({"lldp": [{"interface": [entry]}]}))
        config = node.path("config.json")
        pathlib.Path(config).write_text(json.dumps({
            "resourceList": [{"resourcePrefix": VFS.split("/")[0], "resourceName": VFS.split("/")[1],
                              "selectors": {"isRdma": True}}],
            "railmate": {"rails": {"mlx5_0": {"rail": 7, "plane": 1}, "mlx5_3": 0}}}))
        node.start(daemon=("--config-file", config))
        links = self.value(node, WARN, "--no-doctor")["links"]  # the storage NICs are in the pool
        self.assertEqual([(link["rdma"], link["rail"], link["plane"], link["switch"],
                           link["switch_port"]) for link in links if link["rail"] is not None],
                         [("mlx5_0", 7, 1, "leaf-8", "swp1"), ("mlx5_3", 0, None, None, None)])

    def test_what_makes_no_sense_is_refused(self):
        node = self.node()
        for argv, code, words in ((["here"], 2, "status takes no argument 'here'"),
                                  (["--root", "/no/such"], 1, "/no/such")):
            done = self.ask(node, *argv)
            self.assertEqual((done.returncode, done.stdout), (code, ""))
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
