"""
railmate-probe in images whose libibverbs is not right, which is read and asked there; and beside jobs that use RDMA and TCP.
"""

import json
import os

from bed import check, equal, scenario, write
from probe import BROKEN, GOOD, PROGRAM, SLOW, container

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
