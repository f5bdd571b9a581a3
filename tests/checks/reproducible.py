#!/usr/bin/python3
"""The image is made once more, by another folder's hack/image, with a cache of its own: programs are
compiled again, and on their own architecture the libraries of hack/libraries.py. Time zone, locale,
umask, home and the order of files differ. What does not: the compiler, and that Debian's packages
are not fetched again.

    reproducible.py ARCH FILE.oci.tar FOLDER     FOLDER: for the second cache
"""
import filecmp
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "hack"))
from debian import host_arch
from repofiles import source_date, source_files

ARGS = []


def run(*argv, **kw):
    done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **kw)
    assert done.returncode == 0, f"{argv[0]}: {done.stdout[-4000:]}"
    return done.stdout


def copy_sources(to):
    """The last first: in a tmpfs that is another order, too."""
    for name in reversed(source_files(TOP)):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TOP / name, to / name)


def link_or_copy(source, target):
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def copy_sysroot(arch, cache):
    """Without what hack/libraries.py has built there, but for other architectures: once is enough."""
    again = ["libraries-*"] if arch == host_arch() else []
    root = pathlib.Path(run(TOP / "hack/sysroot", arch).splitlines()[-1])
    shutil.copytree(root, cache / "railmate" / root.name, symlinks=True,
                    copy_function=link_or_copy, ignore=shutil.ignore_patterns(*again))


class SecondBuild(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        arch, tar, folder = ARGS
        cls.tar = pathlib.Path(tar)
        cls.sbom = f"{cls.tar.name.removesuffix('.oci.tar')}.{arch}.spdx.json"
        temporary = tempfile.TemporaryDirectory(prefix="railmate-second-build-")
        cls.addClassCleanup(temporary.cleanup)
        cache = pathlib.Path(tempfile.mkdtemp(prefix="cache-", dir=folder))
        cls.addClassCleanup(shutil.rmtree, cache)
        cls.top = pathlib.Path(temporary.name, "sources")
        copy_sources(cls.top)
        copy_sysroot(arch, cache)
        other = "C" if os.environ.get("LC_ALL", os.environ.get("LANG")) == "C.UTF-8" else "C.UTF-8"
        same = {**os.environ, "SOURCE_DATE_EPOCH": str(source_date(TOP) or "")}
        env = {**same, "XDG_CACHE_HOME": str(cache), "HOME": temporary.name, "LC_ALL": other, "TZ": "XYZ-9:30"}
        run(cls.top / "hack/image", "--arch", arch, "-o", cls.top / "out" / cls.tar.name, env=env,
            umask=0o077)

    def test_it_has_the_same_digest(self):
        self.assertTrue(filecmp.cmp(self.tar, self.top / "out" / self.tar.name, shallow=False), "diffoscope shows what differs")

    def test_its_sbom_is_the_same(self):
        self.assertEqual((self.tar.parent / self.sbom).read_text(),
                         (self.top / "out" / self.sbom).read_text())


if __name__ == "__main__":
    ARGS, sys.argv[1:] = sys.argv[1:], []
    unittest.main()
