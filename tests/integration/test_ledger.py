#!/usr/bin/python3
"""Who holds which VF: over restarts, over kill -9, with a bad file, with two daemons, with a full
disk."""

import glob
import json
import os
import re
import shutil
import signal
import time

from harness import GPU, VF, Case, main, until, vfs_of


class LedgerCase(Case):
    def text(self, node):
        with open(os.path.join(node.state_dir, "ledger.json"), encoding="utf-8") as f:
            return f.read()

    def holds(self, node):
        """VF → hold, as on disk."""
        try:
            return {h["vf"]: h for h in json.loads(self.text(node)).get("holds", ())}
        except (FileNotFoundError, ValueError):
            return {}

    def await_holds(self, node, vfs, what="the holds on disk"):
        """Until the ledger on disk has exactly these VFs, each with its pod's name."""
        return until(
            lambda: set(self.holds(node)) == set(vfs) and all(
                h.get("pod") for h in self.holds(node).values()), what)

    def start_pod(self, kubelet, pod):
        """Admitted and started; its 2 VFs."""
        vfs = vfs_of(kubelet.admit(pod, f"main:{GPU}=2,{VF}=2"))
        kubelet.ask(f"prestart {pod}")
        return vfs

    def two_pods(self, kubelet):
        """Pods p and q with 2 VFs each, and the VFs of both."""
        return self.start_pod(kubelet, "p"), self.start_pod(kubelet, "q")

    def unhealthy(self, kubelet):
        return {d["id"] for d in kubelet.resource(VF)["devices"] if not d["healthy"]}

    def set_aside(self, node, kind):
        return glob.glob(os.path.join(node.state_dir, f"ledger.json.{kind}-*"))


class Held(LedgerCase):
    def test_it_is_on_disk_with_its_pods(self):
        node = self.node()
        kubelet, _ = node.start()
        p, q = self.two_pods(kubelet)
        self.await_holds(node, p + q)
        holds = self.holds(node)
        self.assertEqual({holds[v]["pod"] for v in p}, {"p"})
        self.assertEqual({holds[v]["container"] for v in q}, {"main"})
        self.assertEqual({holds[v]["resource"] for v in p + q}, {VF})

    def test_it_survives_kill_9(self):
        node = self.node()
        kubelet, daemon = node.start()
        p, q = self.two_pods(kubelet)
        self.await_holds(node, p + q)
        before = {v: h["since_ms"] for v, h in self.holds(node).items()}
        daemon.end(signal.SIGKILL)
        node.start_daemon()
        until(lambda: kubelet.count("list", resource=VF) >= 2, "the new one's list")
        kubelet.admit("r", f"main:{GPU}=1,{VF}=1")
        until(lambda: len(self.holds(node)) > 4, "the third pod's hold")
        self.assertEqual({v: h["since_ms"]
                          for v, h in self.holds(node).items()
                          if v in before}, before)

    def test_kills_at_any_moment_leave_a_whole_ledger(self):
        node = self.node()
        kubelet, daemon = node.start()
        for i in range(8):
            kubelet.send(f"admit k{i} main:{GPU}=1,{VF}=1")
            time.sleep(0.002 * i)
            daemon.end(signal.SIGKILL)
            daemon = node.start_daemon()
            kubelet.wait(VF, 1)
            self.assertEqual(self.set_aside(node, "*"), [], daemon.stderr())
        kubelet.ask("list")

    def test_it_is_dropped_when_the_pod_is_gone(self):
        node = self.node()
        kubelet, _ = node.start()
        p, q = self.two_pods(kubelet)
        self.await_holds(node, p + q)
        kubelet.ask("remove p")
        self.await_holds(node, q, "only q's holds")

    def test_without_a_state_directory_nothing_is_written(self):
        node = self.node()
        kubelet, _ = node.start(daemon=("--state-dir", "none"))
        self.two_pods(kubelet)
        self.assertFalse(os.path.exists(node.state_dir))


class Bad(LedgerCase):
    """A file that cannot be read is set aside, and the ledger rebuilt from what the kubelet
    says."""

    def spoil(self, change, kind, sentence):
        node = self.node()
        kubelet, daemon = node.start()
        p, q = self.two_pods(kubelet)
        self.await_holds(node, p + q)
        self.assertEqual(daemon.end(), 0, daemon.stderr())
        text = self.text(node)
        path = os.path.join(node.state_dir, "ledger.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write(change(text))
        with open(path, encoding="utf-8") as f:
            spoilt = f.read()
        daemon = node.start_daemon()
        until(lambda: sentence in daemon.stderr(), "the sentence")
        self.await_holds(node, p + q, "the rebuilt ledger")
        aside, = self.set_aside(node, kind)
        with open(aside, encoding="utf-8") as f:
            self.assertEqual(f.read(), spoilt)
        self.assertEqual({h["pod"] for h in self.holds(node).values()}, {"p", "q"})
        self.assertEqual(self.set_aside(node, "*"), [aside])

    def test_torn(self):
        self.spoil(lambda text: text[:len(text) // 2], "bad",
                   "checksum mismatch: truncated or modified")

    def test_empty(self):
        self.spoil(lambda text: "", "bad", "ledger.json: is empty")

    def test_edited(self):
        self.spoil(lambda text: text.replace('"pod":"p"', '"pod":"x"'), "bad",
                   "checksum mismatch: truncated or modified")

    def test_foreign(self):
        self.spoil(lambda text: '{"Data": {}, "Checksum": 1}', "bad", "is not a ledger of railmate")

    def test_of_a_later_version(self):
        self.spoil(lambda text: text.replace('"version":1', '"version":2'), "later",
                   "is a ledger of version 2")


class Disk(LedgerCase):
    def test_a_directory_that_cannot_be_is_said_and_done_without(self):
        node = self.node()
        with open(node.state_dir, "w", encoding="utf-8"):
            pass
        kubelet, daemon = node.start()
        self.assertIn("the ledger is kept in memory, and the directory is tried again",
                      daemon.stderr())
        self.assertIn(node.state_dir, daemon.stderr())
        self.assertEqual(len(vfs_of(kubelet.admit("p", f"main:{VF}=2"))), 2)

    def test_a_disk_that_fails_is_said_once_and_tried_again(self):
        node = self.node()
        kubelet, daemon = node.start()
        blocked = os.path.join(node.state_dir, "ledger.json.tmp")
        os.mkdir(blocked)
        p, q = self.two_pods(kubelet)
        until(lambda: "the ledger is kept in memory" in daemon.stderr(), "the sentence")
        kubelet.admit("r", f"main:{GPU}=1,{VF}=1")
        os.rmdir(blocked)
        until(lambda: set(p + q) <= set(self.holds(node)), "the ledger on disk again")
        until(lambda: "the ledger is on disk again" in daemon.stderr(), "that it works again")
        self.assertEqual(daemon.stderr().count("the ledger is kept in memory"), 1)


class Away(LedgerCase):
    """The devices of a VF are in a container's network namespace, out of sight."""

    def test_a_restart_keeps_the_vf_on_the_list(self):
        node = self.node()
        kubelet, daemon = node.start()
        capacity = kubelet.resource(VF)["capacity"]
        p, q = self.two_pods(kubelet)
        self.await_holds(node, p + q)
        node.take_away(p[0])
        self.assertEqual(daemon.end(), 0, daemon.stderr())
        kubelet.wait(VF, "=0")
        node.start_daemon()
        kubelet.wait(VF, f"={capacity}")
        self.assertEqual(kubelet.resource(VF)["capacity"], capacity)
        self.assertEqual(self.unhealthy(kubelet), set())

    def test_a_lost_ledger_does_not_lose_it(self):
        """The kubelet's word is enough to list it again; its pod keeps it, and afterwards it is as
        any other."""
        node = self.node()
        kubelet, daemon = node.start()
        capacity = kubelet.resource(VF)["capacity"]
        p, q = self.two_pods(kubelet)
        self.await_holds(node, p + q)
        moved = node.take_away(p[0])
        for _ in range(2):  # what was found is found again
            self.assertEqual(daemon.end(), 0, daemon.stderr())
            shutil.rmtree(node.state_dir)
            daemon = node.start_daemon()
            until(lambda: kubelet.resource(VF)["capacity"] == capacity and p[0] in self.holds(node),
                  "that it is listed")
            self.await_holds(node, p + q)
            kubelet.wait(VF, f"={capacity}")
            self.assertEqual((kubelet.resource(VF)["capacity"], self.unhealthy(kubelet)),
                             (capacity, set()))
        kubelet.ask("prestart p")  # its container restarts
        kubelet.ask("remove p")
        until(lambda: self.unhealthy(kubelet) == {p[0]}, "that it drains")
        node.bring_back(p[0], moved)
        daemon.child.send_signal(signal.SIGHUP)
        until(lambda: not self.unhealthy(kubelet), "that it is free again")
        self.await_holds(node, q)

    def drain_first(self, node):
        kubelet, daemon = node.start()
        p, q = self.two_pods(kubelet)
        self.await_holds(node, p + q)
        moved = node.take_away(p[0])
        scans = daemon.stderr().count("were counted")
        daemon.child.send_signal(signal.SIGHUP)
        until(lambda: daemon.stderr().count("were counted") > scans, "that it is seen to be away")
        kubelet.ask("remove p")
        until(lambda: self.unhealthy(kubelet) == {p[0]}, "that it drains")
        return kubelet, daemon, p, q, moved

    def test_a_vf_whose_pod_is_gone_is_not_offered_before_it_is_back(self):
        node = self.node()
        kubelet, daemon, p, q, moved = self.drain_first(node)
        until(
            lambda: re.search(
                "the VF is still in use and its holder is gone.* reason=\"its RDMA device",
                daemon.stderr()), "a line about it")
        until(lambda: self.holds(node)[p[0]].get("draining"), "that this is on disk")
        node.bring_back(p[0], moved)
        daemon.child.send_signal(signal.SIGHUP)
        until(lambda: not self.unhealthy(kubelet), "that it is free again")
        self.await_holds(node, q)
        until(
            lambda: re.search(
                f"VFs are free: their holder is gone pod=default/p .*container=main .* vf=.*{p[0]}",
                daemon.stderr()), "a line about it")

    def test_an_operator_releases_one_that_drains(self):
        node = self.node()
        _, daemon, p, q, _ = self.drain_first(node)
        self.assertEqual([node.release(p[0], "--yes").returncode for _ in range(2)], [0, 3])
        until(lambda: f"an operator has released the VF vf={p[0]} " in daemon.stderr(),
              "a line of log")
        self.await_holds(node, q)

    def test_it_drains_over_a_restart(self):
        node = self.node()
        kubelet, daemon = node.start()
        p, q = self.two_pods(kubelet)
        self.await_holds(node, p + q)
        node.take_away(p[0])
        self.assertEqual(daemon.end(), 0, daemon.stderr())
        kubelet.ask("remove p")
        node.start_daemon()
        until(lambda: kubelet.resource(VF)["allocatable"] and self.unhealthy(kubelet) == {p[0]},
              "that it drains")


if __name__ == "__main__":
    main()
