#!/usr/bin/python3
"""Pod specs from the API server and over the Pods API: real TLS servers and the fake kubelet, good
ones and bad ones."""

import itertools
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

import https
import kubepb
from harness import GPU, PATIENCE, VF, Case, Daemon, main, program, until, vfs_of
from https import head, reply

SANITIZED = os.environ.get("SANITIZED") == "1"
TIMEOUT = PATIENCE * 1000  # ms; for what answers at once
PODS = [
    {
        "metadata": {
            "name": "trainer", "namespace": "ml", "uid": "u-1",
            "creationTimestamp": "2026-01-02T03:04:05Z"
        }, "spec": {
            "containers": [{
                "name": "main", "image": "x",
                "resources": {"limits": {"nvidia.com/gpu": "2", "rdma/vf": "2", "cpu": "4"}}
            }], "initContainers": [{"name": "agent", "restartPolicy": "Always"}]
        }, "status": {"phase": "Pending"}
    }, {
        "metadata": {
            "name": "old", "namespace": "default", "uid": "u-2", "creationTimestamp": None,
            "deletionTimestamp": "2026-01-02T03:04:05Z"
        }, "spec": {"containers": [{"name": "main"}]}, "status": {"phase": "Running"}
    }, {
        "metadata": {"name": "ended", "namespace": "default"},
        "spec": {"containers": [{"name": "main"}]}, "status": {"phase": "Failed"}
    }
]


class Client:
    """The program podspecs."""

    def __init__(self, *options, limit=None):
        def set_limit():
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

        self.child = subprocess.Popen([program("podspecs"), *options], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      preexec_fn=set_limit if limit else None,
                                      env={**os.environ, "https_proxy": "http://127.0.0.1:9"})

    def fetch(self, timeout=TIMEOUT, n=1):
        self.send(timeout, n)
        answers = [json.loads(self.child.stdout.readline()) for _ in range(n)]
        return answers[0] if n == 1 else answers

    def send(self, timeout=TIMEOUT, n=1):
        self.child.stdin.write(f"fetch {timeout} {n}\n")
        self.child.stdin.flush()

    def peak_kib(self):
        with open(f"/proc/{self.child.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:"))

    def rss_kib(self):
        with open(f"/proc/{self.child.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))

    def close(self):
        """Exit status and what it said; a sanitizer's report makes the first one non-zero."""
        _, said = self.child.communicate(timeout=PATIENCE)
        return self.child.returncode, said


class HttpsCase(https.Case):
    def server(self, name="good"):
        server = super().server(name)
        server.answer = reply(200, kubepb.pods(PODS))
        return server

    def client(self, url, *options, ca="ca.crt", **more):
        trust = ["--ca", self.certificates.path(ca)] if ca else []
        client = Client("--url", url, *trust, *options, **more)

        def close():
            status, said = client.close()
            self.assertEqual((status, said), (0, ""))
        self.addCleanup(close)
        return client

    def assert_fails(self, answer, *words):
        self.assertEqual(answer["pods"], [])
        for word in words:
            self.assertIn(word, answer["why"] or "")
        self.assertEqual(len(answer["why"].splitlines()), 1, answer["why"])


class Answers(HttpsCase):
    def test_pods_come_with_what_their_containers_ask_for(self):
        answer = self.client(self.server().url).fetch()
        self.assertIsNone(answer["why"])
        trainer, old = answer["pods"]
        self.assertEqual(trainer, {
            "namespace": "ml", "name": "trainer", "uid": "u-1", "unread": None, "deleted": False,
            "created": 1767323045, "containers": [
                {"name": "agent", "kind": "sidecar", "limits": {}},
                {"name": "main", "kind": "app", "limits": {"nvidia.com/gpu": 2, "rdma/vf": 2}}]})
        self.assertEqual((old["name"], old["deleted"], old["created"]), ("old", True, 0))

    def test_no_pods_are_an_answer(self):
        server = self.server()
        server.answer = reply(200, kubepb.pods([]))
        self.assertEqual(self.client(server.url).fetch()["why"], None)

    def test_pages_are_asked_for_until_the_last_one(self):
        server = self.server()
        url = server.url + "?limit=1"

        def page(connection):
            asked = [line.split("continue=")[1].split()[0] if "continue=" in line else None
                     for line, _ in server.requests]
            more = {None: "a-1_=", "a-1_=": "b", "b": ""}[asked[-1]]
            return reply(200, kubepb.pods(PODS[len(asked) - 1:][:1], more))(connection)
        server.answer = page
        answer = self.client(url).fetch()
        self.assertIsNone(answer["why"])
        self.assertEqual([p["name"] for p in answer["pods"]], ["trainer", "old"])
        self.assertEqual([line.split()[1] for line, _ in server.requests],
                         ["/pods?limit=1", "/pods?limit=1&continue=a-1_=", "/pods?limit=1&continue=b"])
        self.assertEqual(server.connections, 1)

    def test_a_page_that_fails_is_no_half_of_an_answer(self):
        server = self.server()
        first = reply(200, kubepb.pods(PODS, "a"))
        gone = reply(410, kubepb.status("The provided continue parameter is too old"))
        server.answer = lambda c: (gone if "continue=" in server.requests[-1][0] else first)(c)
        client = self.client(server.url)
        self.assert_fails(client.fetch(), "HTTP 410", "too old")
        server.answer = reply(200, kubepb.pods(PODS, "a b&limit=0"))
        self.assert_fails(client.fetch(), "continue is not base64url")

    def test_pages_without_end_do_not_last_for_ever(self):
        server = self.server()
        server.answer = reply(200, kubepb.pods([], "a"))
        self.assert_fails(self.client(server.url).fetch(300), "took longer than 300 ms")

    def test_chunks_may_end_anywhere(self):
        server = self.server()
        text = kubepb.pods(PODS)

        def chunked(connection):
            out = head(200, transfer_encoding="chunked")
            for i in range(0, len(text), 3):
                out += b"%x\r\n%s\r\n" % (len(text[i:i + 3]), text[i:i + 3])
            connection.sendall(out + b"0\r\n\r\n")
            return True
        server.answer = chunked
        self.assertEqual(len(self.client(server.url).fetch()["pods"]), 2)

    def test_one_connection_serves_many_questions(self):
        server = self.server()
        client = self.client(server.url)
        for _ in range(10):
            self.assertIsNone(client.fetch()["why"])
        self.assertEqual((len(server.requests), server.connections), (10, 1))

    def test_a_refusal_leaves_the_connection_open(self):
        server = self.server()
        client = self.client(server.url)
        for status in (403, 200, 500, 200):
            server.answer = reply(status, kubepb.pods(PODS))
            self.assertEqual(client.fetch()["why"] is None, status == 200)
        self.assertEqual(server.connections, 1)

    def test_a_connection_that_the_server_closed_is_made_again(self):
        server = self.server()
        client = self.client(server.url)

        def last(connection):
            reply(200, kubepb.pods(PODS))(connection)
            return False
        server.answer = last
        for _ in range(3):
            self.assertIsNone(client.fetch()["why"])
        self.assertEqual(server.connections, 3)

    def test_questions_that_come_together_share_an_answer_but_never_an_older_one(self):
        server = self.server()
        client = self.client(server.url)
        answers = client.fetch(n=40)
        self.assertEqual([a["why"] for a in answers], [None] * 40)
        # The first is under way when the others come: they share the second.
        self.assertEqual(len(server.requests), 2)

    def test_says_who_it_is_and_no_proxy_sees_it(self):
        server = self.server()
        self.assertIsNone(self.client(server.url).fetch()["why"])
        line, headers = server.requests[0]
        self.assertEqual(line, "GET /pods HTTP/1.1")
        self.assertTrue(headers["User-Agent"].startswith("railmate/"))
        self.assertEqual(headers["Accept"], kubepb.TYPE)
        self.assertNotIn("Authorization", headers)


class Tokens(HttpsCase):
    def bearers(self, server):
        return [headers.get("Authorization") for _, headers in server.requests]

    def test_a_token_that_was_rotated_is_sent_with_the_next_question(self):
        server = self.server()
        client = self.client(server.url, "--token", self.token("first\n"))
        client.fetch()
        self.token("second")
        client.fetch()
        self.assertEqual(self.bearers(server), ["Bearer first", "Bearer second"])
        self.assertEqual(server.connections, 1)

    def test_without_a_readable_token_nobody_is_asked(self):
        server = self.server()
        missing = os.path.join(self.folder, "no-such-token")
        self.assert_fails(
            self.client(server.url, "--token", missing).fetch(), missing, "No such file")
        for text, says in (("", "holds no token"), ("a\r\nX-Evil: 1",
                                                    "holds no token"), ("a b", "holds no token"),
                           ("a\0b", "NUL"), ("x" * 70000, "larger than"), ("ä", "holds no token")):
            path = self.token(text)
            self.assert_fails(self.client(server.url, "--token", path).fetch(), path, says)
        self.assertEqual(server.requests, [])

    def test_the_token_is_never_in_a_sentence(self):
        server = self.server()
        server.answer = reply(401, b"Unauthorized")
        answer = self.client(server.url, "--token", self.token("very-secret")).fetch()
        self.assertNotIn("very-secret", answer["why"])


class Refusals(HttpsCase):
    def test_each_status_is_one_sentence(self):
        server = self.server()
        client = self.client(server.url)
        for status, body, words in ((401, b"Unauthorized", [
                "does not accept our token", "HTTP 401", "Unauthorized"
        ]), (403,
             b"Forbidden by a proxy", ["does not allow us to read this", "HTTP 403", "by a proxy"]), (403, kubepb.status("pods is forbidden: no"), [
                  "HTTP 403, pods is forbidden"
              ]), (500, b"", ["refuses: HTTP 500"]), (429, b"slow down", [
                  "too much to do"
              ]), (404, b"404 page not found\n", ["knows nothing of that name"]), (302, b"", [
                  "refuses: HTTP 302"
              ]), (503, b"bad\xff\x01\nbytes", ["HTTP 503, bad?? bytes"])):
            with self.subTest(status):
                server.answer = reply(status, body, "text/plain")
                self.assert_fails(client.fetch(), server.url, *words)

    def test_a_refusal_of_any_length_is_cut(self):
        server = self.server()
        server.answer = reply(403, "ä".encode() * 3_000_000, "text/plain")
        answer = self.client(server.url).fetch()
        self.assert_fails(answer, "HTTP 403", "ää")
        self.assertLess(len(answer["why"]), 400)

    def test_a_redirect_is_not_followed(self):
        server, other = self.server(), self.server()
        server.answer = lambda c: c.sendall(head(302, location=other.url, content_length=0)) or True
        self.assert_fails(self.client(server.url, "--token", self.token("t")).fetch(), "HTTP 302")
        self.assertEqual(other.requests, [])


class Malformed(HttpsCase):
    def fails_with(self, body, *words):
        server = self.server()
        server.answer = reply(200, body)
        self.assert_fails(self.client(server.url).fetch(), server.url, *words)

    def test_what_is_no_list_of_pods_is_refused(self):
        nameless = kubepb.POD({"metadata": {"namespace": "n"}})
        for body, words in ((b"hello", ["is not Kubernetes' protobuf"]), (b"", ["is empty"]), (b'{"items":[]}', [
                "is not Kubernetes' protobuf"
        ]), (b"k8s", ["ends in the middle"]), (b"k8s\0", ["holds no list"]), (kubepb.unknown(b"PodList", b"\x08\1"), [
                "is not Kubernetes' protobuf"
        ]), (kubepb.listing([b"\xff" * 9]), ["items[0]", "the bytes end"]),
                            (kubepb.listing([kubepb.POD(PODS[0]), nameless]), ["items[1]: a pod has no name"])):
            with self.subTest(body[:20]):
                self.fails_with(body, *words)

    def test_junk_is_refused_wherever_it_stands(self):
        text = kubepb.pods(PODS)
        for junk in (b"\0", b"\xff"):
            for at in (0, text.index(b"PodList") + 7, text.index(b"trainer") + 2, len(text)):
                with self.subTest(junk=junk, at=at):
                    server = self.server()
                    server.answer = reply(200, text[:at] + junk + text[at:])
                    self.assertNotEqual(self.client(server.url).fetch()["why"], None)

    def test_one_bad_pod_spoils_nothing_but_itself(self):
        pods = json.loads(json.dumps(PODS))
        pods[1]["spec"]["containers"][0]["resources"] = {"limits": {"rdma/vf": "some"}}
        server = self.server()
        server.answer = reply(200, kubepb.pods(pods))
        answer = self.client(server.url).fetch()
        self.assertIsNone(answer["why"])
        trainer, old = answer["pods"]
        self.assertIsNone(trainer["unread"])
        self.assertEqual(len(trainer["containers"]), 2)
        self.assertIn("the limit of rdma/vf is not a whole number", old["unread"])
        self.assertEqual(old["containers"], [])

    def test_a_pod_as_large_as_the_api_server_takes_it_is_read(self):
        pods = json.loads(json.dumps(PODS))
        pods[0]["metadata"]["annotations"] = {"x": "y" * (3 << 20)}
        server = self.server()
        server.answer = reply(200, kubepb.pods(pods))
        answer = self.client(server.url).fetch()
        self.assertEqual([p["unread"] for p in answer["pods"]], [None, None])
        pods[0]["metadata"]["annotations"] = {"x": "y" * (9 << 20)}
        self.fails_with(kubepb.pods(pods), "items[0] takes more than 8 MiB")

    def test_a_body_that_ends_too_early_is_refused(self):
        server = self.server()
        text = kubepb.pods(PODS)

        def truncated(connection):
            connection.sendall(head(200, content_length=len(text)) + text[:-30])
            return False

        def without_length(connection):
            connection.sendall(head(200, connection="close") + text[:-1])
            return False
        for server.answer in (truncated, without_length):
            self.assert_fails(self.client(server.url).fetch(), server.url)

    def test_an_answer_that_is_no_http_is_refused(self):
        server = self.server()
        server.answer = lambda c: c.sendall(b"SSH-2.0-hello\r\n" * 10)
        self.assert_fails(self.client(server.url).fetch(), server.url)


class Trust(HttpsCase):
    def test_certificates_that_do_not_convince_are_refused(self):
        for name, ca, words in (("good", "other-ca.crt", [
                "certificate"
        ]), ("wrong-host", "ca.crt", ["127.0.0.1"]), ("expired", "ca.crt", ["certificate"])):
            with self.subTest(name, ca=ca):
                server = self.server(name)
                answer = self.client(server.url, "--token", self.token("secret"), ca=ca).fetch()
                self.assert_fails(answer, server.url, *words)
                self.assertEqual(server.requests, [],
                                 "nothing is sent to a server that is not trusted")

    def test_the_systems_own_authorities_count_for_nothing(self):
        self.assert_fails(
            self.client(self.server().url, ca="/etc/ssl/certs/ca-certificates.crt").fetch(),
            "certificate")

    def test_a_missing_ca_file_is_no_leave(self):
        self.assert_fails(self.client(self.server().url, ca="missing.crt").fetch(), "missing.crt")

    def test_a_server_that_could_not_be_trusted_is_refused_at_once(self):
        for options, says in ((["https://127.0.0.1:1/"], "whose certificates"), (["http://127.0.0.1:1/"], "https://")):
            status, said = Client("--url", *options).close()
            self.assertEqual(status, 1)
            self.assertIn(says, said)

    def test_a_server_that_speaks_no_tls_is_refused(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def serve():
                connection, _ = listener.accept()
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
                connection.close()
            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            url = "https://127.0.0.1:%d/pods" % listener.getsockname()[1]
            self.assert_fails(self.client(url).fetch(), url)
            thread.join(10)


class Slow(HttpsCase):
    def assert_takes(self, answer, ms):
        self.assert_fails(answer, f"took longer than {ms} ms")
        self.assertGreaterEqual(answer["us"], ms * 1000 - 1000)
        self.assertLess(answer["us"], ms * 1000 + 20_000_000)  # the server waits longer

    def test_who_waits_is_told_in_time_and_the_next_one_is_served(self):
        server = self.server()
        client = self.client(server.url)
        good, hold = server.answer, threading.Event()
        self.addCleanup(hold.set)
        server.answer = lambda c: hold.wait(60) and False
        self.assert_takes(client.fetch(200), 200)
        server.answer = good
        self.assertIsNone(client.fetch()["why"])

    def test_a_body_that_trickles_does_not_last_for_ever(self):
        server = self.server()

        def trickle(connection):
            connection.sendall(head(200) + kubepb.pods(PODS)[:40])
            for _ in range(3000):
                connection.sendall(b"x")
                time.sleep(0.02)
            return False
        server.answer = trickle
        self.assert_takes(self.client(server.url).fetch(300), 300)

    def test_a_handshake_that_never_comes_does_not_last_for_ever(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = "https://127.0.0.1:%d/pods" % listener.getsockname()[1]
            self.assert_takes(self.client(url).fetch(200), 200)

    def test_nobody_there_is_told_at_once(self):
        with socket.socket() as taken:  # so that nobody else listens there
            taken.bind(("127.0.0.1", 0))
            url = "https://127.0.0.1:%d/pods" % taken.getsockname()[1]
            self.assert_fails(self.client(url).fetch(), url, "Connection refused")

    def test_it_ends_while_a_question_is_under_way(self):
        server = self.server()
        hold = threading.Event()
        self.addCleanup(hold.set)
        server.answer = lambda c: hold.wait(60) and False
        client = self.client(server.url)
        client.send(300, 3)  # the cleanup closes it as soon as they have ended


class Large(HttpsCase):
    COUNT, EACH = 2000, 20_000

    def pods(self):
        filler = "z" * (self.EACH - 400)
        for i in range(self.COUNT):
            yield {
                "metadata": {
                    "name": f"pod-{i}", "namespace": "default", "uid": f"uid-{i}",
                    "annotations": {"x": filler}
                }, "spec": {
                    "containers": [{"name": "main", "resources": {"limits": {"rdma/vf": "1"}}}]
                }, "status": {"phase": "Running"}
            }

    def test_forty_megabytes_cost_the_memory_of_one_pod(self):
        server = self.server()
        body = kubepb.pods(self.pods())
        self.assertGreater(len(body), 38_000_000)
        small, server.answer = server.answer, reply(200, body)
        # Address space includes libraries and the malloc arenas of threads; sanitizers need
        # terabytes of it.
        client = self.client(server.url, limit=None if SANITIZED else 1 << 30)
        server.answer, large = small, server.answer
        client.fetch()
        before = client.peak_kib()
        server.answer = large
        answer = client.fetch(60000)
        self.assertIsNone(answer["why"])
        self.assertEqual(len(answer["pods"]), self.COUNT)
        self.assertEqual(answer["pods"][-1]["containers"][0]["limits"], {"rdma/vf": 1})
        grown = client.peak_kib() - before
        print(
            f"40 MB in {answer['us'] / 1000:.0f} ms; peak +{grown} KiB, RSS now {client.rss_kib()} KiB"
        )
        if not SANITIZED:
            self.assertLess(grown, 8 * 1024)


class Railmated(HttpsCase, Case):
    """The daemon and its sources."""

    def setUp(self):
        self.here = self.node()
        self.folder_of_account = self.here.path("account")

    def give_token(self):
        self.account(self.folder_of_account)

    def start(self, *options, kubelet=(), **env):
        fake = self.here.start_kubelet(*kubelet)
        self.here.start_gpu_plugin()
        argv = self.here.daemon_argv("--service-account", self.folder_of_account, "--log-level",
                                     "debug", *options)
        daemon = Daemon(argv, self.here.path("railmated.log"), stdin=subprocess.DEVNULL,
                        env={**os.environ, **env})
        self.here.processes.append(daemon)
        fake.wait(GPU, 1)
        fake.wait(VF, 1)
        return fake, daemon

    def says(self, daemon, text):
        until(lambda: text in daemon.stderr(), f"the daemon says '{text}'")
        return daemon.stderr()

    def warnings(self, daemon):
        return [
            line for line in daemon.stderr().splitlines()
            if (" warning " in line or " error " in line) and "took longer" not in line and (
                "specs" in line or "pods ask for" in line)
        ]

    def start_with(self, server, *options, **more):
        return self.start(*options, NODE_NAME="worker-1.example", KUBERNETES_SERVICE_HOST="127.0.0.1",
                          KUBERNETES_SERVICE_PORT=str(server.port), **more)

    def test_asks_the_api_server_with_its_token(self):
        self.give_token()
        server = self.server()
        _, daemon = self.start_with(server)
        self.says(daemon, 'pod specs are read source="API server" pods=2')
        line, headers = server.requests[0]
        self.assertEqual(
            line, "GET /api/v1/pods?fieldSelector=spec.nodeName%3Dworker-1.example%2C"
            "status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed&limit=500 HTTP/1.1")
        self.assertEqual(headers["Authorization"], "Bearer the-token")
        self.assertEqual(self.warnings(daemon), [])

    def test_a_server_that_refuses_is_one_warning_and_pods_run(self):
        self.give_token()
        server = self.server()
        server.answer = reply(403, b"Forbidden", "text/plain")
        kubelet, daemon = self.start_with(server, "--pod-specs=api-server")
        self.says(daemon, "HTTP 403")
        for i in range(5):
            self.assertEqual(len(vfs_of(kubelet.admit(f"p{i}", f"main:{GPU}=1,{VF}=1"))), 1)
        self.assertEqual(len(self.warnings(daemon)), 1, self.warnings(daemon))

    def test_pods_without_end_cost_no_memory_and_stop_no_pod(self):
        self.give_token()
        server, many = self.server(), 1000
        pod = kubepb.field(2, kubepb.POD({
            "metadata": {"name": "p", "namespace": "n", "uid": "u"},
            "spec": {"containers": [{"name": "c", "resources": {"limits": {"a/b": "1"}}}]}
        }))

        def for_ever(connection):
            connection.sendall(head(200, content_type=kubepb.TYPE) + b"k8s\0" + kubepb.varint(2 << 3 | 2) +
                               kubepb.varint(1 << 34))
            while True:  # until the other side ends it
                connection.sendall(pod * many)
        server.answer = for_ever
        kubelet, daemon = self.start_with(server, "--pod-specs=api-server")
        self.says(daemon, "take more than")
        for i in range(5):
            self.assertEqual(len(vfs_of(kubelet.admit(f"p{i}", f"main:{GPU}=1,{VF}=1"))), 1)
        with open(f"/proc/{daemon.pid}/status", encoding="ascii") as f:
            peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM:")) / 1024
        print(f"pods without end: peak {peak:.1f} MiB")
        if not SANITIZED:
            self.assertLessEqual(peak, 32, "MiB at most")

    def test_auto_without_anything_is_silent(self):
        kubelet, daemon = self.start()
        self.assertEqual(len(vfs_of(kubelet.admit("p", f"main:{VF}=1"))), 1)
        self.assertEqual(self.warnings(daemon), [])
        with open(f"/proc/{daemon.pid}/maps", encoding="ascii") as f:
            self.assertNotIn("libcurl", f.read())

    def test_a_node_without_anything_to_give_loads_and_asks_nothing(self):
        self.here = self.node("odd-empty")
        self.folder_of_account = self.here.path("account")
        self.give_token()
        server = self.server()
        fake = self.here.start_kubelet()
        environment = {"NODE_NAME": "worker-1", "KUBERNETES_SERVICE_HOST": "127.0.0.1",
                       "KUBERNETES_SERVICE_PORT": str(server.port)}
        daemon = Daemon(self.here.daemon_argv("--service-account", self.folder_of_account, "--events=off"),
                        self.here.path("railmated.log"), stdin=subprocess.DEVNULL, env={**os.environ, **environment})
        self.here.processes.append(daemon)
        self.says(daemon, "nothing is offered until there is one")
        time.sleep(1)
        with open(f"/proc/{daemon.pid}/maps", encoding="ascii") as f:
            self.assertNotIn("libcurl", f.read())
        self.assertEqual(server.connections, 0)
        for name in os.listdir(self.here.root):
            shutil.rmtree(os.path.join(self.here.root, name))
        self.here.unpack(os.path.join(os.environ["FIXTURES"], "hgx-h100/host.tree"))
        daemon.child.send_signal(signal.SIGHUP)
        self.says(daemon, 'pod specs are read source="API server" pods=2')
        fake.wait(VF, 64)

    def test_a_kubelet_that_comes_with_the_pods_api_is_asked(self):
        kubelet, daemon = self.start()
        kubelet.quit()
        fake = self.here.start_kubelet("--pods-api")
        fake.wait(VF, 1)
        names = map("p{}".format, itertools.count())

        def told():  # one that took too long is asked again with a later pod
            fake.admit(next(names), f"main:{VF}=1")
            time.sleep(0.2)
            return 'pod specs are read source="kubelet\'s Pods API" pods=' in daemon.stderr()

        until(told, "that the Pods API is asked")

    def test_auto_prefers_the_pods_api(self):
        self.give_token()
        server = self.server()
        _, daemon = self.start_with(server, kubelet=["--pods-api"])
        self.says(daemon, "pod specs are read source=\"kubelet's Pods API\" pods=0")
        self.assertEqual(server.requests, [])

    def test_the_pods_api_shows_the_pod_in_admission(self):
        kubelet, _ = self.start(kubelet=["--pods-api"])
        kubelet.admit("trainer", f"init:prepare:{VF}=1", f"sidecar:agent:{VF}=1",
                      f"main:{GPU}=2,{VF}=2")
        client = Client("--pods-api", os.path.join(self.here.kubelet_root,
                                                   "pods-api/pods-api.sock"))
        (pod,) = client.fetch()["pods"]
        self.assertEqual(client.close(), (0, ""))
        self.assertEqual([(c["name"], c["kind"], c["limits"]) for c in pod["containers"]],
                         [("prepare", "init", {VF: 1}), ("agent", "sidecar", {VF: 1}),
                          ("main", "app", {GPU: 2, VF: 2})])

    def test_off_asks_nobody(self):
        self.give_token()
        server = self.server()
        kubelet, daemon = self.start_with(server, "--pod-specs=off", kubelet=["--pods-api"])
        self.assertEqual(len(vfs_of(kubelet.admit("p", f"main:{VF}=1"))), 1)
        self.assertEqual(server.requests, [])
        self.assertNotRegex(daemon.stderr(), r"(?m)^\S+ \w+ specs: ")

    def test_it_ends_at_once_while_nobody_answers(self):
        self.give_token()
        hold = threading.Event()
        self.addCleanup(hold.set)
        server = self.server()
        server.answer = lambda c: hold.wait(60) and False
        _, daemon = self.start_with(server, "--pod-specs=api-server")
        until(lambda: server.requests, "the question")
        self.assertEqual(daemon.end(), 0, daemon.stderr())

    def test_no_core_holds_the_token(self):
        self.give_token()
        server = self.server()
        _, daemon = self.start_with(server, "--pod-specs=api-server")
        self.says(daemon, "pods=2")
        with open(f"/proc/{daemon.pid}/limits", encoding="ascii") as f:
            (limit,) = [line.split()[4:6] for line in f if line.startswith("Max core file size")]
        self.assertEqual(limit, ["0", "0"])

    def test_what_cannot_be_asked_is_refused_at_the_start(self):
        for options, env, status, words in ((["--pod-specs=sometimes"], {}, 2, "pod-specs"), (
                ["--pod-specs=api-server"], {"KUBERNETES_SERVICE_HOST": ""}, 1, "KUBERNETES_SERVICE_HOST"), (
                ["--pod-specs=api-server"], {"KUBERNETES_SERVICE_HOST": "h", "NODE_NAME": ""}, 1, "NODE_NAME"), (
                ["--pod-specs=api-server", "--node-name=a&b"], {"KUBERNETES_SERVICE_HOST": "h"}, 1, "a&b")):
            with self.subTest(options):
                done = subprocess.run(self.here.daemon_argv(*options), stdin=subprocess.DEVNULL,
                                      text=True, timeout=PATIENCE, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, env={**os.environ, **env})
                self.assertEqual(done.returncode, status, done.stdout)
                self.assertIn(words, done.stdout)


if __name__ == "__main__":
    main()
