#!/usr/bin/python3
"""hack/release: what it makes of this tree, and that --bump reaches every place. The image has a
test of its own."""
import hashlib
import json
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


def release(*args, top=TOP):
    return subprocess.run([top / "hack/release", *args], capture_output=True, text=True,
                          timeout=250)


@unittest.skipUnless(shutil.which("kubectl"), "no kubectl")
class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="railmate-release-")
        cls.addClassCleanup(folder.cleanup)
        cls.out = pathlib.Path(folder.name)
        cls.done = release("-o", cls.out, "--image", "registry.example/x/railmate", "--no-image")

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

    def test_the_provenance_names_every_file_and_what_it_was_made_from(self):
        said = json.loads(self.file(".provenance.json").read_text())
        self.assertEqual((said["_type"], said["predicateType"]),
                         ("https://in-toto.io/Statement/v1", "https://slsa.dev/provenance/v1"))
        sums = dict(
            reversed(line.split("  "))
            for line in (self.out / "SHA256SUMS").read_text().splitlines())
        subjects = {subject["name"]: subject["digest"]["sha256"] for subject in said["subject"]}
        self.assertEqual(
            subjects, {name: sums[name]
                       for name in sums
                       if not name.endswith(".provenance.json")})
        locked = [
            line.split()
            for line in (TOP / "hack/sysroot.lock").read_text().splitlines()
            if re.match(r"(amd64|arm64|source) ", line)
        ]
        made_from = said["predicate"]["buildDefinition"]["resolvedDependencies"]
        self.assertEqual({words[3]
                          for words in locked}, {
                              each["digest"]["sha256"]
                              for each in made_from
                              if each.get("uri", "").startswith("pkg:deb/")
                          })

    def test_the_manifests_have_one_image_of_this_version(self):
        folders = {path.parent.name
                   for path in (TOP / "deploy").glob("*/kustomization.yaml")
                   } - {"base", "components"}
        paths = [self.file(".yaml"), *(self.file(f"-{name}.yaml") for name in folders)]
        self.assertEqual(set(self.out.glob("*.yaml")), set(paths))
        for path in paths:
            kinds = {document["kind"] for document in yaml.safe_load_all(path.read_text())}
            self.assertLessEqual({"DaemonSet", "ServiceAccount"}, kinds, path)
            images = set(re.findall(r"image: (\S+)", path.read_text()))
            self.assertEqual(images, {f"registry.example/x/railmate:{VERSION}"}, path)

    def test_a_folder_with_files_is_left_alone(self):
        done = release("-o", self.out, "--no-image")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not empty", done.stderr)


class Version(unittest.TestCase):
    """On a copy, without git."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="railmate-bump-")
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)
        for name in ("CMakeLists.txt", "NEWS.md", "README.md"):
            shutil.copy(TOP / name, self.top)
        for name in ("deploy", "docs"):
            shutil.copytree(TOP / name, self.top / name)
        (self.top / "hack").mkdir()
        for name in ("release", "repofiles.py", "image", "sysroot.lock"):
            shutil.copy(TOP / "hack" / name, self.top / "hack")

    def test_the_image_is_made_of_locked_packages(self):
        done = subprocess.run([TOP / "hack/sysroot", "--check"], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

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

    def test_what_is_no_version_is_refused(self):
        done = release("--bump", "v1.2", top=self.top)
        self.assertEqual(done.returncode, 2)
        self.assertIn("'v1.2' is not a version", done.stderr)

    @unittest.skipUnless(shutil.which("kubectl"), "no kubectl")
    def test_the_image_is_made_under_the_name_of_the_manifests(self):
        (self.top /
         "hack/image").write_text('#!/bin/sh\necho "$@" >made.oci.tar\nmv made.oci.tar "$7"\n')
        (self.top / "hack/deb").write_text('#!/bin/sh\necho "$@" >"$4/$2.deb"\n')
        (self.top / "hack/deb").chmod(0o755)
        done = release("-o", self.top / "out", "--image", "registry.example/x", top=self.top)
        self.assertEqual(done.returncode, 0, done.stderr)
        image = self.top / f"out/railmate-{VERSION}.oci.tar"
        self.assertEqual(image.read_text().split(), [
            "--arch", "amd64,arm64", "--locked", "--tag", f"registry.example/x:{VERSION}", "-o",
            str(image)
        ])
        self.assertIn(image.name, (self.top / "out/SHA256SUMS").read_text())
        for arch in ("amd64", "arm64"):
            self.assertEqual((self.top / f"out/{arch}.deb").read_text().split(),
                             ["--arch", arch, "-o", str(self.top / "out")])


if __name__ == "__main__":
    unittest.main()
