#!/usr/bin/python3
"""An Event on the node tells of a pool that has no device: what is sent, and how little it takes when it cannot be."""

import itertools
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time

import https
from harness import GPU, VF, Case, Daemon, main, replace, until, vfs_of
from https import reply

WRONG = {"resourceName": "storage", "resourcePrefix": "rdma", "selectors": {"pfNames": ["rail0", "rail1"], "isRdma": True}}
WRONG_TOO = {"resourceName": "other", "resourcePrefix": "rdma", "selectors": {"pfNames": ["rail7"]}}
RIGHT = {"resourceName": "vf", "resourcePrefix": "rdma", "selectors": {"isRdma": True}}
ONE_PF = {**RIGHT, "selectors": {"isRdma": True, "pfNames": ["ibp24s0"]}}
LATER = {"resourceName": "later", "resourcePrefix": "rdma", "selectors": {"pfNames": ["rail99"]}}


class Events(https.Case, Case):
    """
    Requests are sent one after the other. So that nothing more is sent is seen by another one, which
    the test causes and which has to come: it is the next.
    """

    def start(self, *pools, fixture="hgx-h100", port=None, account=True, options=()):
        """With the pools; the API server at that port. Returns the daemon."""
        here = self.here = self.node(fixture)
        if account:
            self.account(here.path("account"))
        self.configure(*pools)
        self.kubelet = here.start_kubelet()
        argv = here.daemon_argv("--config-file", here.path("config.json"), "--service-account", here.path("account"),
                                "--pod-specs=off", "--empty-pool-event=1", *options)
        env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port or 1), "NODE_NAME": "worker-1.example"}
        daemon = Daemon(argv, here.path("railmated.log"), stdin=subprocess.DEVNULL, env={**os.environ, **env})
        here.processes.append(daemon)
        return daemon

    def start_with_gpus(self, *pools, vfs=64, **options):
        daemon = self.start(*pools, **options)
        self.here.start_gpu_plugin()
        self.kubelet.wait(GPU, 8)
        self.kubelet.wait(VF, vfs)
        return daemon

    def configure(self, *pools):
        replace(self.here.path("config.json"), json.dumps({"resourceList": pools}))

    def api_server(self, status=201):
        """Answers Events with that status; conditions of the node are welcome."""
        server = self.server()
        events, conditions = reply(status, b"{}"), reply(200, b"{}")
        server.answer = lambda c: (conditions if server.requests[-1][0].startswith("PATCH ") else events)(c)
        return server, server.port

    def posts(self, server):
        return [line for line, _ in server.requests if line.startswith("POST ")]

    def refuse(self, daemon, n=1):
        """So many configurations that are wrong, each in its own way."""
        for wrong in ("[", "{", "]")[:n]:
            told = daemon.stderr().count("the new configuration is refused")
            replace(self.here.path("config.json"), wrong)
            until(lambda: daemon.stderr().count("the new configuration is refused") > told, "the refusal")

    def await_refused(self, server, daemon):
        """An Event after all that have been caused; returns those before it."""
        self.refuse(daemon)
        self.await_event(server, "ConfigRefused")
        return [e for e in map(json.loads, server.bodies) if e["reason"] != "ConfigRefused"]

    def says(self, daemon, text):
        until(lambda: text in daemon.stderr(), f"the daemon says '{text}'")

    def complaints(self, daemon):
        return [line for line in daemon.stderr().splitlines() if "an Event cannot be sent" in line]

    def has_libcurl(self, daemon):
        with open(f"/proc/{daemon.pid}/maps", encoding="ascii") as f:
            return "libcurl" in f.read()

    def test_every_pool_without_a_device_is_told_once(self):
        server, port = self.api_server()
        daemon = self.start(WRONG, RIGHT, WRONG_TOO, port=port)
        until(lambda: len(server.bodies) == 2, "two Events")
        for line, headers in server.requests:
            self.assertEqual(line, "POST /apis/events.k8s.io/v1/namespaces/kube-system/events HTTP/1.1")
            self.assertEqual((headers["Authorization"], headers["Content-Type"]), ("Bearer the-token", "application/json"))
        first, second = map(json.loads, server.bodies)
        self.assertEqual((first["reason"], first["type"]), ("PoolEmpty", "Warning"))
        self.assertEqual(first["regarding"], {"apiVersion": "v1", "kind": "Node", "name": "worker-1.example", "uid": "worker-1.example"})
        self.assertRegex(first["eventTime"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        self.assertIn("rdma/storage has no device on this node", first["note"])
        self.assertIn("Not here: rail0, rail1. Network cards here: ibp24s0 (8 VFs),", first["note"])
        self.assertIn("rdma/other", second["note"])
        self.assertNotEqual(first["metadata"]["name"], second["metadata"]["name"])
        self.configure(WRONG, RIGHT, WRONG_TOO, LATER)
        until(lambda: len(server.bodies) > 2, "the Event of a pool that came later")
        self.assertIn("rdma/later", json.loads(server.bodies[2])["note"])
        self.assertEqual(self.complaints(daemon), [])

    def test_one_that_is_there_already_is_told(self):
        server, port = self.api_server(409)
        daemon = self.start(WRONG, WRONG_TOO, RIGHT, port=port)
        until(lambda: len(server.bodies) == 2, "two Events")
        self.assertEqual(len(self.await_refused(server, daemon)), 2)
        self.assertEqual(self.complaints(daemon), [])

    def test_nothing_is_said_where_all_is_well(self):
        server, port = self.api_server()
        daemon = self.start(RIGHT, port=port)
        self.kubelet.wait(VF, 64)
        self.assertFalse(self.has_libcurl(daemon))
        self.configure(RIGHT, LATER)
        self.assertIn("rdma/later", self.await_event(server, "PoolEmpty")["note"])
        self.assertEqual(len(server.bodies), 1)
        self.assertEqual(self.complaints(daemon), [])

    def test_nothing_is_said_of_a_node_that_is_not_meant(self):
        server, port = self.api_server()
        daemon = self.start(WRONG, fixture="odd-empty", port=port)
        self.says(daemon, "nothing is offered until there is one")
        time.sleep(1.2)  # the pools are looked at
        self.assertFalse(self.has_libcurl(daemon))
        self.assertEqual(self.await_refused(server, daemon), [])
        self.assertEqual(self.complaints(daemon), [])

    def test_zero_is_never(self):
        server, port = self.api_server()
        daemon = self.start(WRONG, RIGHT, port=port, options=["--empty-pool-event=0"])
        self.kubelet.wait(VF, 64)
        self.assertEqual(self.await_refused(server, daemon), [])

    def test_without_the_right_it_is_one_line(self):
        server, port = self.api_server(403)
        daemon = self.start(WRONG, WRONG_TOO, ONE_PF, port=port, options=["--node-condition"])
        self.says(daemon, "an Event cannot be sent event=PoolEmpty")
        self.cut(daemon)
        until(lambda: self.conditions(server)[1:], "the condition of a link that is down")
        (line,) = self.complaints(daemon)
        self.assertIn("does not allow us to write this: HTTP 403", line)
        self.assertEqual(len(self.posts(server)), 1)

    def test_without_a_token_it_is_one_line(self):
        daemon = self.start(WRONG, WRONG_TOO, RIGHT, account=False)
        self.says(daemon, "an Event cannot be sent event=PoolEmpty")
        self.refuse(daemon, 2)  # of which an Event would tell
        (line,) = self.complaints(daemon)
        self.assertIn("account/token", line)
        self.assertFalse(self.has_libcurl(daemon))

    def test_an_api_server_that_is_away_is_one_line_and_asked_again(self):
        server, port = self.api_server(503)
        daemon = self.start(WRONG, RIGHT, port=port)
        self.says(daemon, "an Event cannot be sent event=PoolEmpty")
        server.answer = reply(201, b"{}")
        self.await_event(server, "PoolEmpty", 2)  # the first was asked for twice
        (line,) = self.complaints(daemon)
        self.assertIn("HTTP 503", line)

    def events(self, server, reason):
        """Those that were sent with that reason."""
        return [e for e in map(json.loads, server.bodies) if e.get("reason") == reason]

    def await_event(self, server, reason, n=1):
        return until(lambda: len(found := self.events(server, reason)) >= n and found, f"{n} × {reason}")[-1]

    def cut(self, daemon, up=False):
        """The cable of the first PF. Returns its name."""
        pf = next(f for f in self.here.topo().topo["pfs"] if f["netdev"] == "ibp24s0")
        self.here.write(f"sys/class/net/{pf['netdev']}/carrier", "1\n" if up else "0\n")
        self.here.write(f"sys/class/infiniband/{pf['rdma']}/ports/1/state", "4: ACTIVE\n" if up else "1: DOWN\n")
        daemon.child.send_signal(signal.SIGHUP)
        return pf["pci"]

    def pull(self, daemon):
        """The first PF falls off the bus, with its VFs. Returns its address, and a call that puts it back."""
        pf, restore = self.here.remove_pf("ibp24s0")
        daemon.child.send_signal(signal.SIGHUP)

        def put_back():
            restore()
            daemon.child.send_signal(signal.SIGHUP)

        return pf, put_back

    def test_a_pf_that_falls_off_the_bus_is_told_until_it_is_back(self):
        server, port = self.api_server()
        daemon = self.start(ONE_PF, port=port, options=["--events=pods", "--node-condition"])
        self.kubelet.wait(VF, 8)
        vf, = vfs_of(self.kubelet.admit("p", f"main:{VF}=1"))
        self.kubelet.ask("prestart p")
        until(lambda: '"p"' in self.ledger(), "p in the ledger")
        for n in (1, 2):  # the second time within ten minutes
            pf, put_back = self.pull(daemon)
            self.await_event(server, "PFLost", 2 * n)
            lost = {e["regarding"]["kind"]: e["note"] for e in self.events(server, "PFLost")[-2:]}
            self.assertEqual(lost, {
                "Node": f"PF {pf} (ibp24s0) is gone from the PCI bus: 8 VFs of rdma/vf; pods that have one: default/p",
                "Pod": f"PF {pf} (ibp24s0) is gone from the PCI bus; the pod has its VF {vf}"})
            self.await_condition(server, "False", f"PF {pf} (ibp24s0) is gone from the PCI bus")
            until(lambda: daemon.stderr().count("a PF of a pool is missing") == n, "the line of the log")
            put_back()
            self.await_event(server, "PFFound", 2 * n)
            self.await_condition(server, "True", "the link of every PF of a pool is up")
        self.assertIn("is there again", self.events(server, "PFFound")[0]["note"])
        self.assertFalse(self.events(server, "LinkUp") + self.events(server, "LinkRecovered"))

    def await_condition(self, server, status, message):
        until(lambda: (c := self.conditions(server)) and (c[-1]["status"], c[-1]["message"]) == (status, message), f"the condition: {message}")

    def test_a_pf_that_is_gone_is_forgotten_with_its_selectors(self):
        server, port = self.api_server()
        two = {**RIGHT, "selectors": {"isRdma": True, "pfNames": ["ibp24s0", "ibp64s0"]}}
        daemon = self.start(two, port=port, options=["--node-condition"])
        self.kubelet.wait(VF, 16)
        pf, _ = self.pull(daemon)
        self.await_condition(server, "False", f"PF {pf} (ibp24s0) is gone from the PCI bus")
        self.configure({**RIGHT, "selectors": {"isRdma": True, "pfNames": ["ibp64s0"]}})
        self.await_condition(server, "True", "the link of every PF of a pool is up")
        self.assertEqual(len(self.events(server, "PFLost")), 1)

    def test_the_links_of_shared_hcas_are_told(self):
        server, port = self.api_server()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        shared = os.path.join(folder.name, "shared.json")
        replace(shared, json.dumps({"configList": [{"resourceName": "hca", "rdmaHcaMax": 4, "selectors": {"ifNames": ["ibp24s0"]}}]}))
        daemon = self.start(LATER, port=port, options=["--node-condition", "--shared-config", shared])
        self.kubelet.wait("rdma/hca", 4)
        pf = self.cut(daemon)
        self.assertEqual(self.await_event(server, "LinkDown")["note"], f"the link of PF {pf} (ibp24s0) is down: HCA of rdma/hca")
        self.await_condition(server, "False", f"the link of PF {pf} (ibp24s0) is down")
        self.cut(daemon, up=True)
        self.await_event(server, "LinkUp")
        _, put_back = self.pull(daemon)
        self.assertEqual(self.await_event(server, "PFLost")["note"], f"PF {pf} (ibp24s0) is gone from the PCI bus: HCA of rdma/hca")
        self.await_condition(server, "False", f"PF {pf} (ibp24s0) is gone from the PCI bus")
        put_back()
        self.await_event(server, "PFFound")
        self.await_condition(server, "True", "the link of every PF of a pool is up")

    def test_a_link_that_goes_down_names_the_pods_that_it_hurts(self):
        server, port = self.api_server()
        daemon = self.start(ONE_PF, port=port)
        self.kubelet.wait(VF, 8)
        self.kubelet.admit("p", f"main:{VF}=2")
        self.kubelet.ask("prestart p")
        until(lambda: '"p"' in self.ledger(), "p in the ledger")
        pf = self.cut(daemon)
        event = self.await_event(server, "LinkDown")
        self.assertEqual((event["type"], event["regarding"]["kind"]), ("Warning", "Node"))
        self.assertEqual(event["note"], f"the link of PF {pf} (ibp24s0) is down: 8 VFs of rdma/vf; pods that have one: default/p")
        self.assertRegex(daemon.stderr(), f" warning link: the link of a PF of a pool is down pf={pf} netdev=ibp24s0 port=1\n")
        self.cut(daemon, up=True)
        self.assertEqual(self.await_event(server, "LinkUp")["type"], "Normal")
        self.assertIn(" info link: the link of a PF of a pool is up again ", daemon.stderr())
        self.kubelet.wait(VF, "=8")
        for up, reason in ((False, "LinkDown"), (True, "LinkUp")):  # the same again, within ten minutes
            self.cut(daemon, up)
            self.await_event(server, reason, 2)
        sent = self.await_refused(server, daemon)
        self.assertEqual([e["reason"] for e in sent], ["LinkDown", "LinkUp", "LinkDown", "LinkUp"])
        self.assertEqual(len({e["metadata"]["name"] for e in sent}), 4)
        self.assertEqual({e["regarding"]["kind"] for e in sent}, {"Node"})

    def test_vfs_that_lose_their_driver_are_told(self):
        """All, one with another driver, and one again; not one that never had it."""
        server, port = self.api_server()
        daemon = self.start(ONE_PF, port=port)
        self.kubelet.wait(VF, 8)
        first, second, third = sorted(d["id"] for d in self.kubelet.resource(VF)["devices"])[:3]
        held = vfs_of(self.kubelet.admit("p", f"main:{VF}=1"))
        self.assertEqual(held, [first])

        def lose(*vfs, driver=None):
            for vf in vfs:
                self.here.unbind(vf, driver)
            daemon.child.send_signal(signal.SIGHUP)

        lose(second, third)
        event = self.await_event(server, "DriverLost")
        self.assertEqual((event["type"], event["regarding"]["kind"]), ("Warning", "Node"))
        self.assertEqual(event["note"], f"rdma/vf: 2 VFs cannot be given any more: {second}: no driver is bound to it (and 1 more)")
        self.assertIn(f" warning pool: VFs of the pool lost their driver resource=rdma/vf devices=2 vf={second} reason=", daemon.stderr())
        lose(first, driver="vfio-pci")
        note = self.await_event(server, "DriverLost", 2)["note"]
        self.assertEqual(note, f"rdma/vf: 1 VF cannot be given any more: {first}: is bound to vfio-pci and has no RDMA device")
        sent = self.await_refused(server, daemon)
        self.assertEqual([e["reason"] for e in sent], ["DriverLost"] * 2)

    def test_a_link_that_flaps_is_degraded(self):
        server, port = self.api_server()
        self.start({**ONE_PF, "railmate": {"health": {"flaps": 1}}}, port=port, options=["--node-condition", "--rescan=1"])
        pf = next(f["pci"] for f in self.here.topo().topo["pfs"] if f["netdev"] == "ibp24s0")
        downs = itertools.count()
        self.kubelet.wait(VF, 8)

        def told():  # it goes down again and again: how often it did before the first look does not count
            self.here.write("sys/class/net/ibp24s0/carrier_down_count", f"{next(downs)}\n")
            return self.events(server, "LinkDegraded")

        event, = until(told, "LinkDegraded")
        what = f"the link of PF {pf} (ibp24s0) goes down too often: at least 1 times in 600 s"
        self.assertEqual((event["type"], event["note"]), ("Warning", f"{what}: 8 VFs of rdma/vf; no pod has one"))
        self.await_condition(server, "False", what)

    def ledger(self):
        try:
            with open(os.path.join(self.here.state_dir, "ledger.json"), encoding="utf-8") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def test_pods_have_events_of_their_own_where_they_are_asked_for(self):
        server, port = self.api_server()
        strict = {**RIGHT, "railmate": {"binding": "early", "strict": True}}
        daemon = self.start_with_gpus(strict, port=port, options=["--events=pods"])
        self.kubelet.admit("p", f"main:{GPU}=2,{VF}=2", order="gpu-first")
        self.kubelet.ask("prestart p")
        event = self.await_event(server, "VFsBound")
        self.assertEqual((event["regarding"]["kind"], event["regarding"]["namespace"], event["regarding"]["name"]), ("Pod", "default", "p"))
        self.assertEqual(event["note"], "container main: 2 VFs of rdma/vf; its GPU-VF pairs: 2 PIX")
        self.assertIn("POST /apis/events.k8s.io/v1/namespaces/default/events HTTP/1.1", [line for line, _ in server.requests])
        self.kubelet.ask("prestart p")  # starts again, with what it had
        self.assertEqual([e["reason"] for e in self.await_refused(server, daemon)], ["VFsBound"])
        self.assertEqual(daemon.stderr().count("cannot be sent"), 0)

    def test_a_late_pool_tells_its_pairs_also_where_no_metrics_are_served(self):
        server, port = self.api_server()
        self.start_with_gpus({**RIGHT, "railmate": {"binding": "late"}}, port=port, options=["--events=pods", "--cdi=on"])
        self.kubelet.admit("p", f"main:{GPU}=2,{VF}=2", order="gpu-first")
        self.kubelet.ask("prestart p")
        event = self.await_event(server, "VFsBound")
        self.assertEqual(event["note"], "container main: 2 VFs of rdma/vf; its GPU-VF pairs: 2 PIX")

    def conditions(self, server):
        """Those that were sent, with their request."""
        found = []
        for (line, headers), body in zip(server.requests, server.bodies):
            if line.startswith("PATCH "):
                self.assertEqual(line, "PATCH /api/v1/nodes/worker-1.example/status HTTP/1.1")
                self.assertEqual(headers["Content-Type"], "application/strategic-merge-patch+json")
                (condition,) = json.loads(body)["status"]["conditions"]
                found.append(condition)
        return found

    def test_the_node_condition_follows_the_links(self):
        server, port = self.api_server()
        daemon = self.start(ONE_PF, port=port, options=["--events=off", "--node-condition"])
        well = until(lambda: self.conditions(server), "the condition")[0]
        self.assertEqual((well["type"], well["status"], well["message"]), ("RDMALinksHealthy", "True", "the link of every PF of a pool is up"))
        self.kubelet.wait(VF, 8)
        until(lambda: time.strftime("%FT%TZ", time.gmtime()) > well["lastTransitionTime"], "the next second")
        pf = self.cut(daemon)
        down = until(lambda: self.conditions(server)[1:], "the condition of a link that is down")[0]
        self.assertEqual((down["status"], down["message"]), ("False", f"the link of PF {pf} (ibp24s0) is down"))
        self.assertGreater(down["lastTransitionTime"], well["lastTransitionTime"])
        self.cut(daemon, up=True)
        self.assertEqual(until(lambda: self.conditions(server)[2:], "it is well again")[0]["status"], "True")
        self.assertEqual(self.posts(server), [])

    def test_the_node_condition_says_when_no_link_is_judged(self):
        server, port = self.api_server()
        daemon = self.start(ONE_PF, port=port, options=["--events=off", "--node-condition"])
        self.kubelet.wait(VF, 8)
        self.cut(daemon)
        until(lambda: self.conditions(server) and self.conditions(server)[-1]["status"] == "False", "the condition of a link that is down")
        self.configure(LATER)
        last = until(lambda: (c := self.conditions(server)[-1])["status"] != "False" and c, "the condition without the link")
        self.assertEqual((last["status"], last["reason"], last["message"]), ("Unknown", "NoLinks", "no pool has a PF on this node"))

    def test_a_condition_that_may_not_be_set_stops_no_event(self):
        server, port = self.api_server()
        server.answer = reply(403, b"{}")
        daemon = self.start(WRONG, RIGHT, port=port, options=["--node-condition"])
        self.says(daemon, "the node condition RDMALinksHealthy cannot be set")
        server.answer = reply(201, b"{}")
        self.await_event(server, "PoolEmpty")
        self.assertEqual(len(self.conditions(server)), 1)

    def test_who_holds_nearer_vfs_is_named(self):
        server, port = self.api_server()
        one_each = {**RIGHT, "selectors": {"isRdma": True, "pfNames": ["ibp24s0#0-0", "ibp64s0#0-0"]}, "railmate": {"binding": "early"}}
        self.start_with_gpus(one_each, vfs=2, port=port, options=["--events=pods"])
        for pod, containers in (("p", f"main:{VF}=1"), ("q", f"main:{GPU}=1,{VF}=1")):
            self.kubelet.admit(pod, containers, order="gpu-first")
            self.kubelet.ask(f"prestart {pod}")
        self.await_event(server, "VFsBound", 2)
        self.assertEqual({e["regarding"]["name"]: e["note"] for e in self.events(server, "VFsBound")}, {
            "p": "container main: 1 VFs of rdma/vf",
            "q": "container main: 1 VFs of rdma/vf; its GPU-VF pairs: 1 NODE; nearer VFs are held by default/p"})

    def test_a_refused_configuration_is_an_event(self):
        server, port = self.api_server()
        daemon = self.start(RIGHT, port=port)
        self.kubelet.wait(VF, 1)
        replace(self.here.path("config.json"), "[")
        event = self.await_event(server, "ConfigRefused")
        self.assertIn("config.json:1", event["note"])
        self.assertEqual(event["regarding"]["kind"], "Node")
        self.assertIn("the new configuration is refused", daemon.stderr())
        self.configure(ONE_PF)
        self.kubelet.wait(VF, "=8")
        replace(self.here.path("config.json"), "[")  # the same error again
        again = self.await_event(server, "ConfigRefused", 2)
        self.assertEqual(again["note"], event["note"])

    def test_what_is_left_out_of_the_configuration_of_the_start_is_an_event(self):
        server, port = self.api_server()
        wrong = {**RIGHT, "resourceName": "other", "selectors": {"vendors": 7}}
        self.start(RIGHT, wrong, port=port, options=["--metrics-address=none"])
        event = self.await_event(server, "ConfigIncomplete")
        self.assertRegex(event["note"], r"config.json:\d+: .*vendors")
        self.assertEqual((event["regarding"]["kind"], event["type"]), ("Node", "Warning"))
        self.assertTrue(event["note"].endswith("; the pool is left out"), event["note"])

    def test_a_pool_with_an_error_that_stays_is_an_event_that_says_so(self):
        """One of two is wrong from now on; then both."""
        server, port = self.api_server()
        two = {**LATER, "resourceName": "other"}
        self.start(RIGHT, two, port=port)
        self.kubelet.wait(VF, 64)
        served = self.kubelet.resource(VF)["allocatable"]
        for n, (first, second) in enumerate(((RIGHT, {**two, "selectors": {"vendors": 7}}),
                                             ({**RIGHT, "selectors": {"isRdma": 7}}, two)), 1):
            self.configure(first, second)
            note = self.await_event(server, "ConfigIncomplete", n)["note"]
            self.assertTrue(note.endswith("; a pool with an error that was in use before stays as it was"), note)
        self.kubelet.wait(VF, f"={served}")

    def test_off_is_off_and_a_missing_right_is_one_line(self):
        for options, status, lines, asked in ((["--events=off"], 201, 0, 0), ([], 403, 1, 1)):
            with self.subTest(options=options):
                server, port = self.api_server(status)
                daemon = self.start(ONE_PF, port=port, options=["--node-condition", *options])
                self.kubelet.wait(VF, 8)
                self.refuse(daemon, 3)
                until(lambda: len(self.complaints(daemon)) >= lines, "the line")
                self.cut(daemon)
                until(lambda: self.conditions(server)[1:], "the condition of a link that is down")
                self.assertEqual(len(self.complaints(daemon)), lines)
                self.assertEqual(len(self.posts(server)), asked)

    def test_nobody_waits_for_an_api_server_that_hangs(self):
        server, port = self.api_server()
        hold = threading.Event()
        self.addCleanup(hold.set)
        server.answer = lambda c: hold.wait(60) and False
        daemon = self.start(WRONG, RIGHT, port=port)
        until(lambda: server.requests, "the question")
        self.kubelet.wait(VF, 1)
        self.assertEqual(len(vfs_of(self.kubelet.admit("p", f"main:{VF}=2"))), 2)
        began = time.monotonic()
        self.assertEqual(daemon.end(), 0)
        self.assertLess(time.monotonic() - began, 30)  # half of what the server would take
        self.assertFalse(re.search("no Event", daemon.stderr()))


if __name__ == "__main__":
    main()
