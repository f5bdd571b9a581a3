#!/usr/bin/python3
"""Every container gets the VFs that are closest to its GPUs, judged by optimum.py."""

import random

from harness import GPU, PATIENCE, VF, Case, Node, container, gpus_of, main, vfs_of
from optimum import assignment, best_total


class Ward:
    """Pods on one node, with the VFs that are free before each."""

    def __init__(self, case, node, gpu=GPU):
        self.case, self.kubelet, self.gpu = case, node.kubelet, gpu
        self.machine = node.topo()
        self.free = {d["id"] for d in self.kubelet.resource(VF)["devices"] if d["healthy"]}
        self.pods = {}

    def admit(self, pod, gpus, vfs, order="gpu-first"):
        return self.kubelet.admit(pod, f"main:{self.gpu}={gpus},{VF}={vfs}", order=order)

    def take(self, pod, chosen):
        self.case.assertLessEqual(set(chosen), self.free, "a VF that was not free")
        self.pods[pod] = chosen
        self.free -= set(chosen)

    def admit_aligned(self, pod, gpus, vfs):
        """Admits GPU-first and demands the optimum."""
        admission = self.admit(pod, gpus, vfs)
        mine, chosen = gpus_of(self.machine, admission, resource=self.gpu), vfs_of(admission)
        self.case.assertEqual((len(mine), len(chosen)), (gpus, vfs))
        total, pairs = assignment(self.machine, mine, chosen)
        best = best_total(self.machine, mine, self.free, vfs)
        self.case.assertEqual(total, best, f"{pod}: {pairs}, but {best} was possible")
        self.take(pod, chosen)
        return admission

    def remove(self, pod):
        self.kubelet.ask(f"remove {pod}")
        self.free |= set(self.pods.pop(pod))


class Alignment(Case):
    def test_pods_of_1_2_4_and_8_gpus_get_the_closest_vfs(self):
        node = self.node()
        node.start()
        ward = Ward(self, node)
        for size in (1, 2, 4):
            ward.admit_aligned(f"p{size}", size, size)
        for pod in list(ward.pods):
            ward.remove(pod)
        ward.admit_aligned("p8", 8, 8)

    def test_churn_stays_optimal(self):
        node = self.node()
        node.start("--seed", "7")
        ward, rng, held = Ward(self, node), random.Random(7), {}
        for i in range(25):
            gpus = rng.choice((1, 1, 2, 2, 4))
            while sum(held.values()) + gpus > 8:
                pod = rng.choice(list(held))
                ward.remove(pod)
                del held[pod]
            ward.admit_aligned(f"p{i}", gpus, rng.choice((gpus, gpus, 1, 2 * gpus)))
            held[f"p{i}"] = gpus

    def test_other_machines(self):
        for fixture, gpu in (("dgx-a100", GPU), ("mi300x-baremetal", "amd.com/gpu"),
                             ("odd-two-level-switch", GPU), ("l40s-no-affinity",
                                                             GPU), ("aws-p4d-like", GPU)):
            with self.subTest(fixture), Node(fixture) as node:
                node.start_kubelet()
                node.start_gpu_plugin("--resource", gpu)
                node.start_daemon()
                node.kubelet.wait(gpu, 1)
                node.kubelet.wait(VF, 1)
                ward = Ward(self, node, gpu)
                most = min(len(ward.free), len(ward.machine.gpus))
                for size in (s for s in (1, 2, 4) if s * 2 <= most):
                    ward.admit_aligned(f"p{size}", size, size)

    def test_kubelet_1_20_is_served_and_never_listed(self):
        # A List at the wrong moment can bring kubelets before 1.30 down; 1.20 has no Get to tell
        # by.
        node = self.node()
        node.start("--version", "1.20")
        ward = Ward(self, node)
        for size in (1, 2, 4):
            ward.take(f"p{size}", vfs_of(ward.admit(f"p{size}", size, size)))
        self.assertEqual(node.kubelet.count("pod-resources", method="List"), 0)

    def test_two_containers_of_one_pod_get_their_own(self):
        node = self.node()
        node.start()
        machine = node.topo()
        admission = node.kubelet.admit("two", f"a:{GPU}=2,{VF}=2", f"b:{GPU}=2,{VF}=2",
                                       order="gpu-first")
        for name in ("a", "b"):
            total, pairs = assignment(machine, gpus_of(machine, admission, name),
                                      vfs_of(admission, name))
            self.assertEqual(total, 0, f"container {name}: {pairs}")

    def test_vf_first_pods_are_served(self):
        node = self.node()
        node.start()
        ward = Ward(self, node)
        for size in (1, 2, 4):
            admission = ward.admit(f"p{size}", size, size, order="vf-first")
            self.assertEqual(container(admission)["calls"], [VF, GPU])
            self.assertEqual(len(vfs_of(admission)), size)
            ward.take(f"p{size}", vfs_of(admission))

    def test_pods_without_gpus_spread_over_the_ports(self):
        node = self.node()
        node.start()
        machine = node.topo()
        chosen = vfs_of(node.kubelet.admit("no-gpus", f"main:{VF}=4"))
        self.assertEqual(len({machine.place[v] for v in chosen}), 4, chosen)

    def test_pod_resources_that_fail_or_stall_only_cost_the_knowledge(self):
        node = self.node()
        node.start(daemon=("--pod-resources-timeout", "8000"))
        ward = Ward(self, node)
        node.kubelet.ask("podlist-fail on")
        ward.take("failing", vfs_of(ward.admit("failing", 1, 1)))
        node.kubelet.ask("podlist-fail off")
        node.kubelet.ask(f"podlist-delay {2 * PATIENCE * 1000}")  # longer than anybody waits here
        ward.take("stalled", vfs_of(ward.admit("stalled", 1, 1)))
        node.kubelet.ask("podlist-delay 0")
        ward.admit_aligned("well", 2, 2)

    def test_pod_resources_off_never_asks(self):
        node = self.node()
        kubelet, _ = node.start(daemon=("--pod-resources", "off"))
        self.assertEqual(len(vfs_of(kubelet.admit("p", f"main:{GPU}=2,{VF}=2", order="gpu-first"))),
                         2)
        self.assertEqual(kubelet.count("pod-resources"), 0)

    def test_the_rate_limit_of_pod_resources_does_not_fail_pods(self):
        node = self.node()
        node.start("--rate-limit")
        ward = Ward(self, node)
        for i in range(30):
            ward.take(f"p{i}", vfs_of(ward.admit(f"p{i}", 1, 1)))
            ward.remove(f"p{i}")


if __name__ == "__main__":
    main()
