#!/usr/bin/env python3
"""GPUs that DRA drivers give: which are a container's, and whom the VFs are near, late and early."""

import itertools

from harness import VF, Case, main, until
from late import LateCase, vfs_in
from optimum import assignment, best_total

DRIVER = "gpu.nvidia.com"


class Gpus:
    """The GPUs of a node, as NVIDIA's driver names its devices: by minor number."""

    def __init__(self, node):
        self.machine = node.topo()
        self.free = {v["pci"] for v in self.machine.topo["vfs"]}

    def name(self, i):
        return f"gpu-{i}"

    def claim(self, name, **requests):
        """The argument of `admit` for a claim: its requests, each with the numbers of its GPUs."""
        devices = [f"{DRIVER}/{r}={self.name(i)}" for r, gpus in requests.items() for i in gpus]
        return f"claim={name}:" + ",".join(devices)

    def judge(self, case, started, gpus):
        """The VFs of a container are the best that were free for these GPUs."""
        chosen, mine = vfs_in(started), [self.machine.gpus[i] for i in gpus]
        case.assertLessEqual(set(chosen), self.free)
        total, pairs = assignment(self.machine, mine, chosen)
        case.assertEqual(total, best_total(self.machine, mine, self.free, len(chosen)), pairs)
        self.free -= set(chosen)


class Late(LateCase):
    def test_each_container_has_a_claim_of_its_own(self):
        """Whichever of them starts first, and in the order of the kubelet's calls."""
        for order, containers in itertools.product(("gpu-first", "vf-first"), (("a", "b"), ("b", "a"))):
            with self.subTest(order=order, containers=containers):
                node = self.late()
                gpus, has = Gpus(node), {"a": [1, 2], "b": [6]}
                node.kubelet.admit("p", gpus.claim("one", gpu=has["a"]), gpus.claim("two", gpu=has["b"]),
                                   f"a:{VF}=2,claim:one", f"b:claim:two/gpu,{VF}=1", order=order)
                for c in containers:
                    started = self.start(node, "p", c)[c]
                    self.assertTrue(started["started"], started["message"])
                    gpus.judge(self, started, has[c])

    def test_a_claim_that_containers_share_as_a_whole_is_of_both(self):
        node = self.late()
        gpus = Gpus(node)
        node.kubelet.admit("p", gpus.claim("ours", gpu=[2, 5]), f"a:{VF}=2,claim:ours", f"b:{VF}=2,claim:ours")
        for started in self.start(node, "p").values():
            gpus.judge(self, started, [2, 5])

    def test_a_claim_of_one_gpu_serves_a_sidecar_without_one(self):
        node = self.late()
        gpus = Gpus(node)
        node.kubelet.admit("p", gpus.claim("mine", gpu=[3]), f"sidecar:agent:{VF}=1", f"main:{VF}=1,claim:mine")
        for started in self.start(node, "p").values():
            gpus.judge(self, started, [3])


if __name__ == "__main__":
    main()
