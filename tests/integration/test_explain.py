#!/usr/bin/python3
"""
railmatectl explain: what it prints for a ledger, byte for byte (explain/*; UPDATE_GOLDEN=1 writes
them), from a running daemon and from the file, and how it fails.
"""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from harness import GPU as GPUS
from harness import PATIENCE, VF as VFS
from harness import Case, program, until, vfs_of

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from ledger import ledger_text

GOLDENS = HERE / "explain"
AT = 1795273331000  # Sat Nov 21 15:02:11 UTC 2026
PF = ["0000:18:00.0", "0000:40:00.0", "0000:9a:00.0"]
GPU = ["0000:1b:00.0", "0000:43:00.0", "0000:9d:00.0"]
VF = ["0000:18:00.1", "0000:40:00.1", "0000:9a:00.1"]


def owner(pod, container="main", ns="team", uid="u"):
    return {"namespace": ns, "pod": pod, "uid": uid, "container": container} if pod else {}


def hold(vf, pod, decision=0, **more):
    return {
        "vf": vf, "resource": "rdma/vf", **owner(pod), "since_ms": AT + 500, "decision": decision,
        **more
    }


def decision(number, pod, known, chosen, pairs=(), **more):
    return {
        "number": number, "at_ms": AT + 60000 * number, "resource": "rdma/vf",
        **owner(pod), "asked": len(chosen), "known": known,
        "free": [[pf, 8 - number % 3] for pf in PF], "chosen": chosen, "pairs": list(pairs), **more
    }


# One of every kind of story.
DECISIONS = [
    decision(1, "best", "known", VF[:2], [[GPU[0], VF[0], "PIX"], [GPU[1], VF[1], "PIX"]],
             source="PodResources Get", gpus=GPU[:2], alternative=["0000:18:00.2", VF[1]],
             checked=True, real_gpus=GPU[:2]),
    decision(2, "guessed", "predicted", ["0000:18:00.3"], [[GPU[0], "0000:18:00.3", "PIX"]],
             gpus=GPU[:1], source="nvidia.com/gpu's GetPreferredAllocation", alternative=[VF[1]],
             alternative_cost=3, checked=True, real_gpus=GPU[2:], real_cost=4),
    decision(3, None, "unknown", ["0000:18:00.5"], source="the kubelet asked for VFs first"),
    decision(4, "late", "known", ["0000:9a:00.7"], [[GPU[0], "0000:9a:00.7", "SYS"]], late=True,
             gpus=GPU[:1], cost=4, source="PodResources List", checked=True, real_gpus=GPU[:1],
             real_cost=4, best_cost=4, free=[[PF[2], 2]]),
    decision(5, "blind", "unknown", [VF[1]], checked=True, real_gpus=GPU[2:], real_cost=4),
    decision(6, "plain", "known", [VF[1]], source="PodResources Get", checked=True),
    decision(7, "waiting", "predicted", [VF[2]], [[GPU[2], VF[2], "PIX"]], gpus=GPU[2:]),
    decision(8, "moved", "known", [VF[0]], [[GPU[0], VF[0], "PIX"]], gpus=GPU[:1], checked=True,
             real_gpus=GPU[1:2], real_cost=3),
    decision(9, "alone", "known", [VF[2]], late=True, source="the container has no GPUs"),
    decision(10, "parted", "unknown", ["0000:9a:00.6"], late=True,
             source="MIG-7 of nvidia.com/mig-1g.5gb does not name a GPU of this node"),
    decision(
        11, "sharing", "predicted", ["0000:40:00.3"], [[GPU[1], "0000:40:00.3", "PIX"]], late=True,
        gpus=GPU[:2],
        source="which GPUs of its claim gpus it has is not known: there is no API server to ask"),
    decision(
        12, "early-dra", "unknown", ["0000:40:00.4"], checked=True, real_gpus=GPU[2:], real_cost=4,
        source=
        'gpu.nvidia.com gives them by DRA, after an early pool has chosen; "binding": "late" sees them'
    ),
    decision(13, "sure", "known", [VF[1]], [[GPU[0], VF[1], "NODE"]], gpus=GPU[:1], cost=3,
             free=[[PF[1], 8], [PF[2], 8]]),
    decision(14, "claimer", "known", ["0000:40:00.5"], [[GPU[1], "0000:40:00.5", "PIX"]], late=True, gpus=GPU[1:2],
             claims="gpus,nics", source="PodResources and the pod's claims, when its claim was prepared"),
]
HOLDS = [
    hold(VF[0], "best", 1),
    hold(VF[1], "best", 1),
    hold("0000:18:00.3", "guessed", 2),
    hold("0000:18:00.4", "lost"),
    hold("0000:18:00.5", None, 3),
    hold("0000:9a:00.7", "late", 4, slot="rvf-vf-n1-3", draining=True),
]
STORIES = {
    "best-that-was-free": ["pod", "team/best"],
    "prediction-missed": ["pod", "team/guessed"],
    "rebuilt-ledger": ["pod", "team/lost"],
    "late-and-draining": ["pod", "team/late"],
    "gpus-unknown": ["pod", "team/blind"],
    "no-gpus": ["pod", "team/plain"],
    "late-without-gpus": ["pod", "team/alone"],
    "late-with-parts-of-gpus": ["pod", "team/parted"],
    "late-with-a-shared-claim": ["pod", "team/sharing"],
    "early-with-gpus-by-dra": ["pod", "team/early-dra"],
    "not-started": ["pod", "team/waiting"],
    "moved": ["pod", "team/moved"],
    "sure-not-started": ["pod", "team/sure"],
    "claim": ["claim", "team/nics"],
    "pod-not-known": ["vf", "0000:18:00.5"],
    "held-vf": ["vf", "0000:18:00.1"],
    "past-vf": ["vf", VF[2]],
    "last": ["last"],
}


JSON = "best-that-was-free.json"


class Daemon:
    """Answers every request with the same bytes; None: never."""

    def __init__(self, path, reply):
        self.reply, self.heard = reply, []
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(path)
        self.server.listen(4)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with self.server, contextlib.ExitStack() as silent, contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                self.heard.append(client.recv(65536))
                if self.reply is None:
                    silent.enter_context(client)  # it stays open
                else:
                    client.sendall(self.reply)
                    client.close()

    def close(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.thread.join()


class Explain(unittest.TestCase):
    def setUp(self):
        top = tempfile.TemporaryDirectory(prefix="railmate-explain-")
        self.addCleanup(top.cleanup)
        self.top = pathlib.Path(top.name)
        self.socket = self.top / "s"
        self.text = ledger_text(HOLDS, DECISIONS)

    def daemon(self, reply):
        if isinstance(reply, dict):
            reply = json.dumps(reply).encode() + b"\n"
        d = Daemon(str(self.socket), reply)
        self.addCleanup(d.close)
        return d

    def store(self, text=None):
        (self.top / "ledger.json").write_text(self.text if text is None else text)

    def explain(self, *argv):
        return subprocess.run([
            program("railmatectl"), "explain", *argv, "--control-socket",
            str(self.socket), "--state-dir",
            str(self.top)
        ], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)

    def refused(self, done, code, *words):
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def golden(self, name, text):
        path = GOLDENS / name
        if os.environ.get("UPDATE_GOLDEN") == "1":
            path.write_text(text)
        self.assertEqual(path.read_text() if path.exists() else "", text, name)

    def test_a_claim_that_was_not_prepared_here(self):
        self.daemon({"ledger": self.text})
        for name in ("team/nic", "team/nics,gpus", "other/nics", "team/gpus,nics"):
            self.refused(self.explain("claim", name), 3, f"claim {name} was not prepared on this node")
        self.refused(self.explain("claim", "nics"), 2, "explain claim: 'nics' is not NAMESPACE/NAME")

    def test_every_story_reads_as_it_should(self):
        self.daemon({"ledger": self.text})
        for name, subject in STORIES.items():
            with self.subTest(name):
                done = self.explain(*subject)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.golden(name + ".txt", done.stdout)

    def test_json_is_one_object_with_the_same_facts(self):
        self.daemon({"ledger": self.text})
        done = self.explain("pod", "team/best", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.golden(JSON, done.stdout.replace(str(self.top), "DIR"))
        for subject in STORIES.values():
            told = json.loads(self.explain(*subject, "--json").stdout)
            self.assertTrue(told["choices"])
            self.assertIn(told["choices"][0]["verdict"], self.explain(*subject).stdout)
        self.assertEqual({p.name
                          for p in GOLDENS.iterdir()}, {n + ".txt"
                                                        for n in STORIES} | {JSON})

    def test_without_the_daemon_the_file_tells_the_same_and_says_so(self):
        self.store()
        for name, subject in STORIES.items():
            with self.subTest(name):
                done = self.explain(*subject)
                self.assertEqual(done.returncode, 0)
                self.assertEqual(done.stdout, (GOLDENS / (name + ".txt")).read_text())
                self.assertIn("railmated does not run", done.stderr)
                self.assertIn(str(self.top), done.stderr)
        self.assertIs(json.loads(self.explain("last", "--json").stdout)["running"], False)

    def test_a_daemon_that_says_nothing_is_as_good_as_none(self):
        self.store()
        self.daemon(None)
        done = self.explain("last")
        self.assertEqual(done.returncode, 0)
        self.assertIn("did not answer", done.stderr)

    def test_one_that_ends_without_an_answer_is_as_good_as_none(self):
        self.store()
        self.daemon(b"")
        done = self.explain("last")
        self.assertEqual(done.returncode, 0)
        self.assertIn("without an answer", done.stderr)

    def test_the_daemon_need_not_be_asked(self):
        self.store()
        d = self.daemon({"ledger": ledger_text([], [])})
        done = subprocess.run([
            program("railmatectl"), "explain", "last", "--control-socket=none", "--state-dir",
            str(self.top)
        ], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, d.heard), (0, []))
        self.assertEqual(done.stdout, (GOLDENS / "last.txt").read_text())

    def test_neither_daemon_nor_file_is_a_failure_that_names_both(self):
        self.refused(self.explain("last"), 1, str(self.socket), f"no ledger in {self.top}")

    def test_what_the_daemon_refuses_is_not_looked_for_in_the_file(self):
        self.store()
        self.daemon({"error": {"code": "EACCES", "message": "only root may ask railmated"}})
        self.refused(self.explain("last"), 1, "only root may ask railmated")

    def test_a_torn_ledger_is_named(self):
        self.store(self.text[:-20])
        self.refused(self.explain("last"), 1, "ledger.json")

    def test_a_reply_that_is_no_ledger_is_said_to_be_none(self):
        for reply in ({}, {"ledger": "{}"}, b"nonsense\n"):
            with self.subTest(reply):
                self.socket.unlink(missing_ok=True)
                self.daemon(reply)
                self.refused(self.explain("last"), 1, "railmated's")

    def test_what_the_ledger_does_not_know_is_refused(self):
        self.daemon({"ledger": self.text})
        self.refused(self.explain("pod", "team/nobody"), 3, "team/nobody")
        self.refused(self.explain("pod", "other/best"), 3, "other/best")
        self.refused(self.explain("vf", "0000:ff:00.0"), 3, "0000:ff:00.0")

    def test_an_empty_ledger_has_nothing_to_tell(self):
        self.daemon({"ledger": ledger_text([], [])})
        self.refused(self.explain("last"), 3, "no VF was given")

    def test_a_wrong_command_line_is_refused(self):
        for argv in ([], ["pod"], ["pod", "name"], ["pod", "/n"], ["pod", "a/"], ["pod", "a/b/c"],
                     ["pod", "a/b", "c"], ["vf"], ["vf", "mlx5_0"], ["last", "1"], ["node"]):
            with self.subTest(argv):
                self.refused(self.explain(*argv), 2, "explain")

    def test_a_vf_may_be_written_in_capitals(self):
        self.daemon({"ledger": self.text})
        self.assertIn("0000:9a:00.7", self.explain("vf", "0000:9A:00.7").stdout)


class Running(Case):
    def explain(self, node, *argv):
        return subprocess.run([
            program("railmatectl"), "explain", *argv, "--control-socket", node.control_socket,
            "--state-dir", node.state_dir
        ], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)

    def test_the_daemon_tells_what_it_chose_and_its_ledger_the_same_when_it_is_gone(self):
        node = self.node()
        kubelet, daemon = node.start()
        vfs = vfs_of(kubelet.admit("trainer", f"main:{GPUS}=2,{VFS}=2"))
        until(lambda: self.explain(node, "pod", "default/trainer").returncode == 0,
              "the daemon knows whose the VFs are")
        told = self.explain(node, "pod", "default/trainer")
        self.assertEqual(told.stderr, "")
        for vf in vfs:
            self.assertIn(vf, told.stdout)
            self.assertEqual(self.explain(node, "vf", vf).stdout, told.stdout)
        self.assertEqual(self.explain(node, "last").stdout, told.stdout)
        self.assertTrue(json.loads(self.explain(node, "last", "--json").stdout)["running"])
        self.assertEqual(daemon.end(), 0, daemon.stderr())
        after = self.explain(node, "pod", "default/trainer")
        self.assertEqual((after.returncode, after.stdout), (0, told.stdout))
        self.assertIn("railmated does not run", after.stderr)

    def test_whole_pfs_are_not_called_vfs(self):
        node = self.node()
        with open(node.path("config.json"), "w", encoding="utf-8") as f:
            json.dump({"resourceList": [{"resourcePrefix": "rdma", "resourceName": "vf",
                                         "selectors": {"isRdma": True, "vendors": ["15b3"]}}]}, f)
        node.start(daemon=("--config-file", node.path("config.json")))
        self.assertRegex(self.explain(node, "pool", VFS).stdout,
                         rf"(?m)^{VFS} \(binding early\): \d+ devices, [1-9]\d* of them whole PFs: \d+ free")

    def test_a_pool_says_who_holds_what_and_what_would_free_it(self):
        node = self.node()
        kubelet, _ = node.start()
        vfs = vfs_of(kubelet.admit("trainer", f"main:{GPUS}=2,{VFS}=2"))
        kubelet.ask("prestart trainer")
        told = self.explain(node, "pool", VFS)
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        self.assertRegex(told.stdout, rf"(?m)^{VFS} \(binding early\): \d+ VFs: \d+ free, 2 held$")
        for vf in vfs:
            self.assertRegex(
                told.stdout,
                rf"(?m)^  held +{vf}  container main of pod default/trainer .*since 20.*"
                r"; free when this pod ends$")
        states = {
            v["vf"]: v["state"]
            for v in json.loads(self.explain(node, "pool", "--json").stdout)["pools"][0]["vfs"]
        }
        self.assertEqual({v for v, state in states.items() if state == "held"}, set(vfs))
        other = self.explain(node, "pool", "no/such")
        self.assertEqual(other.returncode, 3)
        self.assertIn("has no pool no/such", other.stderr)

    def test_a_pod_that_was_refused_is_answered_with_who_has_the_vfs(self):
        node = self.node()
        kubelet, _ = node.start()
        kubelet.admit("trainer", f"main:{GPUS}=2,{VFS}=2")
        kubelet.ask("prestart trainer")
        told = self.explain(node, "pod", "default/refused")
        self.assertEqual(told.returncode, 3)
        self.assertIn("holds no VF on this node", told.stderr)
        self.assertIn("kubectl railmate explain", told.stderr)
        self.assertIn("container main of pod default/trainer", told.stdout)

    def test_a_release_needs_to_be_confirmed_and_a_pod_that_is_gone(self):
        node = self.node()
        kubelet, daemon = node.start()
        vf = vfs_of(kubelet.admit("trainer", f"main:{GPUS}=1,{VFS}=1"))[0]
        kubelet.ask("prestart trainer")
        asked = node.release(vf)
        self.assertEqual(asked.returncode, 3)
        self.assertIn("even while a process uses it", asked.stderr)
        until(lambda: "for the kubelet shows that pod default/trainer has it: delete the pod" in
              node.release(vf, "--yes").stderr, "that it is refused")
        self.assertEqual(node.release(vf, "--yes").returncode, 3)
        self.assertIn(vf, self.explain(node, "pool").stdout)
        kubelet.ask("remove trainer")
        until(lambda: "no container holds it" in node.release(vf, "--yes").stderr, "that it is free")

    def test_a_socket_that_is_not_wanted_is_not_made(self):
        node = self.node()
        node.start(daemon=("--control-socket", "none"))
        self.assertFalse(os.path.exists(node.control_socket))


if __name__ == "__main__":
    unittest.main(verbosity=2)
