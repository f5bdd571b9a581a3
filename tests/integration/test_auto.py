#!/usr/bin/python3
"""`binding: auto`: late where kubelet, runtime and CDI directory allow it and no CNI plugin is
handed a slot; else early, and why."""

import json
import os
import signal
import socket
import subprocess
import time

from harness import GPU, PATIENCE, VF, container, main, pairs, program, until, vfs_of
from late import LateCase, vfs_in

CDI_ON = '{"enableCDI":true}'


def cni(*types):
    """As containerd tells its networks."""
    def network(*plugins):
        return {
            "Config": {
                "Name": "x", "Plugins": [{"Network": {"type": t}, "Source": "{}"} for t in plugins]
            }, "IFName": "eth0"
        }

    return json.dumps(
        {"PluginConfDir": "/etc/cni/net.d", "Networks": [network("loopback"),
                                                         network(*types)]}, separators=(",", ":"))


PLAIN, MULTUS = cni("calico", "portmap"), cni("multus-shim")


def pool(**railmate):
    return {
        "resourcePrefix": "rdma", "resourceName": "vf", "selectors": {"isRdma": True},
        "railmate": railmate
    }


class AutoCase(LateCase):
    def runtime(self, node, name="containerd", version="2.1.9", config=CDI_ON, networks=PLAIN):
        path = os.path.join(node.root, "run/containerd/containerd.sock")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        node.kubelet.ask(f"runtime {path} {name} {version} {config} {networks}")

    def up(self, *daemon, kubelet=(), node=None, **runtime):
        """A node where late binding is possible, unless the words say otherwise. Returns (node,
        daemon)."""
        node = node or self.node()
        node.start_kubelet(*kubelet)
        node.start_gpu_plugin()
        self.runtime(node, **runtime)
        d = node.start_daemon(*daemon)
        node.kubelet.wait(GPU, 1)
        node.kubelet.wait(VF, 1)
        return node, d

    def again(self, node, *daemon):
        node.processes[-1].end(signal.SIGTERM)
        node.kubelet.wait(VF, "=0")
        d = node.start_daemon(*daemon)
        node.kubelet.wait(VF, 1)
        return d

    def why(self, d, binding, resource=VF):
        """The line of the log that tells: one a pool."""
        told = [
            pairs(line)
            for line in d.stderr().splitlines()
            if f"binding auto was decided resource={resource} " in line
        ]
        self.assertEqual([pair["binding"] for pair in told], [binding], d.stderr())
        return told[0]["reason"]

    def check_ids(self, node, binding):
        ids = vfs_of(node.kubelet.admit("asks", f"main:{VF}=1"))
        self.assertRegex(ids[0], r"^rdma_vf-n\d-\d+$" if binding == "late" else r"^0000:")
        node.kubelet.ask("remove asks")


class Choice(AutoCase):
    def test_late_where_everything_is_there(self):
        node, d = self.up()  # the built-in pool
        self.assertEqual(
            self.why(d, "late"),
            "the kubelet and the container runtime do CDI, and no CNI plugin is handed a slot")
        _, started = self.run_pod(node, "pod", f"main:{GPU}=2,{VF}=2")
        self.assertEqual(len(vfs_in(started)), 2)

    def test_early_and_why(self):
        blocked = "/proc/self/no-such-folder/cdi"
        rows = [
            ((), {"version": "1.6.20"}, "containerd 1.6.20 has no CDI, which came with 1.7.2"),
            ((), {"config": '{"enableCDI":false}'}, "set enable_cdi = true in its configuration"),
            ((), {"name": "docker", "version": "25.0.3"},
             "it is not known whether the container runtime reads CDI specs: .*docker 25.0.3 is not known here"
             ),
            ((), {"networks": MULTUS},
             "the CNI plugin multus-shim hands device ids on to others, of which only railmate-cni can "
             "read slots"),
            ((), {"networks": cni()},
             "it is not known whether a CNI plugin would be handed a slot: containerd 2.1.9 has no CNI "
             "network yet"),
            (("--runtime-socket", "none"), {},
             "reads CDI specs: --runtime-socket=none forbids asking it"),
            (("--runtime-socket", "/no/such.sock"), {}, "no socket of it is here"),
            (("--cdi", "off"), {}, "--cdi=off says that this node has no CDI"),
            (("--pod-resources", "off"), {},
             "--pod-resources=off forbids asking which container starts"),
            (("--cdi-dir", blocked), {},
             f"CDI specs cannot be written to {blocked}: No such file or directory"),
        ]
        for options, runtime, why in rows:
            with self.subTest(options=options, runtime=runtime):
                node, d = self.up(*options, **runtime)
                self.assertRegex(self.why(d, "early"), why)
                self.check_ids(node, "early")

    def test_a_kubelet_whose_version_is_not_known(self):
        node, d = self.up(kubelet=("--version", "1.28"))
        self.assertIn("older than 1.34", self.why(d, "early"))
        self.check_ids(node, "early")
        self.assertIn("older than 1.27",
                      self.why(self.up(kubelet=("--version", "1.20"))[1], "early"))

    def test_the_operator_knows_that_cdi_works(self):
        node, d = self.up("--cdi", "on", kubelet=("--version", "1.28"), version="1.6.20")
        self.why(d, "late")
        self.check_ids(node, "late")

    def test_pods_of_the_hosts_network_have_no_cni_plugin(self):
        node = self.node()
        _, d = self.up("--config-file", self.config(node, pool(network="host")), node=node,
                       networks=MULTUS)
        self.assertEqual(self.why(d, "late"), "the kubelet and the container runtime do CDI")

    def test_a_runtime_that_does_not_answer_is_waited_for_a_while(self):
        node = self.node()
        path = os.path.join(node.root, "run/containerd/containerd.sock")
        os.makedirs(os.path.dirname(path))
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path)  # nobody listens
            _, d = node.start(daemon=("--pod-resources-timeout", "200"))
        self.assertIn("it is not known whether the container runtime reads CDI specs",
                      self.why(d, "early"))

    def test_without_a_kubelet_it_does_not_wait_for_ever(self):
        """The unit of systemd starts before the kubelet, which waits for it."""
        node = self.node()
        node.start_kubelet()
        self.runtime(node)
        d = node.start_daemon("--kubelet-root", node.path("nobody"),
                              "--pod-resources-timeout", "200")
        until(lambda: " binding=early " in d.stderr(), "a decision")
        self.assertIn("PodResources does not answer", self.why(d, "early"))

    def test_a_file_of_the_incumbent_stays_early_without_a_word(self):
        node = self.node()
        plain = {k: v for k, v in pool().items() if k != "railmate"}
        _, d = self.up("--config-file", self.config(node, plain), node=node)
        self.assertNotIn("binding", d.stderr())
        self.check_ids(node, "early")

    def test_only_pools_that_leave_it_open(self):
        node = self.node()
        pfs = [p["netdev"] for p in node.topo().topo["pfs"] if p["netdev"]]
        pools = [pool(binding=b) for b in ("auto", "early")] + [pool()]
        for i, p in enumerate(pools):
            p["selectors"]["pfNames"] = [f"{name}#{i}" for name in pfs]
            p["resourceName"] = ("vf", "b", "c")[i]
        _, d = self.up("--config-file", self.config(node, *pools), node=node)
        self.why(d, "late")
        self.why(d, "late", "rdma/c")
        self.assertNotIn("resource=rdma/b binding", d.stderr())

    def test_the_operator_can_ask(self):
        node, d = self.up(networks=MULTUS)
        ask = [
            program("railmatectl"), "explain", "pool", VF, "--control-socket", node.control_socket
        ]
        told = subprocess.run(ask, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE, check=True).stdout
        self.assertRegex(told, rf"(?m)^{VF} \(binding early\): \d+ VFs")
        self.assertIn(f"  binding auto: {self.why(d, 'early')}\n", told)
        answer = subprocess.run([*ask[:3], "--json", *ask[4:]], stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
        self.assertEqual(json.loads(answer)["pools"][0]["binding_why"], self.why(d, "early"))


class Restart(AutoCase):
    def up(self, *daemon, **rest):
        return super().up("--cgroup-dir", "none", *daemon, **rest)

    def again(self, node, *daemon, cgroups="none"):
        return super().again(node, "--cgroup-dir", cgroups, *daemon)

    def no_pod_runs(self, node):
        """The cgroups of a node without pods; the kubelet's checkpoint still names those that are
        gone."""
        until(lambda: not self.ledger(node)["holds"], "nothing is held")
        os.makedirs(node.path("cgroups/pids/kubepods"))
        return node.path("cgroups")

    def test_slots_that_containers_hold_keep_it_late(self):
        node, _ = self.up()
        _, first = self.run_pod(node, "pod", f"main:{GPU}=2,{VF}=2")
        self.runtime(node, networks=MULTUS)
        d = self.again(node)
        self.assertEqual(self.why(d, "late"), "containers hold slots of it")
        again = self.start(node, "pod")["main"]
        self.assertEqual(vfs_in(again), vfs_in(first))
        node.kubelet.ask("remove pod")
        d = self.again(node, cgroups=self.no_pod_runs(node))
        self.assertIn("multus-shim", self.why(d, "early"))
        self.check_ids(node, "early")

    def test_slots_that_are_given_back_let_it_be_early(self):
        """Late, uninstalled, installed with the defaults: without CDI nothing was offered until a
        restart. And with CDI, where Multus came."""
        for options in ("--cdi", "off"), ():
            with self.subTest(options):
                node, _ = self.up()
                self.run_pod(node, "pod", f"main:{GPU}=2,{VF}=2")
                self.run_pod(node, "other", f"main:{GPU}=2,{VF}=2")
                self.runtime(node, networks=MULTUS)
                node.processes[-1].end(signal.SIGTERM)
                node.kubelet.wait(VF, "=0")
                d = node.start_daemon("--cgroup-dir", node.path("cgroups"), *options)
                until(lambda: "binding=late" in d.stderr(), "a decision")
                self.assertEqual(self.why(d, "late"), "containers hold slots of it")
                os.makedirs(node.path("cgroups/pids/kubepods"))
                node.kubelet.ask("remove pod")
                if not options:
                    node.kubelet.wait(VF, 1)
                    self.check_ids(node, "late")
                node.kubelet.ask("remove other")
                until(lambda: " binding=early " in d.stderr(), "another decision")
                until(lambda: sum(one["id"].startswith("0000:") and one["healthy"]
                                  for one in node.kubelet.resource(VF)["devices"]) == 64, "all VFs")
                self.check_ids(node, "early")

    def test_vfs_that_containers_hold_keep_it_early(self):
        node, _ = self.up(networks=MULTUS)
        container(node.kubelet.admit("pod", f"main:{GPU}=1,{VF}=1"))
        node.kubelet.ask("prestart pod")
        self.runtime(node)
        d = self.again(node)
        self.assertEqual(self.why(d, "early"), "containers hold VFs of it by PCI address")
        node.kubelet.ask("remove pod")
        self.why(self.again(node, cgroups=self.no_pod_runs(node)), "late")
        self.check_ids(node, "late")

    def test_vfs_that_are_given_back_let_it_be_late(self):
        """Installed with the defaults, then with CDI, without a restart; a pool that could not be
        late stays early."""
        for late in True, False:
            with self.subTest(late):
                node, _ = self.up(networks=MULTUS)
                for pod in "pod", "other":
                    container(node.kubelet.admit(pod, f"main:{GPU}=1,{VF}=1"))
                    node.kubelet.ask(f"prestart {pod}")
                if late:
                    self.runtime(node)
                d = self.again(node, cgroups=node.path("cgroups"))
                self.assertEqual(self.why(d, "early"), "containers hold VFs of it by PCI address")
                os.makedirs(node.path("cgroups/pids/kubepods"))
                node.kubelet.ask("remove pod")
                until(lambda: len(self.ledger(node)["holds"]) == 1, "one that holds")
                self.check_ids(node, "early")
                node.kubelet.ask("remove other")
                until(lambda: not self.ledger(node)["holds"], "nothing is held")
                if late:
                    until(lambda: " binding=late " in d.stderr(), "another decision")
                    until(lambda: not any(one["id"].startswith("0000:")
                                          for one in node.kubelet.resource(VF)["devices"]), "slots")
                    self.check_ids(node, "late")
                    container(node.kubelet.admit("next", f"main:{GPU}=1,{VF}=1"))
                else:
                    until(lambda: "multus-shim" in d.stderr(), "why it is early now")
                    self.assertNotIn("binding=late", d.stderr())
                    self.check_ids(node, "early")

    def test_a_multus_that_comes_later_is_warned_of(self):
        node, d = self.up()
        told = 'reason="the CNI plugin multus-shim hands device ids on to others"'
        d.child.send_signal(signal.SIGHUP)
        self.runtime(node, networks=MULTUS)
        for _ in range(2):
            until(lambda: d.child.send_signal(signal.SIGHUP) or told in d.stderr(), "a warning")
        self.assertEqual(d.stderr().count(told), 1, d.stderr())

    def test_slots_of_a_container_that_has_not_started_keep_it_late(self):
        node, _ = self.up()
        container(node.kubelet.admit("pod", f"main:{GPU}=1,{VF}=1"))
        self.assertFalse(
            self.ledger(node)["holds"] if os.path.exists(node.state_dir + "/ledger.json") else [])
        self.runtime(node, networks=MULTUS)
        self.assertEqual(self.why(self.again(node), "late"), "containers hold slots of it")
        started = self.start(node, "pod")["main"]
        self.assertTrue(started["started"], started["message"])

    def test_a_slot_that_was_promised_keeps_it_late_without_a_restart(self):
        """The last container that has a VF ends while another waits for its image: it has no
        process yet, and no VF."""
        node, _ = self.up()
        self.run_pod(node, "pod", f"main:{GPU}=1,{VF}=1")
        self.runtime(node, networks=MULTUS)
        os.makedirs(node.path("cgroups/pids/kubepods"))
        d = self.again(node, cgroups=node.path("cgroups"))
        self.assertEqual(self.why(d, "late"), "containers hold slots of it")
        container(node.kubelet.admit("next", f"main:{GPU}=1,{VF}=1"))
        node.kubelet.ask("remove pod")
        until(lambda: not self.ledger(node)["holds"], "nothing is held")
        time.sleep(2.5)  # it is looked at each second
        self.why(d, "late")
        started = self.start(node, "next")["main"]
        self.assertTrue(started["started"], started["message"])
        node.kubelet.ask("remove next")
        until(lambda: " binding=early " in d.stderr(), "another decision")

    def test_without_the_ledger_the_kubelets_checkpoint_tells(self):
        node, _ = self.up()
        self.run_pod(node, "pod", f"main:{GPU}=1,{VF}=1")
        self.runtime(node, networks=MULTUS)
        d = self.again(node, "--state-dir", node.path("elsewhere"))
        self.assertEqual(self.why(d, "late"), "containers hold slots of it")

    def test_one_that_takes_over_decides_with_the_ledger(self):
        node, first = self.up()
        self.run_pod(node, "pod", f"main:{GPU}=1,{VF}=1")
        self.runtime(node, networks=MULTUS)
        second = node.start_daemon()
        until(lambda: "waiting for the end of another railmated" in second.stderr(),
              "that it waits")
        self.assertNotIn("binding auto", second.stderr())
        first.end(signal.SIGTERM)
        until(lambda: "binding auto" in second.stderr(), "its decision")
        self.assertEqual(self.why(second, "late"), "containers hold slots of it")
        node.kubelet.wait(VF, 1)


if __name__ == "__main__":
    main()
