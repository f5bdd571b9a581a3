#!/usr/bin/python3
"""Who holds what: never two live pods one VF; removal, init containers, sidecars, NUMA policies."""

import random
import signal
import time

from harness import GPU, VF, Case, container, gpus_of, main, vfs_of


class Ownership(Case):
    def test_no_vf_is_in_two_live_pods(self):
        node = self.node()
        kubelet, _ = node.start("--seed", "11")
        rng, held = random.Random(11), {}
        for i in range(60):
            if held and rng.random() < 0.4:
                pod = rng.choice(list(held))
                kubelet.ask(f"remove {pod}")
                del held[pod]
            admission = kubelet.admit(f"p{i}", f"main:{GPU}=1,{VF}={rng.randint(1, 6)}")
            if admission["event"] == "rejected":
                self.assertIn("requested number of devices unavailable", admission["message"])
                continue
            chosen = set(vfs_of(admission))
            for other, taken in held.items():
                self.assertFalse(chosen & taken, f"p{i} and {other} share a VF")
            held[f"p{i}"] = chosen

    def test_lists_that_drop_reservations_do_not_share_vfs(self):
        node = self.node()
        kubelet, _ = node.start()
        kubelet.ask("kubelet-bug double")
        taken = set()
        for i in range(8):
            chosen = set(
                vfs_of(kubelet.admit(f"p{i}", f"init:prepare:{VF}=1", f"main:{GPU}=1,{VF}=2")))
            self.assertFalse(chosen & taken)
            taken |= chosen

    def test_vfs_come_back_when_their_pod_is_gone(self):
        node = self.node()
        kubelet, _ = node.start()
        count = kubelet.resource(VF)["allocatable"]
        first = vfs_of(kubelet.admit("all", f"main:{VF}={count}"))
        self.assertEqual(len(set(first)), count)
        refused = kubelet.admit("late", f"main:{VF}=1")
        self.assertEqual(refused["reason"], "UnexpectedAdmissionError")
        self.assertIn(
            f"requested number of devices unavailable for {VF}. Requested: 1, Available: 0",
            refused["message"])
        kubelet.ask("remove all")
        self.assertEqual(len(vfs_of(kubelet.admit("next", f"main:{VF}=3"))), 3)

    def test_a_vf_in_an_unknown_namespace_is_not_offered(self):
        """Another program has it, or a CNI plugin did not give it back: the others are given."""
        node = self.node()
        kubelet, daemon = node.start()
        count = kubelet.resource(VF)["allocatable"]
        vfs, held = [vf["pci"] for vf in node.topo().topo["vfs"]], set()
        for end in (1, 9, 50):  # the first choice, more than a card, most
            gone = [vf for vf in vfs[:end] if vf not in held]
            moved = {vf: node.take_away(vf) for vf in gone}
            daemon.child.send_signal(signal.SIGHUP)
            kubelet.wait(VF, f"={count - len(gone)}")
            given = vfs_of(kubelet.admit(f"p{end}", f"main:{VF}=2"))
            self.assertEqual(len(set(given) - set(gone)), 2)
            held |= set(given)
            for vf, what in moved.items():
                node.bring_back(vf, what)
            daemon.child.send_signal(signal.SIGHUP)
            kubelet.wait(VF, f"={count}")

    def test_a_vf_that_its_pod_has_in_its_namespace_stays_on_the_list(self):
        node = self.node()
        kubelet, daemon = node.start()
        count = kubelet.resource(VF)["allocatable"]
        vf = vfs_of(kubelet.admit("p", f"main:{GPU}=1,{VF}=1"))[0]
        node.take_away(vf)
        daemon.child.send_signal(signal.SIGHUP)
        time.sleep(1)
        self.assertEqual(kubelet.resource(VF)["allocatable"], count)

    def test_init_containers_hand_their_vfs_on(self):
        node = self.node()
        kubelet, _ = node.start()
        admission = kubelet.admit("p", f"init:prepare:{VF}=2", f"main:{GPU}=2,{VF}=2",
                                  order="gpu-first")
        self.assertEqual(set(vfs_of(admission, "prepare")), set(vfs_of(admission, "main")))
        self.assertEqual(
            container(admission, "main")["env"].keys() & {"NCCL_IB_HCA"}, {"NCCL_IB_HCA"})

    def test_must_include_is_kept_when_more_are_asked_for(self):
        node = self.node()
        kubelet, _ = node.start()
        admission = kubelet.admit("p", f"init:prepare:{VF}=1", f"main:{GPU}=4,{VF}=4",
                                  order="gpu-first")
        self.assertLess(set(vfs_of(admission, "prepare")), set(vfs_of(admission, "main")))
        asked = [r for r in container(admission, "main")["rpcs"] if r["resource"] == VF][0]
        self.assertEqual(set(asked["preferred"]), set(vfs_of(admission, "main")))

    def test_sidecars_keep_theirs(self):
        node = self.node()
        kubelet, _ = node.start()
        admission = kubelet.admit("p", f"sidecar:proxy:{VF}=1", f"main:{VF}=1")
        self.assertFalse(set(vfs_of(admission, "proxy")) & set(vfs_of(admission, "main")))

    def test_a_pod_without_a_known_resource_runs_without(self):
        node = self.node()
        kubelet, _ = node.start()
        self.assertEqual(container(kubelet.admit("p", "main:rdma/other=1"))["devices"], {})


class Numa(Case):
    def nodes_of(self, machine, devices):
        return {machine.numa[d] for d in devices}

    def test_single_numa_node_keeps_gpus_and_vfs_together(self):
        node = self.node()
        kubelet, _ = node.start("--policy", "single-numa-node")
        machine = node.topo()
        for i in range(2):
            admission = kubelet.admit(f"p{i}", f"main:{GPU}=4,{VF}=4")
            where = self.nodes_of(machine, gpus_of(machine, admission) + vfs_of(admission))
            self.assertEqual(len(where), 1, admission)

    def test_single_numa_node_rejects_what_does_not_fit(self):
        node = self.node()
        kubelet, _ = node.start("--policy", "single-numa-node")
        refused = kubelet.admit("wide", f"main:{GPU}=6,{VF}=6")
        self.assertEqual((refused["event"], refused["reason"]),
                         ("rejected", "TopologyAffinityError"))
        self.assertEqual("Pod was rejected: Resources cannot be allocated with Topology locality",
                         refused["message"])

    def test_a_deleted_pods_devices_are_free_before_the_kubelet_looks_at_nodes(self):
        node = self.node()
        kubelet, _ = node.start("--policy", "restricted")
        for pod in ("first", "second"):
            self.assertEqual(kubelet.admit(pod, f"main:{GPU}=8,{VF}=64")["event"], "admitted", pod)
            kubelet.ask(f"remove {pod}")

    def test_restricted_admits_what_needs_both_nodes(self):
        node = self.node()
        kubelet, _ = node.start("--policy", "restricted")
        self.assertEqual(
            len(vfs_of(kubelet.admit("wide", f"main:{GPU}=6,{VF}=40", order="gpu-first"))), 40)

    def test_best_effort_admits_anything(self):
        node = self.node()
        kubelet, _ = node.start("--policy", "best-effort")
        machine = node.topo()
        admission = kubelet.admit("p", f"main:{GPU}=2,{VF}=2", order="gpu-first")
        self.assertEqual(
            len(self.nodes_of(machine,
                              gpus_of(machine, admission) + vfs_of(admission))), 1)

    def test_list_tells_the_numa_node_of_each_vf(self):
        node = self.node()
        kubelet, _ = node.start()
        machine = node.topo()
        for device in kubelet.resource(VF)["devices"]:
            self.assertEqual(device["numa"], [machine.numa[device["id"]]], device)

    def test_exclude_topology_tells_none(self):
        node = self.node()
        config = node.path("config.json")
        with open(config, "w", encoding="utf-8") as f:
            f.write(
                '{"resourceList": [{"resourcePrefix": "rdma", "resourceName": "vf", "excludeTopology": true, '
                '"selectors": {"isRdma": true}}]}')
        kubelet, _ = node.start(daemon=("--config-file", config))
        self.assertEqual([d for d in kubelet.resource(VF)["devices"] if d["numa"]], [])

    def test_unknown_numa_node_tells_none(self):
        node = self.node("odd-numa-unknown")
        kubelet = node.start_kubelet("--policy", "single-numa-node")
        node.start_daemon()
        kubelet.wait(VF, 1)
        self.assertEqual([d for d in kubelet.resource(VF)["devices"] if d["numa"]], [])
        self.assertEqual(len(vfs_of(kubelet.admit("p", f"main:{VF}=1"))), 1)


if __name__ == "__main__":
    main()
