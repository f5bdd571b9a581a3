#!/usr/bin/python3
"""The fake kubelet has the real ones' traits, good and bad: what the other tests lean on."""

import json
import os
import signal
import socket

from harness import GPU, VF, Case, main, until


class FakeKubelet(Case):
    def two_plugins_of_one_resource(self, node, *options):
        """The younger one serves when the older one dies; what became of the registration."""
        kubelet = node.start_kubelet(*options)
        old = node.start_gpu_plugin("--endpoint", "old.sock")
        kubelet.wait(GPU, 8)
        node.start_gpu_plugin("--endpoint", "new.sock")
        until(lambda: kubelet.count("list", resource=GPU) == 2, "the second one's list")
        since = kubelet.mark()
        old.end()
        return kubelet, since

    def test_1_36_kills_the_newer_registration_when_an_old_stream_ends(self):
        kubelet, since = self.two_plugins_of_one_resource(self.node())
        kubelet.event("stream-end", since, resource=GPU, kills_newer=True)
        kubelet.event("list", since, resource=GPU)  # the younger one comes back by itself

    def test_1_20_does_not(self):
        kubelet, since = self.two_plugins_of_one_resource(self.node(), "--version", "1.20")
        kubelet.event("stream-end", since, resource=GPU, kills_newer=False)
        kubelet.wait(GPU, "=8")
        self.assertEqual(kubelet.count("list", since, resource=GPU), 0)

    def test_a_stopped_resource_keeps_its_capacity(self):
        node = self.node()
        kubelet, daemon = node.start()
        daemon.end()
        kubelet.wait(VF, "=0")
        self.assertEqual(kubelet.resource(VF)["capacity"], 64)

    def test_a_command_comes_after_what_had_reached_the_kubelet(self):
        kubelet, daemon = self.node().start()
        with kubelet.changed:  # nobody reads its answers: it is stuck in one, with more to give
            for _ in range(400):
                kubelet.send("list &")
            daemon.end(signal.SIGKILL)
            last = kubelet.send("list")
        vfs = next(r for r in kubelet.answer(last)["resources"] if r["name"] == VF)
        self.assertEqual(vfs["allocatable"], 0)

    def test_a_disconnect_is_answered_when_the_stream_has_ended(self):
        kubelet, _ = self.node().start()
        for ends in range(1, 6):
            kubelet.ask(f"disconnect {VF}")
            self.assertEqual(kubelet.count("stream-end", resource=VF), ends)
            kubelet.wait(VF, 1)

    def test_a_container_waits_while_the_stream_is_down(self):
        """As kubelet 1.36.3: errEndpointStopped, and it is tried again."""
        node = self.node()
        kubelet, daemon = node.start()
        kubelet.admit("p", f"main:{VF}=1")
        daemon.end()
        kubelet.wait(VF, "=0")

        def tried_again():
            waits = kubelet.ask("start p main 200")["containers"][0]
            self.assertFalse(waits["started"])
            self.assertIn("has been stopped", waits["message"])
            return waits["attempts"] > 1

        until(tried_again, "a second attempt")
        node.start_daemon()
        kubelet.wait(VF, 1)
        self.assertTrue(kubelet.ask("start p main 10000")["containers"][0]["started"])

    def test_a_restart_wipes_sockets_and_keeps_the_checkpoint(self):
        node = self.node()
        kubelet, _ = node.start()
        kubelet.admit("p", f"main:{GPU}=1,{VF}=1")
        stranger = os.path.join(node.kubelet_dir, "stranger.sock")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(stranger)
        kubelet.ask("restart")
        self.assertFalse(os.path.exists(stranger))
        with open(os.path.join(node.kubelet_dir, "kubelet_internal_checkpoint"),
                  encoding="utf-8") as f:
            entries = json.load(f)["Data"]["PodDeviceEntries"]
        self.assertEqual({(e["ContainerName"], e["ResourceName"])
                          for e in entries}, {("main", GPU), ("main", VF)})
        self.assertTrue(all(e["AllocResp"] and e["DeviceIDs"] for e in entries))

    def test_a_kubelet_that_is_down_leaves_sockets_that_refuse(self):
        node = self.node()
        kubelet, _ = node.start()
        kubelet.ask("down")
        for path in (os.path.join(node.kubelet_dir, "kubelet.sock"),
                     os.path.join(node.kubelet_root, "pod-resources/kubelet.sock")):
            with socket.socket(socket.AF_UNIX) as s, self.assertRaises(ConnectionRefusedError):
                s.connect(path)
        kubelet.ask("up")
        kubelet.wait(VF, "=64")

    def test_devices_of_a_removed_pod_are_collected_by_the_next_admission(self):
        node = self.node()
        kubelet, _ = node.start(daemon=("--pod-resources", "off"))  # a List collects, too
        kubelet.admit("p", f"main:{GPU}=8")
        kubelet.ask("remove p")
        self.assertEqual(kubelet.resource(GPU)["allocated"], 8)
        self.assertEqual(kubelet.admit("q", f"main:{GPU}=8")["event"], "admitted")

    def test_a_plugin_without_preferences_is_not_asked_for_them(self):
        node = self.node()
        kubelet, _ = node.start(gpu=("--no-preferred",))
        rpcs = kubelet.admit("p", f"main:{GPU}=2")["containers"][0]["rpcs"]
        self.assertEqual([(r["resource"], r["preferred_us"]) for r in rpcs], [(GPU, -1)])

    def test_the_same_seed_gives_the_same_orders(self):
        def orders():
            node = self.node()
            kubelet, _ = node.start("--seed", "5", "--version", "1.20",
                                    daemon=("--pod-resources", "off"))
            return [kubelet.admit(f"p{i}", f"main:{GPU}=0,{VF}=0,a/b=0")["uid"] for i in range(5)]
        self.assertEqual(orders(), orders())

    def test_commands_that_make_no_sense_are_sentences(self):
        node = self.node()
        kubelet = node.start_kubelet()
        for command in ("dance", "admit p", "admit p main", "admit p main:x",
                        "admit p main:a/b=1,a/b=2", "remove q", "admit p order=up main:a/b=1",
                        "slow a/b on", "refuse maybe", "wait a/b", "up", "call a/b /x zz"):
            with self.subTest(command):
                answer = kubelet.answer(kubelet.send(command))
                self.assertEqual(answer["event"], "error", answer)
                self.assertTrue(answer["message"])


if __name__ == "__main__":
    main()
