#!/usr/bin/python3
"""Early binding when the kubelet asks for VFs first, and what PreStartContainer makes of the
choice."""

import json
import os
import random

from harness import GPU, PATIENCE, VF, Case, gpus_of, main, until, vfs_of
from optimum import assignment, best_total


def decisions(node):
    with open(os.path.join(node.state_dir, "ledger.json"), encoding="utf-8") as f:
        return json.load(f)["decisions"]


def find_decision(node, vfs, **wanted):
    """The newest decision for these VFs on disk, if it looks as wanted."""
    if not os.path.exists(os.path.join(node.state_dir, "ledger.json")):
        return None
    for d in reversed(decisions(node)):
        if sorted(d["chosen"]) == sorted(vfs):
            return d if all(d.get(k) == v for k, v in wanted.items()) else None
    return None


def decision(node, vfs, **wanted):
    """The disk gets it in the background."""
    return until(lambda: find_decision(node, vfs, **wanted), f"a decision for {vfs} with {wanted}")


def started(kubelet, pod):
    """What PreStartContainer of our resource said: [(status, message), …]."""
    return [(c["status"], c["message"])
            for c in kubelet.ask(f"prestart {pod}")["calls"]
            if c["resource"] == VF]


class Day:
    """Pods that come and go on one node, each with as many VFs as GPUs unless told otherwise."""

    def __init__(self, case, node):
        self.case, self.node, self.kubelet, self.machine = case, node, node.kubelet, node.topo()
        self.free = {d["id"] for d in self.kubelet.resource(VF)["devices"] if d["healthy"]}
        self.pods = {}

    def admit(self, pod, gpus, vfs=None, order="vf-first"):
        wants = [f"{GPU}={gpus}"] if gpus else []
        admission = self.kubelet.admit(pod, f"main:{','.join(wants + [f'{VF}={vfs or gpus}'])}",
                                       order=order)
        chosen = vfs_of(admission)
        self.case.assertLessEqual(set(chosen), self.free, "a VF that was not free")
        self.pods[pod] = chosen
        cost = best = 0
        if gpus:
            has = gpus_of(self.machine, admission)
            cost = assignment(self.machine, has, chosen)[0]
            best = best_total(self.machine, has, self.free, len(chosen))
        self.free -= set(chosen)
        return cost, best

    def remove(self, pod):
        self.kubelet.ask(f"remove {pod}")
        self.free |= set(self.pods.pop(pod))


class VfFirst(Case):
    def churn(self, *kubelet_options, equal=False):
        node = self.node()
        node.start("--seed", "3", *kubelet_options)
        day, rng, gpus = Day(self, node), random.Random(3), {}
        for i in range(25):
            size = rng.choice((1, 1, 2, 2, 4))
            while sum(gpus.values()) + size > 8:
                pod = rng.choice(list(gpus))
                day.remove(pod)
                del gpus[pod]
            gpus[f"p{i}"] = size
            order = rng.choice(("vf-first", "gpu-first"))
            cost, best = day.admit(f"p{i}", size, size if equal else rng.choice(
                (size, 1, 2 * size)), order)
            self.assertEqual(cost, best, f"p{i} ({order}): {day.pods[f'p{i}']}")
            self.assertEqual(started(node.kubelet, f"p{i}"), [("OK", "")])
            if order == "vf-first":
                self.assertEqual(
                    decision(node, day.pods[f"p{i}"], checked=True, pod=f"p{i}")["known"],
                    "predicted")

    def test_with_pod_specs_the_vfs_are_beside_the_gpus_that_come(self):
        self.churn("--pods-api")

    def test_without_pod_specs_as_many_gpus_as_vfs_are_foreseen(self):
        self.churn(equal=True)

    def test_a_pod_with_gpus_only_just_before_is_not_mistaken(self):
        node = self.node()
        node.start("--pods-api")
        day = Day(self, node)
        for i in range(3):
            node.kubelet.admit(f"gpus{i}", f"main:{GPU}=1")
            cost, best = day.admit(f"p{i}", 1)
            self.assertEqual(cost, best)

    def test_gpu_plugins_that_do_not_tell_cost_only_the_prediction(self):
        for options in (("--no-preferred", ), ("--nonsense", ), ("--delay", "300"), ("--mig", ),
                        ("--replicas", "2")):
            with self.subTest(options):
                node = self.node()
                _, daemon = node.start("--pods-api", gpu=options,
                                       daemon=("--pod-resources-timeout", "200"))
                vfs = vfs_of(node.kubelet.admit("p", f"main:{GPU}=2,{VF}=2", order="vf-first"))
                self.assertEqual(len(vfs), 2)
                self.assertEqual(decision(node, vfs)["known"], "unknown")

                def checked():  # 200 ms may be too short for it
                    self.assertEqual(started(node.kubelet, "p"), [("OK", "")])
                    return find_decision(node, vfs, checked=True, pod="p")

                until(checked, "that the pod's start is compared")
                self.assertEqual(daemon.child.poll(), None)

    def test_the_gpu_plugin_may_be_absent(self):
        node = self.node()
        kubelet, _ = node.start("--pods-api", gpu=("--endpoint", "other.sock"))
        vfs = vfs_of(kubelet.admit("p", f"main:{GPU}=1,{VF}=1", order="vf-first"))
        self.assertIn("no socket of a plugin for nvidia.com/gpu", decision(node, vfs)["source"])

    def test_the_operator_names_the_gpu_plugin_or_none(self):
        for value, known in (("other.sock", "predicted"), ("none", "unknown")):
            with self.subTest(value):
                node = self.node()
                path = value if value == "none" else os.path.join(node.kubelet_dir, value)
                kubelet, _ = node.start(gpu=("--endpoint", "other.sock"),
                                        daemon=("--gpu-plugin-socket", path))
                vfs = vfs_of(kubelet.admit("p", f"main:{GPU}=1,{VF}=1", order="vf-first"))
                self.assertEqual(decision(node, vfs)["known"], known)


class Start(Case):
    def test_what_came_is_compared(self):
        node = self.node()
        kubelet, _ = node.start(gpu=("--no-preferred",))
        day = Day(self, node)
        for i in range(6):
            cost, best = day.admit(f"p{i}", 1)
            self.assertEqual(started(kubelet, f"p{i}"), [("OK", "")])
            d = decision(node, day.pods[f"p{i}"], checked=True, pod=f"p{i}")
            self.assertEqual((d.get("real_cost", 0), d.get("best_cost", 0)), (cost, best))

    def test_a_vf_that_was_given_twice_goes_to_one_container_only(self):
        node = self.node()
        kubelet, _ = node.start("--pods-api")
        vfs = vfs_of(kubelet.admit("first", f"main:{GPU}=1,{VF}=8", order="gpu-first"))
        self.assertEqual(started(kubelet, "first"), [("OK", "")])
        kubelet.ask("forget first")
        free = [d["id"] for d in kubelet.resource(VF)["devices"] if d["healthy"]]
        everything = kubelet.admit("second", f"main:{VF}={len(free)}")
        self.assertLessEqual(set(vfs), set(vfs_of(everything)))
        (status, message), = started(kubelet, "second")
        self.assertEqual(status, "Unavailable")
        self.assertRegex(message, r"is held by container main of pod default/first")
        self.assertEqual(started(kubelet, "first"), [("OK", "")])
        kubelet.ask("remove first")
        self.assertEqual(started(kubelet, "second"), [("OK", "")])

    def test_pod_resources_that_fail_or_stall_keep_no_container_from_starting(self):
        node = self.node()
        kubelet, daemon = node.start(daemon=("--pod-resources-timeout", "2000"))
        vfs = vfs_of(kubelet.admit("p", f"main:{GPU}=1,{VF}=1"))
        kubelet.ask("podlist-fail on")
        for _ in range(3):
            self.assertEqual(started(kubelet, "p"), [("OK", "")])
        kubelet.ask("podlist-fail off")
        kubelet.ask("podlist-garbage on")
        self.assertEqual(started(kubelet, "p"), [("OK", "")])
        self.assertEqual(len(vfs_of(kubelet.admit("q", f"main:{GPU}=1,{VF}=1"))), 1)
        kubelet.ask("podlist-garbage off")
        kubelet.ask(f"podlist-delay {2 * PATIENCE * 1000}")  # longer than anybody waits here
        self.assertEqual(started(kubelet, "p"), [("OK", "")])
        kubelet.ask("podlist-delay 0")

        def checked():  # two seconds may be too short for it
            self.assertEqual(started(kubelet, "p"), [("OK", "")])
            return find_decision(node, vfs, checked=True, pod="p")

        until(checked, "that the pod's start is compared")
        self.assertLessEqual(daemon.stderr().count("not known whose VFs start"), 2)

    def test_the_operator_may_give_pod_resources_more_time(self):
        node = self.node()
        kubelet, _ = node.start()
        vfs = vfs_of(kubelet.admit("p", f"main:{GPU}=1,{VF}=1"))
        kubelet.ask("podlist-delay 2500")
        self.assertEqual(started(kubelet, "p"), [("OK", "")])
        decision(node, vfs, checked=True, pod="p")

    def test_containers_start_without_pod_resources(self):
        node = self.node()
        kubelet, daemon = node.start(daemon=("--pod-resources", "off"))
        kubelet.admit("p", f"main:{GPU}=1,{VF}=1")
        self.assertEqual(started(kubelet, "p"), [("OK", "")])
        self.assertNotIn("not known whose VFs start", daemon.stderr())

    def test_a_container_that_restarts_has_what_it_had(self):
        node = self.node()
        kubelet, daemon = node.start()
        vfs = vfs_of(kubelet.admit("p", f"main:{GPU}=2,{VF}=2"))
        self.assertEqual(started(kubelet, "p"), [("OK", "")])
        decision(node, vfs, checked=True)
        daemon.end()
        node.start_daemon()
        kubelet.wait(VF, 1)
        until(lambda: started(kubelet, "p") == [("OK", "")],
              "PreStartContainer after a restart of ours")
        self.assertEqual(len([d for d in decisions(node) if d["chosen"] == sorted(vfs)]), 1)

    def test_init_containers_start_though_nobody_lists_them(self):
        node = self.node()
        kubelet, _ = node.start()
        admission = kubelet.admit("p", f"init:setup:{VF}=1", f"main:{GPU}=1,{VF}=1")
        self.assertEqual(vfs_of(admission, "setup"), vfs_of(admission, "main"))
        self.assertEqual({s for s, _ in started(kubelet, "p")}, {"OK"})


if __name__ == "__main__":
    main()
