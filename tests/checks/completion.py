#!/usr/bin/python3
"""deploy/completion: what hack/completion makes of the programs' --help, and what a shell makes of
it.

    completion.py BUILD_DIR
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = None


class Completion(unittest.TestCase):
    def bash(self, *words, folder="/"):
        """What <Tab> offers after these."""
        program = words[0]
        line = " ".join(f"'{word}'" for word in words)
        script = (
            f". {TOP}/deploy/completion/{program}.bash; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; "
            f'_{program}; printf "%s\\n" "${{COMPREPLY[@]}}"')
        done = subprocess.run(["bash", "--norc", "-eu", "-c", script], capture_output=True,
                              text=True, timeout=60, cwd=folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return set(done.stdout.split())

    def test_the_files_are_what_the_programs_say(self):
        done = subprocess.run([TOP / "hack/completion", "--check", BUILD], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_every_flag_of_railmated_is_offered(self):
        said = subprocess.run([pathlib.Path(BUILD) / "cmd/railmated", "--help"],
                              capture_output=True, text=True, timeout=60).stdout
        flags = set(re.findall(r"^  (--[a-z-]+)", said, re.M))
        self.assertGreater(len(flags), 30)
        self.assertLessEqual(flags, self.bash("railmated", ""))
        self.assertEqual(self.bash("railmated", "--pod-r"),
                         {"--pod-resources", "--pod-resources-timeout"})

    def test_commands_and_their_own_options(self):
        self.assertEqual(self.bash("railmatectl", "s"), {"simulate", "snapshot", "status"})
        self.assertEqual(
            self.bash("railmatectl", "explain", ""), {
                "pod", "claim", "vf", "last", "pool", "--control-socket", "--state-dir",
                "--json", "--help"
            })
        self.assertEqual(self.bash("railmatectl", "topo", "--r"), {"--root", "--rccl"})
        self.assertEqual(self.bash("railmatectl", "release", "--"),
                         {"--control-socket", "--yes", "--help"})

    def test_values_that_are_files_are_files(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "one").mkdir()
            pathlib.Path(folder, "only.json").touch()
            self.assertEqual(self.bash("railmatectl", "topo", "--config", "on", folder=folder),
                             {"one", "only.json"})
            self.assertEqual(self.bash("railmatectl", "topo", "--root", "on", folder=folder),
                             {"one"})
            self.assertEqual(self.bash("railmatectl", "plan", "--vfs", "", folder=folder), set())

    def kubectl(self, *words):
        """What kubectl gets after `kubectl railmate` and these words."""
        done = subprocess.run([TOP / "deploy/completion/kubectl_complete-railmate", *words], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_kubectls_plugin_is_completed(self):
        self.assertEqual(self.kubectl(""), ["status", "topo", "explain", "doctor", "verify", "probe", "--help", ":4"])
        self.assertEqual(self.kubectl(), self.kubectl(""))
        self.assertEqual(self.kubectl("st"), ["status", ":4"])
        self.assertEqual(self.kubectl("status", "--no-"), ["--no-doctor", ":4"])
        self.assertEqual(self.kubectl("status", "*"), [":4"])
        self.assertEqual(self.kubectl("topo", "--kubeconfig", ""), [":0"])
        self.assertEqual(self.kubectl("verify", "-n", ""), [":4"])
        said = subprocess.run([pathlib.Path(BUILD) / "cmd/railmatectl", "--help"], capture_output=True, text=True, timeout=60).stdout
        flags = set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", re.search(r"^options of cluster:\n((?:  .*\n)*)", said, re.M).group(1)))
        self.assertGreater(len(flags), 10)
        self.assertLessEqual(set(self.kubectl("status", "")) - {"--help", ":4"}, flags)
        self.assertIn("--only", self.kubectl("doctor", ""))

    def test_the_other_shells_take_them(self):
        for shell, name in (("zsh", "_{}"), ("fish", "{}.fish")):
            for program in ("railmatectl", "railmated"):
                done = subprocess.run(
                    [shell, "-n", TOP / "deploy/completion" / name.format(program)],
                    capture_output=True, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stderr), (0, ""), (shell, program))
        done = subprocess.run([
            "fish", "--no-config", "-c",
            f"source {TOP}/deploy/completion/railmatectl.fish; complete -C 'railmatectl s'; "
            "complete -C 'railmatectl release --y'"
        ], capture_output=True, text=True, timeout=60)
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()],
                         ["simulate", "snapshot", "status", "--yes"], done.stderr)


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
