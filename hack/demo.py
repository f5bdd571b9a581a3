#!/usr/bin/python3
"""
The main job at a glance; hack/demo builds and calls this. Starts the fake kubelet, the fake GPU
plugin and railmated as real processes on real unix sockets, admits pods, and judges every GPU-first
pod by tests/integration/optimum.py, which shares no code with railmate.
"""

import argparse
import ipaddress
import json
import os
import signal
import socket
import sys

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests")
sys.path.insert(0, os.path.join(TESTS, "integration"))
# pylint: disable=wrong-import-position
from harness import VF, Node, container, gpus_of, program, vfs_of  # noqa: E402
from optimum import CLASS, assignment, best_total  # noqa: E402

DEFAULT = "hgx-h100"
SIZES = (1, 2, 4, 8)
ORDERS = ("gpu-first", "vf-first")
RESOURCES = {"10de": "nvidia.com/gpu", "1002": "amd.com/gpu",
             "8086": "gpu.intel.com/i915"}  # by PCI vendor
COLOURS = {"PIX": 32, "PXB": 36, "PHB": 33, "NODE": 35, "SYS": 31}
LONGEST = 96  # characters of a value, as printed for people


class Refused(Exception):
    """A sentence for the operator."""


class Closed(Exception):
    """Ctrl-C, which ends the page."""


def free_address(address):
    """The same, with a port for 0."""
    host, _, port = address.rpartition(":")
    try:
        ip = ipaddress.ip_address(host.strip("[]"))
        family = socket.AF_INET if ip.version == 4 else socket.AF_INET6
        with socket.create_server((str(ip), int(port)), family=family) as s:
            return f"{host}:{s.getsockname()[1]}"
    except (ValueError, OverflowError):
        raise Refused(f"--page: '{address}' is no ADDRESS:PORT") from None
    except OSError as e:
        raise Refused(f"--page: {address}: {os.strerror(e.errno)}") from None


# --- machines ---

def machines():
    folder = os.environ["FIXTURES"]
    return sorted(n for n in os.listdir(folder)
                  if os.path.exists(os.path.join(folder, n, "host.tree")))


def about(name):
    """The first sentence of its about.md."""
    path = os.path.join(TESTS, "fixtures", name, "about.md")
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as f:
        paragraphs = f.read().split("\n\n")
    return " ".join(paragraphs[1].split()) if len(paragraphs) > 1 else ""


def usable(machine):
    """VFs that the built-in pool offers, when there are GPUs to go with them."""
    pool = next((p["devices"] for p in machine.topo["pools"] if p["resource"] == VF), [])
    return pool if machine.gpus else []


def live_node():
    node = Node(None)
    node.root = "/"
    return node


def pick_node(args):
    """(name, node), the node's machine being this one when it is worth showing."""
    if args.machine and args.machine not in machines():
        raise Refused(f"no machine '{args.machine}'; --list names them")
    if not args.machine:
        node = live_node()
        if args.live or usable(node.topo()):
            return "live", node
        node.remove()
    name = args.machine or DEFAULT
    return name, Node(name)


# --- the pods ---

class Show:
    """The node while the pods come and go; collects what is printed at the end."""

    def __init__(self, name, node, out, page):
        self.name, self.node, self.out, self.page = name, node, out, page
        self.machine = node.topo()
        self.pool = usable(self.machine)
        if not self.pool:
            raise Refused(
                f"machine '{name}' has no GPUs, or no VFs with an RDMA device: nothing to show")
        vendor = next(g["vendor"] for g in self.machine.topo["gpus"])
        self.resource = RESOURCES.get(vendor, "example.com/gpu")
        self.gpus = [g["pci"] for g in self.machine.topo["gpus"] if g["vendor"] == vendor]
        self.pods, self.live, self.wrong = [], {}, []

    def start(self):
        node = self.node
        node.start_kubelet()
        node.start_gpu_plugin("--resource", self.resource)
        self.daemon = node.start_daemon("--metrics-address", self.page or "none")
        node.kubelet.wait(self.resource, len(self.gpus))
        node.kubelet.wait(VF, 1)
        self.free = {d["id"] for d in node.kubelet.resource(VF)["devices"] if d["healthy"]}

    def make_room(self, size):
        if sum(len(p["gpus"])
               for p in self.live.values()) + size <= len(self.gpus) and size <= len(self.free):
            return
        for name, pod in self.live.items():
            self.node.kubelet.ask(f"remove {name}")
            self.free |= set(pod["vfs"])
        self.live = {}

    def admit(self, order, size):
        self.make_room(size)
        name = f"{order}-{size}"
        answer = self.node.kubelet.admit(name, f"main:{self.resource}={size},{VF}={size}",
                                         order=order)
        got = container(answer)
        gpus, vfs = gpus_of(self.machine, answer, resource=self.resource), sorted(vfs_of(answer))
        total, pairs = assignment(self.machine, gpus, vfs)
        pod = {"name": name, "order": order, "gpus": gpus, "vfs": vfs,
               "pairs": [{"gpu": g, "vf": v, "class": c} for g, v, c in pairs],
               "env": got["env"], "devices": got["device_nodes"]}
        best = best_total(self.machine, gpus, self.free, size)
        self.judge(pod, size, total, best)
        self.free -= set(vfs)
        self.live[name] = pod
        self.pods.append(pod)
        self.out.pod(self, pod, total, best)

    def judge(self, pod, size, total, best):
        name = pod["name"]
        if (len(pod["gpus"]), len(set(pod["vfs"]))) != (size, size):
            self.wrong.append(
                f"{name} asked for {size} GPUs and VFs and got {pod['gpus']} and {pod['vfs']}")
        if not set(pod["vfs"]) <= self.free:
            self.wrong.append(
                f"{name} got VFs that were not free: {sorted(set(pod['vfs']) - self.free)}")
        if pod["order"] == "gpu-first" and total != best:
            self.wrong.append(f"{name} got VFs at a total distance of {total}; {best} was possible")
        for claim in json.loads(pod["env"].get("RAILMATE_RDMA_VF_MAP", "[]")):
            true = CLASS[self.machine.rank[claim["gpu"], claim["vf"]]]
            if claim["class"] != true:
                self.wrong.append(f"{name} was told {claim}, but they are {true}")

    def run(self):
        self.start()
        self.out.machine(self)
        # The page is left with pods of several sizes, GPUs first.
        step = -1 if self.page else 1
        for order in ORDERS[::step]:
            for size in SIZES[::step]:
                if size <= len(self.gpus) and size <= len(self.pool):
                    self.admit(order, size)
        self.out.end(self)

    def serve(self):
        """Until Ctrl-C."""
        self.out.say(f"\nThe status page of this node: http://{self.page}/ (Ctrl-C ends it)")
        try:
            status = self.daemon.child.wait()
        except KeyboardInterrupt:
            raise Closed from None
        raise Refused(f"railmated ended with {status}:\n{self.daemon.stderr()}")


# --- for people ---

class Text:
    def __init__(self, stream):
        self.stream = stream
        self.colour = stream.isatty() and not os.environ.get("NO_COLOR")

    def say(self, line=""):
        print(line, file=self.stream, flush=True)

    def paint(self, text, code):
        return f"\033[{code}m{text}\033[0m" if self.colour else text

    def path(self, name, width=0):
        return " " * max(0, width - len(name)) + self.paint(name, COLOURS[name])

    def short(self, pci):
        return pci[5:] if pci.startswith("0000:") else pci

    def machine(self, show):
        m = show.machine
        places = sorted({m.place[v] for v in show.pool})
        nodes = sorted({n for n in m.numa.values() if n >= 0})
        self.say(
            self.paint(f"machine {show.name}", 1) +
            f": {len(m.gpus)} GPUs, {len(places)} NICs with "
            f"{len(show.pool)} VFs in {VF}, " +
            (f"NUMA nodes {', '.join(map(str, nodes))}" if nodes else "no NUMA"))
        if show.name != "live":
            self.say(about(show.name))
        self.say()
        self.matrix(show, places)
        self.say(
            "  PIX: one PCIe switch between them; PXB: several; PHB: the host bridge; NODE: the NUMA node; SYS: beyond"
        )
        self.say()

    def matrix(self, show, places):
        m = show.machine
        numa = {d["pci"]: d["numa"] for d in m.topo["gpus"]}
        width = max(len(self.short(p)) for p in places) + 2
        left = max(len(self.short(g)) for g in m.gpus)
        self.say(" " * (left + 14) + "".join(f"{self.short(p):>{width}}" for p in places))
        for g in m.gpus:
            row = (self.rank_cell(m, g, place, show.pool, width) for place in places)
            self.say(f"  GPU {self.short(g):<{left}}  NUMA {numa[g]:<2}" + "".join(row))

    def rank_cell(self, m, gpu, place, pool, width):
        vf = next(v for v in pool if m.place[v] == place)
        return self.path(CLASS[m.rank[gpu, vf]], width)

    def pod(self, show, pod, total, best):
        rdma = {v["pci"]: v["rdma"] for v in show.machine.topo["vfs"]}
        size = len(pod["gpus"])
        first = "GPUs" if pod["order"] == "gpu-first" else "VFs"
        self.say(
            self.paint(f"pod {pod['name']}", 1) +
            f": {size} GPU{'s'[:size > 1]} and as many VFs, {first} first")
        for p in pod["pairs"]:
            self.say(
                f"  GPU {self.short(p['gpu'])}  {self.path(p['class'], 4)}  VF {self.short(p['vf'])}  "
                f"{rdma[p['vf']]}")
        self.say("  " + self.verdict(pod, total, best))
        for key, value in sorted(pod["env"].items()):
            self.say(f"  {key}={value if len(value) <= LONGEST else value[:LONGEST - 1] + '…'}")
        self.say("  devices: " + " ".join(d["container"] for d in pod["devices"]) +
                 f" ({'/'.join(sorted({d['permissions'] for d in pod['devices']}))})")
        self.say()

    def verdict(self, pod, total, best):
        if total == best:
            return self.paint(f"✓ distance {total}: the best that was free", 32)
        if pod["order"] == "gpu-first":
            return self.paint(f"✗ distance {total}, {best} was possible", 31)
        return f"distance {total}, {best} was possible: the VFs were asked for before the GPUs were known"

    def end(self, show):
        judged = [p for p in show.pods if p["order"] == "gpu-first"]
        if not show.wrong:
            self.say(
                f"{len(judged)} GPU-first pods, {sum(len(p['pairs']) for p in judged)} pairs: every one the best "
                "that was free.")


# --- the program ---

def parse(argv):
    p = argparse.ArgumentParser(prog="hack/demo", description="shows railmate's main job",
                                allow_abbrev=False)
    how = p.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="one JSON object on standard output")
    how.add_argument("--page", metavar="ADDRESS:PORT", nargs="?", const="127.0.0.1:0",
                     help="leave it running with its status page, until Ctrl-C (default: a free port of 127.0.0.1)")
    where = p.add_mutually_exclusive_group()
    where.add_argument("--machine", metavar="NAME",
                       help=f"a machine of tests/fixtures (default {DEFAULT})")
    where.add_argument("--live", action="store_true", help="this machine")
    where.add_argument("--list", action="store_true", help="name these machines")
    return p.parse_args(argv)


def show(args):
    page = free_address(args.page) if args.page else None
    name, node = pick_node(args)
    with node:
        s = Show(name, node, Text(sys.stderr if args.json else sys.stdout), page)
        s.run()
        if page and not s.wrong:
            s.serve()
    if args.json:
        print(json.dumps({"machine": name, "pods": s.pods}, ensure_ascii=False))
    for sentence in s.wrong:
        print(f"demo: {sentence}", file=sys.stderr)
    return 1 if s.wrong else 0


def main():
    args = parse(sys.argv[1:])
    # An end by signal is an exception too, so that every process and folder is cleaned up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if args.list:
        width = max(len(n) for n in machines())
        for name in machines():
            print(f"{name:<{width}}  {about(name).split('. ')[0].rstrip('.')}")
        return 0
    program("railmated")
    try:
        return show(args)
    except (Refused, AssertionError) as e:
        print(f"demo: {e}", file=sys.stderr)
    except Closed:
        return 0
    except KeyboardInterrupt:
        print("demo: interrupted", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGINT,
                      signal.SIG_IGN)  # all is done and said; only the interpreter is left
    return 1


if __name__ == "__main__":
    sys.exit(main())
