"""
railmate-probe in images whose libibverbs is not right, which is read and asked there, or whose C library is another one; and
beside jobs that use RDMA and TCP.
"""

import contextlib
import json
import os
import shutil

from bed import check, equal, output, scenario, write
from probe import BROKEN, GOOD, PROGRAM, SLOW, SOME_SECONDS, check_measures, container, in_image

LIBRARY = "/usr/lib/x86_64-linux-gnu/libibverbs.so.1"
PROVIDERS = "/usr/lib/x86_64-linux-gnu/libibverbs"
EMPTY, CONDA = "/run/empty-folder", "/run/conda"

RDMA = r"""
ib_write_bw -d "$DEVICE" -x "$INDEX" -s 65536 -n 20000 -F > /tmp/server 2>&1 &
until grep -q ':4853 ' /proc/net/tcp /proc/net/tcp6; do sleep 0.2; done # 18515
ib_write_bw -d "$DEVICE" -x "$INDEX" -s 65536 -n 20000 -F 127.0.0.1 > /tmp/client 2>&1 &
until [ -n "$(ls -l /proc/$!/fd | grep uverbs)" ]; do sleep 0.2; done
sleep 3
"$@" --pid $!
status=$?
kill $! %1
exit $status
"""

TCP = r"""
python3 -c '
import os, socket, sys
a, b = sys.argv[1:]
listener = socket.create_server((b, 9999))
if os.fork():
    s = listener.accept()[0]
    while s.recv(1 << 20):
        pass
else:
    s = socket.create_connection((b, 9999), source_address=(a, 0))
    while True:
        s.sendall(bytes(1 << 20))
' "$FROM" "$TO" &
until grep -q ':270F .* 01 ' /proc/net/tcp; do sleep 0.2; done # 9999, established
"$@" --pid $! --seconds 5
status=$?
pkill -P $!
exit $status
"""


def no_rdma_core():
    """A library of this name that is none."""
    write("/run/no-library", "")
    return [("/run/no-library", os.path.realpath(LIBRARY))], {}, "image-no-libibverbs", BROKEN


def no_provider():
    return [(EMPTY, PROVIDERS)], {}, "image-provider", BROKEN


def no_names():
    return [(EMPTY, "/etc/libibverbs.d")], {}, "image-provider", BROKEN


def second_library():
    return [(CONDA, "/opt/conda/lib")], {}, "image-second-libibverbs", SLOW


def second_library_first():
    environment = {"LD_LIBRARY_PATH": "/opt/conda/lib"}
    return [(CONDA, "/opt/conda/lib")], environment, "image-provider", BROKEN


@scenario
def probe_reads_the_libibverbs_of_an_image():
    """railmate-probe in images without libibverbs, its provider, the provider's name; with a second libibverbs"""
    os.makedirs(EMPTY, exist_ok=True)
    os.makedirs(CONDA, exist_ok=True)
    with open(LIBRARY, "rb") as f:  # which looks for its providers where none are
        library = f.read().replace(b"/usr/lib/x86_64-linux-gnu/libibverbs/", b"/opt/lib/x86_64-linux-gnu/libibverbs/")
    with open(f"{CONDA}/libibverbs.so.1", "wb") as f:
        f.write(library)
    words = []
    with container() as c:
        status, result = c.probe("--checks")
        equal((status, result["findings"]), (GOOD, []), "of an image that is right")
        for image in (no_rdma_core, no_provider, no_names, second_library, second_library_first):
            mounts, environment, wanted, wanted_status = image()
            status, result = c.probe("--checks", mounts=mounts, env=environment)
            found = {f["id"]: f["what"] for f in result["findings"]}
            print(f"{image.__name__}: {status}: {found}", flush=True)
            equal((status, set(found)), (wanted_status, {wanted}), image.__name__)
            words.append(wanted)
    return ", ".join(words)


def of_images(function):
    """A scenario, where the host could make its images."""
    return scenario(function) if os.path.isdir("/bed/images") else function


@contextlib.contextmanager
def image(name):
    """Of those that the host made, to be changed."""
    place = f"/run/image-{name}"
    for folder in ("changes", "work", "root"):
        os.makedirs(f"{place}/{folder}")
    output("mount", "-t", "overlay", "image", "-o", f"lowerdir=/bed/images/{name},upperdir={place}/changes,workdir={place}/work", f"{place}/root")
    try:
        yield f"{place}/root"
    finally:
        output("umount", f"{place}/root")
        shutil.rmtree(place)


def judged(c, root, status, *wanted):
    """Its findings with --checks: name → sentence."""
    ended, result = c.probe("--checks", **in_image(root))
    found = {f["id"]: f["what"] for f in result["findings"]}
    print(f"{root}: {ended}: {found}", flush=True)
    equal((ended, set(found)), (status, set(wanted)), f"in {root}: {found}")
    return found


@of_images
def probe_judges_an_image_of_an_old_glibc():
    """railmate-probe in Debian 11, whose loader cannot run it (glibc 2.31): its libibverbs 33 is asked; without its provider"""
    with container() as c, image("bullseye") as root:
        judged(c, root, GOOD)
        folder = f"{root}/usr/lib/x86_64-linux-gnu/libibverbs"
        os.rename(f"{folder}/librxe-rdmav33.so", f"{folder}/librxe-rdmav34.so")
        found = judged(c, root, BROKEN, "image-provider")
        os.rename(f"{folder}/librxe-rdmav34.so", f"{folder}/librxe-rdmav33.so")
        status, result = c.probe(*SOME_SECONDS, **in_image(root))
        equal(status, GOOD, f"{result['findings']}")
        check_measures(result, c.devices)
        return found["image-provider"]


@of_images
def probe_judges_an_image_of_musl():
    """railmate-probe in an image of musl: without libibverbs, with it, its loader under glibc's name, without the provider"""
    with container() as c, image("musl") as root:
        status, said, complained = c.run(["/bin/program"], root=root)
        equal((status, said), (GOOD, "musl\n"), complained)
        judged(c, root, BROKEN, "image-no-libibverbs")
        # Read as files, they may be another C library's.
        shutil.copytree(PROVIDERS, f"{root}{PROVIDERS}")
        shutil.copytree("/etc/libibverbs.d", f"{root}/etc/libibverbs.d")
        shutil.copy(LIBRARY, f"{root}/usr/lib/libibverbs.so.1")
        found = judged(c, root, GOOD, "image-not-asked")
        check("no glibc" in found["image-not-asked"], f"{found}")
        os.makedirs(f"{root}/lib64")
        os.symlink("../lib/ld-musl-x86_64.so.1", f"{root}/lib64/ld-linux-x86-64.so.2")  # as Alpine's gcompat
        equal(judged(c, root, GOOD, "image-not-asked"), found, "with the loader's other name")
        status, result = c.probe(*SOME_SECONDS, **in_image(root))
        equal(status, GOOD, f"{result['findings']}")
        check_measures(result, c.devices)
        shutil.rmtree(f"{root}{PROVIDERS}")
        return judged(c, root, BROKEN, "image-not-asked", "image-provider")["image-provider"]


def look_at(c, script, **env):
    status, said, complained = c.run(["/bin/bash", "-c", script, "job", PROGRAM, "--json"], env=env)
    check(said.startswith("{"), f"it ends with {status}: {said[-400:]}{complained[-400:]}")
    return status, {f["id"]: f["what"] for f in json.loads(said)["findings"]}


@scenario
def probe_looks_into_a_job():
    """railmate-probe --pid: a job over soft RDMA, and one over TCP between its VFs' interfaces"""
    with container() as c:
        status, found = look_at(c, RDMA, DEVICE=c.devices[0], INDEX=c.conf["NCCL_IB_GID_INDEX"])
        check(status == GOOD and "job-rdma" in found, f"over RDMA: {status}: {found}")
        check("1 of its VFs' devices open" in found["job-libraries"], f"{found}")
        status, tcp = look_at(c, TCP, FROM=c.addresses[0], TO=c.addresses[1])
        check(status == BROKEN and "no libibverbs" in tcp.get("job-tcp", ""), f"over TCP: {status}: {tcp}")
        return f"{found['job-rdma']}; {tcp['job-tcp']}"
