"""A container (runc, device cgroup) moves data between its two VFs with the nodes and names that
railmate gave it."""

import json
import os
import re
import shutil
import subprocess

import harness
from bed import LIMIT, LiveNode, check, equal, output, rdma_links, read, scenario, shell, verbs_nodes

HOST_NETWORK = {
    "resourceList": [{
        "resourcePrefix": "rdma", "resourceName": "vf", "selectors": {"isRdma": True},
        "railmate": {"network": "host"}
    }]
}
CAPABILITIES = [
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL", "CAP_MKNOD", "CAP_SETUID",
    "CAP_SETGID", "CAP_IPC_LOCK"
]

# Between the first VF and the second; all it knows is its environment.
BANDWIDTH = r"""
IFS=, read -ra hca <<< "${NCCL_IB_HCA#=}"
common=(-x "$NCCL_IB_GID_INDEX" -s 65536 -n 100 -F)
timeout 40 ib_write_bw -d "${hca[0]%:*}" -i "${hca[0]#*:}" "${common[@]}" > /tmp/server 2>&1 &
for i in $(seq 100); do # its port is 18515
	grep -q ':4853 .* 0A ' /proc/net/tcp && break
	sleep 0.1
done
timeout 40 ib_write_bw -d "${hca[1]%:*}" -i "${hca[1]#*:}" "${common[@]}" "$FIRST_ADDRESS" 2>&1
status=$?
[ $status = 0 ] && wait || cat /tmp/server
exit $status
"""


def node_of(path):
    st = os.stat(path)
    return {"path": path, "type": "c", "major": os.major(st.st_rdev), "minor": os.minor(st.st_rdev)}


def spec(name, argv, env, nodes, mounts):
    devices = [{**node_of(host), "path": inside, "fileMode": 0o666} for host, inside in nodes]
    allowed = [{
        "allow": True, "type": "c", "major": d["major"], "minor": d["minor"], "access": "rw"
    } for d in devices]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "args": argv, "cwd": "/", "env": [f"{k}={v}" for k, v in env.items()],
            "user": {"uid": 0, "gid": 0},
            "capabilities": {k: CAPABILITIES
                             for k in ("bounding", "effective", "permitted")}
        },
        "root": {"path": "rootfs", "readonly": True},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}, {
            "destination": "/dev", "type": "tmpfs", "source": "dev",
            "options": ["nosuid", "mode=755"]
        }, {"destination": "/tmp", "type": "tmpfs", "source": "tmp"}, {
            "destination": "/sys", "type": "bind", "source": "/sys", "options": ["rbind", "ro"]
        }, *({"destination": inside, "type": "bind", "source": host, "options": ["rbind", "ro"]}
             for host, inside in mounts)],
        # host network: no namespace for it
        "linux": {
            "namespaces": [{"type": t} for t in ("pid", "mount", "ipc", "uts")], "devices": devices,
            "cgroupsPath": f"/{name}",
            "resources": {"devices": [{"allow": False, "access": "rwm"}, *allowed]}
        },
    }


def begin_container(name, script, env, nodes, mounts=()):
    """On the host's network; its process, whose output is to be read."""
    bundle = f"/run/bundle-{name}"
    os.makedirs(f"{bundle}/rootfs", exist_ok=True)
    if not os.path.ismount(f"{bundle}/rootfs"):
        output("mount", "--bind", "/", f"{bundle}/rootfs")
    with open(f"{bundle}/config.json", "w", encoding="utf-8") as f:
        json.dump(
            spec(name, ["/bin/bash", "-c", script], {"PATH": os.environ["PATH"], **env}, nodes,
                 mounts), f)
    return subprocess.Popen(["/programs/runc", "run", "--bundle", bundle, name],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def run_container(script, env, nodes):
    """(exit status, what it said)"""
    process = begin_container("bed", script, env, nodes)
    try:
        said = process.communicate(timeout=LIMIT)[0]
    finally:
        process.kill()
    return process.returncode, said


def address_of(netdev):
    family = json.loads(output("ip", "-j", "-4", "addr", "show", netdev))[0]
    return family["addr_info"][0]["local"]


def received(device):
    return int(read(f"/sys/class/infiniband/{device}/ports/1/hw_counters/rcvd_pkts"))


class Grant:
    """What a container of a pod with four GPUs and its VFs was given, and the way between the first
    two."""

    def __init__(self, node, vfs=2):
        admission = node.admit("pod", 4, vfs)
        answer = harness.container(admission)
        self.vfs = sorted(harness.vfs_of(admission))
        self.env = dict(answer["env"])
        self.nodes = [(d["host"], d["container"]) for d in answer["device_nodes"]]
        self.devices = [
            entry.split(":")[0] for entry in self.env["NCCL_IB_HCA"].lstrip("=").split(",")
        ]
        links = rdma_links()
        self.netdevs = [links[d] for d in self.devices]
        self.addresses = [address_of(n) for n in self.netdevs]
        self.env["FIRST_ADDRESS"] = self.addresses[0]

    def route(self):
        a, b, *_ = zip(self.netdevs, self.addresses)
        shell(f"selfroute {' '.join(a)} {' '.join(b)}")

    def without(self, path):
        return [n for n in self.nodes if n[0] != path]


@scenario
def a_container_moves_data_between_its_vfs():
    """a container moves data between its VFs of two PFs; without one node, or one name, it
    cannot"""
    check(shutil.which("ib_write_bw"), "ib_write_bw is missing")
    with LiveNode() as node:
        node.start_all(config=HOST_NETWORK, vfs=10)
        grant = Grant(node)
        pfs = {node.topo().place[v] for v in grant.vfs}
        equal(len(pfs), 2, f"PFs of {grant.vfs}")
        check("NCCL_IB_GID_INDEX" in grant.env,
              "no GID index was given, with the table final and network: host")
        grant.route()

        before = received(grant.devices[0])
        status, said = run_container(BANDWIDTH, grant.env, grant.nodes)
        equal(status, 0, f"ib_write_bw: {said[-800:]}")
        packets = received(grant.devices[0]) - before
        check(packets >= 100 * 65536 / 4096, f"{grant.devices[0]} received {packets} packets only")
        speed = re.findall(r"^ *65536 +100 +[\d.]+ +([\d.]+)", said, re.M)
        check(speed, f"no bandwidth in: {said[-800:]}")

        lost = verbs_nodes()[grant.devices[1]]
        status, said = run_container(BANDWIDTH, grant.env, grant.without(lost))
        check(status != 0, f"it worked without {lost}")
        other = next(d for d in sorted(rdma_links()) if d not in grant.devices)
        wrong = {**grant.env, "NCCL_IB_HCA": f"={grant.devices[0]}:1,{other}:1"}
        status, said = run_container(BANDWIDTH, wrong, grant.nodes)
        check(status != 0, f"it worked with {other}, which it does not have")
        check(other in said or "context" in said or "device" in said,
              f"it failed for another reason: {said[-800:]}")

        foreign = node_of(verbs_nodes()[other])
        status, said = run_container(
            f"mknod /dev/stolen c {foreign['major']} {foreign['minor']} && cat < /dev/stolen",
            grant.env, grant.nodes)
        check(status != 0 and "not permitted" in said,
              f"a node made in the container opens: {said}")
        return f"{' and '.join(grant.devices)}, GID index {grant.env['NCCL_IB_GID_INDEX']}, {speed[0]} MB/s"
