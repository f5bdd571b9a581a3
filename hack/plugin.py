"""`kubectl railmate` as an archive for any Linux, and krew's manifest of it.

Debian has no archive of libpci and libmnl, so no static program can be linked with it: what comes is
railmatectl of the image, with the loader and the libraries that it has there.
"""
import gzip
import hashlib
import io
import json
import pathlib
import re
import subprocess
import tarfile
import tempfile

PROGRAM = "usr/bin/railmatectl"
STARTER = """#!/bin/sh
# railmatectl with the C library that lies beside it, as a static program would have it.
lib=$(dirname "$(readlink -f "$0")")/lib
exec "$lib/{loader}" --argv0 kubectl-railmate --library-path "$lib" "$lib/railmatectl" "$@"
"""
ABOUT = """railmate gives containers the SR-IOV RDMA VFs that are nearest to their GPUs. This asks its pods on all nodes: which VFs are free, held or
unusable, which pod has which and why, what keeps NCCL from being fast, and whether a job used its VFs. It needs railmate in the cluster, and
the rights to list its pods and to execute commands in them."""


def elf(data, option, pattern):
    """What readelf says."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        said = subprocess.run(["readelf", "-W", option, file.name], capture_output=True, text=True, check=True).stdout
    return re.findall(pattern, said)


def contents(layout, image):
    """name → bytes of the files of an image."""
    found = {}
    for layer in image.layers:
        with tarfile.open(fileobj=io.BytesIO(layout.get(layer)), mode="r:gz") as tar:
            found |= {member.name: tar.extractfile(member).read() for member in tar.getmembers() if member.isfile()}
    return found


def files(there):
    """name → bytes of what the program needs, of an image with these files."""
    (loader,) = elf(there[PROGRAM], "-l", r"program interpreter: /([^\]]+)")
    named = {pathlib.PurePath(name).name: data for name, data in there.items() if ".so" in name}
    loader, found, asked = pathlib.PurePath(loader).name, {}, [there[PROGRAM]]
    while asked:
        for name in elf(asked.pop(), "-d", r"\(NEEDED\).*\[(.*)\]"):
            if name not in found:
                found[name] = named[name]
                asked.append(named[name])
    found[loader] = named[loader]
    return {"kubectl-railmate": STARTER.format(loader=loader).encode(), "lib/railmatectl": there[PROGRAM]} | {
        f"lib/{name}": data for name, data in found.items()}


def write(path, members):
    """Equal files give equal bytes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, data in sorted(members.items()):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o755 if name == "kubectl-railmate" or name.startswith("lib/") else 0o644
            tar.addfile(info, io.BytesIO(data))
    path.write_bytes(gzip.compress(out.getvalue(), 9, mtime=0))


def archives(out, name, layout, licence):
    """One an architecture: {its architecture: the file}."""
    made = {}
    for image in layout.images():
        there, arch = contents(layout, image), image.platform["architecture"]
        licences = {data for file, data in there.items() if re.fullmatch(r"usr/share/doc/[^/]+/copyright", file)}
        made[arch] = out / f"{name}-kubectl-linux-{arch}.tar.gz"
        write(made[arch], files(there) | {"LICENSE": licence, "LICENSES-OF-LIBRARIES": b"\n".join(sorted(licences))})
    return made


def krew(version, url, made):
    """The manifest. JSON is YAML, too."""
    platforms = [{"selector": {"matchLabels": {"os": "linux", "arch": arch}}, "uri": f"{url}/{file.name}",
                  "sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "bin": "kubectl-railmate"} for arch, file in sorted(made.items())]
    return json.dumps({"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin", "metadata": {"name": "railmate"}, "spec": {
        "version": f"v{version}", "homepage": url, "shortDescription": "Show which RDMA VFs pods have, and why", "description": ABOUT,
        "platforms": platforms}}, indent=2) + "\n"
