#!/usr/bin/python3
"""
Frames that gRPC 1.51 keeps, inflates or answers without an end: from clients at the plugin's socket,
and from a server that has the name of a GPU plugin's. The same must hold as of test_attacks.py.
"""

import contextlib
import os
import struct
import threading
import time
import zlib

from attacks import (ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED, PING,
                     PRIORITY, PUSH, RST, SETTINGS, WINDOW, Attacked, Flood, Server, call, frame,
                     headers, hello, message)
from harness import GPU, VF, main, until

BOMB_MIB = 400


def bomb(wbits, mib=BOMB_MIB):
    """400 KB or so."""
    packer = zlib.compressobj(9, wbits=wbits)
    zeros = bytes(1 << 20)
    return b"".join(packer.compress(zeros) for _ in range(mib)) + packer.flush()


def compressed(body):
    return b"\1" + message(body)[1:]


def frames(stream, body, end=END_STREAM):
    """Of a message, in DATA of 16 KiB at most."""
    return b"".join(
        frame(DATA, end if at + 16384 >= len(body) else 0, stream, body[at:at + 16384])
        for at in range(0, len(body), 16384))


GZIP, ZLIB = bomb(31), bomb(15)
# HPACK: a literal whose value has 2^28 bytes, and one whose length never ends.
LONG_VALUE, LONG_NUMBER = b"\0\1a\x7f\xff\xff\xff\x7f", b"\0\1a\x7f" + b"\x80" * 1000
# An entry for the table, and its index many times: within what is let in, and beyond.
INDEXED = b"\x40\1b\x7f\xdd\x0a" + b"y" * 1500 + b"\xbe" * 300
SHORT_INDEXED = b"\x40\1b\1y" + b"\xbe" * 1800
LONG_INDEXED = b"\x40\1b\1y" + b"\xbe" * 8000


class FromClients(Attacked):
    """At the plugin's socket; none of them confirms our settings."""

    def flood(self, begin, piece, reads=False):
        for count in (1, 24):
            with self.subTest(connections=count):
                self.under(Flood(self.path, count, hello() + begin, piece, reads).until, 1)

    # --- E2: what is compressed ---

    def send_bombs(self, body, *encoding):
        def attack(end):
            while time.monotonic() < end:
                c = self.connect()
                c.send(hello() + frame(WINDOW, 0, 0, struct.pack(">I", 1 << 30)))
                for stream in range(1, 9, 2):
                    c.send(call(stream, "Allocate", *encoding) + frames(stream, body))
                c.is_closed()
        self.under(attack)

    def test_gzip(self):
        self.send_bombs(compressed(GZIP), (b"grpc-encoding", b"gzip"))

    def test_deflate(self):
        self.send_bombs(compressed(ZLIB), (b"grpc-encoding", b"deflate"))

    def test_encodings_that_do_not_fit(self):
        for encoding in (b"deflate", b"identity", b"zstd", b"gzip, gzip"):
            with self.subTest(encoding=encoding):
                self.send_bombs(compressed(GZIP), (b"grpc-encoding", encoding))
        self.send_bombs(compressed(GZIP))
        self.send_bombs(compressed(GZIP), (b"content-encoding", b"gzip"))
        self.send_bombs(compressed(GZIP), (b"grpc-internal-encoding-request", b"gzip"))

    def test_compressed_calls_end_as_unimplemented(self):
        c = self.connect()
        c.send(hello() + call(1, "Allocate", (b"grpc-encoding", b"gzip")) +
               frames(1, compressed(bomb(31, 1))))
        seen = b""
        while b"grpc-status" not in seen:
            seen += c.s.recv(1 << 16)
        self.assertIn(b"grpc-status\x0212", seen)

    # --- E3: headers that do not end ---

    def test_value_that_never_ends(self):
        self.flood(frame(HEADERS, 0, 1, LONG_VALUE), frame(CONTINUATION, 0, 1, b"x" * 16384))

    def test_value_that_never_ends_byte_by_byte(self):
        self.flood(frame(HEADERS, 0, 1, LONG_VALUE), frame(CONTINUATION, 0, 1, b"x"))

    def test_number_that_never_ends(self):
        self.flood(frame(HEADERS, 0, 1, LONG_NUMBER), frame(CONTINUATION, 0, 1, b"\x80" * 16000))

    def test_values_that_never_end_in_whole_frames(self):
        self.flood(b"", frame(HEADERS, END_HEADERS, 1, LONG_VALUE + b"x" * 16000))

    def test_continuations_of_nothing(self):
        self.flood(frame(HEADERS, 0, 1), frame(CONTINUATION, 0, 1))

    def test_whole_headers_that_go_on(self):
        self.flood(frame(HEADERS, 0, 1, headers("ListAndWatch")),
                   frame(CONTINUATION, 0, 1, (b"\0\1a\x64" + b"x" * 100) * 150))

    def test_continuation_of_nothing_and_of_another(self):
        self.flood(call(1, "ListAndWatch"), frame(CONTINUATION, END_HEADERS, 1, b"\0\1a\1b" * 3000))
        self.flood(frame(HEADERS, 0, 1), frame(CONTINUATION, 0, 3, b"\0\1a\1b" * 3000))

    def watches(self, more):
        """Streams that stay, with such headers."""
        block = headers("ListAndWatch") + more
        return b"".join(
            frame(HEADERS, END_HEADERS, s, block) + frame(DATA, END_STREAM, s, message(b""))
            for s in range(1, 2001, 2))

    def test_headers_that_are_kept(self):
        for more in (b"\0\1a\x64" + b"x" * 100) * 17, INDEXED, SHORT_INDEXED, LONG_INDEXED:
            with self.subTest(more=more[:8]):
                self.flood(b"", self.watches(more))

    def test_wrong_headers_before_more_than_8_kib(self):
        """CVE-2023-1428: it was an abort(), of a peer that has confirmed our settings."""
        wrong = (b"\0\2te\1x", b"\0\7:scheme\1x", b"\0\x13grpclb_client_stats\1x")
        for bad in wrong:
            self.under(Flood(self.path, 4, hello() + frame(SETTINGS, ACK, 0), b"".join(
                frame(HEADERS, END_HEADERS, s, headers("Allocate") + bad + INDEXED) +
                frame(DATA, END_STREAM, s, message(b"")) for s in range(1, 99, 2))).until, 1)

    # --- E6: what is answered, and what costs nothing ---

    def test_pings(self):
        self.flood(b"", frame(PING, 0, 0, b"12345678"))
        self.flood(call(1, "ListAndWatch") + frames(1, message(b"")),
                   frame(PING, 0, 0, b"12345678"), reads=True)

    def test_settings(self):
        self.flood(b"", frame(SETTINGS, 0, 0))
        self.flood(b"", frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 1 << 20) * 2000))
        self.flood(call(1, "ListAndWatch") + frames(1, message(b"")),
                   frame(SETTINGS, 0, 0, struct.pack(">HI", 1, 0) + struct.pack(">HI", 1, 4096)))

    def test_goaways(self):
        self.flood(b"", frame(GOAWAY, 0, 0, bytes(8)))
        self.flood(b"", frame(GOAWAY, 0, 0, bytes(8) + b"x" * 16000))

    def test_frames_for_nothing(self):
        for piece in (frame(PRIORITY, 0, 1, bytes(5)), frame(WINDOW, 0, 0, struct.pack(">I", 1)),
                      frame(200, 0, 0, b"x" * 16384), frame(200, 0, 7), frame(DATA, 0, 1),
                      frame(DATA, PADDED, 1, b"\xff" + bytes(255)), frame(DATA, 0, 99, b"x" * 99),
                      frame(RST, 0, 1, bytes(4)), frame(RST, 0, 99, bytes(4)),
                      frame(PUSH, END_HEADERS, 1, bytes(4) + b"\x82" * 99),
                      frame(PING, 1, 0, b"12345678"), frame(SETTINGS, 1, 0)):
            with self.subTest(piece=piece[:9]):
                self.under(Flood(self.path, 24, hello() + call(1, "ListAndWatch"), piece).until, 1)

    def test_calls_that_are_reset_and_not_read(self):
        self.flood(b"", b"".join(
            call(s, "Fly", end=END_STREAM) + frame(RST, 0, s, b"\0\0\0\x08")
            for s in range(1, 2001, 2)))
        self.flood(b"", b"".join(call(s, "Fly", end=END_STREAM) for s in range(1, 2001, 2)))


class FromServers(Attacked):
    """It has the name of a GPU plugin, so it is asked when a VF is requested before its GPU."""

    order = "vf-first"
    options = ("--pod-resources-timeout", "200")  # as is the rule: some do not answer

    HEAD = b"\x88\0\x0ccontent-type\x10application/grpc"
    TAIL = b"\0\x0bgrpc-status\x010"
    OK = frame(HEADERS, END_HEADERS, 1, HEAD)
    END = frame(HEADERS, END_HEADERS | END_STREAM, 1, TAIL)
    HAS_PREFERENCES = OK + frames(1, message(b"\x10\1"), 0) + END

    def answered(self, *parts, piece=b"", seconds=1, first=(), **more):
        """Another socket each time: one that failed is not asked again."""
        path, servers = self.n.path("dp", "nvidia-gpu.sock"), []

        def attack(end):
            while time.monotonic() < end:
                servers.append(Server(path, (*first, parts), piece, **more))
                asked = time.monotonic() + 0.5
                while not servers[-1].asked and time.monotonic() < asked:
                    time.sleep(0.01)
                time.sleep(0.1)
        try:
            self.under(attack, seconds)
        finally:
            for s in servers:
                s.close()
            with contextlib.suppress(OSError):
                os.unlink(path)
        self.assertGreater(sum(s.asked for s in servers), 0, "it was asked")

    def encoded(self, encoding):
        return frame(
            HEADERS, END_HEADERS, 1,
            self.HEAD + b"\0\x0dgrpc-encoding" + bytes([len(encoding)]) + encoding)

    def test_compressed_answers(self):
        for encoding, body in (b"gzip", GZIP), (b"deflate", ZLIB), (b"identity", GZIP):
            with self.subTest(encoding=encoding):
                self.answered(self.encoded(encoding) + frame(DATA, 0, 1, compressed(body)[:5]),
                              frames(1, body, 0) + self.END)

    def test_answers_larger_than_announced(self):
        for length in (0xffffffff, (1 << 20) + 1, 1 << 20):
            with self.subTest(length=length):
                self.answered(self.OK + frame(DATA, 0, 1, message(b"", length)),
                              piece=frame(DATA, 0, 1, b"x" * 16384))

    def test_answers_of_a_million_parts(self):
        for part in b"\n\0", b"\n\2\n\0", b"\n\3\n\1a":
            with self.subTest(part=part):
                body = part * ((1 << 20) // len(part))
                self.answered(frame(HEADERS, END_HEADERS, 3, self.HEAD) +
                              frame(DATA, 0, 3, message(body)[:5]),
                              frames(3, body, 0) +
                              frame(HEADERS, END_HEADERS | END_STREAM, 3, self.TAIL),
                              first=(self.HAS_PREFERENCES,))

    def test_messages_without_an_end(self):
        self.answered(self.OK, piece=frame(DATA, 0, 1, message(b"x" * 100)))
        self.answered(self.OK, piece=frame(DATA, 0, 1, message(b"")))

    def test_headers_that_never_end(self):
        for begin, piece in ((frame(HEADERS, 0, 1, LONG_VALUE), b"x" * 16384),
                             (frame(HEADERS, 0, 1, LONG_VALUE), b"x"),
                             (frame(HEADERS, 0, 1, LONG_NUMBER), b"\x80" * 16000),
                             (frame(HEADERS, 0, 1, b"\x88"), (b"\0\1a\x64" + b"x" * 100) * 150),
                             (frame(HEADERS, 0, 1), b"")):
            with self.subTest(begin=begin, piece=piece[:4]):
                self.answered(begin, piece=frame(CONTINUATION, 0, 1, piece))

    def test_headers_again_and_again(self):
        """Informational ones, trailers, and of streams that nobody opened."""
        for begin, piece in ((b"", frame(HEADERS, END_HEADERS, 1, b"\x08\x03100")),
                             (b"", frame(HEADERS, END_HEADERS, 1, b"\x88" + INDEXED)),
                             (self.OK, frame(HEADERS, END_HEADERS, 1, LONG_INDEXED)),
                             (self.OK + self.END, frame(HEADERS, END_HEADERS, 1, SHORT_INDEXED)),
                             (b"", frame(HEADERS, END_HEADERS, 2, b"\x88")),
                             (b"", frame(HEADERS, END_HEADERS, 99, b"\x88")),
                             (b"", frame(PUSH, END_HEADERS, 1, b"\0\0\0\2\x88"))):
            with self.subTest(begin=begin[:20], piece=piece[:20]):
                self.answered(begin, piece=piece)

    def test_frames_that_are_answered_or_cost_nothing(self):
        for piece in (frame(PING, 0, 0, b"12345678"), frame(SETTINGS, 0, 0),
                      frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 1 << 20) * 2000),
                      frame(GOAWAY, 0, 0, bytes(8) + b"x" * 16000), frame(RST, 0, 1, bytes(4)),
                      frame(WINDOW, 0, 0, struct.pack(">I", 1)), frame(200, 0, 0, b"x" * 16384),
                      frame(PRIORITY, 0, 1, bytes(5)), frame(DATA, 0, 1),
                      frame(DATA, PADDED, 1, b"\xff" + bytes(255)), frame(DATA, 0, 99, b"x" * 99)):
            with self.subTest(piece=piece[:9]):
                self.answered(piece=piece)

    def test_lies(self):
        for lie in (os.urandom(3000), b"HTTP/1.1 400 Bad Request\r\n\r\n", hello(),
                    b"\xff\xff\xff\0\0\0\0\0\1" + bytes(70000), self.OK + self.END, self.END,
                    self.OK + frame(RST, 0, 1, bytes(4)), frame(SETTINGS, 0, 0), b""):
            with self.subTest(lie=lie[:20]):
                self.answered(lie, seconds=0.5)
                self.answered(lie, seconds=0.3, greeting=b"")

    def test_servers_that_go_after_half_an_answer(self):
        path = self.n.path("dp", "nvidia-gpu.sock")

        def attack(end):
            while time.monotonic() < end:
                s = Server(path, ((self.OK + frame(DATA, 0, 1, message(b"", 1 << 20)), b"\0\0"),))
                time.sleep(0.05)
                s.close()
        self.kubelet.admit("first", f"main:{GPU}=1,{VF}=1", order=self.order)
        before = self.daemon.fds()
        self.under(attack)
        os.unlink(path)
        self.kubelet.admit("last", f"main:{GPU}=1,{VF}=1", order=self.order)  # it looks again
        until(lambda: self.daemon.fds() <= before, "no descriptor is left behind")


if __name__ == "__main__":
    main()
