"""railmatectl cluster and kubectl railmate, with a stand-in for kubectl (tests/support/kubectl.py):
every sentence and exit status."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from program import CTL, TOP, ProgramTest, machine, run

LABELS = {"app.kubernetes.io/name": "railmate"}
PASS, WARN, FAIL, UNKNOWN = 0, 5, 6, 7
SILENT = "no answer"
HOSTILE = "\x1b]0;EVIL\x07\u202eEVIL\nEVIL"


def pod(name, node, phase="Running", labels=None, waiting=None, ready=True, **metadata):
    container = {
        "name": "railmated", "ready": ready,
        "state": {"waiting": {"reason": waiting}} if waiting else {"running": {}}
    }
    return {
        "metadata": {
            "name": name, "namespace": "kube-system", "labels": labels or LABELS, **metadata
        }, "spec": {
            "nodeName": node, "containers": [{"name": "railmated", "image": "registry/railmate:7"}]
        }, "status": {"phase": phase, "containerStatuses": [container]}
    }


def status(node, verdict="PASS", *trouble, unhealthy=0, down=0, checked=10, best=10, **more):
    return {
        "node": node, "verdict": verdict, "trouble": list(trouble), "railmated": "0.1.0",
        "pools": [{
            "resource": "rdma/vf", "binding": "early", "vfs": 64, "free": 59 - unhealthy, "held": 3,
            "allocated": 1, "draining": 1, "in_use": 0, "unhealthy": unhealthy
        }], "links": [{"down": i < down} for i in range(8)],
        "placement": {"pairs": {}, "unknown_vfs": 0, "checked": checked,
                      "best": best}, "doctor": {"verdict": "UNKNOWN"}, **more
    }


def said(value, code=0):
    return {"out": json.dumps(value), "code": code}


class ClusterTest(ProgramTest):
    def setUp(self):
        top = tempfile.TemporaryDirectory(prefix="railmate-cli-")
        self.addCleanup(top.cleanup)
        self.top = pathlib.Path(top.name)
        shutil.copy(TOP / "tests/support/kubectl.py", self.top / "kubectl")
        self.env = {**os.environ, "PATH": f"{self.top}:{os.environ['PATH']}"}
        self.cluster = {"pods": {"kube-system": []}, "exec": {}, "logs": {}}

    def add(self, node, answers, **more):
        self.cluster["pods"]["kube-system"].append(pod(f"railmate-{node}", node, **more))
        self.cluster["exec"][f"railmate-{node}"] = answers

    def store(self):
        (self.top / "cluster.json").write_text(json.dumps(self.cluster))

    def ask(self, *argv, **kw):
        self.store()
        return run(CTL, "cluster", *argv, env=self.env, **kw)

    def value(self, code, *argv):
        done = self.ask(*argv, "--json")
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def say(self, node, text):
        """What the node answers to anything, without a process of Python's for each."""
        if not (self.top / "listing").exists():
            (self.top / "kubectl").rename(self.top / "listing")
            (self.top / "kubectl").write_text(
                f"#!/bin/sh\n[ $1 = get ] && exec {self.top}/listing \"$@\"\nexec cat {self.top}/said/$4\n")
            (self.top / "kubectl").chmod(0o755)
            (self.top / "said").mkdir()
        (self.top / f"said/railmate-{node}").write_text(text)

    def calls(self):
        return [json.loads(line) for line in (self.top / "calls.jsonl").read_text().splitlines()]


def children(pid):
    tasks = pathlib.Path(f"/proc/{pid}/task")
    return [c for task in tasks.iterdir() for c in (task / "children").read_text().split()]


class Status(ClusterTest):
    def three(self):
        self.add("gpu-10", {"status": said(status("gpu-10"))})
        self.add("gpu-9", {"status": said(status("gpu-9", "FAIL", "railmated does not run"), FAIL)})
        self.add(
            "gpu-1", {
                "status": said(
                    status("gpu-1", "WARN", "link A is down", "more", unhealthy=8, down=1, best=9),
                    WARN)
            })

    def test_a_line_a_node_and_the_worst_first(self):
        self.three()
        done = self.ask("status")
        self.assertEqual((done.returncode, done.stderr), (FAIL, ""))
        self.assertEqual(done.stdout.splitlines(), [
            "NODE    VERDICT  VERSION  FREE  HELD  UNUSABLE  LINKS   BEST  DOCTOR",
            "gpu-9   FAIL     0.1.0      59     4         1    8/8  100 %  UNKNOWN  railmated does not run",
            "gpu-1   WARN     0.1.0      51     4         9    7/8   90 %  UNKNOWN  link A is down (and 1 more)",
            "gpu-10  PASS     0.1.0      59     4         1    8/8  100 %  UNKNOWN",
            "3 nodes: 1 FAIL, 1 WARN, 1 PASS; 192 VFs: 169 free, 12 held, 11 unusable; "
            "23 of 24 links up; 29 of 30 recorded choices were the best that was free"
        ])

    def test_json_has_what_the_nodes_said(self):
        self.three()
        value = self.value(FAIL, "status")
        self.assertEqual([(n["node"], n["error"]) for n in value["nodes"]], [("gpu-9", None),
                                                                             ("gpu-1", None),
                                                                             ("gpu-10", None)])
        self.assertEqual(value["nodes"][2]["status"], status("gpu-10"))
        self.assertEqual(
            value["sum"], {
                "nodes": 3, "pass": 1, "warn": 1, "fail": 1, "no_answer": 0, "vfs": 192,
                "free": 169, "held": 12, "unusable": 11, "links": 24, "down": 1, "checked": 30,
                "best": 29
            })

    def test_exit_status_is_that_of_the_worst(self):
        self.add("a", {"status": said(status("a"))})
        self.assertEqual(self.ask("status").returncode, PASS)
        self.add("b", {"status": said(status("b", "WARN", "x"), WARN)})
        self.assertEqual(self.ask("status").returncode, WARN)
        self.add("c", {"status": {"code": 1}})
        self.assertEqual(self.ask("status").returncode, FAIL)

    def test_a_node_without_an_answer_is_a_row_that_says_why(self):
        expected = {}
        old = "railmatectl: unknown command 'status'; see railmatectl --help\ncommand terminated with exit code 2\n"
        for node, answers, why, more in (("a-good", {
                "status": said(status("a-good"))
        }, None, {}), ("b-pending", {}, "its pod railmate-b-pending is Pending: ImagePullBackOff", {
                "phase": "Pending", "waiting": "ImagePullBackOff"
        }), ("c-crash", {}, "its pod railmate-c-crash does not run: CrashLoopBackOff", {
                "waiting": "CrashLoopBackOff"
        }), ("d-slow", {"status": {"sleep": 30}}, "did not end within 10 s",
             {}), ("e-old", {"status": {"err": old, "code": 2}
                             }, "unknown command 'status'; see railmatectl --help",
                   {}), ("f-gone", {},
                         'Error from server (NotFound): pods "railmate-f-gone" not found',
                         {}), ("g-mute", {"status": {"code": 3}}, "exit status 3",
                               {}), ("h-empty", {"status": {}}, "exit status 0",
                                     {}), ("i-garbage", {"status": {"out": "Segmentation fault"}},
                                           "its answer:1:", {}), ("j-other", {
                                               "status": {"out": "[1]"}
                                           }, "its answer is not that of railmatectl status", {}),
                                         ("k-odd", {"status": {"out": '{"verdict": "GREAT"}'}},
                                          "its answer is not that of railmatectl status", {}),
                                         ("l-long", {"status": {"out": "x" * 100000, "repeat": 20}},
                                          "its output is longer than 1 MiB", {}), ("m-half", {
                                              "status": {"out": json.dumps(status("m"))[:-20]}
                                          }, "its answer:1:", {}), ("n-dots", {
                                              "status": {"err": " \n.\nrailmatectl: odd. \n", "code": 3}
                                          }, "odd", {}), ("o-blank", {
                                              "status": {"err": "E1123 x\n \r\n ..\n", "code": 4}
                                          }, "exit status 4", {})):
            self.add(node, answers, **more)
            expected[node] = why
        text = self.ask("status", "--timeout", "10", "--parallel", "4").stdout
        value = self.value(FAIL, "status", "--timeout", "10", "--parallel", "4")
        errors = {n["node"]: n["error"] for n in value["nodes"]}
        self.assertEqual(errors.keys(), expected.keys())
        self.assertIsNone(errors.pop("a-good"))
        self.assertIn("15 nodes: 14 no answer, 1 PASS;", text)
        for node, error in errors.items():
            self.assertIn(expected[node], error)
            self.assertRegex(text, rf"(?m)^{node} +no answer: ")

    def test_numbers_that_make_no_sense_count_as_none(self):
        odd = status("a", pools=[{"vfs": -5, "free": "many", "held": 1e30}, 7,
                                 None], links=[None, {"down": "yes"}], placement=[], doctor=7,
                     railmated={"x": 1}, trouble=[1, None, "real"])
        self.add("a", {"status": said(odd)})
        done = self.ask("status")
        self.assertEqual(done.returncode, PASS, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^a +PASS +- +0 +0 +0 +2/2 +- +- +real$")

    def test_of_two_pods_on_a_node_the_one_that_stays_is_asked(self):
        self.cluster["pods"]["kube-system"] = [
            pod("railmate-old", "a", deletionTimestamp="2026-01-01T00:00:00Z"),
            pod("railmate-new", "a"),
            pod("railmate-next", "a", phase="Pending")
        ]
        self.cluster["exec"]["railmate-new"] = {"status": said(status("a"))}
        self.assertEqual(self.ask("status").returncode, PASS)

    def test_a_roll_out_that_is_stuck_is_no_pass(self):
        for why, code in (("ContainerCreating", PASS), ("CrashLoopBackOff", WARN), ("ImagePullBackOff", WARN)):
            self.cluster["pods"]["kube-system"] = [
                pod("railmate-old", "a"), pod("railmate-new", "a", phase="Pending", waiting=why)]
            self.cluster["exec"]["railmate-old"] = {"status": said(status("a"))}
            done = self.ask("status")
            self.assertEqual(done.returncode, code, done.stdout)
            self.assertEqual(f"its pod railmate-new is Pending: {why}" in done.stdout, code == WARN)

    def test_kubectl_is_called_with_what_was_asked_for(self):
        self.add("a", {"status": said(status("a"))})
        self.cluster["pods"]["gpu-system"] = self.cluster["pods"].pop("kube-system")
        self.assertEqual(
            self.ask("status", "--context", "prod", "--kubeconfig", "/k", "--railmate-namespace",
                     "gpu-system", "--no-doctor").returncode, PASS)
        listed, asked = self.calls()
        self.assertEqual(
            listed[:8],
            ["--context", "prod", "--kubeconfig", "/k", "get", "pods", "-n", "gpu-system"])
        self.assertEqual(asked, [
            "--context", "prod", "--kubeconfig", "/k", "exec", "-n", "gpu-system", "railmate-a",
            "-c", "railmated", "--", "railmatectl", "status", "--json", "--no-doctor"
        ])

    def test_a_word_of_a_node_is_one_line(self):
        self.add("a", {"status": said(status("a", doctor={"verdict": "A\nB PASS"}, railmated="1\n2"))})
        self.assertEqual(len(self.ask("status").stdout.splitlines()), 3)

    def test_names_are_harmless_on_a_terminal(self):
        self.add("a", {"status": said(status("a", "WARN", HOSTILE))})
        self.add("c", {"status": {"err": f"error: {HOSTILE}", "code": 1}})
        done = self.ask("status")
        self.assertEqual([c for c in done.stdout if c in "\x1b\x07\u202e"], [])
        self.assertIn("EVIL", done.stdout)
        self.assertEqual(len(done.stdout.splitlines()), 4, done.stdout)

    def test_what_a_pod_says_of_itself_makes_no_row(self):
        self.three()
        row = "evil\tevil\tRunning\t\ttrue\timage\t"
        for waiting in (f"x\n{row}", f"x\n0000000000000000\t{row}", f"x\t\t\t\t\n\t{row}\n"):
            pods = self.cluster["pods"]["kube-system"]
            pods[0]["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": waiting}}
            nodes = [row["node"] for row in self.value(FAIL, "status")["nodes"]]
            self.assertEqual(sorted(nodes), ["gpu-1", "gpu-10", "gpu-9"])

    def test_a_pod_whose_name_is_an_option_is_not_asked(self):
        self.three()
        for name in ("--kubeconfig=/evil", "-v9", "a b", "../a", "a/b", "", "\u0661"):
            self.cluster["pods"]["kube-system"].append(pod(name, "gpu-2"))
            self.cluster["pods"]["kube-system"].append(pod("railmate-x", name))
        nodes = [row["node"] for row in self.value(FAIL, "status")["nodes"]]
        self.assertEqual(sorted(nodes), ["gpu-1", "gpu-10", "gpu-9"])
        words = {word for call in self.calls() for word in call}
        self.assertEqual(words & {"--kubeconfig=/evil", "-v9", "a b", "../a", "a/b"}, set())

    def test_what_makes_no_sense_is_refused(self):
        self.add("a", {"status": said(status("a"))})
        for argv, code, words in ((["status",
                                    "here"], 2, "cluster status takes no argument 'here'"), ([
                                        "status", "--parallel", "0"
                                    ], 2, "--parallel: '0' is not a number from 1 to 256"), ([
                                        "status", "--timeout", "soon"
                                    ], 2, "--timeout: 'soon' is not a number from 1 to"), ([
                                        "status", "--railmate-namespace", "other"
                                    ], 3, "is in namespace other"), (["status", "--node",
                                                                      ","], 2, "no name is given"),
                                  (["nonsense"], 2, "unknown command 'nonsense': status, topo"),
                                  ([], 2, "name a command: status, topo")):
            with self.subTest(argv):
                self.refused(self.ask(*argv), code, words)

    @unittest.skipIf("RAILMATE_EMULATED" in os.environ, "qemu says 127 where exec fails")
    def test_a_cluster_that_does_not_answer_is_one_sentence(self):
        self.cluster["fail"] = {
            "get": {
                "err": "E1123 07:06:11.1 12 memcache.go:265] couldn't\nThe connection was refused\n",
                "code": 1
            }
        }
        self.refused(self.ask("status"), 1,
                     "railmatectl: kubectl get pods: The connection was refused")
        self.cluster["fail"] = {"get": {"sleep": 30}}
        self.refused(self.ask("status", "--timeout", "1"), 1,
                     "kubectl get pods: did not end within 1 s")
        self.env["PATH"] = "/nowhere"
        self.refused(self.ask("status"), 1, "cannot run kubectl: No such file or directory")

    def test_ctrl_c_says_what_has_come_so_far(self):
        self.add("a", {"status": said(status("a"))})
        for i in range(3):
            self.add(f"slow-{i}", {"status": {"sleep": 60}})
        self.store()
        with subprocess.Popen([CTL, "cluster", "status", "--parallel", "2"], env=self.env,
                              stdout=subprocess.PIPE, text=True) as proc:
            deadline = time.monotonic() + 30
            while not (self.top / "calls.jsonl").exists() or len(self.calls()) < 4:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.02)
            proc.send_signal(signal.SIGINT)
            text = proc.communicate(timeout=30)[0]
        self.assertEqual(proc.returncode, FAIL)
        self.assertRegex(text, r"(?m)^a +PASS ")
        self.assertEqual(text.count("no answer: interrupted"), 3, text)

    def test_a_thousand_nodes_are_all_there(self):
        for i in range(1000):
            self.add(f"gpu-{i:04}", {})
            verdict = ("PASS", "WARN", "FAIL")[i % 3]
            self.say(f"gpu-{i:04}", json.dumps(status(f"gpu-{i:04}", verdict)) if i % 10 else "{")
        done = self.ask("status", timeout=240)
        rows = done.stdout.splitlines()[1:-1]
        self.assertEqual({row.split()[0] for row in rows}, {f"gpu-{i:04}" for i in range(1000)})
        order = ["no answer" if row.split()[1] == "no" else row.split()[1] for row in rows]
        self.assertEqual(order, sorted(order, key=["no answer", "FAIL", "WARN", "PASS"].index))
        self.assertIn("1000 nodes: 100 no answer, 300 FAIL, 300 WARN, 300 PASS; 57600 VFs",
                      done.stdout)


def cabled(node, leaves, planes=None, **more):
    """leaves[n]: the switch of rail n; None: not known there."""
    links = [{
        "down": False, "rail": rail, "plane": planes and planes[rail], "switch": leaf,
        "switch_port": leaf and "swp1"
    } for rail, leaf in enumerate(leaves)]
    return status(node, links=links, **more)


class Switches(ClusterTest):
    """Rail n of each node has to lead to the switch of rail n of the others."""
    LEAVES = [f"leaf-{i + 1}" for i in range(8)]

    def nodes(self, count, leaves=None, first=1, name="gpu-{:02}"):
        for i in range(first, first + count):
            node = name.format(i)
            self.write(node, cabled(node, leaves or self.LEAVES))

    def write(self, node, said_there):
        self.add(node, {})
        self.say(node, json.dumps(said_there))

    def findings(self):
        """Lines of the table: rail, switch of most, how many, switch of these, these."""
        done = self.ask("status")
        lines = done.stdout.splitlines()
        found = []
        if "WARN: cables that do not lead where those of the other nodes do" in lines:
            at = next(i for i, line in enumerate(lines) if line.startswith("WARN: "))
            self.assertEqual(re.split(" {2,}", lines[at + 1]),
                             ["RAIL", "SWITCH", "OF", "BUT AT", "NODES"])
            found = [tuple(re.split(" {2,}", line)) for line in lines[at + 2:-1]]
        self.assertEqual(done.returncode, WARN if found else PASS, done.stdout + done.stderr)
        self.assertEqual(lines[-1].split()[1], "nodes:")
        return found

    def swapped(self, *rails):
        leaves = list(self.LEAVES)
        for a, b in zip(rails[::2], rails[1::2]):
            leaves[a], leaves[b] = leaves[b], leaves[a]
        return leaves

    def test_a_cable_that_is_not_where_the_others_are_is_said(self):
        self.nodes(30)
        self.nodes(1, self.swapped(3, 4), first=31)
        self.nodes(2, self.LEAVES[:7] + ["core-1"], first=40)
        self.assertEqual(self.findings(), [("7", "leaf-8", "31", "core-1", "gpu-[40-41]"),
                                           ("3", "leaf-4", "32", "leaf-5", "gpu-31"),
                                           ("4", "leaf-5", "32", "leaf-4", "gpu-31")])
        self.assertEqual(self.value(WARN, "status")["cables"][0], {
            "rail": 7, "plane": None, "switch": "leaf-8", "of": 31, "but_at": "core-1",
            "nodes": ["gpu-40", "gpu-41"]})

    def test_of_two_nodes_one_is_compared_with_the_other(self):
        self.nodes(1)
        self.nodes(1, self.swapped(3, 4), first=2)
        self.assertEqual(self.findings(), [("3", "leaf-4", "1", "leaf-5", "gpu-02"),
                                           ("4", "leaf-5", "1", "leaf-4", "gpu-02")])

    def test_nodes_that_count_otherwise_are_said(self):
        self.nodes(5)
        self.nodes(3, self.LEAVES[::-1], first=11)
        found = self.findings()
        self.assertEqual(len(found), 8)
        self.assertIn(("0", "leaf-1", "5", "leaf-8", "gpu-[11-13]"), found)
        for leaf in ("a", "b"):  # so do two nodes of two rails
            self.write(f"x-{leaf}", cabled(f"x-{leaf}", ["a", "b"] if leaf == "a" else ["b", "a"]))
        self.assertIn(("0", "a", "1", "b", "x-b"), self.findings())

    def test_nodes_that_each_lack_a_neighbour_vote_all_the_same(self):
        for i in range(1, 8):
            self.write(f"n{i}", cabled(f"n{i}", self.LEAVES[:i] + [None] + self.LEAVES[i + 1:]))
        self.write("odd", cabled("odd", ["core-1"] + self.LEAVES[1:]))
        self.assertEqual(self.findings(), [("0", "leaf-1", "7", "core-1", "odd")])

    def test_units_of_a_fabric_have_switches_of_their_own(self):
        """A cable from one unit into another is the only thing wrong here."""
        for unit in "abc":
            self.nodes(16, [f"{unit}-{leaf}" for leaf in self.LEAVES], name=unit + "-{:02}")
        self.assertEqual(self.findings(), [])
        self.write("a-99", cabled("a-99", [f"{'b' if i == 2 else 'a'}-{leaf}"
                                           for i, leaf in enumerate(self.LEAVES)]))
        self.assertEqual(self.findings(), [("2", "a-leaf-3", "16", "b-leaf-3", "a-99")])

    def test_what_is_no_mistake_is_not_said(self):
        known = lambda *rails: [leaf if i in rails else None for i, leaf in enumerate(self.LEAVES)]
        for what, nodes in (
                ("a switch a rack", [["rack-1"] * 8] * 4 + [["rack-2"] * 8] * 4),
                ("two switches a rack, and one link that is not known",
                 [["a", "b"] * 4] * 4 + [["a", "b"] * 3 + ["a", None]] + [["a", None] * 4]),
                ("nobody writes down what LLDP says", [[None] * 8] * 4),
                ("one does", [[None] * 8, self.LEAVES]),
                ("some cables are known", [self.LEAVES, known(0, 1), known(6, 7), known(3)]),
                ("one rail", [["leaf-1"]] * 3 + [["leaf-2"]] * 2),
                ("nodes of fewer rails", [self.LEAVES] * 3 + [self.LEAVES[:4]] * 3)):
            with self.subTest(what):
                self.cluster["pods"]["kube-system"] = []
                for i, leaves in enumerate(nodes):
                    self.write(f"n{i}", cabled(f"n{i}", leaves))
                self.assertEqual(self.findings(), [])

    def test_planes_are_networks_of_their_own(self):
        for i in range(4):
            links = [{"down": False, "rail": rail, "plane": plane, "switch": f"leaf-{rail}-{plane}"}
                     for rail in range(4) for plane in range(2)]
            if i == 3:
                links[2]["switch"], links[3]["switch"] = links[3]["switch"], links[2]["switch"]
            self.write(f"n{i}", status(f"n{i}", links=links))
        self.assertEqual(self.findings(), [
            ("1, plane 0", "leaf-1-0", "3", "leaf-1-1", "n3"),
            ("1, plane 1", "leaf-1-1", "3", "leaf-1-0", "n3"),
        ])

    def test_what_makes_no_sense_counts_as_not_known(self):
        self.nodes(3)
        odd = [-1, 1024, 1e30, "3", None, [], 3]
        links = [{"down": False, "rail": rail, "plane": 0, "switch": "x"} for rail in odd[:-1]]
        links += [{"down": False, "rail": 3, "switch": leaf} for leaf in ("", "x" * 256, 7, None)]
        links += [{"down": False, "rail": i, "plane": 1e9, "switch": "x"} for i in range(8)]
        self.write("odd", status("odd", links=links))
        self.assertEqual(self.findings(), [])

    def test_names_are_harmless_on_a_terminal(self):
        self.nodes(3)
        self.write("odd", cabled("odd", self.LEAVES[:7] + [HOSTILE]))
        (found,) = self.findings()
        self.assertEqual([c for c in found[3] if c in "\x1b\x07\u202e"], [])
        self.assertEqual(found[:3] + found[4:], ("7", "leaf-8", "3", "odd"))

class Plugin(ClusterTest):
    def test_as_kubectls_plugin_it_is_the_same(self):
        (self.top / "kubectl-railmate").symlink_to(CTL)
        self.add("a", {"status": said(status("a"))})
        plain = self.ask("status")
        plugin = run(self.top / "kubectl-railmate", "status", env=self.env)
        self.assertEqual((plugin.returncode, plugin.stdout), (PASS, plain.stdout))
        self.assertIn("cluster status", run(self.top / "kubectl-railmate", "--help").stdout)
        self.refused(run(self.top / "kubectl-railmate", "plan"), 2, "unknown command 'plan'")
        self.assertEqual(run(self.top / "kubectl-railmate").returncode, 2)


class OneNode(ClusterTest):
    def test_topo_is_that_of_the_node(self):
        self.add("gpu-1", {"topo": {"out": "picture\n", "err": "a note\n"}})
        done = self.ask("topo", "gpu-1", "--svg", "--wide")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "picture\n", "a note\n"))
        self.assertEqual(self.calls()[-1][7:], ["railmatectl", "topo", "--svg", "--wide"])
        self.refused(self.ask("topo", "gpu-2"), 1, "node gpu-2: no railmate pod is on it")
        self.refused(self.ask("topo"), 2, "cluster topo: name the node")
        self.cluster["exec"]["railmate-gpu-1"] = {
            "topo": {"err": "railmatectl: no\ncommand terminated with exit code 3\n", "code": 3}
        }
        self.refused(self.ask("topo", "gpu-1"), 3, "railmatectl: no")

    def test_a_node_that_cannot_be_asked_is_named(self):
        """kubectl's own failure is not that of the program on the node."""
        why = "error: unable to upgrade connection: error dialing backend: connection refused"
        self.add("gpu-1", {"topo": {"err": f"{why}\n", "code": 1},
                           "explain": {"err": "word " * 2000 + "\n", "code": 3}})
        self.refused(self.ask("topo", "gpu-1"), 1, f"node gpu-1: {why}")
        self.cluster["pods"]["ml"] = [pod("train-0", "gpu-1", namespace="ml")]
        done = self.ask("explain", "ml/train-0")  # what it says is cut, and with it kubectl's last line
        self.assertEqual((done.returncode, done.stderr[:10]), (3, "word word "))

    def test_explain_finds_the_node_by_the_pod(self):
        self.cluster["pods"]["ml"] = [pod("train-0", "gpu-1"), pod("waits", "")]
        for each in self.cluster["pods"]["ml"]:
            each["metadata"]["namespace"] = "ml"
        self.add("gpu-1", {"explain": {"out": "why\n"}})
        for argv in (["train-0", "-n", "ml"], ["ml/train-0"], ["train-0", "--namespace", "ml"]):
            done = self.ask("explain", *argv)
            self.assertEqual((done.returncode, done.stdout), (0, "why\n"), done.stderr)
            self.assertEqual(self.calls()[-1][7:], ["railmatectl", "explain", "pod", "ml/train-0"])
        self.ask("explain", "ml/train-0", "--json")
        self.assertEqual(self.calls()[-1][-1], "--json")
        self.ask("explain", "pod", "ml/train-0")
        self.assertEqual(self.calls()[-1][7:], ["railmatectl", "explain", "pod", "ml/train-0"])
        self.refused(self.ask("explain", "gone"), 3, 'pods "gone" not found', "name it NAMESPACE/POD")
        self.refused(self.ask("explain", "ml/waits"), 3, "pod ml/waits is on no node yet")
        self.cluster["pods"]["ml"][1]["status"]["conditions"] = [
            {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available: 2 Insufficient rdma/vf."}]
        self.refused(self.ask("explain", "ml/waits"), 3,
                     "pod ml/waits is on no node yet: 0/2 nodes are available: 2 Insufficient rdma/vf.")
        for name in ("ml/", "/x", "a/b/c"):
            self.refused(self.ask("explain", name), 2, f"'{name}' is not POD or NAMESPACE/POD")
        self.refused(self.ask("explain"), 2, "cluster explain: name the pod")
        self.refused(self.ask("explain", "p", "q"), 2, "cluster explain takes no argument 'q'")
        self.refused(self.ask("explain", "p", "--node", "gpu-1"), 2, "no --node")

    def test_a_pod_that_is_gone_is_asked_for_on_every_node(self):
        self.add("gpu-1", {"explain": {"err": "railmatectl: holds no VF\ncommand terminated with exit code 3\n", "code": 3}})
        self.add("gpu-2", {"explain": {"out": "why\n"}})
        done = self.ask("explain", "ml/gone")
        self.assertEqual((done.returncode, done.stdout), (0, "why\n"))
        self.assertEqual(done.stderr, "--- node gpu-1\nrailmatectl: holds no VF\n--- node gpu-2\n")

    def test_explain_has_the_words_that_it_has_on_a_node(self):
        self.add("gpu-1", {"explain": {"out": "one\n"}})
        self.add("gpu-2", {"explain": {"out": "two\n"}})
        self.cluster["pods"]["kube-system"].append(pod("late", "gpu-3", "Pending"))
        for words in (["pool"], ["pool", "rdma/vf"], ["vf", "0000:18:00.2"], ["last"]):
            done = self.ask("explain", *words, "--node", "gpu-2,gpu-1")
            self.assertEqual((done.returncode, done.stdout), (0, "one\ntwo\n"), done.stderr)
            self.assertEqual({tuple(call[7:]) for call in self.calls()[-2:]},
                             {("railmatectl", "explain", *words)})
        done = self.ask("explain", "pool", "--node", "gpu-2", "--json")
        self.assertEqual((done.stdout, done.stderr), ("two\n", ""))
        self.assertEqual(self.calls()[-1][8:], ["explain", "pool", "--json"])
        done = self.ask("explain", "pool")
        self.assertEqual((done.returncode, done.stdout), (0, "one\ntwo\n"))
        self.assertIn("railmatectl: node gpu-3: ", done.stderr)


def report(*findings, verdict=None):
    """What doctor --json prints: (verdict, check, sentence, meaning, fix of grub)"""
    checks = []
    for worst, check, sentence, meaning, fix in findings:
        checks.append({
            "id": check, "title": f"about {check}", "verdict": worst, "findings": [{
                "verdict": worst, "subject": "x", "finding": sentence, "meaning": meaning,
                "fix": fix and {"grub": fix, "openshift": fix, "talos": fix}, "kernel_arg": None,
                "module": None
            }]
        })
    order = ["PASS", "UNKNOWN", "WARN", "FAIL"]
    return {
        "verdict": verdict or max((f[0] for f in findings), key=order.index, default="PASS"),
        "live": True, "container": True, "checks": checks
    }


CODES = {"PASS": PASS, "WARN": WARN, "FAIL": FAIL, "UNKNOWN": UNKNOWN}
LINK = ("FAIL", "port", "mlx5_0 port 1 is DOWN.", "No traffic.", "ip link set up")
IOMMU = ("WARN", "iommu", "The IOMMU translates.", "Slow.", "iommu=pt")
ACS = ("UNKNOWN", "acs", "It cannot be read.", "Perhaps slow.", "look as root")


class Doctor(ClusterTest):
    def answer(self, *findings, **more):
        value = report(*findings, **more)
        return {"doctor": said(value, CODES[value["verdict"]])}

    def test_findings_of_many_nodes_are_said_once(self):
        for i in (1, 2, 3, 10):
            self.add(f"gpu-{i:03}", self.answer(IOMMU, ACS))
        self.add(
            "gpu-011",
            self.answer(LINK, IOMMU, ("WARN", "iommu", "Another sentence.", "Slow.", "iommu=pt")))
        self.add("login", self.answer(("PASS", "iommu", "Right.", None, None)))
        self.add("dead", {"doctor": {"err": "error: no\n", "code": 1}})
        done = self.ask("doctor")
        self.assertEqual((done.returncode, done.stderr), (FAIL, ""))
        self.assertEqual(done.stdout, """verdict: FAIL
  FAIL:    port
  WARN:    iommu
  UNKNOWN: nodes, acs
  This is the view from inside a container: what it does not show is UNKNOWN.

FAIL port: about port
  mlx5_0 port 1 is DOWN. (gpu-011)
  NCCL: No traffic.
  fix:  ip link set up

WARN iommu: about iommu
  The IOMMU translates. (gpu-[001-003], gpu-[010-011])
  Another sentence. (gpu-011)
  NCCL: Slow.
  fix:  iommu=pt

UNKNOWN nodes: Nodes that answer
  error: no (dead)
  NCCL: What is wrong there is not known.
  fix:  kubectl get pods and kubectl logs say why it does not answer.

UNKNOWN acs: about acs
  It cannot be read. (gpu-[001-003], gpu-010)
  NCCL: Perhaps slow.
  fix:  look as root

PASS nodes             Nothing is wrong (login)
""")
        checks = {check["id"]: check for check in self.value(FAIL, "doctor")["checks"]}
        self.assertEqual([(f["subject"], f["finding"], f["fix"]) for f in checks["iommu"]["findings"]],
                         [("gpu-001,gpu-002,gpu-003,gpu-010,gpu-011", "The IOMMU translates.",
                           {"grub": "iommu=pt", "openshift": "iommu=pt", "talos": "iommu=pt"}),
                          ("gpu-011", "Another sentence.",
                           {"grub": "iommu=pt", "openshift": "iommu=pt", "talos": "iommu=pt"})])
        self.assertEqual({(f["verdict"], f["subject"], f["finding"]) for f in checks["nodes"]["findings"]},
                         {("UNKNOWN", "dead", "error: no"), ("PASS", "login", "Nothing is wrong")})

    def test_names_of_nodes_are_ranges_where_they_are(self):
        for names, shown in ((["n8", "n9", "n10"], "n[8-10]"), ([
                "n08", "n09", "n10"
        ], "n[08-10]"), (["n1", "n01"], "n01, n1"), ([
                "ip-10-0-1-23.ec2.internal", "ip-10-0-1-24.ec2.internal"
        ], "ip-10-0-1-[23-24].ec2.internal"), (["a1x", "a2y", "b"], "a1x, a2y, b"), ([
                "n1.z3", "n2.z3", "n2.z4"
        ], "n[1-2].z3, n2.z4"), (["n1" + "0" * 12,
                                  "n1" + "0" * 11 + "1"], "n1000000000000, n1000000000001"),
                             (list("abcdefghij"), "a, b, c, d, e, f, g, h and 2 more")):
            self.cluster["pods"]["kube-system"] = []
            for name in names:
                self.add(name, self.answer(IOMMU))
            with self.subTest(shown):
                self.assertIn(f"  The IOMMU translates. ({shown})\n", self.ask("doctor").stdout)

    def test_exit_status_is_that_of_the_worst_finding(self):
        for code, findings in ((PASS, []), (UNKNOWN, [ACS]), (WARN, [ACS, IOMMU]),
                               (FAIL, [ACS, IOMMU, LINK])):
            self.cluster["pods"]["kube-system"] = []
            self.add("a", self.answer(*findings))
            self.assertEqual(self.ask("doctor").returncode, code)
        self.cluster["pods"]["kube-system"] = []
        self.add("a", {"doctor": {"out": "{}"}})
        done = self.ask("doctor")
        self.assertEqual(done.returncode, UNKNOWN)
        self.assertIn("its answer is not that of railmatectl doctor (a)", done.stdout)

    def test_a_verdict_counts_without_its_finding(self):
        """Of a version that writes findings otherwise: what is not understood is not PASS."""
        for findings in (), (IOMMU,):
            self.cluster["pods"]["kube-system"] = []
            self.add("a", self.answer(*findings, verdict="FAIL"))
            done = self.ask("doctor")
            self.assertEqual(done.returncode, FAIL)
            self.assertIn("no finding of its answer is as bad as its verdict (a)", done.stdout)
            self.assertEqual("The IOMMU translates. (a)" in done.stdout, bool(findings))

    def test_only_is_handed_on(self):
        self.add("a", self.answer())
        self.ask("doctor", "--only", "acs,iommu")
        self.assertEqual(self.calls()[-1][7:],
                         ["railmatectl", "doctor", "--json", "--only", "acs,iommu"])
        self.cluster["exec"]["railmate-a"] = {
            "doctor": {"err": "railmatectl: there is no check 'magic'\n", "code": 2}
        }
        self.assertIn("  there is no check 'magic' (a)\n", self.ask("doctor", "--only", "magic").stdout)

    def test_many_things_that_say_nothing_take_little_memory(self):
        for i in range(9):
            self.add(f"gpu-{i}", {})
        self.store()
        kubectl = self.top / "kubectl"
        kubectl.rename(self.top / "listing")
        kubectl.write_text(f"#!/bin/sh\n[ $1 = get ] && exec {self.top}/listing \"$@\"\n"
                           f"exec cat {self.top}/said\n")
        kubectl.chmod(0o755)
        for size, word in ((4 << 20, "its output is longer than 1 MiB"), (1 << 20, "holds more than"),
                           (60000, "PASS")):
            (self.top / "said").write_text('{"verdict": "PASS", "checks": [' + "{}," *
                                           ((size - 40) // 3) + "{}]}")
            taken = subprocess.run([
                "/usr/bin/python3", "-c", "import os, sys\n"
                "pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])\n"
                "print(os.wait4(pid, 0)[2].ru_maxrss)", CTL, "cluster", "doctor"],
                env=self.env, capture_output=True, text=True, check=True).stdout.splitlines()
            self.assertIn(word, "".join(taken[:-1]))
            self.assertLess(int(taken[-1]), 128 << 10)

    def test_a_real_report_is_understood(self):
        for node in ("n1", "n2"):
            done = run(CTL, "doctor", "--json", "--root", machine("odd-unwell"))
            self.add(node, {"doctor": {"out": done.stdout, "code": done.returncode}})
        real = {
            c["id"]
            for c in json.loads(done.stdout)["checks"]
            if c["verdict"] not in (None, "PASS")
        }
        value = self.value(done.returncode, "doctor")
        self.assertEqual({check["id"] for check in value["checks"]}, real)
        self.assertEqual({f["subject"] for check in value["checks"] for f in check["findings"]},
                         {"n1,n2"})
        self.assertEqual(value["verdict"], json.loads(done.stdout)["verdict"])

    def test_names_are_harmless_on_a_terminal(self):
        self.add("a", self.answer(("WARN", HOSTILE, HOSTILE, HOSTILE, HOSTILE)))
        text = self.ask("doctor").stdout
        self.assertEqual([c for c in text if c in "\x1b\x07\u202e"], [])
        self.assertIn("EVIL", text)

    def test_a_thousand_nodes_are_one_report(self):
        for i in range(1000):
            self.add(f"gpu-{i}", {})
            self.say(f"gpu-{i}", json.dumps(report(
                IOMMU, ("WARN", "slot", f"Card {i} is slow.", "Slow.", "seat it"))))
        done = self.ask("doctor", timeout=240)
        self.assertEqual(done.returncode, WARN, done.stderr)
        self.assertIn("  The IOMMU translates. (gpu-[0-999])\n", done.stdout)
        self.assertIn("  Card 0 is slow. (gpu-0)\n", done.stdout)
        self.assertIn("  and 992 more (--json has all)\n", done.stdout)


P = "p-0:1:20 [0] NCCL INFO "
LOG = (P + "NET/IB : Using [0]mlx5_4:1/RoCE [RO]; OOB eth0:10.1.0.4<0>\n" + P +
       "Using network IB\n" + P +
       "comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x1 - Init START\n" + P +
       "comm 0x1 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0 " +
       P.replace("p-0", "q-0") + "Using network IB " + P.replace("p-0", "q-0") +
       "comm 0x1 rank 1 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0\n" + P +
       "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n")


def map_of(hca):
    return json.dumps({
        "version": 1, "gpus": [{"gpu": "0000:1b:00.0", "vf": "0000:3b:00.2", "hca": hca, "port": 1}]
    })


class Verify(ClusterTest):
    LABEL = {"batch.kubernetes.io/job-name": "train"}

    def setUp(self):
        super().setUp()
        self.cluster["pods"]["ml"] = []
        (self.top / "tmp").mkdir()
        self.env["TMPDIR"] = str(self.top / "tmp")

    def tearDown(self):
        self.assertEqual(list((self.top / "tmp").iterdir()), [], "nothing is left of it")

    def member(self, name, log="", hca="mlx5_4", labels=None, phase="Running", spec=(), **answers):
        each = pod(name, "gpu-1", phase, labels or self.LABEL)
        each["spec"].update(dict(spec))
        self.cluster["pods"]["ml"].append(each)
        self.cluster["logs"][name] = {"out": log}
        self.cluster["exec"][name] = {"cat": {"out": map_of(hca)}, **answers}

    def ids(self, done):
        return [f["id"] for f in json.loads(done.stdout)["findings"]][:2]

    def test_the_pods_of_a_job_are_found_by_their_labels(self):
        for label in ("batch.kubernetes.io/job-name", "job-name", "jobset.sigs.k8s.io/jobset-name",
                      "training.kubeflow.org/job-name", "leaderworkerset.sigs.k8s.io/name"):
            self.cluster["pods"]["ml"] = []
            self.member("p-0", LOG, labels={label: "train"})
            self.member("q-0", labels={label: "train"})
            self.member("r-0", "NCCL WARN no", labels={label: "other"})
            with self.subTest(label):
                done = self.ask("verify", "train", "-n", "ml")
                self.assertEqual((done.returncode, done.stdout.splitlines()[0]),
                                 (PASS, "verdict: PASS"), done.stderr)
                self.assertEqual(done.stderr,
                                 "railmatectl: pod q-0: it has no log: the log is empty\n")

    def test_what_the_pods_were_given_is_compared_with_their_logs(self):
        self.member("p-0", LOG, hca="mlx5_9")
        self.member("q-0", P.replace("p-0", "q-0") + "Using network IB\n", hca="mlx5_4")
        done = self.ask("verify", "-l", "batch.kubernetes.io/job-name=train", "--namespace", "ml",
                        "--json")
        self.assertEqual(self.ids(done), ["hca-missing", "hca-foreign"])
        self.assertEqual((done.returncode, done.stderr),
                         (FAIL if json.loads(done.stdout)["verdict"] == "FAIL" else WARN, ""))
        self.assertIn("p-0.log", done.stdout)
        self.assertNotIn("tmp", done.stdout)

    def test_a_host_is_called_as_its_processes_call_it(self):
        for name, spec in (("other", {"hostname": "p-0"}), ("p-0.example", {}),
                           ("third", {"hostNetwork": True, "nodeName": "p-0.example.org"})):
            self.cluster["pods"]["ml"] = []
            self.member(name, LOG, hca="mlx5_9", spec=spec)
            self.member("q-0")
            with self.subTest(name):
                self.assertEqual(self.ids(self.ask("verify", "train", "-n", "ml", "--json")),
                                 ["hca-missing", "hca-foreign"])

    def test_what_cannot_be_had_is_said_and_the_rest_is_judged(self):
        self.member("p-0", LOG, phase="Succeeded")
        self.member("q-0", "x\n",
                    cat={"err": "cat: /run/railmate/map.json: No such file\n", "code": 1})
        self.member("r-pending", phase="Pending")
        self.member("s-garbage", "x\n", cat={"out": "{}"})
        self.member("t-empty", "x\n", cat={})
        self.member("u-twice", "x\n", spec={"hostname": "q-1"})
        self.member("v-twice", "x\n", spec={"hostname": "q-1"})
        self.member("w-cut")
        self.cluster["logs"]["w-cut"] = {"out": "a line\n", "sleep": 60}
        done = self.ask("verify", "train", "-n", "ml", "--timeout", "8", "--parallel", "4")
        self.assertEqual((done.returncode, done.stdout.splitlines()[0]), (PASS, "verdict: PASS"),
                         done.stderr)
        for sentence in (
                "pod q-0: what it was given (map.json) is not known: cat: /run/railmate/map.json: No such file\n",
                "pod r-pending: it has no log: it is Pending\n",
                "pod s-garbage: its map.json is left out: s-garbage.map.json: not a map",
                "pod t-empty: what it was given (map.json) is not known: the file is empty\n",
                "pod v-twice: its map.json is left out: ",
                "pod w-cut: its log is not complete: did not end within 8 s\n",
                "1 of 8 pods have ended: what they were given (map.json) is gone with them"):
            self.assertIn(sentence, done.stderr)

    def test_a_container_without_cat_is_said_in_one_sentence(self):
        runc = {"err": 'error: Internal error occurred: error executing command in container: failed to exec in '
                       'container: OCI runtime exec failed: exec failed: unable to start container process: exec: '
                       '"cat": executable file not found in $PATH: unknown\n', "code": 1}
        crun = {"err": "command terminated with exit code 127\n", "code": 127}
        for said_there in (runc, crun):
            self.cluster["pods"]["ml"] = []
            self.member("p-0", LOG, cat=said_there)
            self.member("q-0")
            done = self.ask("verify", "train", "-n", "ml")
            self.assertEqual(done.stdout.splitlines()[0], "verdict: PASS")
            self.assertIn(
                "railmatectl: pod p-0: what it was given (map.json) is not known: its container has no program "
                "'cat', which reads it; -c names another container\n", done.stderr)

    def test_what_a_pod_says_of_itself_makes_no_row(self):
        for evil in ("gpu\nevil\tRunning\t\t\tgpu-1\ttrain\t\t\t\t\t", "gpu\tevil",
                     "\n0000000000000000\tevil\tRunning\t\t\tgpu-1\ttrain\t\t\t\t\n"):
            self.cluster["pods"]["ml"] = []
            self.member("p-0", LOG)
            self.member("q-0", LOG)
            self.cluster["pods"]["ml"][0]["spec"]["hostname"] = evil
            done = self.ask("verify", "train", "-n", "ml")
            self.assertEqual((done.returncode, done.stderr), (PASS, ""))
            self.assertEqual({word for call in self.calls() for word in call} & {"evil"}, set())

    def test_a_pod_whose_name_is_an_option_is_not_asked(self):
        self.member("p-0", LOG)
        for name in ("--previous", "-v9", "--as=admin", ".p", "_p"):
            self.member(name, LOG)
        done = self.ask("verify", "train", "-n", "ml")
        self.assertEqual(done.returncode, PASS, done.stderr)
        self.assertEqual({word for call in self.calls() for word in call}
                         & {"--previous", "-v9", "--as=admin", ".p", "_p"}, set())

    def test_many_complaints_are_few_lines(self):
        self.member("p-0", LOG)
        for i in range(30):
            self.member(f"q-{i}", phase="Pending")
        done = self.ask("verify", "train", "-n", "ml")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (PASS, 9), done.stderr)
        self.assertIn("and 22 more of that kind", done.stderr)

    def test_a_container_may_be_named(self):
        self.member("p-0", LOG)
        self.member("q-0")
        self.ask("verify", "train", "-n", "ml", "-c", "nccl")
        asked = {call[0]: call for call in self.calls() if "p-0" in call}
        self.assertEqual(asked["logs"], ["logs", "-n", "ml", "p-0", "-c", "nccl"])
        self.assertEqual(
            asked["exec"],
            ["exec", "-n", "ml", "p-0", "-c", "nccl", "--", "cat", "/run/railmate/map.json"])

    def test_what_makes_no_sense_is_refused(self):
        self.refused(self.ask("verify", "train", "-n", "ml"), 3,
                     "no pod of a job train is in namespace ml")
        self.member("p-0", phase="Pending")
        done = self.ask("verify", "train", "-n", "ml")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no log of the 1 pods could be read", done.stderr)
        for argv, words in (([], "name the job, or its pods by -l"), ([
                "a", "-l", "b=c"
        ], "name the job, or its pods by -l"), (["a=b,c"], "'a=b,c' is not the name of a job"),
                            (["a", "b"], "takes no argument 'b'")):
            self.refused(self.ask("verify", *argv), 2, words)
        self.cluster["fail"] = {"get": {"err": "error: no cluster\n", "code": 1}}
        self.refused(self.ask("verify", "train"), 1, "kubectl get pods: error: no cluster")

    def test_an_interrupt_ends_the_logs_and_gives_the_verdict(self):
        self.member("p-0", LOG)
        self.member("q-0")
        self.cluster["logs"]["q-0"]["sleep"] = 60
        self.store()
        with subprocess.Popen([CTL, "cluster", "verify", "train", "-n", "ml", "--parallel", "3"],
                              env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as proc:
            deadline = time.monotonic() + 60
            while not (self.top / "calls.jsonl").exists() or len(self.calls()) < 1 + 4:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.02)
            while len(children(proc.pid)) > 1:  # q-0's log is the last
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.02)
            proc.send_signal(signal.SIGINT)
            text, err = proc.communicate(timeout=60)
        self.assertEqual(proc.returncode, PASS, err)
        self.assertIn("verdict: PASS", text)
        self.assertIn("q-0: it has no log: interrupted", err)


def measure(source, to, outcome="good", op="write", gbps=90.0, together=False, **more):
    return {"path": "same rail", "from": source, "to": to, "from_memory": "host", "to_memory": "host",
            "memory_way": None, "op": op, "together": together, "gbps": gbps, "usec": 2.5,
            "expect_gbps": 97.0, "limit": None, "verified": True, "outcome": outcome, **more}


def found(outcome, what, on=None, likely="The cable.", fix="Look at it."):
    return {"outcome": outcome, "id": "port-down", "on": on, "what": what, "likely": likely, "fix": fix}


def probed(outcome="good", measures=(), findings=(), **more):
    codes = {"good": 0, "broken": 1, "slow": 3, "not measured": 4}
    return said({"probe": 1, "version": "0.1.0", "outcome": outcome, "pod": "p", "container": "c",
                 "measures": list(measures), "findings": list(findings), **more}, codes[outcome])


GOOD, BROKEN, SLOW, NOT_MEASURED = 0, 1, 3, 4


class Probe(ClusterTest):
    LABEL = {"batch.kubernetes.io/job-name": "train"}
    PROBE = "/run/railmate/probe/railmate-probe"

    def setUp(self):
        super().setUp()
        self.cluster["pods"]["ml"] = []

    def member(self, name, alone=None, serve=None, peer=None, ip="10.0.0.1", phase="Running", labels=None):
        each = pod(name, "gpu-1", phase, labels or self.LABEL)
        each["status"]["podIP"] = ip
        self.cluster["pods"]["ml"].append(each)
        self.cluster["exec"][name] = {key: value for key, value in (
            ("railmate-probe", alone), ("railmate-probe --serve", serve), ("railmate-probe --peer", peer)) if value}

    def probe(self, *argv, **kw):
        return self.ask("probe", *argv[:1], "-n", "ml", *argv[1:], **kw)

    def test_one_pod_is_asked_alone(self):
        self.member("p-0", alone=probed(measures=[
            measure("mlx5_0", "mlx5_0", gbps=95.25, path="loopback"),
            measure("mlx5_0", "mlx5_0", gbps=80, together=True, path="loopback")]))
        done = self.probe("p-0", "-c", "nccl", "--", "--gpu", "--seconds", "2")
        self.assertEqual((done.returncode, done.stderr), (GOOD, ""))
        self.assertEqual(done.stdout.splitlines(), [
            "VERDICT      PATH         FROM > TO         WRITE    READ    SEND     ALL    USEC  POD",
            "good         loopback     mlx5_0 > mlx5_0    95.2       -       -    80.0     2.5  p-0",
            "(Gb/s; ALL: write, all rails at once)"])
        self.assertEqual(self.calls()[1:], [[
            "exec", "-n", "ml", "p-0", "-c", "nccl", "--", self.PROBE, "--json", "--quiet", "--gpu", "--seconds", "2"]])

    def test_of_several_pods_the_first_serves_the_others_one_by_one(self):
        self.member("q", peer=probed(measures=[measure("mlx5_0", "ml/p/mlx5_9", gbps=0.054)]))
        self.member("r", peer=probed(measures=[measure("rocep12s0f1v3", "ml/p/rocep9s0f1v3")]))
        self.member("p", serve=probed(), ip="10.9.8.7")
        done = self.probe("p", "q", "r", "--", "--port", "7000", "--isolation")
        self.assertEqual((done.returncode, done.stderr), (GOOD, ""))
        self.assertEqual(done.stdout.splitlines(), [
            "VERDICT      PATH         FROM > TO                      WRITE    READ    SEND     ALL    USEC  POD",
            "good         same rail    mlx5_0 > mlx5_9                0.054       -       -       -     2.5  q",
            "good         same rail    rocep12s0f1v3 > rocep9s0f1v3    90.0       -       -       -     2.5  r",
            "(Gb/s; ALL: write, all rails at once; to p)"])
        calls = [call[4:] for call in self.calls()[1:]]
        begin, port = ["--", self.PROBE, "--json", "--quiet"], ["--port", "7000"]
        server = ["p", *begin, "--serve", "--token", "-", "--once", *port]
        self.assertCountEqual(calls, [
            server, ["q", *begin, "--peer", "10.9.8.7", "--token", "-", *port, "--isolation"],
            server, ["r", *begin, "--peer", "10.9.8.7", "--token", "-", *port, "--isolation"]])
        self.assertCountEqual([call[0] for call in calls[:2]], ["p", "q"])

    def test_the_token_is_a_new_one_each_time_and_on_no_command_line(self):
        self.member("p", serve=probed())
        self.member("q", peer=probed())
        self.member("r", peer=probed())
        self.probe("p", "q", "r")
        tokens = {}
        for name, token in map(json.loads, (self.top / "inputs.jsonl").read_text().splitlines()):
            self.assertRegex(token, r"\A[0-9a-f]{32}\n\Z")
            tokens.setdefault(token, set()).add(name)
        self.assertEqual(sorted(tokens.values(), key=sorted), [{"p", "q"}, {"p", "r"}])
        self.assertFalse(any(token.strip() in word for token in tokens for call in self.calls() for word in call))

    def test_the_pods_of_a_job_are_found_by_their_labels(self):
        self.member("train-10", peer=probed())
        self.member("train-9", serve=probed())
        self.member("train", labels={"job-name": "other"}, phase="Pending")
        self.member("other", labels={"job-name": "else"})
        self.cluster["pods"]["ml"][2]["metadata"]["name"] = "trainer"
        done = self.probe("train")
        self.assertEqual((done.returncode, done.stderr), (GOOD, ""))
        self.assertCountEqual([(call[4], "--serve" in call) for call in self.calls()[1:]],
                              [("train-9", True), ("train-10", False)])
        self.assertEqual(self.ask("probe", "-n", "ml", "-l", "batch.kubernetes.io/job-name=train").returncode, GOOD)

    def test_a_pod_of_the_name_of_a_job_is_that_pod(self):
        self.member("train", alone=probed())
        self.member("train-1")
        self.assertEqual(self.probe("train").returncode, GOOD)
        self.assertEqual([call[3] for call in self.calls()[1:]], ["train"])

    def test_the_worst_comes_first_and_is_the_exit_status(self):
        self.member("p", serve=probed("broken", findings=[found("broken", "the port is Down", "mlx5_8")]))
        self.member("q", peer=probed("broken", measures=[
            measure("mlx5_0", "p/mlx5_9"), measure("mlx5_1", "p/mlx5_8", "broken", gbps=None),
            measure("mlx5_2", "p/mlx5_7", "slow", gbps=40)],
            findings=[found("good", "a note"), found("slow", "the port is slow", "mlx5_2", fix=None),
                      found("broken", "the port is Down", "p mlx5_8")]))
        done = self.probe("p", "q")
        self.assertEqual((done.returncode, done.stderr), (BROKEN, ""))
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()[1:4]], ["broken", "slow", "good"])
        self.assertEqual(done.stdout.splitlines()[5:], [
            "broken: q: p mlx5_8: the port is Down", "  likely: The cable.", "  do: Look at it.",
            "slow: q: mlx5_2: the port is slow", "  likely: The cable."])
        self.cluster["exec"]["q"]["railmate-probe --peer"] = probed("slow")
        self.cluster["exec"]["p"]["railmate-probe --serve"] = probed()
        self.assertEqual(self.probe("p", "q").returncode, SLOW)

    def test_a_pod_that_cannot_be_asked_is_not_measured(self):
        runc = {"err": 'error: Internal error occurred: OCI runtime exec failed: exec failed: unable to start container '
                       f'process: exec: "{self.PROBE}": stat {self.PROBE}: no such file or directory: unknown\n', "code": 1}
        absent = "its container has no /run/railmate/probe/railmate-probe: railmate serves it no VF"
        for answer, why in ((runc, absent), ({"err": "command terminated with exit code 127\n", "code": 127}, absent),
                            ({"sleep": 60}, "did not end within 3 s"), ({"out": "Segmentation fault"}, "its answer is not that of railmate-probe"),
                            ({"out": '{"probe": 2}'}, "its answer is not that of railmate-probe"),
                            ({"out": "x" * 100000, "repeat": 20}, "its output is longer than 1 MiB"),
                            ({"err": "railmate-probe: --ops: 'x' is not write, read or send\n", "code": 2},
                             "railmate-probe: --ops: 'x' is not write, read or send")):
            self.cluster["pods"]["ml"] = []
            self.member("p", alone=answer)
            done = self.probe("p", "--timeout", "3")
            self.assertEqual(done.returncode, NOT_MEASURED, done.stdout)
            self.assertIn(f"not measured: p: {why}", " ".join(done.stdout.split()))
            value = json.loads(self.probe("p", "--timeout", "3", "--json").stdout)
            self.assertEqual((value["outcome"], value["reports"][0]["report"]), ("not measured", None))
            self.assertIn(why, value["reports"][0]["error"])

    def test_without_a_client_the_findings_of_its_server_are_shown(self):
        self.member("p", serve=probed("not measured", findings=[found("not measured", "no peer came")]))
        self.member("q", peer={"err": "command terminated with exit code 137\n", "code": 137})
        done = self.probe("p", "q")
        self.assertEqual(done.returncode, NOT_MEASURED)
        self.assertIn("not measured: q: exit status 137\n", done.stdout)
        self.assertIn("not measured: p: no peer came\n", done.stdout)

    def test_json_has_every_report_whole(self):
        self.member("p", serve=probed())
        self.member("q", peer=probed("slow", measures=[measure("mlx5_0", "p/mlx5_9", "slow")], more=[1, {"x": None}]))
        done = self.probe("p", "q", "--json")
        value = json.loads(done.stdout)
        self.assertEqual((done.returncode, value["outcome"]), (SLOW, "slow"))
        self.assertEqual([(r["pod"], r["served"], r["error"]) for r in value["reports"]],
                         [("q", False, None), ("p", True, None)])
        self.assertEqual(value["reports"][0]["report"],
                         json.loads(self.cluster["exec"]["q"]["railmate-probe --peer"]["out"]))

    def test_what_a_pod_says_is_harmless_on_a_terminal(self):
        odd = probed("broken", measures=[measure(HOSTILE, HOSTILE, HOSTILE, path=HOSTILE, gbps="x", usec=[]), 7, {}],
                     findings=[found("broken", HOSTILE, HOSTILE, HOSTILE, HOSTILE), {}, None])
        self.member("p", alone=odd)
        done = self.probe("p")
        self.assertEqual(done.returncode, BROKEN)
        self.assertEqual([c for c in done.stdout if c in "\x1b\x07\u202e"], [])
        self.assertNotIn("\nEVIL", done.stdout)

    def test_what_makes_no_sense_is_refused(self):
        self.refused(self.probe("p"), NOT_MEASURED, "no pod of p is in namespace ml")
        self.member("p", alone=probed())
        self.member("q", phase="Pending")
        self.refused(self.probe("p", "absent"), NOT_MEASURED, "no pod of absent is in namespace ml")
        self.refused(self.probe("p", "q"), NOT_MEASURED, "pod q does not run: it is Pending")
        for argv, words in (([], "name the pods, or the job, or its pods by -l"),
                            (["p", "-l", "a=b"], "name the pods, or the job, or its pods by -l"),
                            (["a=b,c"], "'a=b,c' is not the name of a pod or a job"),
                            (["p", "--", *"abcdefghijklm"], "more than 12 words after --")):
            self.refused(self.ask("probe", *argv), 2, words)
        self.cluster["fail"] = {"get": {"err": "error: no cluster\n", "code": 1}}
        self.refused(self.probe("p"), NOT_MEASURED, "kubectl get pods: error: no cluster")


if __name__ == "__main__":
    unittest.main()
