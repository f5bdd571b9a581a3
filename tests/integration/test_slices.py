#!/usr/bin/python3
"""Requests about objects of the API server, and the ResourceSlices of a node that are kept by them, over real TLS."""

import json
import os
import subprocess

import https
import kubepb
from harness import PATIENCE, main, program
from https import reply

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
MACHINE = "pf:1 vf:4"


class Client:
    """The program slices."""

    def __init__(self, port, account, *options):
        env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}
        self.child = subprocess.Popen([program("slices"), "--account", account, "--machine", MACHINE, *options],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      env={**os.environ, **env})

    def send(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())

    def ask(self, method, path, body=None, ms=PATIENCE * 1000):
        return self.send(f"ask {ms} {method} {path}" + (f" {json.dumps(body)}" if body else ""))

    def close(self):
        """Exit status, and what it said but for lines of the log."""
        _, said = self.child.communicate(timeout=PATIENCE)
        return self.child.returncode, "".join(line for line in said.splitlines(True) if " dra: " not in line)


class ApiServer:
    """Keeps ResourceSlices. `broken` is called with each request before it is done, and `lost` behind it: what they
    return is the answer instead, None for none."""

    def __init__(self, server):
        self.server, self.items, self.clock = server, {}, 0
        self.broken = self.lost = lambda method: NotImplemented
        server.answer = self.answer

    def writes(self):
        return [line.split()[0] for line, _ in self.server.requests if not line.startswith("GET ")]

    def answer(self, connection):
        line, headers = self.server.requests[-1]
        method, path, _ = line.split()
        for what in (self.broken, lambda method: self.do(method, path, headers), self.lost):
            found = what(method)
            if found is None:
                return False
            if found is not NotImplemented:
                result = found
                if what is self.broken:
                    break
        status, body = result
        return reply(status, body)(connection)

    def do(self, method, path, headers):
        name = path.split("?")[0].removeprefix(SLICES).strip("/")
        if path == "/version":
            return 200, b'{"major": "1", "minor": "37"}'
        if path == "/api/v1/nodes/worker-1":
            return 200, kubepb.metadata({"metadata": {"name": "worker-1", "uid": "node-1", "resourceVersion": "1"}})
        assert path.startswith(SLICES), path
        if method == "GET":
            assert path.endswith("?fieldSelector=spec.nodeName%3Dworker-1%2Cspec.driver%3Dvf.railmate.io"), path
            assert "as=PartialObjectMetadataList" in headers["Accept"]
            return 200, kubepb.metadata_list(self.items.values())
        item = json.loads(self.server.bodies[-1])
        assert headers["Content-Type"] == "application/json"
        if method != "POST" and name not in self.items:
            return 404, kubepb.status("no such slice")
        self.clock += 1
        if method == "DELETE":
            return 200, kubepb.metadata(self.items.pop(name))
        metadata = item["metadata"]
        if method == "POST":
            name = metadata["name"] = metadata.pop("generateName") + str(self.clock)
            metadata.update(uid=name, generation=1)
        else:
            old = self.items[name]["metadata"]
            if old["resourceVersion"] != metadata["resourceVersion"]:
                return 409, kubepb.status("changed meanwhile")
            metadata.update(uid=name, generation=old["generation"] + 1)
        metadata["resourceVersion"] = str(self.clock)
        self.items[name] = item
        return 201 if method == "POST" else 200, kubepb.metadata(item)


class Case(https.Case):
    def setUp(self):
        self.served = self.server()
        self.account_folder = os.path.join(self.folder, self.id())
        self.account(self.account_folder)

    def client(self, *options):
        client = Client(self.served.port, self.account_folder, *options)
        self.addCleanup(lambda: self.assertEqual(client.close(), (0, "")))
        return client


class Objects(Case):
    def test_each_method_is_sent_as_it_is(self):
        client = self.client()
        self.served.answer = reply(200, b"yes")
        for method, body in (("GET", None), ("PUT", {"a": "b c"}), ("DELETE", None), ("POST", {"x": 1}), ("GET", None),
                             ("DELETE", {"kind": "DeleteOptions"}), ("PATCH", {})):
            with self.subTest(method=method, body=body):
                self.assertEqual(client.ask(method, "/a/b?c=d", body), {"status": 200, "why": None, "body": "yes"})
                line, headers = self.served.requests[-1]
                self.assertEqual(line, f"{method} /a/b?c=d HTTP/1.1")
                self.assertEqual(self.served.bodies[-1].decode(), json.dumps(body) if body else "")
                self.assertEqual(headers.get("Content-Type"), "application/json" if body else None)
                self.assertEqual(headers["Authorization"], "Bearer the-token")
                self.assertNotIn("Expect", headers)
        self.assertEqual(self.served.connections, 1)

    def test_the_token_is_read_for_each(self):
        client = self.client()
        client.ask("GET", "/a")
        with open(os.path.join(self.account_folder, "token"), "w", encoding="utf-8") as f:
            f.write("another")
        client.ask("GET", "/a")
        self.assertEqual([h["Authorization"] for _, h in self.served.requests], ["Bearer the-token", "Bearer another"])

    def test_a_refusal_is_its_status_and_one_sentence(self):
        client = self.client()
        for method, status, words in (("PUT", 409, "refuses: HTTP 409, no"), ("GET", 404, "knows nothing of that name"),
                                      ("POST", 403, "does not allow us to write this"),
                                      ("GET", 403, "does not allow us to read this"), ("POST", 422, "HTTP 422, no")):
            with self.subTest(method=method, status=status):
                self.served.answer = reply(status, kubepb.status("no"))
                answer = client.ask(method, "/x", {} if method == "GET" else {"a": 1})
                self.assertEqual((answer["status"], answer["body"]), (status, ""))
                self.assertIn(words, answer["why"])

    def test_an_answer_is_bounded(self):
        client = self.client()
        self.served.answer = reply(200, b"x" * (9 << 20))
        answer = client.ask("GET", "/x")
        self.assertEqual(answer["body"], "")
        self.assertIn("takes more than 8 MiB", answer["why"])

    def test_time_is_limited_and_the_next_one_is_asked(self):
        client = self.client()
        self.served.answer = lambda connection: True
        self.assertIn("took longer than 100 ms", client.ask("GET", "/slow", ms=100)["why"])
        self.served.answer = reply(200, b"yes")
        self.assertEqual(client.ask("GET", "/x")["body"], "yes")

    def test_without_an_account_there_is_one_sentence(self):
        missing = os.path.join(self.folder, "none")
        status, said = Client(self.served.port, missing).close()
        self.assertEqual((status, said), (1, f"slices: open the token {missing}/token: No such file or directory\n"))


class Slices(Case):
    def setUp(self):
        super().setUp()
        self.api = ApiServer(self.served)

    def kept(self, client, n):
        answer = client.send(f"want {n}")
        self.assertTrue(answer["done"], answer)
        self.check(n)

    def check(self, n):
        items = list(self.api.items.values())
        names = [d["name"] for i in items for d in i["spec"]["devices"]]
        self.assertEqual(sorted(names), sorted(f"rdma-vf-slot-{k}" for k in range(n)))
        self.assertEqual({i["spec"]["pool"]["resourceSliceCount"] for i in items}, {len(items)})
        self.assertEqual(len({i["spec"]["pool"]["generation"] for i in items}), 1)
        self.assertEqual({i["metadata"]["ownerReferences"][0]["uid"] for i in items}, {"node-1"})

    def test_they_are_kept_over_restarts(self):
        self.kept(self.client(), 300)
        for _ in range(2):
            self.kept(self.client(), 300)
        self.assertEqual(self.api.writes(), ["POST"] * 3)
        self.kept(self.client(), 200)
        self.assertEqual(sorted(self.api.writes()[3:]), ["DELETE", "PUT", "PUT"])

    def test_an_answer_that_is_lost_makes_no_second_slice(self):
        client = self.client()
        for method, n in (("POST", 300), ("PUT", 301), ("DELETE", 100)):
            with self.subTest(method):
                left = [1]
                self.api.lost = lambda m, method=method, left=left: (
                    None if m == method and left and left.pop() else NotImplemented)
                answer = client.send(f"want {n}")
                self.assertEqual(left, [])
                while not answer["done"]:
                    answer = client.send("look")
                self.check(n)

    def test_a_server_in_trouble_is_named(self):
        client = self.client()
        self.api.broken = lambda method: (503, kubepb.status("etcd is away"))
        self.assertIn("ResourceSlices are not kept: ", client.send("want 5")["said"])
        self.assertIn("HTTP 503, etcd is away", client.send("look")["said"])
        self.api.broken = lambda method: NotImplemented
        answer = client.send("look")
        while not answer["done"]:
            answer = client.send("look")
        self.check(5)


if __name__ == "__main__":
    main()
