#!/usr/bin/python3
"""hack/demo.py: what it prints for programs, and that it leaves nothing behind."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.request

from harness import PATIENCE
from optimum import RANK

DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../hack/demo.py")
KEYS = {"name", "order", "gpus", "vfs", "pairs", "env", "devices"}


class Demo(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory(
            dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.addCleanup(self.tmp.cleanup)
        self.env = {**os.environ, "TMPDIR": self.tmp.name}

    def start(self, *options):
        return subprocess.Popen([sys.executable, DEMO, *options], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env,
                                encoding="utf-8", start_new_session=True)

    def run_demo(self, *options):
        p = self.start(*options)
        out, err = p.communicate(timeout=PATIENCE * 3)
        self.assertEqual(os.listdir(self.tmp.name), [], "left behind")
        return p.returncode, out, err

    def test_json_is_one_object_of_the_agreed_shape(self):
        status, out, err = self.run_demo("--json", "--machine", "hgx-h100")
        self.assertEqual(status, 0, err)
        shown = json.loads(out)
        self.assertEqual(set(shown), {"machine", "pods"})
        self.assertEqual(shown["machine"], "hgx-h100")
        self.assertEqual({(p["order"], len(p["gpus"])) for p in shown["pods"]},
                         {(o, n) for o in ("gpu-first", "vf-first") for n in (1, 2, 4, 8)})
        for pod in shown["pods"]:
            self.assertLessEqual(KEYS, set(pod))
            self.assertEqual({p["gpu"] for p in pod["pairs"]}, set(pod["gpus"]))
            self.assertEqual({p["vf"] for p in pod["pairs"]}, set(pod["vfs"]))
            self.assertLessEqual({p["class"] for p in pod["pairs"]}, set(RANK))
            self.assertEqual(len(pod["devices"]), len(pod["vfs"]) + 1)

    def test_for_people_there_is_no_colour_in_a_pipe(self):
        status, out, err = self.run_demo("--machine", "hgx-h100")
        self.assertEqual((status, err), (0, ""))
        self.assertNotIn("\033", out)
        self.assertIn("every one the best that was free", out)

    def test_every_machine_is_shown_or_refused_with_a_sentence(self):
        names = [line.split()[0] for line in self.run_demo("--list")[1].splitlines()]
        self.assertIn("hgx-h100", names)
        for name in names:
            with self.subTest(name):
                status, out, err = self.run_demo("--json", "--machine", name)
                if status:
                    self.assertEqual((status, out), (1, ""))
                    self.assertIn(f"machine '{name}' has no GPUs, or no VFs", err)
                else:
                    json.loads(out)

    def test_an_unknown_machine_is_a_sentence(self):
        status, out, err = self.run_demo("--machine", "pdp-11")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("pdp-11", err)

    def test_an_interrupt_cleans_up(self):
        p = self.start("--machine", "hgx-h100")
        self.assertTrue(p.stdout.readline().startswith("machine"))
        there = os.listdir(self.tmp.name)
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=PATIENCE)
        self.assertIn((p.returncode, err),
                      ((130, "demo: interrupted\n"), (0, "")))  # 0: it was faster
        self.assertTrue(there or p.returncode == 0)
        self.assertEqual(os.listdir(self.tmp.name), [])

    def test_the_page_is_there_until_an_interrupt_of_the_terminal(self):
        """Which every process of the demo gets."""
        p = self.start("--machine", "hgx-h100", "--page")
        self.addCleanup(p.stderr.close)
        url = next(found[0] for found in (re.search(r"http://127\.0\.0\.1:\d+/", line)
                                          for line in p.stdout) if found)
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            text = answer.read().decode()
        for pod in ("gpu-first-4", "gpu-first-2", "gpu-first-1"):
            self.assertIn(pod, text)
        os.killpg(p.pid, signal.SIGINT)
        out, err = p.communicate(timeout=PATIENCE)
        self.assertEqual((p.returncode, out, err), (0, "", ""))
        self.assertEqual(os.listdir(self.tmp.name), [])
        with self.assertRaises(OSError):
            urllib.request.urlopen(url, timeout=PATIENCE)

    def test_a_page_at_an_address_that_cannot_be_is_a_sentence(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            for option, words in ((address, f"--page: {address}: Address already in use"),
                                  ("9835", "'9835' is no ADDRESS:PORT"),
                                  ("127.0.0.1:99999", "is no ADDRESS:PORT"),
                                  ("localhost:0", "is no ADDRESS:PORT"),
                                  ("192.0.2.1:0", "--page: 192.0.2.1:0: Cannot assign")):
                status, out, err = self.run_demo("--page", option)
                self.assertEqual((status, out), (1, ""), option)
                self.assertIn(words, err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
