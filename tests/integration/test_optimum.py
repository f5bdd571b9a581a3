#!/usr/bin/python3
"""The judge of the other tests is judged itself: against every possibility, on small random
machines."""

import itertools
import random
import unittest

from optimum import RANK, Machine, assignment, best_total, best_total_by_trying


def random_machine(rng):
    gpus = [f"g{i}" for i in range(rng.randint(1, 4))]
    vfs, paths = [], []
    for place in range(rng.randint(1, 4)):
        classes = [rng.choice(list(RANK)) for _ in gpus]
        for index in range(rng.randint(1, 3)):
            name = f"p{place}v{index}"
            vfs.append({"pci": name, "pf": f"p{place}", "numa": 0})
            paths += [{"gpu": g, "nic": name, "class": c} for g, c in zip(gpus, classes)]
    return Machine({
        "gpus": [{"pci": g, "numa": 0, "uuid": None} for g in gpus], "pfs": [], "vfs": vfs,
        "paths": paths
    })


def assignment_by_trying(machine, gpus, vfs):
    """Every way to give each of the larger side one of the smaller, loads differing by at most
    one."""
    turned = len(vfs) > len(gpus)
    many, few = (vfs, gpus) if turned else (gpus, vfs)
    best = None
    for tried in itertools.product(few, repeat=len(many)):
        counts = [tried.count(f) for f in few]
        if max(counts) - min(counts) > 1:
            continue
        total = sum(machine.rank[(f, m) if turned else (m, f)] for m, f in zip(many, tried))
        best = total if best is None else min(best, total)
    return best


class Optimum(unittest.TestCase):
    def test_choice_and_assignment_equal_exhaustive_search(self):
        rng = random.Random(3)
        for _ in range(300):
            machine = random_machine(rng)
            free = list(machine.place)
            n = rng.randint(1, min(len(free), 5))
            self.assertEqual(best_total(machine, machine.gpus, free, n),
                             best_total_by_trying(machine, machine.gpus, free, n))
            some = rng.sample(free, n)
            total, pairs = assignment(machine, machine.gpus, some)
            self.assertEqual(total, assignment_by_trying(machine, machine.gpus, some))
            self.assertEqual(len(pairs), max(len(machine.gpus), n))
            self.assertEqual(sum(RANK[c] for _, _, c in pairs), total)
            self.assertEqual({g for g, _, _ in pairs}, set(machine.gpus))
            self.assertEqual({v for _, v, _ in pairs}, set(some))


if __name__ == "__main__":
    unittest.main(verbosity=2)
