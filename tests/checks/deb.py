#!/usr/bin/python3
"""The Debian package of railmatectl: what it holds, that it installs and runs, and what lintian
says.

    deb.py BUILD_DIR
"""
import gzip
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
WHERE = []
# What lintian finds and we accept, and why.
ACCEPTED = {
    "bogus-mail-host": "the project has no public address: DEBEMAIL sets one",
    "bogus-mail-host-in-debian-changelog": "the same",
}


def run(*argv, **kw):
    return subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120, check=False, **kw)


def unaccepted(deb):
    """Lines of lintian."""
    done = run("lintian", "--no-cfg", "--fail-on", "none", "--pedantic", "--display-info", deb)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [line for line in done.stdout.splitlines() if re.match(r"[EWIP]: ", line)]
    return [line for line in found if line.split()[2] not in ACCEPTED]


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="railmate-deb-")
        cls.addClassCleanup(folder.cleanup)
        cls.top = pathlib.Path(folder.name)
        cls.env = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        for name in ("one", "two"):
            done = run(TOP / "hack/deb", "--build", WHERE[0], "-o", cls.top / name, env=cls.env)
            assert done.returncode == 0, done.stderr
        (cls.deb,) = (cls.top / "one").glob("*.deb")

    def installed(self):
        """A root of its own that dpkg installed the package in."""
        root = self.top / "root"
        if not root.exists():
            (root / "var/lib/dpkg/updates").mkdir(parents=True)
            (root / "var/lib/dpkg/info").mkdir()
            (root / "var/lib/dpkg/status").write_text("")
            done = run("dpkg", f"--root={root}", "--force-depends", "--force-not-root",
                       f"--log={self.top}/log", "--install", self.deb)
            self.assertEqual(done.returncode, 0, done.stderr)
        return root

    def test_equal_programs_give_equal_packages(self):
        self.assertEqual(self.deb.read_bytes(), (self.top / "two" / self.deb.name).read_bytes())

    def test_the_libraries_of_the_program_are_what_it_depends_on(self):
        said = run("dpkg-deb", "-f", self.deb, "Depends").stdout
        depends = {word.split()[0] for word in said.strip().split(", ")}
        libraries = re.findall(
            r"\(NEEDED\).*\[(\S+)\]",
            run("readelf", "-dW",
                self.installed() / "usr/bin/railmatectl").stdout)
        self.assertGreaterEqual(len(libraries), 4)
        for library in libraries:
            path = f"/lib/{os.uname().machine}-linux-gnu/{library}"
            owners = {
                line.split(":")[0]
                for name in (path, "/usr" + path, os.path.realpath(path),
                             os.path.realpath(path).removeprefix("/usr"))
                for line in run("dpkg-query", "-S", name).stdout.splitlines()
            }
            self.assertTrue(owners & depends or library.startswith("ld-linux"),
                            f"{library}: {owners} {depends}")
        # The machine that built it has them, so it satisfies every version that is named.
        for name, least in re.findall(r"(\S+) \(>= (\S+)\)", said):
            version = run("dpkg-query", "-W", "-f", "${Version}\n", name).stdout.splitlines()[0]
            self.assertEqual(
                run("dpkg", "--compare-versions", version, "ge", least).returncode, 0, name)

    def test_it_runs_where_it_is_installed(self):
        root = self.installed()
        done = run(root / "usr/bin/railmatectl", "--version")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split()[-1],
                         run("dpkg-deb", "-f", self.deb, "Version").stdout.strip())
        status = run("dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f", "${Status}",
                     "railmatectl").stdout
        self.assertEqual(status, "install ok installed")
        self.assertEqual(run("dpkg", f"--root={root}", "--verify", "railmatectl").stdout, "")

    def test_it_has_manual_pages_and_the_completion_of_three_shells(self):
        share = self.installed() / "usr/share"
        for page in ("man1/railmatectl.1", "man5/railmate-config.5"):
            self.assertEqual(gzip.decompress((share / f"man/{page}.gz").read_bytes()),
                             (TOP / "deploy/man" / pathlib.Path(page).name).read_bytes())
        bash = share / "bash-completion/completions/railmatectl"
        self.assertIn("railmatectl",
                      run("bash", "-c", f"source {bash} && complete -p railmatectl").stdout)
        self.assertTrue(
            (share /
             "zsh/vendor-completions/_railmatectl").read_text().startswith("#compdef railmatectl"))
        self.assertIn("complete -c railmatectl",
                      (share / "fish/vendor_completions.d/railmatectl.fish").read_text())

    def test_it_is_a_plugin_of_kubectl_that_is_completed(self):
        root = self.installed()
        said = run(root / "usr/bin/kubectl-railmate", "no-such").stderr
        self.assertIn("no-such", said)
        self.assertEqual(said, run(root / "usr/bin/railmatectl", "cluster", "no-such").stderr)
        done = run(root / "usr/bin/kubectl_complete-railmate", "stat")
        self.assertIn("status", done.stdout.splitlines())
        for name in ("kubectl-railmate", "kubectl_complete-railmate"):
            page = root / f"usr/share/man/man1/{name}.1.gz"
            self.assertEqual(page.resolve().name, "railmatectl.1.gz")

    def test_lintian_finds_nothing_that_is_not_accepted(self):
        self.assertEqual(unaccepted(self.deb), [])


if __name__ == "__main__":
    WHERE.append(sys.argv.pop(1))
    unittest.main()
