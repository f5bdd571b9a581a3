#!/usr/bin/python3
"""
A client at the plugin's socket that means harm, while a kubelet admits pods: the daemon's memory
stays bounded, and no pod is refused. Every attack is bounded in number and time. How long Allocate
takes meanwhile is printed; tests/bench/run.py has the bar for it, which a busy machine would miss.
"""

import contextlib
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest

from attacks import (CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, RST,
                     SETTINGS, WINDOW, Attacked, Client, call, frame, headers, hello, message)
from harness import GPU, PATIENCE, VF, Daemon, main, program, until, vfs_of

NETLINK_ROUTE, NETLINK_UEVENT = 0, 15
PF = "ibp24s0"
# An interface of that name comes, goes up and down, and goes, until it is ended: each is a link
# message, the first and the last a uevent too.
LINK_STORM = f"""
import fcntl, os, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    tap = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", b"{PF}", 0x1002))
    for flags in (1, 0) * 8:
        fcntl.ioctl(s, 0x8914, struct.pack("16sh22x", b"{PF}", flags))
    os.close(tap)
"""


def can_make_links():
    return os.geteuid() == 0 and os.path.exists("/dev/net/tun") and subprocess.run(
        ["unshare", "--mount", "--net", "mount", "--bind", "/sys", "/sys"], check=False,
        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class Attacks(Attacked):
    # --- connections ---

    def silent(self, end, count=10000, begin=b""):
        for _ in range(count):
            if time.monotonic() > end:
                break
            try:
                c = self.connect()
            except (OSError, TimeoutError):
                continue
            c.send(begin)

    def test_ten_thousand_silent_connections(self):
        self.under(lambda end: self.silent(end + 6))
        self.assertLess(self.daemon.fds(), 400)
        until(lambda: self.daemon.fds() < 60, "the silent ones are thrown out")

    def test_silent_connections_when_descriptors_are_few(self):
        resource.prlimit(self.daemon.pid, resource.RLIMIT_NOFILE, (1024, 1024))
        self.under(lambda end: self.silent(end + 3, 3000))

    def test_connections_that_greet_and_say_no_more(self):
        self.under(lambda end: self.silent(end + 3, 3000, hello()))
        self.assertLess(self.daemon.fds(), 400)
        # Those that the kernel still keeps for it come first.
        until(lambda: self.daemon.fds() < 60, "those without a call are thrown out", 3 * PATIENCE)

    def test_preface_byte_by_byte(self):
        def attack(end):
            some = [self.connect() for _ in range(200)]
            for byte in hello():
                if time.monotonic() > end:
                    break
                for c in some:
                    c.send(bytes([byte]))
        self.under(attack)

    def test_connections_that_come_and_go(self):
        def attack(end):
            while time.monotonic() < end:
                c = Client(self.path)
                c.send(hello() + call(1, "GetDevicePluginOptions", end=END_STREAM))
                c.close()
        self.under(attack)

    # --- what is not read, and what does not come ---

    def test_streams_with_a_window_of_nothing(self):
        def attack(end):
            for _ in range(40):
                c = self.connect()
                c.send(hello(0))
                for i in range(100):
                    method = ("ListAndWatch", "GetDevicePluginOptions")[i % 2]
                    if not c.send(
                            call(2 * i + 1, method) +
                            frame(DATA, END_STREAM, 2 * i + 1, message(b""))):
                        break
                if time.monotonic() > end:
                    break
        self.under(attack)

    def test_half_messages(self):
        def attack(end):
            piece = b"\x0a" * 16384
            some = [self.connect() for _ in range(40)]
            for c in some:
                c.send(hello() + b"".join(call(2 * i + 1, "Allocate") for i in range(100)))
            alive = set(range(len(some)))
            first = True
            while alive and time.monotonic() < end:
                for k in sorted(alive):
                    some[k].drain()
                    for i in range(100):
                        head = message(b"", 500 << 10) if first else b""
                        if not some[k].send(frame(DATA, 0, 2 * i + 1, head + piece[len(head):])):
                            alive.discard(k)
                            break
                first = False
        self.under(attack)

    def test_half_messages_within_their_windows(self):
        """As a client that keeps to flow control: a little of each message, as far as the window
        goes."""
        def attack(end):
            piece = b"\x0a" * 8192
            some = [self.connect() for _ in range(40)]
            for c in some:
                c.send(hello() + b"".join(call(2 * i + 1, "Allocate") for i in range(16)))
            alive = set(range(len(some)))
            for turn in range(60):
                for k in sorted(alive):
                    some[k].drain()
                    head = message(b"", 500 << 10) if turn == 0 else b""
                    if not some[k].send(b"".join(
                            frame(DATA, 0, 2 * i + 1, head + piece[len(head):])
                            for i in range(16))):
                        alive.discard(k)
                if time.monotonic() > end:
                    break
        self.under(attack)

    def data(self, c, stream, body):
        """All of a message, in frames; whether it went."""
        whole = message(body)
        for at in range(0, len(whole), 16384):
            last = at + 16384 >= len(whole)
            if not c.send(frame(DATA, END_STREAM if last else 0, stream, whole[at:at + 16384])):
                return False
        c.drain()
        return True

    def test_whole_large_messages(self):
        def attack(end):
            for size in (4 << 20, 511 << 10):
                for k in range(24):
                    c = self.connect()
                    c.send(hello() + frame(WINDOW, 0, 0, struct.pack(">I", 1 << 30)))
                    for i in range(4):
                        c.send(call(2 * i + 1, ("Allocate", "GetPreferredAllocation")[k % 2]))
                        if not self.data(c, 2 * i + 1, b"\x0a\x80\x80\x01" + b"\x0a\x01a" *
                                         (size // 3)):
                            break
                    if time.monotonic() > end:
                        return
        self.under(attack)

    def test_millions_of_empty_containers(self):
        def attack(end):
            for count in (2000000, 250000, 20000):
                for method in ("Allocate", "GetPreferredAllocation") * 3:
                    c = self.connect()
                    c.send(hello() + call(1, method))
                    self.data(c, 1, b"\x0a\x00" * count)
                    if time.monotonic() > end + 1:
                        return
        self.under(attack)

    # --- lies ---

    def test_lies_in_frames(self):
        lies = (
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"\x16\x03\x01" + b"\0" * 200,
            os.urandom(300),
            hello() + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01",
            hello() + frame(HEADERS, END_HEADERS, 1, b"\xff" * 50),
            hello() + frame(HEADERS, END_HEADERS, 1, b"\x40\x7f\xff\xff\xff\xff\xff\x0f"),
            hello() + frame(HEADERS, 0, 1, headers("Allocate")) +
            frame(CONTINUATION, 0, 1, b"\0\x01a\x01b") * 5000,
            hello() + call(1, "Allocate", *[(b"x-%d" % i, b"y" * 100) for i in range(2000)]),
            hello() + call(1, "Allocate", (b"grpc-encoding", b"gzip")) +
            frame(DATA, END_STREAM, 1, b"\1" + message(b"x" * 40)[1:]),
            hello() + call(1, "Allocate") + frame(DATA, END_STREAM, 1, message(b"", 0xffffffff)),
            hello() + call(1, "\x1b]0;x\x07") + frame(DATA, END_STREAM, 1, message(b"")),
            hello() + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0xffffffff)),
            hello() + frame(WINDOW, 0, 0, struct.pack(">I", 0x7fffffff)) * 3,
            hello() + call(2, "Allocate") + call(1, "Allocate") + call(1, "Allocate"),
            hello() + frame(GOAWAY, 0, 0, b"\0" * 8) + call(1, "Allocate"),
            hello() + call(1, "Allocate") + frame(DATA, 0, 1, message(b"", 400000)) +
            frame(DATA, 0, 1, b"x" * 24) * 3000,
        )

        def attack(end):
            while time.monotonic() < end:
                for lie in lies:
                    c = Client(self.path)
                    c.send(lie)
                    c.is_closed()
                    c.close()
        self.under(attack)

    def test_rapid_resets(self):
        def attack(end):
            c = self.connect()
            c.send(hello())
            stream = 1
            while stream < 60000:
                if time.monotonic() > end or not c.send(b"".join(
                        call(s, "Allocate") + frame(RST, 0, s, b"\0\0\0\x08")
                        for s in range(stream, stream + 400, 2))):
                    c, stream = self.connect(), 1
                    c.send(hello())
                    if time.monotonic() > end:
                        return
                c.drain()
                stream += 400
        self.under(attack)

    def test_pings_and_settings(self):
        def attack(end):
            while time.monotonic() < end:
                c = Client(self.path)
                c.send(hello())
                for _ in range(100):
                    if time.monotonic() > end or not c.send(
                            (frame(PING, 0, 0, b"12345678") + frame(SETTINGS, 0, 0, b"")) * 200):
                        break
                c.close()
        self.under(attack)

    # --- strangers that behave ---

    def test_proper_calls_of_strangers(self):
        known = [d["id"].encode() for d in self.kubelet.resource(VF)["devices"]][-1]
        bodies = (("GetDevicePluginOptions", b""), ("GetPreferredAllocation", b"\x0a\x00"),
                  ("Allocate", b"\x0a\x06\x0a\x04none"), ("PreStartContainer",
                                                          b"\x0a" + bytes([len(known)]) + known))

        def attack(end):
            for i in range(400):
                c = self.connect()
                method, body = bodies[i % len(bodies)]
                c.send(hello() + call(1, method) + frame(DATA, END_STREAM, 1, message(body)))
                if time.monotonic() > end:
                    return
        self.under(attack)
        self.assertLess(self.daemon.stderr().count("Allocate refused"), 11, "lines of log")

    def test_lines_of_log_that_calls_cause(self):
        """Of a container that starts again and again; unit/base/log has all others."""
        (mine,) = vfs_of(self.kubelet.admit("pod", f"main:{GPU}=1,{VF}=1"))
        self.kubelet.ask("prestart pod")
        body = message(b"\x0a" + bytes([len(mine)]) + mine.encode())

        def call_again():
            c = Client(self.path)
            c.send(hello() + b"".join(
                call(2 * i + 1, "PreStartContainer") + frame(DATA, END_STREAM, 2 * i + 1, body)
                for i in range(16)))
            c.is_closed()
            c.close()
            return 'come too often; the next ones are left out for up to a minute ' \
                   'text="the container starts"' in self.daemon.stderr()

        until(call_again, "as many lines as may be", 3 * PATIENCE)
        lines = self.daemon.stderr().count("the container starts")
        call_again()
        self.assertEqual(self.daemon.stderr().count("the container starts"), lines)

    def stranger_watches_while_the_kubelets_stream_ends(self):
        """It is registered again although another stream is open."""
        c = self.connect()
        c.send(hello() + call(1, "ListAndWatch") + frame(DATA, END_STREAM, 1, message(b"")))
        seen = b""
        known = self.kubelet.resource(VF)["devices"][0]["id"].encode()
        c.s.settimeout(PATIENCE)
        while known not in seen:
            more = c.s.recv(1 << 16)
            self.assertTrue(more, "the stream ended")
            seen += more
        self.kubelet.ask(f"disconnect {VF}")
        until(lambda: self.kubelet.resource(VF)["allocatable"] > 0, "registered again")
        self.assertEqual(len(vfs_of(self.kubelet.admit("pod", f"main:{VF}=1"))), 1)
        self.assertFalse(c.is_closed())

    def test_a_strangers_stream_is_not_the_kubelets(self):
        self.stranger_watches_while_the_kubelets_stream_ends()

    def test_a_strangers_stream_is_not_the_kubelets_when_processes_have_no_numbers(self):
        """As in a container, which has a PID namespace of its own."""
        self.assertEqual(self.daemon.end(), 0)
        self.kubelet.wait(VF, "=0")
        argv = ["unshare", "--pid", "--fork", "--kill-child", *self.n.daemon_argv()]
        self.daemon = Daemon(argv, self.n.path("unshared.log"), stdin=subprocess.DEVNULL)
        self.addCleanup(self.daemon.end, signal.SIGKILL)
        self.kubelet.wait(VF, 1)
        self.stranger_watches_while_the_kubelets_stream_ends()

    def test_what_a_stranger_says_of_the_registration(self):
        """By the plugin watcher, it is another process than the kubelet."""
        self.assertEqual(self.daemon.end(), 0)
        self.kubelet.wait(VF, "=0")
        self.daemon = self.n.start_daemon("--registration", "watcher")
        self.kubelet.wait(VF, 1)
        self.folder = os.path.join(self.n.kubelet_root, "plugins_registry")
        service = "/pluginregistration.Registration/"
        c = self.connect()
        c.send(hello() + b"".join(
            call(1 + 2 * i, service + method) +
            frame(DATA, END_STREAM, 1 + 2 * i, message(body)) for i, (method, body) in enumerate(
                (("NotifyRegistrationStatus", b"\x12\x02no"),
                 ("NotifyRegistrationStatus", b"\x08\x01"),
                 ("NotifyRegistrationStatus", b"\x12\x02no"), ("GetInfo", b"")))))
        seen = b""
        c.s.settimeout(PATIENCE)
        while b"DevicePlugin" not in seen:  # the last one is answered
            more = c.s.recv(1 << 16)
            self.assertTrue(more, "it was closed")
            seen += more
        self.assertNotIn("the kubelet did not register the resource", self.daemon.stderr())
        self.assertEqual(len(vfs_of(self.kubelet.admit("pod", f"main:{VF}=1"))), 1)

    # --- the kernel ---

    def hears(self):
        """The families of the kernel's sockets that it listens at, in its own namespace."""
        with open(f"/proc/{self.daemon.pid}/net/netlink", encoding="ascii") as f:
            rows = [line.split() for line in f][1:]
        return {int(row[1]) for row in rows if int(row[3], 16)}

    @unittest.skipUnless(can_make_links(), "needs root, unshare and /dev/net/tun")
    def test_links_that_come_and_go(self):
        """That of a PF, in a namespace of its own."""
        self.assertEqual(self.daemon.end(), 0)
        self.kubelet.wait(VF, "=0")
        argv = self.n.daemon_argv()
        argv[argv.index("--root") + 1] = "/"
        live = 'mount --bind "$0" /sys && exec "$@"'
        self.daemon = Daemon(["unshare", "--mount", "--net", "sh", "-c", live,
                              os.path.join(self.n.root, "sys"), *argv],
                             self.n.path("links.log"), stdin=subprocess.DEVNULL)
        self.addCleanup(self.daemon.end, signal.SIGKILL)
        self.kubelet.wait(VF, 1)
        self.assertLessEqual({NETLINK_ROUTE, NETLINK_UEVENT}, self.hears())

        def attack(end):
            with subprocess.Popen(["nsenter", f"--net=/proc/{self.daemon.pid}/ns/net",
                                   sys.executable, "-c", LINK_STORM],
                                  stdin=subprocess.DEVNULL) as storm:
                try:
                    time.sleep(max(0, end - time.monotonic()))
                    self.assertIsNone(storm.poll(), "it blew until it was ended")
                finally:
                    storm.kill()

        self.under(attack, 3)

    # --- files ---

    def test_clients_of_the_control_socket(self):
        """Some say nothing, some half of a request; who asks afterwards is answered."""
        clients = []

        def attack(end):
            for i in range(600):
                s = socket.socket(socket.AF_UNIX)
                s.setblocking(False)
                clients.append(s)
                with contextlib.suppress(OSError):  # more than wait there
                    s.connect(self.n.control_socket)
                    s.send(b"x" * (i % 2 * 1000))
                if time.monotonic() > end:
                    return
        self.under(attack)
        for s in clients:
            s.close()
        vf = self.kubelet.resource(VF)["devices"][0]["id"]
        argv = [program("railmatectl"), "explain", "vf", vf, "--control-socket",
                self.n.control_socket]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        self.assertIn(vf, done.stdout, done.stderr)

    def test_files_that_come_and_go(self):
        def attack(end):
            for i in range(15000):
                path = self.n.path("dp", f".{i}")
                with open(path, "w", encoding="ascii"):
                    pass
                os.unlink(path)
                if time.monotonic() > end + 1:
                    return
        self.under(attack)

    def test_sockets_that_look_like_gpu_plugins(self):
        def attack(end):
            impostors = []
            for i in range(120):
                s = socket.socket(socket.AF_UNIX)
                s.bind(self.n.path("dp", f"nvidia-{i}.sock"))
                s.listen(8)
                impostors.append(s)
            time.sleep(max(0, end - time.monotonic()))
            for s in impostors:
                s.close()
        self.under(attack)

    def put_in_the_way(self, thing):
        """Instead of our socket, in one step."""
        os.rename(thing, self.path)
        answer = self.kubelet.admit("meanwhile", f"main:{VF}=1")
        self.assertEqual(len(vfs_of(answer)), 1)  # by the connection that is open

    def until_ours_again(self):
        def answers():
            with contextlib.suppress(OSError):
                c = self.connect()
                c.send(hello() + call(1, "ListAndWatch") + frame(DATA, END_STREAM, 1, message(b"")))
                c.s.settimeout(PATIENCE)
                return c.s.recv(1)
            return b""

        until(answers, "our socket is there again")
        self.kubelet.ask(f"disconnect {VF}")
        until(lambda: self.kubelet.resource(VF)["allocatable"] > 0, "registered again")
        self.assertEqual(len(vfs_of(self.kubelet.admit("later", f"main:{VF}=1"))), 1)

    def test_a_file_in_place_of_our_socket(self):
        path = self.n.path("dp", "file")
        with open(path, "w", encoding="ascii"):
            pass
        self.put_in_the_way(path)
        until(lambda: "is in the way and is not a socket" in self.daemon.stderr(), "it is said")
        os.unlink(self.path)
        self.until_ours_again()

    def test_a_socket_of_another_in_place_of_ours(self):
        thief = socket.socket(socket.AF_UNIX)
        self.addCleanup(thief.close)
        thief.bind(self.n.path("dp", "thief"))
        thief.listen(64)
        self.put_in_the_way(self.n.path("dp", "thief"))
        self.assertIsNone(self.daemon.child.poll())
        thief.close()  # the file of it stays
        self.until_ours_again()


if __name__ == "__main__":
    main()
