#!/usr/bin/python3
"""tests/e2e/peers pins all that the beds use; and get-runtime's idea of what is there."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]


class Peers(unittest.TestCase):
    def test_the_real_file_pins_all_that_the_beds_use(self):
        lines = [
            line.split()
            for line in (TOP / "tests/e2e/peers").read_text().splitlines()
            if line and line[0] != "#"
        ]
        of = {}
        for kind, *words in lines:
            of.setdefault(kind, []).append(words)
        self.assertEqual(set(of),
                         {"cluster", "pair", "runtime", "runc", "helm", "kube-score", "kind",
                          "crds", "released"})
        version = re.compile(r"\d+\.\d+\.\d+")
        for kind in ("cluster", "pair", "helm", "kube-score", "kind"):
            for words in of[kind]:
                self.assertRegex(words[0], version)
        suites = {pair[1] for pair in of["pair"]} | {suite for (suite,) in of["runc"]}
        self.assertEqual({words[0] for words in of["runtime"]}, suites)
        self.assertIn(of["cluster"][0][0], [pair[0] for pair in of["pair"]])

    def test_the_beds_know_the_newest_kubelet(self):
        pairs = [
            line.split()[1]
            for line in (TOP / "tests/e2e/peers").read_text().splitlines()
            if line.startswith("pair ")
        ]
        newest = re.search(r"^NEWEST = \((\d+), (\d+)\)",
                           (TOP / "tests/e2e/kubelet/late.py").read_text(), re.M)
        self.assertEqual(pairs[0].split(".")[:2], list(newest.groups()))
        self.assertEqual(
            pairs[0], max(pairs,
                          key=lambda version: [int(number) for number in version.split(".")]))


class Runtime(unittest.TestCase):
    """What is unpacked already is taken when it is what peers names, or had to do for it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="railmate-runtime-")
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)
        (self.top / "e2e/kubelet").mkdir(parents=True)
        shutil.copy(TOP / "tests/e2e/kubelet/get-runtime", self.top / "e2e/kubelet")
        (self.top / "e2e/peers").write_text("runtime forky 2.1-1 1.3-1\n")
        self.unpacked = self.top / "cache/railmate/runtime-forky"
        (self.unpacked / "usr/bin").mkdir(parents=True)
        (self.unpacked / "usr/bin/containerd").touch(0o755)
        (self.top / "bin").mkdir()
        for name in ("apt-get", "dpkg-deb"):  # no mirror
            (self.top / "bin" / name).write_text("#!/bin/bash\nexit 1\n")
            (self.top / "bin" / name).chmod(0o755)

    def taken(self, packages, wanted=None):
        (self.unpacked / "packages").write_text(packages)
        if wanted is not None:
            (self.unpacked / "wanted").write_text(wanted)
        env = {
            **os.environ, "XDG_CACHE_HOME": str(self.top / "cache"),
            "PATH": f"{self.top}/bin:{os.environ['PATH']}"
        }
        done = subprocess.run([self.top / "e2e/kubelet/get-runtime", "forky"], capture_output=True,
                              text=True, timeout=60, env=env)
        return done.returncode == 0 and done.stdout.strip() == str(self.unpacked)

    def test_what_is_there_is_what_peers_names(self):
        self.assertTrue(self.taken("containerd_2.1-1_amd64\nrunc_1.3-1_amd64\n"))
        self.assertFalse(self.taken("containerd_2.0-1_amd64\nrunc_1.3-1_amd64\n"))
        self.assertFalse(self.taken("containerd_2.1-1_amd64\nrunc_1.2-1_amd64\n"))

    def test_what_had_to_do_is_not_fetched_each_time(self):
        self.assertTrue(self.taken("containerd_2.2-1_amd64\nrunc_1.3-1_amd64\n", "2.1-1 1.3-1\n"))
        self.assertFalse(self.taken("containerd_2.2-1_amd64\nrunc_1.3-1_amd64\n", "2.0-1 1.3-1\n"))


if __name__ == "__main__":
    unittest.main()
