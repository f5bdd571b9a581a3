#!/usr/bin/python3
"""tests/e2e/peers pins all that the beds use."""
import pathlib
import re
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
                          "crio", "crun", "crds", "released"})
        version = re.compile(r"\d+\.\d+\.\d+")
        for kind in ("cluster", "pair", "helm", "kube-score", "kind", "crio"):
            for words in of[kind]:
                self.assertRegex(words[0], version)
        suites = {pair[1] for pair in of["pair"]} | {suite for (suite,) in of["runc"]}
        self.assertEqual({words[0] for words in of["runtime"]} | {"crio"}, suites)
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


if __name__ == "__main__":
    unittest.main()
