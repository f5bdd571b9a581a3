"""`railmatectl topo` on the live root against what the tools of the distribution say beside it."""

import json
import os
import re

from bed import PCI, check, equal, output, rdma_links, read, scenario, shell, write

RAILMATECTL = os.environ["RAILMATECTL"]
DISPLAY = {"0300", "0302", "0380", "1200"}
GPU_VENDORS = {"1002", "10de", "8086"}


def topo(*options):
    return json.loads(output(RAILMATECTL, "topo", "--json", *options))


def lspci():
    """address → {tag: value}, numbers as hexadecimal text"""
    devices = {}
    for block in output("lspci", "-Dnvmmk").strip().split("\n\n"):
        fields = dict(line.split(":\t", 1) for line in block.split("\n") if ":\t" in line)
        devices[fields["Slot"]] = fields
    return devices


def bridge_paths():
    """address → the functions above it, from the root bus down, as `lspci -PP` shows them"""
    paths = {}
    for line in output("lspci", "-DPP").splitlines():
        chain = line.split()[0].split("/")
        domain = chain[0].split(":")[0]
        full = [c if c.count(":") == 2 else f"{domain}:{c}" for c in chain]
        paths[full[-1]] = full[:-1]
    return paths


def class_of(paths, numa, a, b):
    """The path class, from lspci's tree and NUMA nodes only: here a switch is an upstream port
    below a root port."""
    common = 0
    while common < min(len(paths[a]), len(paths[b])) and paths[a][common] == paths[b][common]:
        common += 1
    if common >= 2:
        return "PIX"
    root = [(paths[d] or [d])[0].split(":")[1] for d in (a, b)]
    if root[0] == root[1]:
        return "PHB"
    return "NODE" if numa[a] == numa[b] else "SYS"


@scenario
def functions_are_those_of_lspci():
    """topo has the GPUs, PFs, VFs, drivers and NUMA nodes of lspci"""
    t, pci = topo(), lspci()
    numa = {a: int(f.get("NUMANode", -1)) for a, f in pci.items()}
    gpus = {a for a, f in pci.items() if f["Class"] in DISPLAY and f["Vendor"] in GPU_VENDORS}
    equal({g["pci"] for g in t["gpus"]}, gpus, "GPUs")
    equal({f["pci"]
           for f in t["pfs"]}, {a
                                for a, f in pci.items()
                                if f["Device"] == "10c9"}, "PFs (82576)")
    vfs = {a: f for a, f in pci.items() if f["Device"] == "10ca"}
    equal({v["pci"]: v["driver"]
           for v in t["vfs"]}, {a: f.get("Driver")
                                for a, f in vfs.items()}, "VFs, their drivers")
    for key in ("gpus", "pfs", "vfs"):
        for d in t[key]:
            equal(d["numa"], numa[d["pci"]], f"{d['pci']}: NUMA node")
    equal([f["vfs"] for f in t["pfs"]], [7, 7, 4], "VFs of the PFs")
    for v in t["vfs"]:
        link = os.path.realpath(f"{PCI}/{v['pf']}/virtfn{v['index']}")
        equal(os.path.basename(link), v["pci"], f"virtfn{v['index']} of {v['pf']}")
    return f"{len(gpus)} GPUs, {len(t['pfs'])} PFs, {len(vfs)} VFs"


@scenario
def paths_are_those_of_the_tree():
    """every path class follows from the tree of lspci"""
    t, chains = topo(), bridge_paths()
    numa = {d["pci"]: d["numa"] for key in ("gpus", "pfs", "vfs") for d in t[key]}
    place = {v["pci"]: v["pf"] for v in t["vfs"]}
    seen = {}
    for p in t["paths"]:
        want = class_of(chains, numa, p["gpu"], place.get(p["nic"], p["nic"]))
        equal(p["class"], want, f"{p['gpu']} to {p['nic']}")
        seen[want] = seen.get(want, 0) + 1
    equal(len(t["paths"]), len(t["gpus"]) * (len(t["pfs"]) + len(t["vfs"])), "paths")
    equal(set(seen), {"PIX", "PHB", "SYS"}, "classes of this machine")
    return ", ".join(f"{n} {c}" for c, n in sorted(seen.items()))


@scenario
def numa_nodes_are_those_of_numactl():
    """the NUMA nodes are those of numactl -H"""
    nodes = {int(n) for n in re.findall(r"^node (\d+) cpus:", output("numactl", "-H"), re.M)}
    t = topo()
    equal(set(t["numa_nodes"]), nodes, "NUMA nodes")
    equal({d["numa"]
           for key in ("gpus", "pfs", "vfs")
           for d in t[key]}, nodes, "nodes with devices")
    return f"{len(nodes)} nodes"


@scenario
def rdma_devices_are_those_of_the_tools():
    """the RDMA devices are those of ibv_devices and rdma link, each at the VF of its netdev"""
    vfs = {v["rdma"]: v for v in topo()["vfs"] if v["rdma"]}
    names = {line.split()[0] for line in output("ibv_devices").splitlines()[2:]}
    links = rdma_links()
    equal(set(vfs), names, "names of ibv_devices")
    equal(set(vfs), set(links), "names of rdma link")
    for name, v in vfs.items():
        equal(os.listdir(f"{PCI}/{v['pci']}/net"), [links[name]], f"{name}: netdev of {v['pci']}")
        equal(v["state"], "ACTIVE", f"{name}: state")
        equal(v["link"], "ethernet", f"{name}: link layer")
        equal(read(f"/sys/class/infiniband_verbs/{v['uverbs']}/ibdev"), name,
              f"{v['uverbs']}: its device")
        check(os.path.exists(f"/dev/infiniband/{v['uverbs']}"),
              f"/dev/infiniband/{v['uverbs']} is not there")
    return f"{len(vfs)} devices"


@scenario
def an_nvme_with_vfs_is_no_nic():
    """an NVMe's VFs are neither PFs nor VFs of ours"""
    nvme = next(a for a, f in lspci().items() if f["Class"] == "0108")
    before = topo()
    shell("modprobe nvme")
    try:
        write(f"{PCI}/{nvme}/sriov_numvfs", "2")
        equal(sum(f["Class"] == "0108" for f in lspci().values()), 3, "NVMe functions")
        equal(topo(), before, "topo with two NVMe VFs")
    finally:
        write(f"{PCI}/{nvme}/sriov_numvfs", "0")
    return nvme


@scenario
def a_snapshot_is_the_same_machine():
    """topo of a snapshot of this machine is topo of this machine, also when scrubbed"""
    words = []
    for name, options in (("plain", []), ("scrubbed", ["--scrub"])):
        tree = f"/tmp/{name}.tree"
        output(RAILMATECTL, "snapshot", *options, "-o", tree)
        os.mkdir(f"/tmp/{name}")
        output(RAILMATECTL, "snapshot", "unpack", tree, f"/tmp/{name}")
        equal(topo("--root", f"/tmp/{name}"), topo(), f"topo of the {name} snapshot")
        words.append(f"{name} {os.path.getsize(tree) // 1024} KiB")
    return ", ".join(words)
