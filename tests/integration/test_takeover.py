#!/usr/bin/python3
"""A second railmated beside the first, as in a rolling update: it prepares, waits for the first
one's end, and takes over."""

import os
import signal
import socket
import statistics
import subprocess

from harness import PATIENCE, VF, Case, main, program, until, vfs_of

ROUNDS = 15


class TakeOver(Case):
    def waiting(self, node, first):
        """A second instance that has done what can be done before the end of the first."""
        second = node.start_daemon()
        until(lambda: f"in use by another railmated, pid {first.pid}" in second.stderr(),
              "that it waits")
        until(lambda: f"resource={VF} " in second.stderr(), "that it has looked at the machine")
        return second

    def gap_ms(self, kubelet, end):
        """From the end of the stream of the first to the list of the second."""
        since = kubelet.mark()
        end()
        ended = kubelet.event("stream-end", since=since, resource=VF)
        listed = kubelet.await_event(
            lambda e: e["event"] == "list" and e["resource"] == VF and e["t"] > ended["t"],
            "a list after it", since)
        return (listed["t"] - ended["t"]) / 1000

    def test_the_gap_is_little_more_than_a_registration(self):
        """Beyond it there is a tick of the wait, and the ledger is read; the machine is not looked
        at."""
        node = self.node("odd-many-vfs")
        kubelet, daemon = node.start()
        gaps, floors = [], []
        for _ in range(ROUNDS):
            second = self.waiting(node, daemon)
            gaps.append(
                self.gap_ms(kubelet,
                            lambda old=daemon: self.assertEqual(old.end(), 0, old.stderr())))
            daemon = second
            kubelet.wait(VF, 1)
            registered = second.stderr().split("registered with the kubelet")[0]
            self.assertEqual(registered.count(" healthy="), 1, "looks at the machine")
            floors.append(kubelet.ask("restart")["us"][VF] / 1000)
        # The shortest: a busy machine makes the others long, and none shorter than its steps.
        gap, floor = min(gaps), statistics.median(floors)
        print(
            f"gap of a take-over: quartiles {[round(q, 1) for q in statistics.quantiles(gaps)]} ms; of a kubelet's restart: "
            f"{[round(q, 1) for q in statistics.quantiles(floors)]} ms")
        if not os.environ.get("SANITIZED"):  # which are slow in another way each time
            self.assertLess(gap, 4 * floor + 150)

    def ready(self, file):
        done = subprocess.run([program("railmatectl"), "ready", file], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        return done.returncode, done.stdout.strip()

    def test_each_instance_says_whether_it_is_ready(self):
        node = self.node()
        files = [node.path("first"), node.path("second")]
        with open(files[0], "w", encoding="utf-8") as left:
            left.write("serving\n")  # by one that was killed
        kubelet, first = node.start(daemon=("--ready-file", files[0]))
        until(lambda: self.ready(files[0]) == (0, "serving"), "the first to be ready")
        self.assertEqual(self.ready(files[1])[0], 1)
        second = node.start_daemon("--ready-file", files[1])
        until(lambda: self.ready(files[1]) == (0, "waiting"), "the second to be ready")
        self.assertEqual(self.ready(files[0]), (0, "serving"))
        self.assertEqual(first.end(), 0, first.stderr())
        self.assertEqual(self.ready(files[0])[0], 1)
        until(lambda: self.ready(files[1]) == (0, "serving"), "the second to serve")
        kubelet.wait(VF, 2)  # it has read the list by then, too
        self.assertEqual(len(vfs_of(kubelet.admit("p", f"main:{VF}=2"))), 2)

    def test_systemd_gets_one_word_when_it_serves_without_a_kubelet(self):
        """The unit of deploy/systemd starts before the kubelet."""
        node = self.node()
        for name in (node.path("notify"), f"@{node.path('notify')}"):
            with self.subTest(name), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
                systemd.bind(name.replace("@", "\0"))
                systemd.settimeout(PATIENCE)
                os.environ["NOTIFY_SOCKET"] = name
                self.addCleanup(os.environ.pop, "NOTIFY_SOCKET", None)
                daemon = node.start_daemon()
                self.assertEqual(systemd.recv(100), b"READY=1")
                self.assertEqual([n.startswith("rdma_vf.") for n in os.listdir(node.kubelet_dir)], [True])
                self.assertEqual(daemon.end(), 0, daemon.stderr())
                systemd.setblocking(False)
                self.assertRaises(BlockingIOError, systemd.recv, 100)

    def test_one_that_cannot_say_so_serves_all_the_same(self):
        node = self.node()
        os.environ["NOTIFY_SOCKET"] = "nonsense"
        self.addCleanup(os.environ.pop, "NOTIFY_SOCKET", None)
        file = node.path("absent", "ready")
        kubelet, daemon = node.start(daemon=("--ready-file", file))
        until(lambda: f"{file}.tmp" in daemon.stderr(), "a word about the file")
        self.assertIn('cannot send READY=1 to systemd socket=nonsense error="Invalid argument"',
                      daemon.stderr())
        self.assertEqual(len(vfs_of(kubelet.admit("p", f"main:{VF}=2"))), 2)

    def test_held_vfs_stay_held(self):
        for sig in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(sig):
                node = self.node()
                kubelet, first = node.start()
                capacity = kubelet.resource(VF)["capacity"]
                before = vfs_of(kubelet.admit("before", f"main:{VF}=2"))
                node.take_away(before[0])  # out of sight when the second one looks
                second = self.waiting(node, first)
                meanwhile = vfs_of(kubelet.admit("meanwhile", f"main:{VF}=2"))
                since = kubelet.mark()
                first.child.send_signal(sig)
                kubelet.event("stream-end", since, resource=VF)
                kubelet.wait(VF, f"={capacity}")
                rest = vfs_of(kubelet.admit("rest", f"main:{VF}={capacity - 4}"))
                self.assertFalse(set(rest) & {*before, *meanwhile})

    def test_a_held_vf_that_the_picture_lacks_is_looked_for(self):
        """It came, and was given, after the second one had looked."""
        node = self.node()
        vfs = [vf["pci"] for vf in node.topo().topo["vfs"]]
        late = vfs[0]
        removed = node.remove_device(late)
        kubelet, first = node.start()
        second = self.waiting(node, first)
        node.restore_device(late, removed)
        first.child.send_signal(signal.SIGHUP)
        kubelet.wait(VF, f"={len(vfs)}")
        kubelet.admit("all", f"main:{VF}={len(vfs)}")
        since = kubelet.mark()
        self.assertEqual(first.end(), 0, first.stderr())
        kubelet.event("stream-end", since, resource=VF)
        kubelet.wait(VF, f"={len(vfs)}")

    def test_it_waits_as_long_as_it_takes_and_can_be_stopped(self):
        node = self.node()
        kubelet, first = node.start()
        second = self.waiting(node, first)
        self.assertEqual(second.end(), 0, second.stderr())
        self.assertEqual(len(vfs_of(kubelet.admit("p", f"main:{VF}=2"))), 2)
        self.assertNotIn("registered", second.stderr())


if __name__ == "__main__":
    main()
