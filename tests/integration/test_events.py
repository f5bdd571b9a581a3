#!/usr/bin/env python3
"""An Event on the node tells of a pool that has no device: what is sent, and how little it takes when it cannot be."""

import json
import os
import re
import subprocess
import threading
import time

import https
from harness import VF, Case, Daemon, main, until, vfs_of
from https import reply

WRONG = {"resourceName": "storage", "resourcePrefix": "rdma", "selectors": {"pfNames": ["rail0", "rail1"], "isRdma": True}}
WRONG_TOO = {"resourceName": "other", "resourcePrefix": "rdma", "selectors": {"pfNames": ["rail7"]}}
RIGHT = {"resourceName": "vf", "resourcePrefix": "rdma", "selectors": {"isRdma": True}}


class Events(https.Case, Case):
    def start(self, *pools, fixture="hgx-h100", port=None, account=True, options=()):
        """With the pools; the API server at that port. Returns the daemon."""
        here = self.here = self.node(fixture)
        if account:
            self.account(here.path("account"))
        with open(here.path("config.json"), "w", encoding="utf-8") as f:
            json.dump({"resourceList": pools}, f)
        self.kubelet = here.start_kubelet()
        argv = here.daemon_argv("--config-file", here.path("config.json"), "--service-account", here.path("account"),
                                "--pod-specs=off", "--empty-pool-event=1", *options)
        env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port or 1), "NODE_NAME": "worker-1.example"}
        daemon = Daemon(argv, here.path("railmated.log"), stdin=subprocess.DEVNULL, env={**os.environ, **env})
        here.processes.append(daemon)
        return daemon

    def api_server(self, status=201):
        server = self.server()
        server.answer = reply(status, b"{}")
        return server, server.url.split(":")[2].removesuffix("/pods")

    def says(self, daemon, text):
        until(lambda: text in daemon.stderr(), f"the daemon says '{text}'")

    def complaints(self, daemon):
        return [line for line in daemon.stderr().splitlines() if "no Event" in line]

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
        self.says(daemon, 'an Event on the node says that a pool is empty event=PoolEmpty reason="rdma/other')
        time.sleep(1.5)
        self.assertEqual(len(server.bodies), 2)
        self.assertEqual(self.complaints(daemon), [])

    def test_one_that_is_there_already_is_told(self):
        server, port = self.api_server(409)
        daemon = self.start(WRONG, WRONG_TOO, RIGHT, port=port)
        self.says(daemon, 'an Event on the node says that a pool is empty event=PoolEmpty reason="rdma/other')
        self.assertEqual(self.complaints(daemon), [])
        self.assertEqual(len(server.bodies), 2)

    def test_nothing_is_said_where_all_is_well_or_the_node_is_not_meant(self):
        for name, pools, fixture in (("all pools have VFs", [RIGHT], "hgx-h100"), ("no RDMA", [WRONG], "odd-empty")):
            with self.subTest(name):
                server, port = self.api_server()
                daemon = self.start(*pools, fixture=fixture, port=port)
                time.sleep(2)
                self.assertEqual(server.connections, 0)
                self.assertFalse(self.has_libcurl(daemon))
                self.assertEqual(self.complaints(daemon), [])

    def test_zero_is_never(self):
        server, port = self.api_server()
        self.start(WRONG, RIGHT, port=port, options=["--empty-pool-event=0"])
        time.sleep(2)
        self.assertEqual(server.connections, 0)

    def test_without_the_right_it_is_one_line(self):
        server, port = self.api_server(403)
        daemon = self.start(WRONG, WRONG_TOO, RIGHT, port=port)
        self.says(daemon, "no Event on the node says that pools are empty")
        time.sleep(2.5)  # it would be asked again by then
        (line,) = self.complaints(daemon)
        self.assertIn("does not allow us to write this: HTTP 403", line)
        self.assertEqual(len(server.requests), 1)

    def test_without_a_token_it_is_one_line(self):
        daemon = self.start(WRONG, WRONG_TOO, RIGHT, account=False)
        self.says(daemon, "no Event on the node")
        time.sleep(2)
        (line,) = self.complaints(daemon)
        self.assertIn("account/token", line)
        self.assertFalse(self.has_libcurl(daemon))

    def test_an_api_server_that_is_away_is_one_line_and_asked_again(self):
        server, port = self.api_server(503)
        daemon = self.start(WRONG, RIGHT, port=port)
        self.says(daemon, "no Event on the node")
        server.answer = reply(201, b"{}")
        self.says(daemon, 'an Event on the node says that a pool is empty event=PoolEmpty reason="rdma/storage')
        (line,) = self.complaints(daemon)
        self.assertIn("HTTP 503", line)


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
        self.assertLess(time.monotonic() - began, 5)
        self.assertFalse(re.search("no Event", daemon.stderr()))


if __name__ == "__main__":
    main()
