"""What the two test files share: run a program, a machine unpacked once."""
import atexit
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = pathlib.Path(os.environ["FIXTURES"])  # the machines' trees
CTL = os.environ["RAILMATECTL"]
DAEMON = os.environ["RAILMATED"]


def run(*argv, stdin=subprocess.DEVNULL, timeout=60, **kw):
    return subprocess.run([str(a) for a in argv], stdin=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=timeout, check=False, **kw)


_machines = {}


def machine(name):
    """The fixture's root directory, unpacked once for the whole run."""
    if name not in _machines:
        top = tempfile.mkdtemp(prefix="railmate-cli-")
        atexit.register(shutil.rmtree, top, True)
        done = run(CTL, "snapshot", "unpack", FIXTURES / name / "host.tree", top)
        assert done.returncode == 0, done.stderr
        _machines[name] = top
    return _machines[name]


class ProgramTest(unittest.TestCase):
    def refused(self, done, code, *words):
        """Exit code, nothing on standard output, exactly one sentence that holds the words."""
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        lines = done.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        for word in words:
            self.assertIn(word, lines[0])

    def one_object(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        value = json.loads(done.stdout)
        self.assertIsInstance(value, dict)
        return value

    def write(self, text, name="config.json"):
        top = tempfile.mkdtemp(prefix="railmate-cli-")
        self.addCleanup(shutil.rmtree, top, True)
        path = pathlib.Path(top) / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path
