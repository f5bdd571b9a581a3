"""hack/compat with railmated on both sides: nothing differs; and whatever is altered is found."""
import copy
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cases  # noqa: E402  pylint: disable=wrong-import-position
import cell  # noqa: E402  pylint: disable=wrong-import-position
import compare  # noqa: E402  pylint: disable=wrong-import-position

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ["BUILD"])
SEEN = {
    "exit": "runs", "sockets": ["a_b.sock"], "resources": {
        "a/b": {
            "devices": {"0000:13:00.2": {"healthy": True, "numa": [0]}},
            "env": {"PCIDEVICE_A_B_INFO": '{"0000:13:00.2":{"generic":{}}}'},
            "nodes": {"/dev/vfio/2": "/dev/vfio/2 rw"}, "mounts": {}, "unknown id": "error"
        }
    }, "devinfo": {
        "a-b-0000:13:00.2-device.json": {
            "allocated": True, "mode": "0o444", "json": {"type": "pci"}
        }
    }
}


def can_make_cells():
    return os.geteuid() == 0 and os.path.exists("/dev/net/tun") and subprocess.run(
        ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "true"], check=False,
        capture_output=True).returncode == 0


class Compare(unittest.TestCase):
    def altered(self, alter):
        other = copy.deepcopy(SEEN)
        alter(other)
        return [path for path, _, _ in compare.differences(SEEN, other)[0]]

    def test_equal_is_equal(self):
        self.assertEqual(compare.differences(SEEN, copy.deepcopy(SEEN))[0], [])

    def test_every_kind_of_difference_is_found(self):
        r = "resources/a/b"
        for alter, path in (
            (lambda o: o.update(exit="ends with 3"), "exit"), (lambda o: o["resources"].clear(),
                                                               r), (lambda o: o["sockets"].clear(),
                                                                    "socket/a_b.sock"),
            (lambda o: o["resources"]["a/b"]["devices"]["0000:13:00.2"].update(healthy=False),
             f"{r}#devices/0000:13:00.2/healthy"),
            (lambda o: o["resources"]["a/b"]["devices"]["0000:13:00.2"].update(numa=[]),
             f"{r}#devices/0000:13:00.2/numa"),
            (lambda o: o["resources"]["a/b"]["nodes"].update({"/dev/x": "/dev/x rw"}),
             f"{r}#nodes//dev/x"),
            (lambda o: o["resources"]["a/b"]["nodes"].update({"/dev/vfio/2": "/dev/vfio/2 r"}),
             f"{r}#nodes//dev/vfio/2"), (lambda o: o["resources"]["a/b"]["env"].update(
                 PCIDEVICE_A_B_INFO='{"0000:13:00.2":{"generic":{"x":1}}}'),
                                         f"{r}#env/PCIDEVICE_A_B_INFO/0000:13:00.2/generic/x"),
            (lambda o: o["resources"]["a/b"].update({"unknown id": "OK"}), f"{r}#unknown id"),
            (lambda o: o["devinfo"]["a-b-0000:13:00.2-device.json"].update(mode="0o644"),
             "devinfo/a-b-0000:13:00.2-device.json#mode")):
            with self.subTest(path):
                self.assertIn(path, self.altered(alter))

    def test_a_rule_hides_what_it_names_and_nothing_else(self):
        rules = compare.Rules([{"path": "resources/.*#env/NEW", "theirs": None, "reason": "ours"}])
        other = copy.deepcopy(SEEN)
        other["resources"]["a/b"]["env"]["NEW"] = "1"
        self.assertEqual(compare.judge(rules, "m: c", SEEN, other)[1:], (1, []))
        self.assertEqual(len(compare.judge(rules, "m: c", other, SEEN)[2]), 1)

    def test_the_written_list_gives_reasons(self):
        for row in compare.Rules().rows:
            self.assertTrue(
                set(row) <= {"path", "case", "theirs", "ours", "reason"} and row["reason"], row)

    def test_there_are_cases_enough_and_every_machine(self):
        found = cases.by_machine()
        self.assertEqual(set(found),
                         {p.parent.name
                          for p in (BUILD / "tests/fixtures").glob("*/host.tree")})
        self.assertGreaterEqual(sum(map(len, found.values())) - len(found), 150)

    def test_answers_are_read(self):
        request = cell.allocate_request(["a", "bc"])
        self.assertEqual(request, b"\n\x07\n\x01a\n\x02bc")
        pair = b"\n\x01K\x12\x01V"
        node = b"\n\x02/c\x12\x02/h\x1a\x02rw"
        inner = b"\n" + bytes([len(pair)]) + pair + b"\x1a" + bytes([len(node)]) + node
        got = cell.allocate_response(b"\n" + bytes([len(inner)]) + inner)
        self.assertEqual((got["env"], got["nodes"]), ({"K": "V"}, {"/h": "/c rw"}))


@unittest.skipUnless(can_make_cells(), "needs root, unshare and /dev/net/tun")
class Cells(unittest.TestCase):
    def compat(self, plugin):
        return subprocess.run([
            TOP / "hack/compat", "--plugin", plugin, "--build", BUILD, "--machine", "odd-no-rdma",
            "--case", r'^selector \{"(isRdma": true|drivers": \["vfio-pci"\])\}$'
        ], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)

    def test_railmated_beside_itself_is_equal(self):
        done = self.compat(BUILD / "cmd/railmated")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(
            done.stdout,
            r"^compat: 2 configurations and machines, [1-9]\d+ comparisons: [1-9]\d+ equal, 0 listed, 0 wrong\n$"
        )

    def test_a_plugin_that_answers_otherwise_is_found(self):
        with tempfile.TemporaryDirectory() as top:
            other = pathlib.Path(top, "plugin")
            other.write_text(
                f'#!/bin/sh\nsed -i "s/true/false/" /etc/pcidp/config.json\nexec {BUILD / "cmd/railmated"} "$@"\n'
            )
            other.chmod(other.stat().st_mode | stat.S_IXUSR)
            done = self.compat(other)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("nodes//dev/infiniband/uverbs", done.stdout)

    def test_figures_of_both_are_taken(self):
        done = subprocess.run([
            TOP / "hack/compat", "--plugin", BUILD / "cmd/railmated", "--build", BUILD,
            "--figures", "--vfs", "16", "--rounds", "1", "--idle", "0"
        ], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        head, _, *rows = done.stdout.splitlines()
        self.assertIn("16 VFs", head)
        self.assertEqual(len(rows), 6)
        for row in rows:
            self.assertRegex(row, r"^\| .* \| [\d.,e-]+ \[.*\] \| [\d.,e-]+ \[.*\] \|$")


if __name__ == "__main__":
    unittest.main()
