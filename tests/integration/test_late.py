#!/usr/bin/python3
"""Late binding: slots for the kubelet, the right VFs when the container starts, in every order."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess

from harness import GPU, PATIENCE, VF, Node, container, gpus_of, main, program, until, vfs_of
from late import LateCase, Yard, pool, vfs_in
from optimum import assignment, best_total


class Slots(LateCase):
    def test_the_kubelet_is_offered_slots_with_their_nodes(self):
        node = self.late()
        devices = node.kubelet.resource(VF)["devices"]
        early, same = self.node(), dict(pool(), railmate={})
        early.start(daemon=("--config-file", self.config(early, same)))
        vfs = early.kubelet.resource(VF)["devices"]
        self.assertEqual(len(devices), len(vfs))
        for n in (0, 1):
            want = sum(v["numa"] == [n] for v in vfs)
            self.assertEqual([d["id"] for d in devices if d["numa"] == [n]],
                             [f"rdma_vf-n{n}-{k}" for k in range(want)])
            self.assertEqual(sum(d["healthy"] for d in devices if d["numa"] == [n]),
                             sum(v["healthy"] for v in vfs if v["numa"] == [n]))
        self.assertTrue(node.kubelet.resource(VF)["pre_start"])

    def test_slots_are_the_same_after_a_restart(self):
        node = self.late()
        before = node.kubelet.resource(VF)["devices"]
        node.processes[-1].end(signal.SIGKILL)
        node.kubelet.wait(VF, "=0")
        node.start_daemon("--config-file", node.path("config.json"))
        node.kubelet.wait(VF, 1)
        self.assertEqual(node.kubelet.resource(VF)["devices"], before)

    def test_excluded_topology_tells_no_node(self):
        node = self.late(pools=[dict(pool(), excludeTopology=True)])
        devices = node.kubelet.resource(VF)["devices"]
        self.assertTrue(
            all(d["numa"] == [] and d["id"].startswith("rdma_vf-any-") for d in devices),
            devices[0])

    def test_allocate_promises_slots_and_gives_cdi_devices(self):
        node = self.late()
        admission = node.kubelet.admit("pod", f"main:{VF}=2")
        c = container(admission)
        self.assertEqual(c["env"], {"RAILMATE_RDMA_VF_SLOTS": ",".join(sorted(vfs_of(admission)))})
        self.assertEqual(c["device_nodes"], [])

    def test_the_preference_avoids_what_is_held(self):
        """Also when the kubelet offers it: its bug of docs/design/kubelet.md §2.2."""
        node = self.late()
        node.kubelet.ask("kubelet-bug double")
        first, _ = self.run_pod(node, "first", f"main:{VF}=4")
        second = node.kubelet.admit("second", f"main:{VF}=4")
        (call,) = container(second)["rpcs"]
        self.assertEqual(len(call["preferred"]), 4)
        self.assertFalse(set(call["preferred"]) & set(vfs_of(first)))
        self.assertEqual(len({s.rsplit("-", 1)[0]
                              for s in call["preferred"]}), 1, "slots of two nodes")

    def test_no_device_info_files(self):
        """Theirs would be named by PCI addresses, which nobody asks for."""
        node = self.late()
        self.assertEqual(os.listdir(node.devinfo), [])

    def test_a_sick_free_vf_costs_a_slot(self):
        node = self.late()
        before = node.kubelet.resource(VF)
        victim = node.topo().topo["vfs"][0]
        node.unbind(victim["pci"])
        node.processes[-1].child.send_signal(signal.SIGHUP)
        node.kubelet.wait(VF, f"={before['allocatable'] - 1}")
        after = node.kubelet.resource(VF)
        self.assertEqual([d["id"] for d in after["devices"]], [d["id"] for d in before["devices"]])
        (sick,) = [d for d, b in zip(after["devices"], before["devices"]) if d != b]
        well = [d["id"] for d in before["devices"] if d["numa"] == sick["numa"] and d["healthy"]]
        self.assertEqual(sick["id"], max(well, key=lambda i: int(i.rsplit("-", 1)[1])))


class Binding(LateCase):
    def test_every_order_gets_the_closest_vfs(self):
        node = self.late()
        for order in ("gpu-first", "vf-first", "random"):
            yard = Yard(self, node)
            for size in (1, 2, 4):
                yard.run(f"{order}{size}", size, size, order)
            for p in list(yard.pods):
                yard.remove(p)
            yard.run(f"{order}8", 8, 8, order)
            yard.remove(f"{order}8")

    def test_churn_stays_optimal(self):
        node = self.late("hgx-h100", "--seed", "11")
        yard, rng, held = Yard(self, node), random.Random(11), {}
        for i in range(30):
            gpus = rng.choice((1, 1, 2, 2, 4))
            while sum(held.values()) + gpus > 8:
                pod = rng.choice(list(held))
                yard.remove(pod)
                del held[pod]
            yard.run(f"p{i}", gpus, rng.choice((gpus, gpus, 1, 2 * gpus)))
            held[f"p{i}"] = gpus

    def test_numa_policies_and_other_machines(self):
        for fixture, gpu, policy in (("dgx-a100", GPU, "none"), ("mi300x-baremetal", "amd.com/gpu",
                                                                 "best-effort"),
                                     ("odd-two-level-switch", GPU, "restricted"),
                                     ("l40s-no-affinity", GPU, "none"), ("hgx-h100", GPU,
                                                                         "single-numa-node")):
            with self.subTest(fixture, policy=policy), Node(fixture) as node:
                node.start_kubelet("--policy", policy)
                node.start_gpu_plugin("--resource", gpu)
                node.start_daemon("--config-file", self.config(node))
                node.kubelet.wait(gpu, 1)
                node.kubelet.wait(VF, 1)
                yard = Yard(self, node, gpu)
                for size in (1, 2):
                    yard.run(f"p{size}", size, size, "vf-first")

    def test_the_container_gets_what_early_binding_gives(self):
        node = self.late()
        admission, started = self.run_pod(node, "pod", f"main:{GPU}=2,{VF}=2")
        machine, chosen = node.topo(), vfs_in(started)
        uverbs = {v["pci"]: v["uverbs"] for v in machine.topo["vfs"]}
        rdma = {v["pci"]: v["rdma"] for v in machine.topo["vfs"]}
        nodes = {d["host"] for d in started["device_nodes"]}
        self.assertEqual(nodes, {f"/dev/infiniband/{uverbs[v]}"
                                 for v in chosen} | {"/dev/infiniband/rdma_cm"})
        env = started["env"]
        self.assertEqual(set(env["NCCL_IB_HCA"][1:].split(",")), {f"{rdma[v]}:1" for v in chosen})
        self.assertEqual({p["gpu"]
                          for p in json.loads(env["RAILMATE_RDMA_VF_MAP"])},
                         set(gpus_of(machine, admission)))
        self.assertEqual(env["RAILMATE_CONTAINER"], "default/pod/main")
        self.assertEqual({b.split("=")[0]
                          for b in env["RAILMATE_BINDING"].split(",")}, set(vfs_of(admission)))

    def test_explain_tells_why(self):
        node = self.late()
        _, started = self.run_pod(node, "pod", f"main:{GPU}=2,{VF}=2")
        for what in (["pod", "default/pod"], ["vf", vfs_in(started)[0]], ["last"]):
            out = subprocess.run(
                [program("railmatectl"), "explain", *what, "--control-socket", node.control_socket],
                check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout
            for v in vfs_in(started):
                self.assertIn(v, out, what)

    def test_a_mig_device_leads_to_its_gpu_where_a_cdi_spec_says_so(self):
        for spec in True, False:
            with self.subTest(spec):
                node = self.node()
                gpus, devices = {}, []
                for address in os.listdir(node.root + "/proc/driver/nvidia/gpus"):
                    text = pathlib.Path(node.root, "proc/driver/nvidia/gpus", address,
                                        "information").read_text("utf-8")
                    mig = "MIG-" + re.search(r"GPU UUID:\s+GPU-(\S+)", text)[1]
                    minor = re.search(r"Device Minor:\s+(\d+)", text)[1]
                    gpus[mig] = address
                    devices.append({
                        "name": mig, "containerEdits": {
                            "deviceNodes": [{"path": "/dev/nvidia" + minor},
                                            {"path": "/dev/nvidia-caps/nvidia-cap3"}]
                        }
                    })
                if spec:
                    os.makedirs(node.root + "/var/run/cdi")
                    pathlib.Path(
                        node.root,
                        "var/run/cdi/k8s.device-plugin.nvidia.com-mig.json").write_text(
                            json.dumps({"cdiVersion": "0.5.0", "devices": devices}), "utf-8")
                node.start(daemon=("--config-file", self.config(node)), gpu=("--mig", ))
                admission, started = self.run_pod(node, "pod", f"main:{GPU}=1,{VF}=1")
                (mig,) = container(admission)["devices"][GPU]
                (decision,) = self.ledger(node)["decisions"]
                if spec:
                    self.assertEqual((decision["known"], decision["gpus"]), ("known", [gpus[mig]]))
                    self.assertEqual(decision["pairs"], [[gpus[mig], vfs_in(started)[0], "PIX"]])
                else:
                    self.assertEqual(decision["known"], "unknown")
                    self.assertIn(f"{mig} of {GPU} does not name a GPU", decision["source"])

    def test_forty_containers_start_at_once(self):
        node = self.late()
        for i in range(40):
            container(node.kubelet.admit(f"p{i}", f"main:{VF}=1"))
        lines = [node.kubelet.send(f"start p{i} * 20000 &") for i in range(40)]
        seen = []
        for line in lines:
            (c,) = node.kubelet.answer(line, 20 + PATIENCE)["containers"]
            self.assertTrue(c["started"], c["message"])
            seen += vfs_in(c)
        self.assertEqual(len(seen), 40)
        self.assertEqual(len(set(seen)), 40, "a VF was given twice")

    def test_several_pools_see_each_other(self):
        pfs = [p["netdev"] for p in Node.topo(self.node()).topo["pfs"] if p["netdev"]]
        node = self.late(pools=[pool("a", pfNames=[f"{p}#0-1" for p in pfs]),
                                pool("b", pfNames=[f"{p}#2-3" for p in pfs])], resource="rdma/a")
        node.kubelet.wait("rdma/b", 1)
        admission, started = self.run_pod(node, "pod", f"main:{GPU}=4,rdma/a=2,rdma/b=2")
        machine = node.topo()
        chosen = vfs_in(started, "rdma/a") + vfs_in(started, "rdma/b")
        self.assertEqual(len({machine.place[v]
                              for v in chosen}), 4, "a PF twice while others were free")
        total, pairs = assignment(machine, gpus_of(machine, admission), chosen)
        self.assertEqual(total, best_total(machine, gpus_of(machine, admission),
                                           {v["pci"] for v in machine.topo["vfs"]}, 4), pairs)
        rdma = {v["pci"]: v["rdma"] for v in machine.topo["vfs"]}
        self.assertEqual(set(started["env"]["NCCL_IB_HCA"][1:].split(",")),
                         {f"{rdma[v]}:1"
                          for v in chosen})

    def test_init_container_and_sidecar(self):
        node = self.late()
        admission = node.kubelet.admit("pod", f"init:setup:{VF}=1", f"sidecar:log:{VF}=1",
                                       f"main:{GPU}=2,{VF}=2")
        started = self.start(node, "pod")
        for c in started.values():
            self.assertTrue(c["started"], c["message"])
        self.assertEqual(vfs_of(admission, "setup"), vfs_of(admission, "log"),
                         "the slot was not reused")
        self.assertEqual(vfs_in(started["setup"]), vfs_in(started["log"]))
        self.assertFalse(set(vfs_in(started["log"])) & set(vfs_in(started["main"])))

    def test_an_init_container_with_vfs_of_its_own(self):
        node = self.late()
        node.kubelet.admit("pod", f"init:setup:{VF}=2", f"main:{GPU}=1")
        started = self.start(node, "pod")
        self.assertTrue(started["setup"]["started"], started["setup"]["message"])
        self.assertEqual(len(vfs_in(started["setup"])), 2)


class Restarts(LateCase):
    def test_a_container_keeps_its_vfs(self):
        node = self.late()
        _, first = self.run_pod(node, "pod", f"main:{GPU}=2,{VF}=2")
        again = self.start(node, "pod")["main"]
        self.assertEqual(vfs_in(again), vfs_in(first))
        self.assertEqual(again["attempts"], 1)

    def test_a_dead_vf_is_replaced_at_the_next_start(self):
        node = self.late()
        admission, first = self.run_pod(node, "pod", f"main:{GPU}=2,{VF}=2")
        dead, kept = vfs_in(first)
        before = node.kubelet.resource(VF)
        node.unbind(dead)
        node.processes[-1].child.send_signal(signal.SIGHUP)
        node.kubelet.wait(VF, f"={before['allocatable'] - 1}")
        (sick, ) = [
            d["id"]
            for d, b in zip(node.kubelet.resource(VF)["devices"], before["devices"])
            if d != b
        ]
        self.assertIn(sick, vfs_of(admission), "not the slot of the sick VF")
        again = vfs_in(self.start(node, "pod")["main"])
        self.assertIn(kept, again)
        self.assertNotIn(dead, again)

    def test_our_restart_keeps_what_runs(self):
        for how in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(how=how.name):
                node = self.late()
                _, first = self.run_pod(node, "pod", f"main:{GPU}=2,{VF}=2")
                node.processes[-1].end(how)
                node.kubelet.wait(VF, "=0")
                node.start_daemon("--config-file", node.path("config.json"))
                node.kubelet.wait(VF, 1)
                again = self.start(node, "pod")["main"]
                self.assertEqual(vfs_in(again), vfs_in(first))
                _, other = self.run_pod(node, "other", f"main:{VF}=2")
                self.assertFalse(set(vfs_in(other)) & set(vfs_in(first)))

    def test_a_lost_ledger_does_not_lose_a_vf_that_is_in_the_container(self):
        """Its devices are in the container's network namespace: its CDI spec tells that it is
        there, and whose."""
        node = self.late()
        healthy = node.kubelet.resource(VF)["allocatable"]
        _, first = self.run_pod(node, "pod", f"main:{GPU}=2,{VF}=2")
        inside = vfs_in(first)[0]
        moved = node.take_away(inside)
        node.processes[-1].end(signal.SIGTERM)
        shutil.rmtree(node.state_dir)
        node.kubelet.wait(VF, "=0")
        d = node.start_daemon("--config-file", node.path("config.json"))
        node.kubelet.wait(VF, f"={healthy}")
        _, other = self.run_pod(node, "other", f"main:{VF}=2")
        self.assertFalse(set(vfs_in(other)) & set(vfs_in(first)))

        def held_by():
            holds = {h["vf"]: h["pod"] for h in self.ledger(node)["holds"]}
            return {holds.get(v) for v in vfs_in(first)}

        until(lambda: held_by() == {"pod"}, "the disk has it")
        node.bring_back(inside, moved)
        d.child.send_signal(signal.SIGHUP)
        until(lambda: vfs_in(self.start(node, "pod")["main"]) == vfs_in(first), "its VFs again")

    def test_a_pod_that_was_admitted_before_our_restart_starts_after(self):
        node = self.late()
        container(node.kubelet.admit("pod", f"main:{GPU}=1,{VF}=1"))
        node.processes[-1].end(signal.SIGKILL)
        node.kubelet.wait(VF, "=0")
        node.start_daemon("--config-file", node.path("config.json"))
        node.kubelet.wait(VF, 1)
        self.assertTrue(self.start(node, "pod")["main"]["started"])

    def test_kubelet_restart_in_the_middle_of_a_start(self):
        node = self.late()
        admission = node.kubelet.admit("pod", f"main:{GPU}=2,{VF}=2")
        node.kubelet.ask("podlist-delay 300")
        line = node.kubelet.send(f"start pod * {PATIENCE * 1000} &")
        node.kubelet.ask("sleep 50")
        node.kubelet.ask("restart 20")
        node.kubelet.ask("podlist-delay 0")
        (c,) = node.kubelet.answer(line, 2 * PATIENCE)["containers"]
        self.assertTrue(c["started"], c["message"])
        self.assertEqual(len(vfs_in(c)), 2)
        self.assertEqual(len(vfs_of(admission)), 2)

    def test_vfs_of_a_removed_pod_come_back(self):
        node = self.late()
        _, first = self.run_pod(node, "pod", f"main:{GPU}=8,{VF}=8")
        node.kubelet.ask("remove pod")
        _, second = self.run_pod(node, "next", f"main:{GPU}=8,{VF}=8")
        self.assertEqual(vfs_in(second), vfs_in(first))


class DoubleAllocation(LateCase):
    def test_one_slot_for_two_pods_is_two_vfs(self):
        """The kubelet's bug of docs/design/kubelet.md §2.2: every List drops the reservation in
        flight."""
        node = self.late()
        node.kubelet.ask("kubelet-bug double")
        taken, slots = {}, {}
        for i in range(12):
            admission, started = self.run_pod(node, f"p{i}",
                                              f"main:{GPU}=1,{VF}=1" if i < 6 else f"main:{VF}=1")
            slots[f"p{i}"] = vfs_of(admission)
            for v in vfs_in(started):
                self.assertNotIn(v, taken, f"p{i} got the VF of {taken.get(v)}")
                taken[v] = f"p{i}"


class Refusals(LateCase):
    def refused(self, *kubelet_options, daemon=(), says):
        node = self.node()
        node.start_kubelet(*kubelet_options)
        node.start_gpu_plugin()
        node.kubelet.wait(GPU, 1)
        d = node.start_daemon("--config-file", self.config(node), *daemon)
        until(lambda: says in d.stderr(), f"a line that says '{says}'")
        resource = node.kubelet.resource(VF)
        self.assertFalse(resource and resource["allocatable"], "it is registered")
        self.assertIn(VF, next(line for line in d.stderr().splitlines() if says in line))
        return node

    def test_cdi_is_off(self):
        self.refused(daemon=("--cdi", "off"),
                     says="needs CDI, which --cdi=off says this node has not")

    def test_podresources_is_off(self):
        self.refused(daemon=("--pod-resources", "off"), says="needs PodResources")

    def test_an_ancient_kubelet(self):
        self.refused("--version", "1.20", says="needs kubelet 1.27 or later")

    def test_a_kubelet_that_does_not_pass_cdi_devices_on(self):
        self.refused("--version", "1.28", says="needs CDI, which kubelets pass on from 1.29")

    def runtime(self, node, *words):
        """The container runtime says this of itself, at the place where containerd usually does."""
        socket = os.path.join(node.root, "run/containerd/containerd.sock")
        os.makedirs(os.path.dirname(socket), exist_ok=True)
        node.kubelet.ask(f"runtime {socket} {' '.join(words)}")
        return socket

    def refused_runtime(self, *words, says, daemon=()):
        node = self.node()
        node.start_kubelet()
        socket = self.runtime(node, *words)
        d = node.start_daemon("--config-file", self.config(node), *daemon)
        until(
            lambda: any("needs CDI, which this runtime lacks" in line and f"{socket}: {says}"
                        in line for line in d.stderr().splitlines()), "a line about CDI")
        self.assertIsNone(node.kubelet.resource(VF))
        return node

    def test_a_runtime_without_cdi(self):
        node = self.refused_runtime("containerd", "1.6.20", says="containerd 1.6.20 has no CDI")
        self.runtime(node, "containerd", "2.1.0")  # somebody has replaced it
        node.kubelet.wait(VF, 1)

    def test_a_runtime_whose_cdi_is_off(self):
        self.refused_runtime("containerd", "1.7.27", '{"enableCDI":false}',
                             says="CDI is switched off in containerd 1.7.27")

    def test_a_runtime_that_is_not_known(self):
        node = self.node()
        node.start_kubelet()
        self.runtime(node, "docker", "25.0.3")
        d = node.start_daemon("--config-file", self.config(node))
        node.kubelet.wait(VF, 1)
        until(lambda: "whether the container runtime supports CDI" in d.stderr(),
              "a line about it")
        until(lambda: "docker 25.0.3 is not known here" in d.stderr(), "a line about it")

    def test_no_runtime_is_asked_where_the_operator_says_so(self):
        for options in (["--cdi", "on"], ["--runtime-socket", "none"]):
            node = self.node()
            node.start_kubelet()
            self.runtime(node, "containerd", "1.6.20")
            d = node.start_daemon("--config-file", self.config(node), *options)
            node.kubelet.wait(VF, 1)
            self.assertNotIn("container runtime", d.stderr())

    def test_it_is_served_when_the_operator_knows_better(self):
        node = self.node()
        node.start("--version", "1.28", daemon=("--config-file", self.config(node), "--cdi", "on"))
        self.assertGreater(node.kubelet.resource(VF)["allocatable"], 0)

    def test_an_early_pool_beside_it_is_served(self):
        node = self.node()
        pools = [
            pool("late", pfNames=[]),
            {"resourcePrefix": "rdma", "resourceName": "vf", "selectors": {"isRdma": True}}
        ]
        pfs = [p["netdev"] for p in node.topo().topo["pfs"] if p["netdev"]]
        pools[0]["selectors"]["pfNames"] = [f"{p}#0-1" for p in pfs]
        node.start(daemon=("--config-file", self.config(node, *pools), "--cdi", "off"))
        self.assertIsNone(node.kubelet.resource("rdma/late"))

    def test_without_podresources_it_is_registered_later(self):
        node = self.node()
        node.start_kubelet()
        node.kubelet.ask("podlist-fail on")
        d = node.start_daemon("--config-file", self.config(node))
        until(
            lambda:
            "the pool binds late, and PodResources does not answer"
            in d.stderr(), "a line about PodResources")
        self.assertIsNone(node.kubelet.resource(VF))
        node.kubelet.ask("podlist-fail off")
        node.kubelet.wait(VF, 1)

    def test_podresources_that_does_not_answer_is_waited_for(self):
        node = self.late()
        container(node.kubelet.admit("pod", f"main:{GPU}=1,{VF}=1"))
        node.kubelet.ask("podlist-fail on")
        waiting = self.start(node, "pod", timeout_ms=200)["main"]
        self.assertFalse(waiting["started"])
        self.assertIn("cannot identify the starting container", waiting["message"])
        node.kubelet.ask("podlist-fail off")
        self.assertTrue(self.start(node, "pod")["main"]["started"])

    def test_a_malformed_podresources_is_a_sentence(self):
        node = self.late()
        container(node.kubelet.admit("pod", f"main:{GPU}=1,{VF}=1"))
        node.kubelet.ask("podlist-garbage on")
        waiting = self.start(node, "pod", timeout_ms=200)["main"]
        self.assertFalse(waiting["started"])
        self.assertIn("cannot identify the starting container", waiting["message"])
        node.kubelet.ask("podlist-garbage off")
        self.assertTrue(self.start(node, "pod")["main"]["started"])

    def test_forty_containers_start_under_the_rate_limit_of_podresources(self):
        node = self.late("hgx-h100", "--rate-limit")
        for i in range(40):
            container(node.kubelet.admit(f"p{i}", f"main:{VF}=1"))
        lines = [node.kubelet.send(f"start p{i} * 20000 &") for i in range(40)]
        for line in lines:
            (c,) = node.kubelet.answer(line, 20 + PATIENCE)["containers"]
            self.assertTrue(c["started"], c["message"])

    def test_a_slow_podresources_is_waited_for(self):
        node = self.late()
        container(node.kubelet.admit("pod", f"main:{GPU}=1,{VF}=1"))
        node.kubelet.ask("podlist-delay 3000")
        started = self.start(node, "pod")["main"]
        self.assertTrue(started["started"], started["message"])
        self.assertEqual(started["attempts"], 1)


if __name__ == "__main__":
    main()
