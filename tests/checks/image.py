#!/usr/bin/python3
"""Images of hack/image and hack/demo-image: what scanners find in them, what their SBOMs say, and that they hold nothing
else.

    image.py FILE.oci.tar…      with FILE.ARCH.spdx.json beside each
"""
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import struct
import sys
import tarfile
import unittest

FILES = []
PROBE = "usr/lib/railmate/probe/"
PROGRAMS = {
    "usr/bin/railmated", "usr/bin/railmatectl", "usr/bin/railmate-cni", PROBE + "railmate-probe"
}
ELF = {"amd64": 62, "arm64": 183}  # e_machine
OURS = PROGRAMS | {"usr/share/doc/railmate/LICENSE", "etc/nsswitch.conf", "etc/os-release"}
METADATA = "var/lib/dpkg/status.d/"
# Parts of these are in the programs.
LINKED = {
    "libabsl-dev", "libc-ares-dev", "libc6-dev", "libgcc-12-dev", "libgrpc-dev", "libibverbs-dev",
    "libjansson-dev", "libnl-3-dev", "libnl-route-3-dev", "libprotobuf-c-dev", "libstdc++-12-dev",
    "libuv1-dev"
}

class Image:
    """One architecture's."""

    def __init__(self, file, tar, descriptor):
        blob = lambda d: tar.extractfile("blobs/" + d["digest"].replace(":", "/")).read()
        manifest = json.loads(blob(descriptor))
        self.digest = descriptor["digest"].partition(":")[2]
        self.platform = descriptor["platform"]
        self.config = json.loads(blob(manifest["config"]))
        self.packed = blob(manifest["layers"][0])
        self.diff_ids, self.layers, self.members, self.files = [], [], {}, {}
        for descriptor in manifest["layers"]:
            plain = gzip.decompress(blob(descriptor))
            self.diff_ids.append("sha256:" + hashlib.sha256(plain).hexdigest())
            with tarfile.open(fileobj=io.BytesIO(plain)) as layer:
                self.layers.append(layer.getmembers())
                for member in self.layers[-1]:
                    self.members[member.name] = member
                    if member.isfile():
                        self.files[member.name] = layer.extractfile(member).read()
        self.sbom_path = pathlib.Path(
            f"{file.removesuffix('.oci.tar')}.{self.platform['architecture']}.spdx.json")
        self.sbom = json.loads(self.sbom_path.read_text())

    def packages(self):
        """name → what it says of itself."""
        return {
            name.removeprefix(METADATA): dict(re.findall(r"^(\S+): (.*)$", data.decode(), re.M))
            for name, data in self.files.items()
            if name.startswith(METADATA) and not name.endswith(".md5sums")
        }

    def claimed(self):
        """file → (package, MD5) of the packages' lists."""
        return {
            line.split("  ")[1]: (name.removeprefix(METADATA).removesuffix(".md5sums"),
                                  line.split("  ")[0])
            for name, data in self.files.items() if name.endswith(".md5sums")
            for line in data.decode().splitlines()
        }


def load(file):
    with tarfile.open(file) as tar:
        index = json.load(tar.extractfile("index.json"))
        manifests = index["manifests"]
        if "index" in manifests[0]["mediaType"]:
            manifests = json.load(
                tar.extractfile("blobs/" + manifests[0]["digest"].replace(":", "/")))["manifests"]
        return [Image(file, tar, descriptor) for descriptor in manifests]


class Contents(unittest.TestCase):
    def setUp(self):
        self.images = [image for file in FILES for image in load(file)]

    def each(self):
        return [(image, image.platform["architecture"]) for image in self.images]

    def test_that_for_arm64_is_not_much_larger(self):
        sizes = {arch: len(image.packed) for image, arch in self.each()}
        if len(sizes) > 1:
            self.assertLessEqual(sizes["arm64"], 1.1 * sizes["amd64"])

    def test_config_and_layer_belong_together(self):
        for image, arch in self.each():
            self.assertEqual((image.config["architecture"], image.config["os"]), (arch, "linux"))
            self.assertEqual(image.config["rootfs"]["diff_ids"], image.diff_ids)

    def test_every_program_and_library_is_of_the_architecture(self):
        for image, arch in self.each():
            elf = {
                name: struct.unpack_from("<H", data, 18)[0]
                for name, data in image.files.items()
                if data[:4] == b"\x7fELF"
            }
            self.assertLessEqual(PROGRAMS, elf.keys())
            self.assertEqual({name: kind for name, kind in elf.items() if kind != ELF[arch]}, {})

    def test_every_file_is_ours_or_a_packages_and_unchanged(self):
        for image, _ in self.each():
            claimed = image.claimed()
            for name, data in image.files.items():
                if name in OURS or name.startswith((METADATA, "usr/share/doc/", "demo/")):
                    continue
                self.assertIn(name, claimed)
                self.assertEqual(claimed[name][1], hashlib.md5(data).hexdigest(), name)
            self.assertEqual(claimed.keys() - image.files.keys(), set())

    def test_every_package_says_what_a_scanner_asks_and_has_its_licence(self):
        for image, arch in self.each():
            packages = image.packages()
            self.assertLessEqual({"libc6", "libgrpc-dev", "libcurl4", "libssl3", "base-files"},
                                 packages.keys())
            with_files = {package for package, _ in image.claimed().values()}
            self.assertEqual(packages.keys() - with_files, LINKED)
            for name, said in packages.items():
                self.assertEqual(said["Package"], name)
                self.assertIn(said["Architecture"], (arch, "all"))
                self.assertTrue(said["Version"] and said["Maintainer"])
                self.assertNotIn("Status", said)
                self.assertTrue(image.files[f"usr/share/doc/{name}/copyright"], name)

    def test_the_packages_of_the_demo_are_there(self):
        demos = [image for image, _ in self.each() if len(image.layers) > 1]
        self.assertEqual(len(demos), sum("-demo" in file for file in FILES))
        for image in demos:
            packages = {"python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib"}
            self.assertLessEqual(packages, image.packages().keys())
            self.assertEqual(image.claimed()["usr/bin/python3"][0], "python3.11-minimal")
            self.assertIn("/railmate-demo@", json.dumps(image.sbom))

    def test_libgcc_is_there_if_something_asks_for_it_by_name(self):
        """libc loads it for these, and aborts without it."""
        for image, _ in self.each():
            asking = [name for name, data in image.files.items()
                      if data[:4] == b"\x7fELF" and not re.search(r"/(libc|ld-linux[^/]*)\.so\.\d$", name)
                      and re.search(rb"\0(pthread_exit|pthread_cancel|backtrace)\0", data)]
            if not any("libgcc_s.so.1" in name for name in image.files):
                self.assertEqual(asking, [])

    def test_the_probe_has_its_loader_and_its_c_library_beside_it(self):
        for image, _ in self.each():
            links = {
                name: os.path.normpath(PROBE + member.linkname)
                for name, member in image.members.items()
                if name.startswith(PROBE) and member.issym()
            }
            self.assertEqual({name.removeprefix(PROBE) for name in links},
                             {"ld.so", "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0",
                              "librt.so.1", "railmate-cni"})
            self.assertLessEqual(set(links.values()), image.files.keys())

    def test_it_says_which_debian_it_is(self):
        for image, _ in self.each():
            self.assertIn(b"\nID=debian\n", image.files["usr/lib/os-release"])
            self.assertEqual(image.members["etc/os-release"].linkname, "../usr/lib/os-release")

    def test_nothing_of_the_machine_that_built_it(self):
        for image, _ in self.each():
            for layer in image.layers:
                names = [member.name for member in layer]
                self.assertEqual(names, sorted(names))
            self.assertEqual(
                {(m.uid, m.gid, m.uname, m.gname, m.mtime)
                 for m in image.members.values()}, {(0, 0, "", "", 0)})
            self.assertEqual({m.mode for m in image.members.values() if m.isfile()}, {0o644, 0o755})
            self.assertFalse([
                m.name for m in image.members.values() if not (m.isfile() or m.isdir() or m.issym())
            ])

    def test_the_sbom_has_what_the_image_has(self):
        for image, arch in self.each():
            sbom = image.sbom
            self.assertEqual(sbom["spdxVersion"], "SPDX-2.3")
            by_id = {package["SPDXID"]: package for package in sbom["packages"]}
            self.assertEqual(len(by_id), len(sbom["packages"]))
            ends = {
                relation[end]
                for relation in sbom["relationships"]
                for end in ("spdxElementId", "relatedSpdxElement")
            }
            self.assertEqual(ends, by_id.keys() | {"SPDXRef-DOCUMENT"})
            self.assertTrue(all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", name) for name in by_id))
            of = lambda kind: [
                by_id[r["relatedSpdxElement"]]
                for r in sbom["relationships"]
                if r["relationshipType"] == kind
            ]
            self.assertEqual([p["checksums"][0]["checksumValue"] for p in of("DESCRIBES")],
                             [image.digest])
            contained = {
                p["name"]: p["versionInfo"]
                for p in of("CONTAINS")
                if p["name"] != "railmate"
            }
            linked = {p["name"]: p["versionInfo"] for p in of("STATIC_LINK")}
            self.assertEqual(linked.keys(), LINKED)
            self.assertEqual(contained | linked,
                             {name: said["Version"]
                              for name, said in image.packages().items()})
            for package in of("CONTAINS")[1:] + of("STATIC_LINK"):
                self.assertRegex(
                    package["externalRefs"][0]["referenceLocator"],
                    rf"^pkg:deb/debian/[a-z0-9.%B+-]+@[A-Za-z0-9.%~-]+\?arch=({arch}|all|source)&distro=debian-\d+$"
                )


if __name__ == "__main__":
    FILES, sys.argv[1:] = sys.argv[1:], []
    unittest.main()
