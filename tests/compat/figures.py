"""
What the two plugins of hack/compat cost on one machine, in a cell of namespaces (cell.py): a request
comes as JSON on standard input, {what: {side: [a value a round]}} goes out.
"""
import glob
import json
import re
import statistics
import sys
import time

import cell

VF = "rdma/vf"
POOL = {"resourceName": "vf", "resourcePrefix": "rdma", "selectors": {"isRdma": True}}


def status(pid, key):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(re.search(rf"^{key}:\s*(\d+)", f.read(), re.M)[1])


def cpu_ms(pid):
    """Of all threads."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with open(path, encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total / 1e6


def call_ms(kubelet, ids):
    """Medians of five calls each: the kubelet is not asked for so many that its answer takes too
    long."""
    line = f"bench {VF} allocate 5 {' '.join(ids)}"
    return statistics.median(kubelet.ask(line)["call"]["p50_ns"] / 1e6 for _ in range(5))


def measure(program, request):
    """{what: value} of one plugin, from its start to its end."""
    cell.wipe()
    cell.CONFIG.write_text(json.dumps({"resourceList": [POOL]}))
    kubelet = cell.Kubelet(request["kubelet"])
    plugin = None
    try:
        line = kubelet.send(f"wait {VF} {request['vfs']} {cell.PATIENCE * 1000}")
        began = time.monotonic()
        plugin = cell.Plugin(program, ["-config-file", str(cell.CONFIG), *cell.LOGGED])
        seen = {"start to the list of VFs, ms": kubelet.answer(line)["t"] / 1000 - began * 1000}
        pid = plugin.child.pid
        time.sleep(min(5, request["idle"]))  # railmated has a second look at the node after two
        used = cpu_ms(pid)
        time.sleep(request["idle"])
        seen[f"CPU time of {request['idle']:g} idle seconds, ms"] = cpu_ms(pid) - used
        seen["memory, idle, MiB"] = status(pid, "VmRSS") / 1024
        seen["threads"] = status(pid, "Threads")
        ids = sorted(d["id"] for d in kubelet.resources()[VF]["devices"])[:8]
        seen["Allocate of 8 VFs, median, ms"] = call_ms(kubelet, ids)
        back = kubelet.ask("restart")["us"][VF]
        if back < 0:
            raise TimeoutError("it did not come back after a restart of the kubelet")
        seen["kubelet restart to the list of VFs, ms"] = back / 1000
        return seen
    finally:
        if plugin:
            plugin.end()
        kubelet.close()


def main():
    request, seen = json.load(sys.stdin), {}
    cell.enter(request["tree"])
    for i in range(request["rounds"]):
        for side in ("theirs", "ours")[::1 if i % 2 else -1]:
            for what, value in measure(request[side], request).items():
                seen.setdefault(what, {"theirs": [], "ours": []})[side].append(value)
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
