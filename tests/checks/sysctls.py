"""Beds beside each other put the machine's sysctls back: tests/e2e/kubelet/machine.py."""
import pathlib
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/e2e/kubelet"))
import machine  # noqa: E402 (the path comes first)

NAME = "kernel/panic"


class Sysctls(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="railmate-sysctls-")
        self.addCleanup(folder.cleanup)
        machine.PROC = pathlib.Path(folder.name)
        machine.NOTED = f"{folder.name}/noted"
        self.sysctl = machine.PROC / NAME
        self.sysctl.parent.mkdir()
        self.sysctl.write_text("1\n")

    def test_one_bed(self):
        with machine.kept_sysctls():
            self.sysctl.write_text("10\n")
        self.assertEqual(self.sysctl.read_text(), "1\n")

    def test_the_last_of_two_puts_back_what_the_first_has_found(self):
        first, second = machine.kept_sysctls(), machine.kept_sysctls()
        with first:
            self.sysctl.write_text("10\n")
            second.__enter__()
        self.assertEqual(self.sysctl.read_text(), "10\n")
        second.__exit__(None, None, None)
        self.assertEqual(self.sysctl.read_text(), "1\n")

    def test_what_a_killed_bed_has_noted_counts(self):
        pathlib.Path(machine.NOTED).write_text(f'{{"{NAME}": "1\\n"}}')
        self.sysctl.write_text("10\n")
        with machine.kept_sysctls():
            pass
        self.assertEqual(self.sysctl.read_text(), "1\n")


if __name__ == "__main__":
    unittest.main()
