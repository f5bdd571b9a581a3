"""railmate-probe as its users call it, where no VF is: options, a container of nobody, the forms of a report."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROBE = os.environ["RAILMATE_PROBE"]
MAP = {
    "version": 1, "pod": "ml/train-0", "container": "main", "notes": [], "gpus": [{
        "gpu": "0000:1b:00.0", "vf": "0000:3b:00.2", "hca": "absent_7", "port": 1, "path": "PIX"
    }]
}


def probe(*args, stdin=""):
    return subprocess.run([PROBE, *args], input=stdin, capture_output=True, text=True, timeout=60)


class Options(unittest.TestCase):

    def refused(self, sentence, *args, stdin=""):
        done = probe(*args, stdin=stdin)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn(sentence, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_wrong_ones_are_one_sentence(self):
        for sentence, *args in (
                ("unrecognized option '--gpus'", "--gpus"),
                ("option '--peer' requires an argument", "--peer"),
                ("unexpected argument 'x'", "x"),
                ("'0' is not a whole number from 1 to 65535", "--port", "0"),
                ("'80%' is not a whole number from 1 to 100", "--expect", "80%"),
                ("'nan' is not a number of seconds", "--seconds", "nan"),
                ("'atomic' is not write, read or send", "--ops", "write,atomic"),
                ("names none of write, read, send", "--ops", ","),
                ("--serve and --peer exclude each other", "--serve", "--peer", "h", "--token", "t"),
                ("need --token", "--serve"),
                ("go with --serve or --peer", "--crossed"),
                ("--pid and --process exclude each other", "--pid", "1", "--process", "x"),
                ("--far goes with --gpu", "--far"),
                ("--ops and --far choose", "--peer", "h", "--token", "t", "--ops", "write"),
                ("--gds: 'file' is not an absolute path", "--gds", "file"),
                ("--gds only reads a file", "--gds", "/file", "--gpu"),
                ("the value is empty", "--map", "")):
            with self.subTest(args):
                self.refused(sentence, *args)

    def test_the_token_is_read_from_standard_input(self):
        self.refused("standard input has no line", "--serve", "--token", "-", stdin="\n")

    def test_a_terminal_is_not_obeyed(self):
        self.assertNotIn("\033", probe("\033[2J").stderr)


class Reports(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="railmate-probe-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_container_of_nobody_was_not_measured(self):
        done = probe("--map", str(self.folder / "absent"))
        self.assertEqual(done.returncode, 4)
        self.assertIn("No such file or directory", done.stdout)
        self.assertIn("resources.limits", done.stdout)

    def test_a_map_that_is_wrong_names_file_and_line(self):
        (self.folder / "map.json").write_text('{"version": 1,\n"gpus": [\n')
        done = probe("--map", str(self.folder))
        self.assertEqual(done.returncode, 4)
        self.assertRegex(done.stdout, r"map\.json:2: is not JSON")

    def test_a_file_that_is_not_there_was_not_measured(self):
        (self.folder / "map.json").write_text(json.dumps(MAP))
        done = probe("--map", str(self.folder), "--gds", str(self.folder / "absent"))
        self.assertEqual(done.returncode, 4)
        self.assertIn("No such file or directory", done.stdout)

    def test_a_device_that_is_not_there_is_broken_in_every_form(self):
        (self.folder / "map.json").write_text(json.dumps(MAP))
        page, metrics = self.folder / "page.html", self.folder / "probe.prom"
        done = probe("--map", str(self.folder), "--json", "--html", str(page), "--metrics", str(metrics))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["probe"], report["outcome"], report["pod"]), (1, "broken", "ml/train-0"))
        self.assertTrue(any("absent_7" in (f["on"] or "") + f["what"] for f in report["findings"]))
        self.assertIn("absent_7", page.read_text())
        self.assertIn("railmate_probe_exit_status 1\n", metrics.read_text())
        checked = subprocess.run(["promtool", "check", "metrics"], input=metrics.read_text(), capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["map.json", "page.html", "probe.prom"])

    def test_text_has_100_columns(self):
        (self.folder / "map.json").write_text(json.dumps(MAP))
        done = probe("--map", str(self.folder))
        self.assertTrue(done.stdout.startswith("FAIL: ml/train-0 main, "), done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)

    def test_a_file_that_cannot_be_written_is_said(self):
        (self.folder / "map.json").write_text(json.dumps(MAP))
        done = probe("--map", str(self.folder), "--checks", "--html", str(self.folder / "absent/page.html"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("absent/page.html", done.stderr)


if __name__ == "__main__":
    unittest.main()
