#!/usr/bin/python3
"""What the kubelet believes of our resource is what we told it, however its steps and ours interleave."""

import contextlib
import glob
import itertools
import os
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

from attacks import DATA, END_STREAM, Client, call, frame, hello, message
from harness import VF, Case, Process, main, program, until, vfs_of
from test_metrics import free_port

VERSIONS = "1.28", "1.36", "1.37"


class Lost(Case):
    def serves(self, node, kubelet, daemon, count):
        """The whole list is on offer, a change of it reaches the kubelet, and a pod gets its VFs."""
        kubelet.wait(VF, f"={count}")
        vf = node.topo().topo["vfs"][-1]["pci"]
        removed = node.remove_device(vf)
        daemon.child.send_signal(signal.SIGHUP)  # look at the hardware
        kubelet.wait(VF, f"={count - 1}")
        node.restore_device(vf, removed)
        daemon.child.send_signal(signal.SIGHUP)
        kubelet.wait(VF, f"={count}")
        name = f"p{kubelet.mark()}"
        admitted = kubelet.admit(name, f"main:{VF}=2")
        self.assertEqual(len(vfs_of(admitted)), 2, admitted)
        kubelet.ask(f"remove {name}")

    def start(self, version, *options):
        node = self.node()
        kubelet, daemon = node.start("--version", version, daemon=options)
        return node, kubelet, daemon, kubelet.resource(VF)["allocatable"]

    def hand_over(self, node, first, sig=signal.SIGTERM):
        second = node.start_daemon()
        until(lambda: f"in use by another railmated, pid {first.pid}" in second.stderr(), "that it waits")
        first.child.send_signal(sig)
        first.child.wait(20)
        return second

    def test_the_end_of_the_former_stream_comes_when_it_likes(self):
        rounds = ((signal.SIGTERM, 0), (signal.SIGKILL, 0.1),
                  (signal.SIGTERM, 1))  # longer than is waited for
        for version in VERSIONS[1:]:
            for held in ("before", "between"):
                with self.subTest(version=version, held=held):
                    node, kubelet, daemon, count = self.start(version)
                    for sig, delay in rounds:
                        kubelet.ask(f"hold-ends {held}")
                        daemon = self.hand_over(node, daemon, sig)
                        time.sleep(delay)
                        kubelet.ask("hold-ends off")
                        self.serves(node, kubelet, daemon, count)

    def test_every_registration_has_a_path_of_its_own(self):
        for version in VERSIONS:
            with self.subTest(version):
                node, kubelet, daemon, count = self.start(version)
                paths = set()
                for _ in range(3):
                    ours = [n for n in os.listdir(node.kubelet_dir) if n.startswith("rdma_vf.")]
                    self.assertEqual(len(ours), 1, ours)  # former ones are gone
                    self.assertNotIn(ours[0], paths)
                    paths.add(ours[0])
                    kubelet.ask(f"disconnect {VF}")
                    kubelet.wait(VF, f"={count}")
                    ours = [n for n in os.listdir(node.kubelet_dir) if n.startswith("rdma_vf.")]
                    self.assertNotIn(ours[0], paths)
                    paths.add(ours[0])
                    daemon = self.hand_over(node, daemon, signal.SIGKILL)
                    kubelet.wait(VF, f"={count}")

    def test_a_lost_list_is_sent_again(self):
        for version in VERSIONS:
            with self.subTest(version):
                node, kubelet, daemon, count = self.start(version)
                since = kubelet.mark()
                kubelet.ask("lose-lists 1")
                node.unbind(node.topo().topo["vfs"][0]["pci"])
                daemon.child.send_signal(signal.SIGHUP)
                kubelet.event("lost-list", since, resource=VF)
                kubelet.wait(VF, f"={count - 1}")
                self.assertEqual(kubelet.count("registered", since, resource=VF), 0)

    def test_a_kubelet_that_takes_no_list_is_registered_with_again_and_named(self):
        port = free_port()
        node, kubelet, daemon, count = self.start("1.36", "--metrics-address", f"127.0.0.1:{port}")
        since = kubelet.mark()
        kubelet.ask("lose-lists 1000")
        node.unbind(node.topo().topo["vfs"][0]["pci"])
        daemon.child.send_signal(signal.SIGHUP)
        kubelet.event("registered", since, resource=VF)
        until(lambda: "the kubelet does not offer the listed devices" in daemon.stderr(), "a warning")
        said = f"the kubelet offers 0 of {count - 1} healthy devices"
        until(lambda: said in self.get(port, "/readyz?verbose"), "readyz")
        self.assertIn(said, self.get(port, "/"))
        self.assertIn('railmate_pool_offer_differs{resource="rdma/vf"} 1', self.get(port, "/metrics"))
        status = subprocess.run([program("railmatectl"), "status", "--root", node.root, "--no-doctor",
                                 "--control-socket", node.control_socket], capture_output=True, text=True,
                                stdin=subprocess.DEVNULL, timeout=60, check=False)
        self.assertIn(said, status.stdout)
        self.assertNotIn("PASS", status.stdout.splitlines()[0])
        self.assertLess(kubelet.count("registered", since, resource=VF), 12)
        kubelet.ask("lose-lists 0")
        kubelet.wait(VF, f"={count - 1}")
        until(lambda: "offers the listed devices again" in daemon.stderr(), "a word about its end")
        until(lambda: said not in self.get(port, "/readyz?verbose"), "readyz")

    def get(self, port, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.read().decode()

    def rival(self, node):
        """Another plugin, with the GPUs of this machine as its devices."""
        p = Process([program("fakegpu"), "--root", node.root, "--kubelet-dir", node.kubelet_dir, "--resource", VF,
                     "--endpoint", "other.sock"], node.path(f"rival{len(node.processes)}.log"),
                    stdin=subprocess.DEVNULL)
        node.processes.append(p)
        return p

    def test_another_plugin_of_our_name_is_named_and_does_not_keep_it(self):
        for version in VERSIONS:
            with self.subTest(version):
                node, kubelet, daemon, count = self.start(version)
                since = kubelet.mark()
                other = self.rival(node)
                kubelet.event("registered", since, resource=VF)
                until(lambda: "another device plugin has registered this name" in daemon.stderr(),
                      "a warning", 10)
                other.end()
                began = time.monotonic()
                kubelet.wait(VF, f"={count}")
                print(f"{version}: ours again {time.monotonic() - began:.2f} s after its end")
                self.serves(node, kubelet, daemon, count)

    def test_strangers_that_watch_the_list_put_nothing_off(self):
        """Each new one gets the list, which says nothing of what the kubelet has."""
        node, kubelet, daemon, count = self.start("1.36")
        done = threading.Event()

        def watch():
            while not done.wait(0.01):
                path = glob.glob(os.path.join(node.kubelet_dir, "rdma_vf.*.sock"))
                with contextlib.suppress(OSError, IndexError):
                    client = Client(path[0])
                    client.send(hello() + call(1, "ListAndWatch") + frame(DATA, END_STREAM, 1, message(b"")))
                    time.sleep(0.01)
                    client.close()
        thread = threading.Thread(target=watch)
        thread.start()
        try:
            time.sleep(0.3)
            kubelet.ask("lose-lists 1")
            node.unbind(node.topo().topo["vfs"][0]["pci"])
            daemon.child.send_signal(signal.SIGHUP)
            kubelet.wait(VF, f"={count - 1}")
        finally:
            done.set()
            thread.join()

    def test_it_may_come_back_again_and_again(self):
        node, kubelet, daemon, count = self.start("1.36")
        for _ in range(3):
            since = kubelet.mark()
            other = self.rival(node)
            kubelet.event("registered", since, resource=VF)
            other.end(signal.SIGKILL)
        self.serves(node, kubelet, daemon, count)

    def test_its_end_hides_in_no_change_of_our_list(self):
        """Up to 1.36 its end stops our endpoint and leaves our stream: a list after it would show VFs that no pod gets."""
        node, kubelet, daemon, count = self.start("1.36")
        topo = node.topo().topo
        gpus, vfs = len(topo["gpus"]), [vf["pci"] for vf in topo["vfs"]][:4]
        for n, vf in enumerate(vfs):
            with self.subTest(round=n):
                since = kubelet.mark()
                rival = self.rival(node)
                kubelet.event("registered", since, resource=VF)
                if n % 2:
                    kubelet.wait(VF, f"={gpus}")  # its list has come, too
                rival.end()
                node.processes.remove(rival)
                node.remove_device(vf)
                if n == 3:
                    kubelet.ask("podlist-fail on")  # as its rate limit does
                daemon.child.send_signal(signal.SIGHUP)
                time.sleep(0.1)
                kubelet.ask("podlist-fail off")
                kubelet.wait(VF, f"={count - n - 1}")
                pods = (f"p{n}-{i}" for i in itertools.count())
                until(lambda pods=pods: kubelet.admit(next(pods), f"main:{VF}=1")["event"] == "admitted",
                      "a pod that gets a VF", 5)

    def test_without_pod_resources_nothing_is_asked(self):
        node = self.node()
        kubelet, _ = node.start("--version", "1.36", daemon=("--pod-resources", "off"))
        time.sleep(1)
        self.assertEqual(kubelet.count("pod-resources"), 0)
        self.assertEqual(len(vfs_of(kubelet.admit("p", f"main:{VF}=2"))), 2)

    def test_a_kubelet_that_does_not_answer_keeps_nobody_from_registering(self):
        node = self.node()
        kubelet = node.start_kubelet()
        kubelet.ask("podlist-delay 60000")
        node.start_daemon()
        kubelet.wait(VF, 1)


if __name__ == "__main__":
    main()
