"""
The best possible choice of VFs, computed without any of railmate's code: from the path classes that
`railmatectl topo
--json` prints, by minimum-cost flow. The assignment is the one of the contract: max(g, v) pairs,
every GPU and every
VF in at least one, loads of either side differing by at most one.
"""

import itertools

RANK = {"PIX": 0, "PXB": 1, "PHB": 2, "NODE": 3, "SYS": 4}
CLASS = {rank: name for name, rank in RANK.items()}
BIG = 10000  # more than any total of ranks


class Machine:
    """What the optimum needs to know of `topo --json`."""

    def __init__(self, topo):
        self.topo = topo
        self.gpus = [g["pci"] for g in topo["gpus"]]
        self.rank = {(p["gpu"], p["nic"]): RANK[p["class"]] for p in topo["paths"]}
        self.place = {v["pci"]: v["pf"] or v["pci"] for v in topo["vfs"]}
        self.numa = {d["pci"]: d["numa"] for key in ("gpus", "pfs", "vfs") for d in topo[key]}
        self.uuid = {g["uuid"]: g["pci"] for g in topo["gpus"] if g.get("uuid")}

    def gpu(self, device_id):
        """A GPU plugin's device id → PCI address."""
        return self.uuid.get(device_id, device_id)


class Flow:
    """Minimum-cost flow by shortest augmenting paths (Bellman-Ford); the graphs here have some
    dozens of nodes."""

    def __init__(self):
        self.edges = []  # to, capacity, cost; the reverse edge is at index ^ 1
        self.out = {}

    def edge(self, a, b, capacity, cost):
        for node, to, cap, price in ((a, b, capacity, cost), (b, a, 0, -cost)):
            self.out.setdefault(node, []).append(len(self.edges))
            self.edges.append([to, cap, price])
        return len(self.edges) - 2

    def shortest(self, source):
        distance, via, queue = {source: 0}, {}, [source]
        while queue:
            node = queue.pop(0)
            for i in self.out[node]:
                to, capacity, cost = self.edges[i]
                if capacity and distance[node] + cost < distance.get(to, float("inf")):
                    distance[to], via[to] = distance[node] + cost, i
                    if to not in queue:
                        queue.append(to)
        return via

    def run(self, source, sink, amount):
        """The cost of sending amount, or None when it does not fit."""
        total = 0
        for _ in range(amount):
            via = self.shortest(source)
            if sink not in via:
                return None
            node = sink
            while node != source:
                i = via[node]
                self.edges[i][1] -= 1
                self.edges[i ^ 1][1] += 1
                total += self.edges[i][2]
                node = self.edges[i ^ 1][0]
        return total


def loads(pairs, items):
    """(how many each item serves at least, how many items serve one more)"""
    return pairs // items, pairs % items


def balanced(machine, gpus, columns):
    """
    columns: [(name, a VF there, how many VFs of it are chosen or may be)]. Returns (total rank,
    pairs) of the balanced assignment in which every column's capacity is used as a GPU's is: at
    least, and at most one more.
    """
    n_vfs = sum(count for _, _, count in columns)
    pairs = max(len(gpus), n_vfs)
    flow, edges, mandatory = Flow(), [], 0
    floor_g, _ = loads(pairs, len(gpus))
    floor_v, extra_v = loads(pairs, n_vfs)
    for g in gpus:
        flow.edge("source", g, floor_g, -BIG)
        flow.edge("source", g, 1, 0)
        mandatory += floor_g
    for name, vf, count in columns:
        flow.edge(name, "sink", floor_v * count, -BIG)
        flow.edge(name, "sink", count if extra_v else 0, 0)
        mandatory += floor_v * count
        for g in gpus:
            edges.append((g, name, flow.edge(g, name, pairs, machine.rank[g, vf])))
    cost = flow.run("source", "sink", pairs)
    used = [(g, name) for g, name, i in edges for _ in range(flow.edges[i ^ 1][1])]
    return cost + BIG * mandatory, used


def assignment(machine, gpus, vfs):
    """The best balanced pairs of exactly these VFs: (total rank, [(gpu, vf, class)])."""
    if not gpus or not vfs:
        return 0, []
    cost, used = balanced(machine, gpus, [(v, v, 1) for v in sorted(vfs)])
    return cost, sorted((g, v, CLASS[machine.rank[g, v]]) for g, v in used)


def splits(counts, n):
    """Every way to take n from piles of these sizes."""
    if not counts:
        if n == 0:
            yield ()
        return
    for first in range(min(counts[0], n) + 1):
        for rest in splits(counts[1:], n - first):
            yield (first,) + rest


def choose_at_least_gpus(machine, gpus, piles, n):
    """n ≥ GPUs: each VF serves one GPU, so the flow itself may choose the VFs."""
    floor_g, extra = loads(n, len(gpus))
    flow = Flow()
    for g in gpus:
        flow.edge("source", g, floor_g, -BIG)
        flow.edge("source", g, 1 if extra else 0, 0)
        for place, vfs in piles.items():
            flow.edge(g, place, n, machine.rank[g, vfs[0]])
    for place, vfs in piles.items():
        flow.edge(place, "sink", len(vfs), 0)
    return flow.run("source", "sink", n) + BIG * floor_g * len(gpus)


def best_total(machine, gpus, free, n):
    """The smallest total rank that any n of the free VFs allow."""
    piles = {}
    for vf in sorted(free):
        piles.setdefault(machine.place[vf], []).append(vf)
    if n >= len(gpus):
        return choose_at_least_gpus(machine, gpus, piles, n)
    best = None
    for split in splits([len(v) for v in piles.values()], n):
        columns = [(p, piles[p][0], count) for p, count in zip(piles, split) if count]
        cost, _ = balanced(machine, gpus, columns)
        best = cost if best is None else min(best, cost)
    return best


def best_total_by_trying(machine, gpus, free, n):
    """The same by looking at every subset: slow, and the proof of the above."""
    return min(assignment(machine, gpus, vfs)[0] for vfs in itertools.combinations(sorted(free), n))
