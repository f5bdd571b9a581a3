#!/usr/bin/python3
"""Bytes that no kubelet would send: an answer or an end, never a crash, and service goes on."""

import contextlib
import os
import socket

from harness import VF, Case, main, until, vfs_of

PLUGIN = "/v1beta1.DevicePlugin/"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\0\0\0\x04\0\0\0\0\0"


def varint(n):
    out = b""
    while True:
        out += bytes([n & 0x7f | (0x80 if n > 0x7f else 0)])
        n >>= 7
        if not n:
            return out


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def allocate(*ids):
    return field(1, b"".join(field(1, i) for i in ids))


def preferred(available, must=(), size=1):
    return field(1, b"".join(field(1, i) for i in available) + b"".join(field(2, i) for i in must) +
                 varint(3 << 3) + varint(size & (1 << 64) - 1))


class Input(Case):
    def setUp(self):
        self.n = self.node()
        self.kubelet, self.daemon = self.n.start()
        self.ids = sorted(d["id"] for d in self.kubelet.resource(VF)["devices"])

    def tearDown(self):
        """Whatever was sent: it lives, and serves."""
        self.assertIsNone(self.daemon.child.poll(), self.daemon.stderr())
        self.assertEqual(len(vfs_of(self.kubelet.admit("after", f"main:{VF}=2"))), 2)

    def call(self, method, body=b"", path=PLUGIN):
        return self.kubelet.ask(f"call {VF} {path}{method} {body.hex()}")

    def status(self, method, body=b"", path=PLUGIN):
        return self.call(method, body, path)["status"]

    def test_unknown_methods_are_unimplemented(self):
        self.assertEqual(self.status("Reboot"), "Unimplemented")
        self.assertEqual(self.status("Allocate", path="/v1beta2.DevicePlugin/"), "Unimplemented")
        self.assertEqual(self.status("GetInfo", path="/pluginregistration.Registration/"),
                         "Unimplemented")

    def test_garbage_bodies_are_invalid(self):
        for method in ("Allocate", "GetPreferredAllocation", "PreStartContainer"):
            for body in (b"\xff" * 40, b"\x0a\x7f", b"\x0b\x0c",
                         os.urandom(1) + b"\xff\xff\xff\xff\xff\xff\xff\xff\xff"):
                with self.subTest(method=method, body=body):
                    self.assertEqual(self.status(method, body), "InvalidArgument")

    def test_unknown_ids_are_named(self):
        answer = self.call("Allocate", allocate(b"0000:ff:1f.7"))
        self.assertEqual(answer["status"], "NotFound")
        self.assertIn("0000:ff:1f.7", answer["message"])

    def test_ids_with_nul_or_bad_utf8_are_invalid_and_never_preferred(self):
        good = self.ids[0].encode()
        for bad in (good + b"\0", b"\0", b"\xff\xfe", good + b"\xc3"):
            with self.subTest(bad):
                self.assertEqual(self.status("Allocate", allocate(bad)), "InvalidArgument")
                # an error would be the end of the pod
                self.assertEqual(self.status("GetPreferredAllocation", preferred([bad])), "OK")

    def test_10000_ids_are_answered(self):
        many = [b"0000:%02x:%02x.%d" % (i >> 8, i >> 3 & 31, i & 7) for i in range(10000)]
        self.assertEqual(self.status("Allocate", allocate(*many)), "NotFound")
        self.assertEqual(self.status("GetPreferredAllocation", preferred(many, size=10000)), "OK")
        self.assertEqual(self.status("Allocate", allocate(*[self.ids[0].encode()] * 10000)), "OK")

    def test_odd_requests_for_a_preference_get_an_answer(self):
        known = [i.encode() for i in self.ids]
        for body in (b"", field(1, b""), preferred([], size=3), preferred(known, size=-1),
                     preferred(known, size=0), preferred(known[:2], size=2**31 - 1),
                     preferred(known[:2], must=known[5:7],
                               size=1), preferred([b"nobody"], must=[b"nothing"], size=2)):
            with self.subTest(body[:40]):
                self.assertEqual(self.status("GetPreferredAllocation", body), "OK")

    def test_an_allocate_of_nothing_is_a_sentence(self):
        answer = self.call("Allocate", allocate())
        self.assertEqual(answer["status"], "InvalidArgument")
        self.assertIn(VF, answer["message"])

    def test_oversize_messages_are_refused(self):
        self.assertEqual(self.status("Allocate", allocate(b"x" * (5 << 20))), "ResourceExhausted")

    # --- below gRPC ---

    def connect(self):
        name = next(n for n in os.listdir(self.n.kubelet_dir) if n.startswith("rdma"))
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(5)
        s.connect(os.path.join(self.n.kubelet_dir, name))
        self.addCleanup(s.close)
        return s

    def send(self, data):
        s = self.connect()
        try:
            s.sendall(data)
            while s.recv(65536):
                pass
        except (ConnectionError, socket.timeout):
            pass
        s.close()

    def test_garbage_on_the_socket(self):
        for data in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", os.urandom(4096),
                     PREFACE + b"\xff" * 512,
                     PREFACE + SETTINGS + b"\xff\xff\xff\x01\x04\0\0\0\x01" + b"\0" * 100):
            with self.subTest(data[:20]):
                self.send(data)

    def test_clients_that_say_nothing_or_hang_up_leave_nothing(self):
        self.kubelet.admit("first",
                           f"main:{VF}=1")  # connections of our own are opened when they are needed
        before = self.daemon.fds()
        idle = [self.connect() for _ in range(50)]
        half = [self.connect() for _ in range(50)]
        for s in half:
            with contextlib.suppress(ConnectionError):  # given up already, on a busy machine
                s.sendall(PREFACE[:10])
        self.assertEqual(len(vfs_of(self.kubelet.admit("beside", f"main:{VF}=1"))), 1)
        for s in idle + half:
            s.close()
        until(lambda: self.daemon.fds() <= before + 5, "the descriptors are closed again")


if __name__ == "__main__":
    main()
