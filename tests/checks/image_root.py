#!/usr/bin/python3
"""hack/image-root, with a cmake and a ninja that only say that they were there."""
import fcntl
import os
import pathlib
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]


class ImageRoot(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="railmate-image-root-")
        self.addCleanup(folder.cleanup)
        self.tools = pathlib.Path(folder.name)
        for name in ("cmake", "ninja"):
            (self.tools / name).write_text(f'#!/bin/sh\ntouch "{self.tools}/$(basename "$0").ran"\n')
            (self.tools / name).chmod(0o755)

    def start(self):
        path = f"{self.tools}:{os.environ['PATH']}"
        return subprocess.Popen([TOP / "hack/image-root", "--only-build"], text=True,
                                env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_of_two_builds_one_waits_until_the_other_is_done(self):
        first = self.start()
        said, errors = first.communicate(timeout=600)
        self.assertEqual(first.returncode, 0, errors)
        ran = self.tools / "cmake.ran"
        ran.unlink()
        with open(pathlib.Path(said.splitlines()[-1]) / "lock", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            second = self.start()
            self.addCleanup(second.kill)
            line = next((line for line in second.stderr if line.startswith("image-root: ")), "")
            self.assertRegex(line, r"^image-root: waits for another build in build-image-\w+$")
            self.assertFalse(ran.exists())
        said, errors = second.communicate(timeout=600)
        self.assertEqual(second.returncode, 0, errors)
        self.assertTrue(ran.exists())


if __name__ == "__main__":
    unittest.main()
