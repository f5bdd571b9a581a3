#!/usr/bin/python3
"""The packages of debian/, of the programs of a finished build: what they hold, that they install and run, and lintian's findings.

    deb.py BUILD_DIR
"""
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
WHERE = []
# What lintian finds and we accept, and why.
ACCEPTED = {
    "bogus-mail-host": "the project has no public address",
    "bogus-mail-host-in-debian-changelog": "the same",
    "shared-library-lacks-prerequisites": "railmate-cni is a static program",
    "custom-library-search-path": "railmate-probe's libraries lie beside it in containers",
    "spare-manual-page": "containers execute railmate-probe, by its path",
    "spelling-error-in-binary": "bytes of railmate-probe's libraries that are no words",
    "package-supports-alternative-init-but-no-init.d-script": "nodes of Kubernetes have systemd",
}
UNITS = "lib/systemd/system"
# Who may have a mount namespace of one's own.
UNSHARE = ["unshare", "--map-root-user", "--mount"]


def run(*argv, **kw):
    return subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=600, check=False, **kw)


def unaccepted(deb):
    """Lines of lintian."""
    done = run("lintian", "--no-cfg", "--fail-on", "none", "--pedantic", "--display-info", deb)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [line for line in done.stdout.splitlines() if re.match(r"[EWIP]: ", line)]
    return [line for line in found if line.split()[2] not in ACCEPTED]


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="railmate-deb-")
        cls.addClassCleanup(folder.cleanup)
        cls.top = pathlib.Path(folder.name)
        for name in ("debian", "deploy"):
            shutil.copytree(TOP / name, cls.top / "src" / name)
        done = run("debian/rules", "binary", cwd=cls.top / "src", env={**os.environ, "FINISHED": WHERE[0]})
        assert done.returncode == 0, done.stdout + done.stderr
        cls.debs = {deb.name.partition("_")[0]: deb for deb in cls.top.glob("*.deb")}
        assert cls.debs.keys() == {"railmatectl", "railmated"}, cls.debs

    def installed(self):
        """A root of its own that dpkg installed the packages in."""
        root = self.top / "root"
        if not root.exists():
            (root / "var/lib/dpkg/updates").mkdir(parents=True)
            (root / "var/lib/dpkg/info").mkdir()
            (root / "var/lib/dpkg/status").write_text("")
            done = run("dpkg", f"--root={root}", "--force-depends", "--force-not-root",
                       "--force-script-chrootless", f"--log={self.top}/log", "--install",
                       *self.debs.values())
            self.assertEqual(done.returncode, 0, done.stderr)
        return root

    def test_it_runs_where_it_is_installed(self):
        root = self.installed()
        for program in ("railmatectl", "railmated", "railmate-cni"):
            done = run(root / "usr/bin" / program, "--version")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(
                done.stdout.split()[-1],
                run("dpkg-deb", "-f", self.debs["railmatectl"], "Version").stdout.strip())
        for name in self.debs:
            status = run("dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f", "${Status}",
                         name).stdout
            self.assertEqual(status, "install ok installed")
            self.assertEqual(run("dpkg", f"--root={root}", "--verify", name).stdout, "")

    def test_the_probe_has_its_loader_and_its_c_library_beside_it(self):
        folder = self.installed() / "usr/lib/railmate/probe"
        links = {path.name: os.readlink(path) for path in folder.iterdir() if path.is_symlink()}
        self.assertEqual(links.keys(), {"ld.so", "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0",
                                        "librt.so.1", "railmate-cni"})
        shutil.copytree(folder, self.top / "copy", ignore_dangling_symlinks=False)
        done = run(self.top / "copy/ld.so", "--library-path", self.top / "copy", self.top / "copy/railmate-probe",
                   "--version")
        self.assertEqual(done.stdout.split()[:1], ["railmate-probe"], done.stderr)

    def test_all_manual_pages_and_the_completion_of_three_shells_are_there(self):
        share = self.installed() / "usr/share"
        for page in (TOP / "deploy/man").iterdir():
            packed = share / f"man/man{page.suffix[1:]}/{page.name}.gz"
            self.assertEqual(gzip.decompress(packed.read_bytes()), page.read_bytes())
        for name in self.debs:
            bash = share / "bash-completion/completions" / name
            self.assertIn(name, run("bash", "-c", f"source {bash} && complete -p {name}").stdout)
            zsh = share / f"zsh/vendor-completions/_{name}"
            self.assertTrue(zsh.read_text().startswith(f"#compdef {name}"))
            self.assertIn(f"complete -c {name}",
                          (share / f"fish/vendor_completions.d/{name}.fish").read_text())

    def test_the_units_are_there_and_none_is_enabled(self):
        root = self.installed()
        for unit in (TOP / "deploy/systemd").iterdir():
            self.assertEqual((root / UNITS / unit.name).read_bytes(),
                             unit.read_bytes())
        self.assertEqual(list(root.rglob("*.wants")), [])
        (program,) = re.findall(
            r"^ExecStart=/(\S+)",
            (root / UNITS / "railmated.service").read_text(), re.M)
        self.assertTrue(os.access(root / program, os.X_OK))

    def called(self, script, *args):
        """What a script of railmated's package calls, where systemd runs."""
        scripts, fakes, log = self.top / "scripts", self.top / "fakes", self.top / "called"
        if not scripts.exists():
            run("dpkg-deb", "-e", self.debs["railmated"], scripts)
            fakes.mkdir()
            for name in ("systemctl", "deb-systemd-invoke"):
                (fakes / name).write_text(f'#!/bin/sh\necho "${{0##*/}} $*" >>{log}\n')
                (fakes / name).chmod(0o755)
            (fakes / "deb-systemd-helper").symlink_to("/bin/false")
        log.write_text("")
        inside = 'mount -t tmpfs none /run && mkdir -p /run/systemd/system && exec "$@"'
        done = run(*UNSHARE, "sh", "-c", inside, "sh", scripts / script, *args,
                   env={**os.environ, "PATH": f"{fakes}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, done.stderr)
        return log.read_text().splitlines()

    @unittest.skipUnless(run(*UNSHARE, "true").returncode == 0, "no namespaces here")
    def test_an_installation_starts_nothing_and_an_upgrade_restarts_what_runs(self):
        reload = "systemctl --system daemon-reload"
        self.assertEqual(self.called("postinst", "configure", ""), [reload])
        again, restart = self.called("postinst", "configure", "0.0.9")
        self.assertEqual(again, reload)
        self.assertRegex(restart, r"^deb-systemd-invoke try-restart .*\brailmated\.service\b")
        self.assertEqual(self.called("prerm", "upgrade", "9.9.9"), [])
        (stop,) = self.called("prerm", "remove")
        self.assertRegex(stop, r"^deb-systemd-invoke stop .*\brailmated\.service\b")
        self.assertEqual(self.called("postrm", "remove"), [reload])

    def test_railmatectl_is_a_plugin_of_kubectl_that_is_completed(self):
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
        for deb in self.debs.values():
            self.assertEqual(unaccepted(deb), [])


if __name__ == "__main__":
    WHERE.append(sys.argv.pop(1))
    unittest.main()
