"""
The image of a kind node, for machines that reach no registry: Debian's programs, what kind puts
into its own node images, our build of
Kubernetes and the containerd of tests/e2e/peers. It is a file system in a tar archive, for `podman
import`. Standard library only.

kind's images/base/Dockerfile says what a node has; here some things differ: containerd makes the
network of pods itself from the range that the node gets (no CNI daemon), there is no storage class,
no kube-proxy and no DNS. What a container without CAP_SYS_RESOURCE cannot do (raise a limit, lower
an oom_score_adj) is not asked for.
"""
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "kubelet"))
import node  # noqa: E402 (the path comes first)
from containerd import containerd_config  # noqa: E402

PACKAGES = [
    "systemd", "dbus", "conntrack", "iptables", "nftables", "iproute2", "ethtool", "util-linux",
    "mount", "kmod", "procps", "jq", "curl", "ca-certificates", "containernetworking-plugins",
    "socat", "e2fsprogs", "libseccomp2", "ebtables"
]
UNITS = ["kubelet", "containerd", "undo-mount-hacks"]
PROGRAMS = ["kubeadm", "kubelet", "kubectl"]
IMAGE_CHANGES = [
    "ENTRYPOINT [\"/usr/local/bin/entrypoint\", \"/sbin/init\"]", "ENV container=docker",
    "STOPSIGNAL SIGRTMIN+3"
]

NETWORK = """{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true, "ipam": {"type": "host-local",
   "ranges": [{{range $i, $range := .PodCIDRRanges}}{{if $i}}, {{end}}[{"subnet": "{{$range}}"}]{{end}}],
   "routes": [{{range $i, $route := .Routes}}{{if $i}}, {{end}}{"dst": "{{$route}}"}{{end}}]}}]}
"""
CONTAINERD_UNIT = """[Service]
OOMScoreAdjust=0
LimitNPROC=
LimitCORE=
LimitNOFILE=
ExecStartPost=/kind/bin/load-images
TimeoutStartSec=300
"""
LOAD_IMAGES = """#!/bin/sh
set -e
for file in /kind/images/*.tar; do
	ctr -n k8s.io images import --local "$file"
done
"""
# kind applies both, and takes an empty one for an error.
NOTHING = """apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: kube-system}
"""


def debian(cache):
    """A small Debian, once a machine."""
    archive = cache / "node-root.tar"
    if not archive.exists():
        new = archive.with_suffix(".new")
        subprocess.run([
            "mmdebstrap", "--quiet", "--variant=minbase", "--format=tar",
            f"--include={','.join(PACKAGES)}", "bookworm", new
        ], check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)
        new.rename(archive)
    return archive


def put(root, name, text, mode=0o644):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def like_kind(root, files):
    """What kind's Dockerfile does with its files and with Debian's units."""
    shutil.copytree(files, root, dirs_exist_ok=True, symlinks=True)
    for folder in ("kind/bin", "usr/local/bin"):
        for program in (root / folder).iterdir():
            program.chmod(0o755)
    system = root / "lib/systemd/system"
    for pattern in ("sysinit.target.wants/systemd-tmpfiles-setup.service",
                    "multi-user.target.wants/*", "local-fs.target.wants/*", "basic.target.wants/*",
                    "sockets.target.wants/*udev*", "sockets.target.wants/*initctl*"):
        for path in system.glob(pattern):
            path.unlink()
    for path in (root / "etc/systemd/system").glob("*.wants/*"):
        path.unlink()
    wants = root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    for unit in UNITS:
        (wants / f"{unit}.service").symlink_to(f"/etc/systemd/system/{unit}.service")
    (root / "etc/systemd/system/systemd-binfmt.service").symlink_to("/dev/null")
    (root / "sbin/init").unlink(missing_ok=True)
    (root / "sbin/init").symlink_to("/usr/lib/systemd/systemd")
    (root / "etc/kubernetes/manifests").mkdir(parents=True)


def add_programs(root, kubelet, containerd, runc):
    version = subprocess.run([kubelet, "--version"], check=True, stdout=subprocess.PIPE,
                             text=True).stdout.split()[-1]
    for name in ("containerd", "ctr", "containerd-shim-runc-v2"):
        shutil.copy(containerd / "usr/bin" / name, root / "usr/local/bin")
    (root / "usr/local/sbin").mkdir(exist_ok=True)
    shutil.copy(runc / "usr/sbin/runc", root / "usr/local/sbin")
    shutil.copy(kubelet, root / "usr/bin/kubernetes")
    for name in PROGRAMS:
        (root / "usr/bin" / name).symlink_to("kubernetes")
    put(root, "kind/version", version)
    (root / "opt/cni").mkdir()
    (root / "opt/cni/bin").symlink_to("/usr/lib/cni")
    return version


def control_plane_image(kubelet, version):
    """One program under the names of all images that kubeadm starts."""
    said = subprocess.run(
        [kubelet.parent / "kubeadm", "config", "images", "list", "--kubernetes-version", version],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.split()
    tags = [tag for tag in said if "/pause:" not in tag and "/coredns" not in tag]
    names = [tag.rpartition("/")[2].partition(":")[0] for tag in tags]
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for folder, mode in (("usr", 0o755), ("usr/local", 0o755), ("usr/local/bin", 0o755),
                             ("etc", 0o755), ("tmp", 0o1777), ("var", 0o755), ("run", 0o755)):
            one = tarfile.TarInfo(folder)
            one.type, one.mode = tarfile.DIRTYPE, mode
            tar.addfile(one)
        tar.add(kubelet, "usr/local/bin/kubernetes")
        for name in names:
            one = tarfile.TarInfo(f"usr/local/bin/{name}")
            one.type, one.linkname = tarfile.SYMTYPE, "kubernetes"
            tar.addfile(one)
    return node.image_archive(tags, layer.getvalue(), {"Env": ["PATH=/usr/local/bin"]})


def make(out, cache, files, kubelet, containerd, runc, busybox):
    """The archive; cache: where Debian's part is kept."""
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        root = pathlib.Path(folder)
        subprocess.run(["tar", "-C", root, "-xf", debian(cache), "--exclude=./dev/*"], check=True)
        root.chmod(0o755)
        like_kind(root, files)
        version = add_programs(root, kubelet, containerd, runc)
        put(
            root, "etc/containerd/config.toml",
            containerd_config(node.PAUSE, "/opt/cni/bin", "/etc/cni/net.d", {"SystemdCgroup": True},
                              conf_template="/etc/containerd/network.template"))
        put(root, "etc/containerd/network.template", NETWORK)
        put(root, "etc/systemd/system/containerd.service.d/container.conf", CONTAINERD_UNIT)
        put(root, "etc/systemd/journald.conf", "[Journal]\nReadKMsg=no\n")
        put(root, "kind/bin/load-images", LOAD_IMAGES, 0o755)
        for name in ("cni", "storage"):
            put(root, f"kind/manifests/default-{name}.yaml", NOTHING % f"no-{name}")
        images = root / "kind/images"
        images.mkdir(exist_ok=True)
        (images / "control-plane.tar").write_bytes(control_plane_image(kubelet, version))
        (images / "pause.tar").write_bytes(
            node.small_image(node.PAUSE, busybox, ["/bin/busybox", "sleep", "1000000000"]))
        subprocess.run(["tar", "-C", root, "--numeric-owner", "-cf", out, "."], check=True)
    return version
