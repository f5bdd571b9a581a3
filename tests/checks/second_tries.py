#!/usr/bin/python3
"""Second tries of the beds (tests/integration/tries.py), with small scenarios in the kubelet's bed and in the guest's."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve()
TESTS = HERE.parents[1]
# What a scenario does at its first try, its second one, and so on.
SCENARIOS = {
    "passes": ["ok"], "late": ["late", "ok"], "wrong": ["wrong", "ok"], "broken": ["late", "late", "ok"], "slow": ["late", "ok"],
    "doubly": ["doubly", "ok"],
}
LEFT = {name: list(tries) for name, tries in SCENARIOS.items()}


class Doubly:
    @staticmethod
    def processes():
        """Container → its process, its VFs."""
        return {"one": (1, {"0000:18:01.0"}), "two": (2, {"0000:18:01.0"})}


def scenario(name):
    from faults import Late, one_owner_each, until

    def play(*_):
        now = LEFT[name].pop(0)
        if now == "doubly":
            with one_owner_each(Doubly):
                until(lambda: False, now, 0)
        elif now != "ok":
            until(lambda: False, now, 0, {"late": Late, "wrong": AssertionError}[now])
        return "done"
    play.__name__ = play.__doc__ = name
    return play


def kubelet_bed(names):
    """Prints the bed's lines."""
    import scenarios

    class Backend:
        def prepare(self, _):
            pass

        def describe(self):
            return "a node"

    class Cluster:
        backend, live = Backend(), []

        def end(self):
            pass

        def keep_state(self, _):
            pass

    sys.exit(scenarios.run_these(Cluster(), [scenario(name) for name in names], [], "logs", "small"))


def guest_bed(names):
    """Prints one object a line."""
    import bed
    bed.SCENARIOS[:] = [scenario(name) for name in names]
    with tempfile.TemporaryDirectory() as bed.SHARE:
        status = bed.run_all([])
        print((pathlib.Path(bed.SHARE) / "results").read_text(), end="")
    sys.exit(status)


class SecondTries(unittest.TestCase):
    def run_bed(self, bed, *names, second_try=True):
        """Its exit status, and what it prints."""
        folders = [*(["e2e/vm"] if bed == "guest" else []), "e2e/kubelet", "integration"]
        env = {**os.environ, "PYTHONPATH": ":".join(str(TESTS / folder) for folder in folders),
               "E2E_SECOND_TRY": "yes" if second_try else ""}
        ran = subprocess.run([sys.executable, "-B", HERE, bed, *names], env=env, capture_output=True, text=True)
        self.assertTrue(ran.stdout, ran.stderr)
        return ran.returncode, ran.stdout

    def check(self, names, expected, second_try=True):
        """expected: a verdict and a scenario for each try, in order."""
        for bed in ("kubelet", "guest"):
            with self.subTest(bed):
                status, text = self.run_bed(bed, *names, second_try=second_try)
                if bed == "guest":
                    lines = [json.loads(line) for line in text.splitlines()]
                    said = [(line["verdict"], line["scenario"]) for line in lines]
                else:
                    said = re.findall(r"^(\w+) +[0-9.]+ s  (\w+)", text, re.M)
                self.assertEqual([(verdict.replace("FAILED", "FAIL"), name) for verdict, name in said], expected)
                self.assertEqual(status, int(any(verdict == "FAIL" for verdict, _ in expected)))
                again = sum(verdict == "again" and ("ok", name) in expected for verdict, name in expected)
                self.assertEqual(text.count("passed only when tried again: done"), again)

    def test_one_that_fails_once_passes_and_the_report_says_so(self):
        self.check(["passes", "late"], [("ok", "passes"), ("again", "late"), ("ok", "late")])

    def test_one_that_fails_twice_has_failed(self):
        self.check(["broken", "passes"], [("again", "broken"), ("FAIL", "broken"), ("ok", "passes")])

    def test_what_is_wrong_is_not_tried_again(self):
        self.check(["wrong", "passes"], [("FAIL", "wrong"), ("ok", "passes")])

    def test_a_vf_in_two_live_containers_is_not_forgiven_to_one_that_is_late(self):
        self.check(["doubly", "passes"], [("FAIL", "doubly"), ("ok", "passes")])

    def test_the_third_of_a_run_is_not_tried_again(self):
        self.check(["late", "slow", "broken"],
                   [("again", "late"), ("ok", "late"), ("again", "slow"), ("ok", "slow"), ("FAIL", "broken")])

    def test_none_is_tried_again_unless_it_is_asked_for(self):
        self.check(["late", "passes"], [("FAIL", "late"), ("ok", "passes")], second_try=False)

    def test_the_sum_counts_a_scenario_once(self):
        _, text = self.run_bed("kubelet", "late", "broken", "passes")
        self.assertEqual(text.splitlines()[-1], "2 passed, 1 failed")


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] in ("kubelet", "guest"):
        import faults  # noqa: F401 (before scenarios.py puts tests/integration, which has a late.py, too, first)
        {"kubelet": kubelet_bed, "guest": guest_bed}[sys.argv[1]](sys.argv[2:])
    unittest.main()
