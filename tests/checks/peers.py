#!/usr/bin/python3
"""hack/peers, with a go, a get-runtime and a hack/e2e of our own; and get-runtime's idea of what is
there."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]

PEERS = """# a comment
cluster 1.9.3
pair 1.9.3 forky
pair 1.6.4 forky
pair 1.9.3 bookworm

runtime forky 2.1-1 1.3-1
runc bookworm
helm 3.2.0
kube-score 1.2.0
kind 0.9.0
crds example.test/operator 0.2.0 crds/one.yaml crds/two.yaml
"""
GO = """case "$*" in
"list -m -versions k8s.io/kubernetes") echo "k8s.io/kubernetes v1.6.4 v1.6.10 v1.7.0 v1.9.3 v1.9.4 v1.9.5 v1.9.6-rc.1 v1.10.0" ;;
"list -m -versions helm.sh/helm/v3") echo "helm.sh/helm/v3 v3.2.0 v3.10.0 v3.9.0" ;;
"list -m -versions github.com/zegl/kube-score") echo "github.com/zegl/kube-score v1.2.0 v1.2.1" ;;
"list -m -versions sigs.k8s.io/kind") echo "sigs.k8s.io/kind v0.8.1 v0.9.0 v0.11.0-alpha v0.10.0" ;;
"list -m -versions example.test/operator") echo "example.test/operator v0.2.0 v0.3.1" ;;
"mod download k8s.io/kubernetes@v1.9.5") exit 1 ;;
"mod download "*) ;;
*) exit 9 ;;
esac"""


class Peers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="railmate-peers-")
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)
        self.script("bin/go", GO)
        self.script("tests/e2e/kubelet/get-runtime", 'echo "2.2-1 1.3-1"')
        self.script("hack/e2e", f'echo "$1" >>{self.top}/beds')
        shutil.copy(TOP / "hack/peers", self.top / "hack/peers")
        self.peers = self.top / "tests/e2e/peers"
        self.peers.write_text(PEERS)

    def script(self, name, text):
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def run_peers(self, *args):
        env = {**os.environ, "PATH": f"{self.top}/bin:{os.environ['PATH']}"}
        done = subprocess.run([self.top / "hack/peers", *args], capture_output=True, text=True,
                              timeout=60, env=env)
        return done.returncode, done.stdout.splitlines()

    def test_what_is_newer_is_said_and_nothing_changed(self):
        code, lines = self.run_peers()
        self.assertEqual((code, lines), (1, [
            "cluster 1.9.3: now 1.9.4", "pair 1.9.3 forky: now 1.9.4 forky",
            "pair 1.6.4 forky: now 1.6.10 forky", "pair 1.9.3 bookworm: now 1.9.4 bookworm",
            "runtime forky 2.1-1 1.3-1: now forky 2.2-1 1.3-1", "helm 3.2.0: now 3.10.0",
            "kube-score 1.2.0: now 1.2.1", "kind 0.9.0: now 0.10.0",
            "crds example.test/operator 0.2.0 crds/one.yaml crds/two.yaml: now "
            "example.test/operator 0.3.1 crds/one.yaml crds/two.yaml", "Kubernetes 1.10 is in no pair"
        ]))
        self.assertEqual(self.peers.read_text(), PEERS)
        self.assertFalse((self.top / "beds").exists())

    def test_a_bump_changes_the_file_and_runs_the_beds(self):
        code, lines = self.run_peers("--bump")
        self.assertEqual((code, lines[-1]), (0, "tests/e2e/peers is changed and its beds passed"))
        wanted = PEERS.replace("1.9.3", "1.9.4").replace("1.6.4", "1.6.10").replace(
            "2.1-1", "2.2-1").replace("3.2.0", "3.10.0").replace("1.2.0", "1.2.1").replace(
                "0.9.0", "0.10.0").replace("0.2.0", "0.3.1")
        self.assertEqual(self.peers.read_text(), wanted)
        self.assertEqual((self.top / "beds").read_text(), "--all\n")
        self.assertEqual(self.run_peers("--bump"),
                         (0, ["Kubernetes 1.10 is in no pair", "tests/e2e/peers has the newest"]))

    def test_a_bed_that_fails_is_said(self):
        self.script("hack/e2e", "exit 1")
        code, lines = self.run_peers("--bump")
        self.assertEqual((code, lines[-1]),
                         (1, "tests/e2e/peers is changed, and not all of its beds passed"))

    def test_a_machine_that_cannot_ask_says_what_it_lacks(self):
        self.script("bin/go", "echo 'dial tcp: no route' >&2; exit 1")
        code, lines = self.run_peers()
        self.assertEqual((code, lines),
                         (77, ["peers: this machine lacks an answer of go: dial tcp: no route"]))

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
