#!/usr/bin/python3
"""
.ci/run with small steps in place of the real ones: what it says of each, how it counts, what it
leaves behind; and hack/e2e with a small bed.
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

AGES = 10_000_000 + os.getpid()  # seconds that nobody else sleeps for
TOP = pathlib.Path(__file__).resolve().parents[2]
RUN = TOP / ".ci/run"

STEPS = {
    "pass": 'echo "built"\necho "3 passed, 0 failed"',
    "again": 'echo "gcc: passed only when tried again, alone: unit/x"\necho "3 passed, 0 failed"',
    "few": 'echo "2 passed, 0 failed, 1 skipped"',
    "none": 'echo "0 passed, 0 failed"',
    "fail": 'echo "1 passed, 2 failed"\nexit 1',
    "lies": 'echo "4 passed, 0 failed"\nexit 3',
    "shameless": 'echo "4 passed, 1 failed"',
    "mute": 'echo "done"',
    "lacks": 'echo "some bed: skipped: this machine lacks a mouse"\nexit 77',
    "quiet": 'echo "fetched"',
    "broken": 'echo "nothing here"\nexit 1',
    "asks": 'read -r line && echo "got $line"\n[ -t 1 ] && echo "a terminal"\necho "1 passed, 0 failed"',
    # Asked to end, it cleans up; somebody that it started outlives it, deaf.
    "slow": """
folder=$(mktemp -d)
(trap '' TERM; exec setsid sleep AGES) &
trap 'sleep 0.5; echo "cleaned up"; rm -r "$folder"; exit 1' TERM
sleep 600 & wait $!""",
    "honest": """
trap 'echo "5 passed, 2 failed, 1 skipped"; exit 1' TERM
sleep 600 & wait $!""",
    "deaf": "trap '' TERM\nwhile :; do sleep 0.1; done",
    "late": 'sleep 4\necho "1 passed, 0 failed"',
    "leaver": 'setsid sleep AGES &\ntouch "$TMPDIR/left"\necho "$TMPDIR" >"$0.left"\necho "1 passed, 0 failed"',
}


def can_make_namespaces():
    return subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"],
                          capture_output=True).returncode == 0


class Ci(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="railmate-ci-")
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)
        self.tmp = self.top / "tmp"
        self.tmp.mkdir()
        for name, script in STEPS.items():
            (self.top / name).write_text(f"#!/bin/bash\n{script}\n".replace("AGES", str(AGES)))
            (self.top / name).chmod(0o755)

    def run_steps(self, *steps, grace=2):
        """(exit status, the verdicts by step, the last line); a step is "KIND LIMIT NAME"."""
        lines = [" ".join([*step.split()[:2], str(self.top / step.split()[2])]) for step in steps]
        (self.top / "steps").write_text("\n".join(lines) + "\n")
        done = subprocess.run(
            [RUN, "--steps", self.top / "steps", "--logs", self.top / "logs", "--grace",
             str(grace)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=60, env={**os.environ, "TMPDIR": str(self.tmp)})
        self.said = done.stdout
        summary = done.stdout[done.stdout.rindex("=== summary"):].splitlines()
        said = [line.removeprefix(f"{self.top}/").partition(": ") for line in summary[1:-1]]
        return done.returncode, {name: words for name, _, words in said}, summary[-1]

    def one(self, step, **options):
        code, verdicts, last = self.run_steps(step, "test 20 pass", **options)
        return code, verdicts[step.split()[2]], last

    def test_a_test_that_passes_has_its_count_and_time(self):
        code, verdicts, last = self.run_steps("test 20 pass")
        self.assertRegex(verdicts["pass"], r"^passed, 3 tests, \d+ s$")
        self.assertEqual((code, last), (0, "3 passed, 0 failed, 0 skipped"))
        self.assertIn("built\n", self.said)

    def test_what_passed_only_when_tried_again_is_named_at_the_end(self):
        code, verdicts, last = self.run_steps("test 20 again", "test 20 pass")
        self.assertEqual((code, last), (0, "6 passed, 0 failed, 0 skipped"))
        self.assertEqual(verdicts["gcc"], "passed only when tried again, alone: unit/x")

    def test_a_bed_counts_scenarios_and_those_it_left_out(self):
        code, verdicts, last = self.run_steps("bed 20 few")
        self.assertRegex(verdicts["few"], r"^passed, 2 scenarios, 1 skipped, \d+ s$")
        self.assertEqual((code, last), (0, "2 passed, 0 failed, 1 skipped"))

    def test_a_failure_does_not_keep_later_steps_from_running(self):
        code, verdict, last = self.one("test 20 fail")
        self.assertRegex(verdict, r"^FAILED, 2 of 3 tests, \d+ s$")
        self.assertEqual((code, last), (1, "4 passed, 2 failed, 0 skipped"))

    def test_a_bed_that_cannot_run_says_why_and_is_no_pass(self):
        code, verdict, last = self.one("bed 20 lacks")
        self.assertRegex(verdict, r"^skipped: this machine lacks a mouse, \d+ s$")
        self.assertEqual((code, last), (0, "3 passed, 0 failed, 1 skipped"))

    def test_beds_alone_that_cannot_run_are_not_enough(self):
        code, _, last = self.run_steps("bed 20 lacks")
        self.assertEqual((code, last), (1, "0 passed, 0 failed, 1 skipped"))

    def test_a_test_may_not_be_skipped(self):
        code, verdict, last = self.one("test 20 lacks")
        self.assertRegex(verdict, "^FAILED, exit status 77")
        self.assertEqual((code, last), (1, "3 passed, 1 failed, 0 skipped"))

    def test_neither_counts_nor_exit_status_are_believed_alone(self):
        for name, words, last in (("lies", "FAILED, exit status 3",
                                   "7 passed, 1 failed, 0 skipped"),
                                  ("shameless", "FAILED, 1 of 5", "7 passed, 1 failed, 0 skipped"),
                                  ("mute", "FAILED, exit status 0 and no counts",
                                   "3 passed, 1 failed, 0 skipped"),
                                  ("none", "FAILED, no tests ran",
                                   "3 passed, 1 failed, 0 skipped")):
            with self.subTest(name):
                code, verdict, told = self.one(f"test 20 {name}")
                self.assertIn(words, verdict)
                self.assertEqual((code, told), (1, last))

    def test_a_step_that_cannot_be_started_has_failed(self):
        code, verdict, last = self.one("test 20 nowhere")
        self.assertIn("FAILED, exit status 127", verdict)
        self.assertEqual((code, last), (1, "3 passed, 1 failed, 0 skipped"))

    def test_a_preparation_counts_only_when_it_failed(self):
        for name, words, failed in (("quiet", "done", 0), ("lacks", "not done: ", 0),
                                    ("broken", "FAILED", 1)):
            with self.subTest(name):
                code, verdict, last = self.one(f"prepare 20 {name}")
                self.assertTrue(verdict.startswith(words), verdict)
                self.assertEqual((code, last), (failed, f"3 passed, {failed} failed, 0 skipped"))

    def test_steps_have_no_input_and_no_terminal(self):
        code, _, last = self.run_steps("test 20 asks")
        self.assertEqual((code, last), (0, "1 passed, 0 failed, 0 skipped"))
        self.assertNotIn("got", self.said)
        self.assertNotIn("terminal", self.said)

    def test_time_that_is_up_is_a_failure_after_a_chance_to_clean_up(self):
        code, verdict, last = self.one("bed 5 slow", grace=10)
        self.assertRegex(verdict, r"^FAILED, stopped at its limit of 5 s, \d+ s$")
        self.assertEqual((code, last), (1, "3 passed, 1 failed, 0 skipped"))
        self.assertIn("cleaned up", (self.top / "logs" / self.log_of("slow")).read_text())

    def test_time_that_is_up_does_not_lose_what_passed(self):
        code, verdict, last = self.one("bed 5 honest", grace=10)
        self.assertRegex(verdict,
                         r"^FAILED, stopped at its limit of 5 s, 5 scenarios passed, \d+ s$")
        self.assertEqual((code, last), (1, "8 passed, 2 failed, 1 skipped"))

    def test_whoever_does_not_listen_is_ended(self):
        code, verdict, last = self.one("bed 1 deaf")
        self.assertRegex(verdict, "^FAILED, stopped at its limit of 1 s")
        self.assertEqual((code, last), (1, "3 passed, 1 failed, 0 skipped"))

    def test_time_that_others_left_is_lent_and_no_more(self):
        code, verdicts, _ = self.run_steps("test 9 pass", "bed 1 late", "bed 1 deaf", "bed 1 deaf")
        self.assertRegex(verdicts["late"], r"^passed, 1 scenarios, \d+ s$")
        self.assertRegex(self.said, r"(?m)deaf: FAILED, stopped at its limit of [3-7] s")
        self.assertRegex(verdicts["deaf"], "^FAILED, stopped at its limit of 1 s")
        self.assertEqual(code, 1)

    def log_of(self, name):
        return "".join(c if c.isalnum() else "-" for c in str(self.top / name)) + ".log"

    @unittest.skipUnless(can_make_namespaces(), "no right to make namespaces")
    def test_no_process_and_no_file_stays(self):
        self.run_steps("bed 1 slow", "test 20 leaver")
        self.assertEqual(list(self.tmp.iterdir()), [])
        left = (self.top / "leaver.left").read_text().strip()
        self.assertRegex(left, r"/ci\.\w+$")
        self.assertFalse(os.path.exists(left))
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):  # it just ended
                self.assertNotIn(str(AGES).encode(), path.read_bytes())

    @unittest.skipUnless(os.geteuid() == 0 and can_make_namespaces(),
                         "no right to make cgroups and namespaces")
    def test_cgroups_of_a_killed_bed_go_with_its_folder(self):
        lines = pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
        mounts = [line.split()[1] for line in lines if line.split()[2] in ("cgroup", "cgroup2")]
        mounts = [mount for mount in mounts if os.access(mount, os.W_OK)]
        if not mounts:
            self.skipTest("no cgroup hierarchy that can be written")
        group = f'{mounts[0]}/$(basename "$folder")'
        (self.top / "deaf").write_text("#!/bin/bash\nfolder=$(mktemp -dt railmate-e2e-XXXX)\n"
                                       f'mkdir -p "{group}/below"\necho "{group}"\n' +
                                       STEPS["deaf"] + "\n")
        self.run_steps("bed 5 deaf")
        made = next(line for line in self.said.splitlines() if line.startswith(mounts[0]))
        self.addCleanup(subprocess.run,
                        ["find", made, "-depth", "-type", "d", "-exec", "rmdir", "{}", "+"],
                        stderr=subprocess.DEVNULL)
        self.assertFalse(os.path.exists(made))


class Limits(unittest.TestCase):
    def test_all_together_leave_time_to_clean_up(self):
        steps = re.search(r"^steps='\n(.*?)^'", RUN.read_text(), re.M | re.S).group(1).splitlines()
        self.assertEqual({step.split()[0] for step in steps}, {"test", "prepare", "bed"})
        self.assertLess(sum(int(step.split()[1]) for step in steps), 88 * 60)


class Beds(unittest.TestCase):
    """hack/e2e in a tree of its own, where the bed's answer depends on the pair that it is asked
    for."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="railmate-ci-")
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)
        self.script("hack/install-deps", "")
        shutil.copy(TOP / "hack/e2e", self.top / "hack/e2e")
        for name in ("charts/build-helm", "charts/build-kube-score", "cluster/get-crds",
                     "cluster/build-released"):
            self.script(f"tests/e2e/{name}", "echo built")
        (self.top / "tests/e2e/peers"
         ).write_text("# three\npair 1.9.2 forky\npair 1.6.4 forky\npair 1.9.2 bookworm\n")

    def script(self, name, text):
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def run_bed(self, *, newest, old, without_cdi):
        self.script(
            "tests/e2e/kubelet/run", f"""case "$2 $4" in
            "1.9.2 forky") {newest} ;; "1.6.4 forky") {old} ;; "1.9.2 bookworm") {without_cdi} ;; esac"""
        )
        return self.run_e2e("kubelet")

    def run_e2e(self, bed, *words):
        done = subprocess.run([self.top / "hack/e2e", bed, *words], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60)
        return done.returncode, done.stdout.rstrip().splitlines()

    GOOD = "echo '5 passed, 0 failed'"
    LACKS = "echo 'kubelet bed: skipped: this machine lacks a mouse'; exit 77"

    def test_a_node_with_an_api_server_is_run_where_there_is_one(self):
        with open(self.top / "tests/e2e/peers", "a", encoding="ascii") as peers:
            peers.write("cluster 1.9.2\n")
        self.script("tests/e2e/kubelet/run",
                    f"[ $1 = --api ] && echo '1 passed, 0 failed' || {self.GOOD}")
        code, lines = self.run_e2e("kubelet")
        self.assertEqual((code, lines[-1]), (0, "16 passed, 0 failed, 0 skipped"))

    def test_time_that_is_up_is_said_with_the_sum(self):
        self.script(
            "tests/e2e/kubelet/run", f"""case "$2 $4" in
            "1.9.2 forky") {self.GOOD} ;; *) trap 'echo "2 passed, 1 failed"; exit 1' TERM; : >{self.top}/waits; sleep 60 & wait $! ;; esac"""
        )
        with subprocess.Popen([self.top / "hack/e2e", "kubelet"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              start_new_session=True) as bed:
            deadline = time.monotonic() + 60
            while not (self.top / "waits").exists():
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.02)
            for _ in range(20):  # timeout(1) sends two: to its child, and to the group
                os.killpg(bed.pid, signal.SIGTERM)
                time.sleep(0.005)
            said = bed.communicate(timeout=60)[0]
        lines = said.rstrip().splitlines()
        self.assertEqual((bed.returncode, lines[-1]), (1, "7 passed, 2 failed, 0 skipped"), said)
        self.assertIn("kubelet bed: time is up, not run: --kubelet 1.9.2 --suite bookworm", lines)

    def test_pairs_are_added_up(self):
        code, lines = self.run_bed(newest=self.GOOD, old="echo '4 passed, 0 failed, 2 skipped'",
                                   without_cdi=self.GOOD)
        self.assertEqual((code, lines[-1]), (0, "14 passed, 0 failed, 2 skipped"))

    def test_a_pair_that_fails_does_not_keep_the_next_from_running(self):
        code, lines = self.run_bed(newest="echo '1 passed, 3 failed'; exit 1", old=self.GOOD,
                                   without_cdi=self.GOOD)
        self.assertEqual((code, lines[-1]), (1, "11 passed, 3 failed, 0 skipped"))

    def test_a_pair_that_ends_without_counts_or_against_them_has_failed(self):
        code, lines = self.run_bed(newest="kill -KILL $$", old=self.GOOD + "; exit 1",
                                   without_cdi=self.GOOD)
        self.assertEqual((code, lines[-1]), (1, "10 passed, 2 failed, 0 skipped"))

    def test_a_pair_that_cannot_run_is_skipped_and_said(self):
        code, lines = self.run_bed(newest=self.GOOD, old=self.LACKS, without_cdi=self.GOOD)
        self.assertEqual((code, lines[-1]), (0, "10 passed, 0 failed, 1 skipped"))
        self.assertIn("kubelet bed: skipped: this machine lacks a mouse", lines[-4:])

    def test_a_bed_of_which_nothing_can_run_is_skipped(self):
        code, lines = self.run_bed(newest=self.LACKS, old=self.LACKS, without_cdi=self.LACKS)
        self.assertEqual((code, lines[-1]),
                         (77, "kubelet bed: skipped: this machine lacks a mouse"))

    def test_beds_of_one_program_are_run_with_their_words(self):
        for bed in ("charts", "cluster"):
            self.script(f"tests/e2e/{bed}/run", 'echo "$# passed, 0 failed: $*"')
            self.assertEqual(self.run_e2e(bed, "update"), (0, ["1 passed, 0 failed: update"]))

    def test_packages_that_cannot_be_had_are_named(self):
        self.script("hack/install-deps", "echo 'E: no mirror'\n"
                    "echo 'install-deps: apt-get cannot install: a b' >&2; exit 1")
        code, lines = self.run_e2e("kubelet")
        self.assertEqual((code, lines[-1]),
                         (77, "kubelet bed: skipped: apt-get cannot install: a b"))

    def test_preparing_goes_on_after_what_could_not_be_had(self):
        self.script("tests/e2e/kubelet/build-kubelet", "echo 'a proxy'; exit 77")
        self.script("tests/e2e/kubelet/get-runtime", 'echo "got $1"')
        code, lines = self.run_e2e("prepare")
        self.assertEqual((code, lines[-1]), (77, "kubelet bed: this machine lacks a proxy"))
        self.assertIn("got bookworm", lines)
        self.script("tests/e2e/kubelet/get-runtime", "exit 1")
        self.assertEqual(self.run_e2e("prepare")[0], 1)


if __name__ == "__main__":
    unittest.main()
