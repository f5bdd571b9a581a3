"""What each program says of a wrong command line, of a file that is none, and of a standard output
that takes nothing."""
import os
import subprocess
import tempfile
import unittest

from program import CTL, DAEMON, ProgramTest, machine, run

CNI = os.environ["RAILMATE_CNI"]


class Usage(ProgramTest):
    def test_every_refusal_begins_with_the_programs_name(self):
        for argv, words in (((CTL, "topo", "--nonsense"),
                             "railmatectl: topo: unrecognized option '--nonsense'"),
                            ((CTL, "plan", "--vfs"),
                             "railmatectl: plan: option '--vfs' requires an argument"),
                            ((CTL, "snapshot", "--nonsense"),
                             "railmatectl: snapshot: unrecognized option"),
                            ((CTL, "topo", "here"), "railmatectl: topo takes no argument 'here'"),
                            ((CTL, "ready"),
                             "railmatectl: ready: name the file of railmated's --ready-file"),
                            ((CTL, "topology"), "railmatectl: unknown command 'topology'"),
                            ((DAEMON, "--nonsense"), "unrecognized option '--nonsense'"),
                            ((DAEMON, "--run-dir", "run"),
                             "railmated: --run-dir: 'run' is not an absolute path"),
                            ((DAEMON, "here"), "railmated: unexpected argument 'here'")):
            with self.subTest(argv[1:]):
                done = run(*argv)
                self.refused(done, 2, words)

    def test_every_command_has_help(self):
        commands = ("topo", "plan", "explain", "explain pool", "release", "status", "simulate",
                    "doctor", "verify", "cluster", "cluster status", "ready", "snapshot",
                    "snapshot unpack", "topo --json")
        for command in commands:
            with self.subTest(command):
                done = run(CTL, *command.split(), "--help")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertTrue(done.stdout.startswith("usage: railmatectl "))

    def test_a_text_that_is_no_snapshot_is_named(self):
        with tempfile.TemporaryDirectory() as top:
            path = os.path.join(top, "zeros")
            with open(path, "wb") as file:
                file.write(bytes(4096))
            self.refused(run(CTL, "snapshot", "unpack", path, os.path.join(top, "new")), 1, path,
                         "line 1", "UTF-8")
            self.assertFalse(os.path.exists(os.path.join(top, "new")))

    def test_a_standard_output_that_takes_nothing_is_an_error(self):
        root = machine("hgx-h100")
        calls = [(CTL, "--help"), (CTL, "--version"), (CTL, "topo", "--root", root),
                 (CTL, "doctor", "--list"), (CTL, "snapshot", "--root", root), (DAEMON, "--help"),
                 (DAEMON, "--version"), (DAEMON, "--check-config"), (CNI, "--help"),
                 (CNI, "--version")]
        for argv in calls:
            with self.subTest(argv), open("/dev/full", "wb") as full:
                done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("cannot write to standard output: No space left on device",
                              done.stderr)


if __name__ == "__main__":
    unittest.main()
