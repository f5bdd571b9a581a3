#!/usr/bin/python3
"""hack/release: what it makes of this tree, and that --bump reaches every place. The image has a
test of its own."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import yaml

TOP = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.search(r"project\(railmate VERSION (\S+)",
                    (TOP / "CMakeLists.txt").read_text()).group(1)


def release(*args, top=TOP, **kw):
    return subprocess.run([top / "hack/release", *args], capture_output=True, text=True,
                          timeout=250, check=False, **kw)


def snapshot(*args, **kw):
    """Of this tree, whatever its state."""
    return release("--snapshot", *args, **kw)


def copy_to(top):
    """What hack/release reads, without git."""
    for name in ("CMakeLists.txt", "LICENSE", "NEWS.md", "README.md"):
        shutil.copy(TOP / name, top)
    for name in ("debian", "deploy", "docs"):
        shutil.copytree(TOP / name, top / name)
    (top / "hack").mkdir()
    for name in ("release", "releasenotes.py", "oci.py", "repofiles.py", "image", "plugin.py", "publish.py"):
        shutil.copy(TOP / "hack" / name, top / "hack")


@unittest.skipUnless(shutil.which("kubectl"), "no kubectl")
class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="railmate-release-")
        cls.addClassCleanup(folder.cleanup)
        cls.out = pathlib.Path(folder.name)
        cls.done = snapshot("-o", cls.out, "--image", "registry.example/x/railmate", "--no-image")

    def setUp(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)

    def file(self, suffix):
        return self.out / f"railmate-{VERSION}{suffix}"

    def test_every_file_has_its_checksum(self):
        sums = dict(
            reversed(line.split("  "))
            for line in (self.out / "SHA256SUMS").read_text().splitlines())
        self.assertEqual({path.name for path in self.out.iterdir()} - {"SHA256SUMS"}, sums.keys())
        for name, checksum in sums.items():
            self.assertEqual(
                hashlib.sha256((self.out / name).read_bytes()).hexdigest(), checksum, name)

    def test_the_sources_are_one_folder_without_names_of_people(self):
        with tarfile.open(self.file(".tar.gz")) as tar:
            members = tar.getmembers()
        names = {member.name for member in members}
        self.assertEqual({name.partition("/")[0] for name in names}, {f"railmate-{VERSION}"})
        self.assertLessEqual(
            {
                f"railmate-{VERSION}/{name}"
                for name in ("CMakeLists.txt", "LICENSE", "hack/release")
            }, names)
        self.assertEqual({(m.uid, m.gid, m.uname, m.gname, m.mtime)
                          for m in members}, {(0, 0, "", "", 0)})
        self.assertTrue(next(m for m in members if m.name.endswith("/hack/release")).mode & 0o100)

    def test_the_chart_and_the_completion_are_there(self):
        with tarfile.open(self.file("-chart.tgz")) as tar:
            self.assertIn(f"version: {VERSION}",
                          tar.extractfile("railmate/Chart.yaml").read().decode())
            self.assertLessEqual({"railmate/values.yaml", "railmate/templates/daemonset.yaml"},
                                 set(tar.getnames()))
        with tarfile.open(self.file("-completion.tar.gz")) as tar:
            self.assertLessEqual(
                {
                    f"railmate-{VERSION}-completion/{name}"
                    for name in ("railmatectl.bash", "_railmatectl", "railmatectl.fish",
                                 "kubectl_complete-railmate")
                }, set(tar.getnames()))

    def test_the_notes_are_the_section_of_the_news(self):
        notes = self.file(".notes.md").read_text()
        section = (TOP / "NEWS.md").read_text().partition(f"\n## {VERSION} ")[2]
        section = section.partition("\n")[2].partition("\n## ")[0].strip()
        self.assertTrue(notes.startswith(f"# railmate {VERSION}\n\n{section}\n\n## "))
        self.assertNotIn("## Images", notes)

    def test_a_folder_with_files_is_left_alone(self):
        done = snapshot("-o", self.out, "--no-image")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not empty", done.stderr)


class Version(unittest.TestCase):
    """On a copy, without our repository."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="railmate-bump-")
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)
        copy_to(self.top)

    def test_it_is_the_same_everywhere(self):
        done = release("--check")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_place_that_differs_is_named(self):
        page = self.top / "deploy/man/railmated.8"
        page.write_text(page.read_text().replace(f".Os railmate {VERSION}", ".Os railmate 9.9.9"))
        done = release("--check", top=self.top)
        self.assertEqual(done.returncode, 1)
        self.assertIn("deploy/man/railmated.8:3: names version 9.9.9", done.stderr)

    def test_bump_changes_all_of_them(self):
        self.assertEqual(release("--bump", "9.8.7", top=self.top).returncode, 0)
        self.assertEqual(release("--check", top=self.top).returncode, 0)
        left = subprocess.run([
            "grep", "-rnE", rf"railmate[: ]{re.escape(VERSION)}|version: {re.escape(VERSION)}",
            self.top / "deploy", self.top / "docs", self.top / "README.md"
        ], capture_output=True, text=True, check=False).stdout
        self.assertEqual(left, "")
        self.assertIn("project(railmate VERSION 9.8.7 ", (self.top / "CMakeLists.txt").read_text())
        self.assertTrue(
            (self.top / "NEWS.md").read_text().startswith("# NEWS\n\n## 9.8.7 (unreleased)\n"))

    def test_bump_after_a_release_begins_a_section(self):
        news = self.top / "NEWS.md"
        news.write_text(f"# NEWS\n\n## {VERSION} (2026-11-30)\n\n- a\n")
        self.assertEqual(release("--bump", "9.8.7", top=self.top).returncode, 0)
        self.assertEqual(news.read_text(),
                         f"# NEWS\n\n## 9.8.7 (unreleased)\n\n## {VERSION} (2026-11-30)\n\n- a\n")

    def git(self, *args):
        subprocess.run(["git", "-C", self.top, "-c", "user.name=x", "-c", "user.email=x@example.test", *args],
                       check=True, capture_output=True)

    def refused(self):
        done = release("-o", self.top / "out", "--no-image", top=self.top)
        self.assertEqual((done.returncode, done.stdout.count("sha256")), (1, 0))
        self.assertFalse((self.top / "out").exists())
        return done.stderr

    def test_what_is_not_committed_dated_and_tagged_is_no_release(self):
        news = self.top / "NEWS.md"
        news.write_text(f"# NEWS\n\n## {VERSION} (unreleased)\n\nNews.\n")
        self.git("init", "-q")
        self.assertIn("is not committed, nor are", self.refused())
        self.git("add", ".")
        self.git("commit", "-qm", "x")
        self.assertIn("the newest section of NEWS.md is unreleased", self.refused())
        news.write_text(news.read_text().replace("unreleased", "2026-11-24"))
        self.assertIn("NEWS.md is not committed;", self.refused())
        self.git("commit", "-qam", "x")
        self.assertIn(f"HEAD has no tag v{VERSION}", self.refused())

# Instead of hack/image, hack/demo-image and hack/debs; what they were told is noted.
FAKE_IMAGE = """#!/usr/bin/python3
import io, pathlib, sys, tarfile
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import oci
FILES = @FILES@
tag, _, out = sys.argv[-3:]
out = pathlib.Path(out)
layout, manifests = oci.Layout(), []
for arch in ("amd64", "arm64"):
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as layer:
        info = tarfile.TarInfo("etc/marker")
        info.size = len(tag + arch) + 1
        layer.addfile(info, io.BytesIO(f"{tag} {arch}".encode()))
        for file, name in FILES.items():
            layer.add(file, name)
    layer, _ = layout.add_layer(tar.getvalue())
    manifests.append(layout.add_image(oci.Image({"architecture": arch, "os": "linux"}, {}, [layer])))
layout.finish(manifests, tag)
layout.write(out)
for arch in ("amd64", "arm64"):
    (out.parent / f"{out.name.removesuffix('.oci.tar')}.{arch}.spdx.json").write_text("{}")
pathlib.Path(f"{__file__}.for-{out.parent.name}").write_text(" ".join(sys.argv[1:]))
"""
# railmatectl of its image is echo of this machine, with its libraries.
ECHO = shutil.which("echo", path="/usr/bin:/bin")
LIBRARIES = re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", ECHO], capture_output=True, text=True, check=True).stdout)
FAKE_IMAGE = FAKE_IMAGE.replace("@FILES@", repr({
    ECHO: "usr/bin/railmatectl", str(TOP / "LICENSE"): "usr/share/doc/libc6/copyright",
    **{os.path.realpath(path): path.lstrip("/") for path in LIBRARIES}}))
FAKE_DEBS = '#!/bin/sh\necho "$@" >"$1/x.deb"\n'


def program(path, text):
    path.write_text(text)
    path.chmod(0o755)


@unittest.skipUnless(shutil.which("kubectl"), "no kubectl")
class Images(unittest.TestCase):
    """What a release has to do with them, without making them."""
    IMAGE, URL = "registry.example/x", "https://files.example/v1"

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="railmate-images-")
        cls.addClassCleanup(folder.cleanup)
        cls.top = pathlib.Path(folder.name)
        copy_to(cls.top)
        for name, text in (("image", FAKE_IMAGE), ("demo-image", FAKE_IMAGE), ("debs", FAKE_DEBS)):
            program(cls.top / "hack" / name, text)
        cls.bin = cls.top / "bin"
        cls.bin.mkdir()
        for name in ("kubectl", "gcc", "python3", "readelf", "sh", "cat"):
            (cls.bin / name).symlink_to(shutil.which(name, path="/usr/local/bin:/usr/bin:/bin"))
        cls.out = cls.top / "out"
        cls.done = cls.release("out")

    @classmethod
    def release(cls, out):
        return snapshot("-o", cls.top / out, "--image", cls.IMAGE, "--url", cls.URL, top=cls.top,
                       env={**os.environ, "PATH": str(cls.bin)})

    def setUp(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)

    def file(self, suffix):
        return self.out / f"railmate-{VERSION}{suffix}"

    def notes(self):
        return self.file(".notes.md").read_text()

    def digest(self, suffix):
        with tarfile.open(self.file(suffix)) as tar:
            return json.load(tar.extractfile("index.json"))["manifests"][0]["digest"]

    def test_nothing_else_is_made_and_all_has_a_checksum(self):
        manifests = {
            f"-{path.parent.name}"
            for path in (TOP / "deploy").glob("*/kustomization.yaml")
        } - {"-base", "-components"}
        wanted = {
            f"railmate-{VERSION}{suffix}"
            for suffix in (".tar.gz", "-completion.tar.gz", "-chart.tgz", ".oci.tar",
                           "-demo.oci.tar", "-chart.oci.tar", ".notes.md", "-krew.yaml", "-publish.sh",
                           *(f"-kubectl-linux-{arch}.tar.gz" for arch in ("amd64", "arm64")),
                           *(f"{demo}.{arch}.spdx.json" for demo in ("", "-demo") for arch in ("amd64", "arm64")),
                           *(f"{name}.yaml" for name in ("", "-demo", *manifests)))
        } | {"x.deb"}
        sums = [line.split()[1] for line in (self.out / "SHA256SUMS").read_text().splitlines()]
        self.assertEqual(set(sums), wanted)
        self.assertEqual({path.name for path in self.out.iterdir()}, wanted | {"SHA256SUMS"})

    def test_manifests_and_chart_have_the_digest(self):
        image, demo = self.digest(".oci.tar"), self.digest("-demo.oci.tar")
        self.assertNotEqual(image, demo)
        for path in set(self.out.glob("*.yaml")) - {self.file("-krew.yaml")}:
            expected = (f"{self.IMAGE}-demo:{VERSION}@{demo}" if path == self.file("-demo.yaml") else
                        f"{self.IMAGE}:{VERSION}@{image}")
            self.assertEqual(set(re.findall(r"image: (\S+)", path.read_text())), {expected}, path)
        with tarfile.open(self.file("-chart.tgz")) as tar:
            values = yaml.safe_load(tar.extractfile("railmate/values.yaml"))
        self.assertEqual((values["image"]["repository"], values["image"]["digest"]),
                         (self.IMAGE, image))
        self.assertEqual(values["demo"]["image"], f"{self.IMAGE}-demo:{VERSION}@{demo}")

    def test_the_notes_have_the_digests(self):
        for name, suffix in ((self.IMAGE, ".oci.tar"), (self.IMAGE + "-demo", "-demo.oci.tar")):
            self.assertIn(f"| `{name}:{VERSION}` | | `{self.digest(suffix)}` |", self.notes())

    def test_the_chart_of_a_registry_is_the_one_of_the_file(self):
        with tarfile.open(self.file("-chart.oci.tar")) as tar:
            files = {member.name: tar.extractfile(member).read() for member in tar.getmembers()}
        (top,) = json.loads(files["index.json"])["manifests"]
        manifest = json.loads(files["blobs/" + top["digest"].replace(":", "/")])
        self.assertNotIn("manifest.json", files)  # no image
        config, (layer,) = manifest["config"], manifest["layers"]
        self.assertEqual((config["mediaType"], layer["mediaType"]),
                         ("application/vnd.cncf.helm.config.v1+json", "application/vnd.cncf.helm.chart.content.v1.tar+gzip"))
        self.assertEqual(json.loads(files["blobs/" + config["digest"].replace(":", "/")]),
                         yaml.safe_load((TOP / "deploy/helm/railmate/Chart.yaml").read_text()))
        self.assertEqual(files["blobs/" + layer["digest"].replace(":", "/")], self.file("-chart.tgz").read_bytes())

    def test_the_plugin_of_kubectl_starts_from_any_folder(self):
        manifest = yaml.safe_load(self.file("-krew.yaml").read_text())
        self.assertEqual((manifest["kind"], manifest["metadata"]["name"], manifest["spec"]["version"]), ("Plugin", "railmate", f"v{VERSION}"))
        self.assertEqual({p["selector"]["matchLabels"]["arch"] for p in manifest["spec"]["platforms"]}, {"amd64", "arm64"})
        self.assertLessEqual(len(manifest["spec"]["shortDescription"]), 50)
        for platform in manifest["spec"]["platforms"]:
            file = self.out / platform["uri"].removeprefix(self.URL + "/")
            self.assertEqual(hashlib.sha256(file.read_bytes()).hexdigest(), platform["sha256"])
            with tempfile.TemporaryDirectory(prefix="railmate krew ") as folder:
                with tarfile.open(file) as tar:
                    tar.extractall(folder)
                self.assertEqual((pathlib.Path(folder) / "LICENSES-OF-LIBRARIES").read_bytes(), (TOP / "LICENSE").read_bytes())
                link = pathlib.Path(folder) / "bin"
                link.symlink_to(pathlib.Path(folder) / platform["bin"])  # as krew does
                done = subprocess.run([link, "status", "two words"], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"},
                                      check=False, timeout=60)
            self.assertEqual((done.stdout, done.stderr), ("status two words\n", ""))

    def test_the_script_pushes_and_signs_what_there_is_by_its_digest(self):
        tools = self.top / "tools"
        tools.mkdir()
        for name in ("skopeo", "cosign"):
            program(tools / name, f'#!/bin/sh\necho {name} "$@" >>"{tools}/log"\n')
        run = lambda: subprocess.run(["sh", self.file("-publish.sh"), "--key", "k"], capture_output=True, text=True, check=False,
                                     timeout=60, env={"PATH": f"{tools}:/usr/bin:/bin"})
        done = run()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = (tools / "log").read_text().splitlines()
        for line in lines:
            for file in re.findall(r"(?:oci-archive:|--predicate )(\S+)", line):
                self.assertTrue((self.out / file).is_file(), line)
            self.assertEqual("--key k" in line, line.startswith("cosign"), line)
        signed = re.findall(r"^cosign sign .* (\S+)$", "\n".join(lines), re.M)
        self.assertEqual(signed, [f"{self.IMAGE}@{self.digest('.oci.tar')}", f"{self.IMAGE}-demo@{self.digest('-demo.oci.tar')}",
                                  f"registry.example/charts/railmate@{self.digest('-chart.oci.tar')}"])
        self.assertEqual(sum("attest" in line for line in lines), 4)
        self.assertTrue(lines[-1].endswith("SHA256SUMS"))
        (tools / "log").unlink()
        notes = self.notes()
        self.addCleanup(self.file(".notes.md").write_text, notes)
        self.file(".notes.md").write_text(notes + "x")
        self.assertNotEqual(run().returncode, 0)
        self.assertFalse((tools / "log").exists())  # nothing was pushed

    def test_an_address_that_krew_cannot_have_is_refused(self):
        done = snapshot("--url", "http://files.example", "-o", self.top / "other", top=self.top)
        self.assertEqual((done.returncode, (self.top / "other").exists()), (2, False))
        self.assertIn("'http://files.example' does not begin with https://", done.stderr)


if __name__ == "__main__":
    unittest.main()
