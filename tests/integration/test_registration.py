#!/usr/bin/python3
"""Finding the kubelet, being found by it, and staying registered, whatever the kubelet does."""

import os
import time

from harness import VF, Case, main, until, vfs_of


class Registration(Case):
    def test_the_kubelet_may_come_later(self):
        node = self.node()
        daemon = node.start_daemon()
        until(lambda: "waiting for the kubelet" in daemon.stderr(), "the daemon waits")
        kubelet = node.start_kubelet()
        kubelet.wait(VF, 1)

    def test_even_its_directory_may_come_later(self):
        node = self.node()
        os.rmdir(node.kubelet_dir)
        daemon = node.start_daemon()
        time.sleep(0.3)
        self.assertIsNone(daemon.child.poll(), daemon.stderr())
        kubelet = node.start_kubelet()
        kubelet.wait(VF, 1)

    def test_a_refusing_kubelet_is_asked_again(self):
        node = self.node()
        kubelet = node.start_kubelet()
        kubelet.ask("refuse on")
        daemon = node.start_daemon()
        until(lambda: kubelet.count("register-refused", resource=VF) >= 3, "three attempts")
        until(lambda: "refuses every registration" in daemon.stderr(), "a line about it")
        kubelet.ask("refuse off")
        kubelet.wait(VF, 1)

    def test_refusals_are_not_a_flood(self):
        node = self.node()
        kubelet = node.start_kubelet()
        kubelet.ask("refuse on")
        daemon = node.start_daemon()
        kubelet.event("register-refused", resource=VF)
        before = daemon.fds()
        time.sleep(1.5)
        self.assertLess(kubelet.count("register-refused", resource=VF), 25)
        until(lambda: daemon.fds() <= before + 2,
              "descriptors to be as few as after the first refusal")

    def test_a_hanging_register_does_not_stop_a_new_kubelet(self):
        node = self.node()
        kubelet = node.start_kubelet()
        kubelet.ask("hang on")
        node.start_daemon()
        kubelet.event("register-held", resource=VF)
        kubelet.ask("down")
        since = kubelet.mark()
        line = kubelet.send("up")
        kubelet.answer(line)
        kubelet.event("register-held", since, resource=VF)
        kubelet.ask("hang off")
        kubelet.wait(VF, 1)

    def test_a_kubelet_that_dies_in_the_middle_of_register(self):
        node = self.node()
        kubelet = node.start_kubelet()
        kubelet.ask("hang die")
        node.start_daemon()
        kubelet.event("register-held", resource=VF)
        kubelet.ask("up")
        kubelet.wait(VF, 1)

    def test_kubelet_1_20_which_answers_before_it_dials(self):
        node = self.node()
        kubelet, _ = node.start("--version", "1.20")
        self.assertEqual(len(vfs_of(kubelet.admit("p", f"main:{VF}=2"))), 2)
        self.assertGreater(kubelet.ask("restart")["us"][VF], 0)
        self.assertEqual(len(vfs_of(kubelet.admit("q", f"main:{VF}=2"))), 2)

    def test_a_lost_stream_is_registered_again_without_the_race(self):
        node = self.node()
        kubelet, _ = node.start()
        count = kubelet.resource(VF)["allocatable"]
        for _ in range(5):  # each costs the plugin a longer back-off
            since = kubelet.mark()
            kubelet.ask(f"disconnect {VF}")
            kubelet.event("list", since, resource=VF, allocatable=count)
        time.sleep(0.2)
        kubelet.wait(VF, f"={count}")
        self.assertEqual(kubelet.count("stream-end", resource=VF, kills_newer=True), 0)

    def test_one_registration_for_one_start(self):
        node = self.node()
        kubelet, _ = node.start()
        time.sleep(0.5)
        self.assertEqual(kubelet.count("registered", resource=VF), 1)
        self.assertEqual(kubelet.count("list", resource=VF), 1)

    def test_our_socket_that_somebody_removed_comes_back(self):
        node = self.node()
        kubelet, _ = node.start()
        ours = [n for n in os.listdir(node.kubelet_dir) if n.endswith(".sock") and n not in
                ("kubelet.sock", "fakegpu.sock")]
        self.assertEqual(len(ours), 1, ours)
        path = os.path.join(node.kubelet_dir, ours[0])
        os.unlink(path)
        until(lambda: os.path.exists(path), "the socket is back")
        kubelet.ask(f"disconnect {VF}")
        kubelet.wait(VF, 1)

    def test_pods_survive_a_kubelet_restart(self):
        node = self.node()
        kubelet, _ = node.start()
        count = kubelet.resource(VF)["allocatable"]
        held = vfs_of(kubelet.admit("old", f"main:{VF}={count - 2}"))
        kubelet.ask("restart")
        free = vfs_of(kubelet.admit("new", f"main:{VF}=2"))
        self.assertFalse(set(held) & set(free))


class Watcher(Case):
    def start(self, node):
        kubelet = node.start_kubelet()
        daemon = node.start_daemon("--registration", "watcher")
        kubelet.wait(VF, 1)
        return kubelet, daemon

    def test_the_kubelet_finds_the_socket_in_its_registry(self):
        node = self.node()
        kubelet, daemon = self.start(node)
        kubelet.event("watcher-notified", resource=VF)
        self.assertEqual(kubelet.count("registered"), 0, "Register was called as well")
        self.assertEqual(len(vfs_of(kubelet.admit("p", f"main:{VF}=2"))), 2)
        self.assertEqual(daemon.end(), 0)
        self.assertEqual(os.listdir(os.path.join(node.kubelet_root, "plugins_registry")), [])

    def test_a_restarted_kubelet_finds_it_again(self):
        node = self.node()
        kubelet, _ = self.start(node)
        self.assertGreater(kubelet.ask("restart")["us"][VF], 0)

    def test_a_lost_stream_makes_a_new_socket(self):
        node = self.node()
        kubelet, _ = self.start(node)
        since = kubelet.mark()
        kubelet.ask(f"disconnect {VF}")
        kubelet.event("watcher-found", since, resource=VF)
        kubelet.wait(VF, 1)

    def test_auto_takes_the_registry_where_there_is_one(self):
        node = self.node()
        kubelet = node.start_kubelet()
        node.start_daemon("--registration", "auto")
        kubelet.wait(VF, 1)
        self.assertEqual(kubelet.count("watcher-found", resource=VF), 1)


if __name__ == "__main__":
    main()
