"""Debian's packages of one architecture: those of this machine, or those that hack/sysroot unpacked
beside it."""
import hashlib
import os
import pathlib
import re
import subprocess

TOP = pathlib.Path(__file__).resolve().parent.parent
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
EMULATORS = {"amd64": "qemu-x86_64", "arm64": "qemu-aarch64"}


class Failed(Exception):
    """One sentence."""


def host_arch():
    machine = os.uname().machine
    for arch, name in MACHINES.items():
        if name == machine:
            return arch
    raise Failed(f"this machine is {machine}: the image is for {' and '.join(sorted(MACHINES))}")


def output(*argv, **kw):
    return subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, text=True, check=True,
                          timeout=120, **kw).stdout


class Packages:
    """What is installed below root: "/", or a sysroot."""

    def __init__(self, root, arch):
        self.root, self.arch, self.triplet = pathlib.Path(root), arch, TRIPLETS[arch]
        self.query = ["dpkg-query", f"--admindir={self.root}/var/lib/dpkg"]

    def tool(self, name):
        """binutils of the architecture, whatever this machine is."""
        return f"{self.triplet}-{name}"

    def library(self, name):
        """Where the loader finds it: a path as it is in the image."""
        for folder in ("lib", "usr/lib"):
            if (self.root / folder / self.triplet / name).exists():
                return f"/{folder}/{self.triplet}/{name}"
        raise Failed(
            f"{name} is not installed for {self.arch} below {self.root}: see hack/install-deps")

    def needed(self, file):
        """The libraries that a file names, and the loader."""
        text = output(self.tool("readelf"), "-dlW", file)
        loader = re.search(r"program interpreter: (\S+)\]", text)
        # The loader itself is named by libraries, too, and has its place.
        names = {
            n
            for n in re.findall(r"\(NEEDED\).*\[(\S+)\]", text)
            if not n.startswith("ld-linux")
        }
        return {self.library(name) for name in names} | ({loader.group(1)} if loader else set())

    def libraries(self, files):
        """All that the files need, and what that needs."""
        found = set()
        todo = {path for file in files for path in self.needed(file)}
        while todo:
            found |= todo
            todo = {path for file in todo for path in self.needed(self.real(file))} - found
        return sorted(found)

    def real(self, path):
        return (self.root / path.lstrip("/")).resolve()

    def owners(self, paths):
        """path → package. dpkg knows a file by one of its names, before or after /lib moved into
        /usr."""
        names = {}
        for path in paths:
            real = "/" + str(self.real(path).relative_to(self.root.resolve()))
            for name in (real, path, real.removeprefix("/usr"), "/usr" + path):
                names.setdefault(name, path)
        done = subprocess.run([*self.query, "-S", *names], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, timeout=120, check=False)
        found = {}
        for line in done.stdout.splitlines():
            owner, _, name = line.rpartition(": ")
            if name in names and "," not in owner and not owner.startswith("diversion"):
                found[names[name]] = owner.partition(":")[0]
        return found

    def stanza(self, package):
        """What the package says of itself, without the state of this machine."""
        name = package if self.field(package, "Architecture") == "all" else f"{package}:{self.arch}"
        text = output(*self.query, "-s", name)
        return re.sub(r"^(Status|Conffiles):.*\n(?: .*\n)*", "", text, flags=re.M).strip() + "\n"

    def field(self, package, name):
        """Of the package of our architecture, or the one for all."""
        text = output(*self.query, "-W", "-f", "${Architecture} ${" + name + "}\n", package)
        for line in text.splitlines():
            arch, _, value = line.partition(" ")
            if arch in (self.arch, "all"):
                return value
        raise Failed(f"{package} is not installed for {self.arch}")

    def checksums(self, package):
        """path → MD5 of the package's files, as the package says."""
        for name in (f"{package}:{self.arch}", package):
            path = self.root / f"var/lib/dpkg/info/{name}.md5sums"
            if path.exists():
                return {
                    "/" + file: md5
                    for md5, file in (line.split(None, 1) for line in path.read_text().splitlines())
                }
        return {}

    def md5sums(self, package, files):
        """The list of the package's files in an image. files: name there → path here; each has to be
        as the package installed it."""
        said, lines = self.checksums(package), []
        for name, path in sorted(files.items()):
            real = str(self.real(path)).removeprefix(str(self.root.resolve()).rstrip("/"))
            md5 = hashlib.md5(self.real(path).read_bytes()).hexdigest()
            if md5 not in (said.get(real), said.get(real.removeprefix("/usr")),
                           said.get("/usr" + real)):
                raise Failed(f"{self.real(path)} is not the file that {package} installed")
            lines.append(f"{md5}  {name}\n")
        return lines

    def downloaded(self):
        """package → (version, SHA-256 of its file): of a sysroot."""
        path = self.root / "packages"
        lines = path.read_text().splitlines(
        ) if path.exists() and self.root != pathlib.Path("/") else []
        return {name: (version, checksum) for name, version, checksum in map(str.split, lines)}


def sysroot(arch, fresh=False):
    """The packages that hack/sysroot unpacked for an architecture, or that Debian has today."""
    done = subprocess.run([TOP / "hack/sysroot", *(["--fresh"] if fresh else []), arch],
                          stdout=subprocess.PIPE, text=True, timeout=900, check=False)
    if done.returncode:
        raise Failed(f"no packages for {arch}")
    return Packages(done.stdout.strip().splitlines()[-1], arch)
