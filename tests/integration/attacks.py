"""
What test_attacks.py and test_frames.py share: HTTP/2 as bytes, clients and servers that send them,
and a kubelet that admits pods meanwhile. Standard library only.
"""

import contextlib
import glob
import os
import resource
import selectors
import socket
import struct
import threading
import time

from harness import GPU, VF, Case, until
from tries import Late

SERVICE = "/v1beta1.DevicePlugin/"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8
RSS_MAX_MIB = 32
ADMISSION_MAX_S = 1  # the longest of them,
ADMISSION_TRIES = 3  # in one of so many attacks: the machine may be slow, too


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def headers(method, *more):
    def literal(name, value):
        return b"\0" + bytes([len(name)]) + name + b"\x7f" * 0 + bytes([len(value)]) + value
    path = method if method.startswith("/") else SERVICE + method
    pairs = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path.encode()),
             (b":authority", b"localhost"), (b"te", b"trailers"),
             (b"content-type", b"application/grpc"), *more]
    return b"".join(literal(n, v) for n, v in pairs)


def call(stream, method, *more, end=0):
    return frame(HEADERS, END_HEADERS | end, stream, headers(method, *more))


def message(body, length=None):
    return b"\0" + struct.pack(">I", len(body) if length is None else length) + body


def hello(window=65535):
    return PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, window))


class Client:
    """Raw bytes. What the other side does with them is its business; an end is not an error
    here."""

    def __init__(self, path):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.settimeout(0.3)
        while True:
            try:
                self.s.connect(path)
                return
            except BlockingIOError:  # more wait than the kernel keeps
                time.sleep(0.001)
            except OSError:
                self.s.close()
                raise

    def send(self, data):
        """Whether all of it went."""
        try:
            self.s.sendall(data)
            return True
        except OSError:
            return False

    def drain(self):
        with contextlib.suppress(OSError):
            self.s.setblocking(False)
            while self.s.recv(1 << 16):
                pass
        with contextlib.suppress(OSError):
            self.s.settimeout(0.3)

    def is_closed(self):
        """Reads what is there, waits no longer than a moment."""
        self.s.settimeout(0.05)
        try:
            while self.s.recv(1 << 16):
                pass
            return True
        except TimeoutError:
            return False
        except OSError:
            return True
        finally:
            self.s.settimeout(0.3)

    def close(self):
        self.s.close()


class Flood:
    """Connections that send the beginning, and the same piece ever after; what ends comes again."""

    def __init__(self, path, count, begin, piece, reads=False):
        self.path, self.count, self.reads = path, count, reads
        self.begin, self.piece = begin, piece * max(1, 65536 // len(piece))
        self.selector, self.unsent = None, {}

    def dial(self):
        s = socket.socket(socket.AF_UNIX)
        s.setblocking(False)
        try:
            s.connect(self.path)
        except OSError:  # more wait than the kernel keeps
            s.close()
            return
        self.unsent[s] = memoryview(self.begin)
        self.selector.register(s, selectors.EVENT_WRITE)

    def drop(self, s):
        self.selector.unregister(s)
        del self.unsent[s]
        s.close()

    def until(self, end):
        self.selector = selectors.DefaultSelector()
        while time.monotonic() < end:
            while len(self.unsent) < self.count:
                self.dial()
            for key, _ in self.selector.select(0.01):
                s = key.fileobj
                try:
                    if self.reads:
                        with contextlib.suppress(BlockingIOError):
                            s.recv(1 << 16)
                    left = self.unsent[s] or memoryview(self.piece)
                    self.unsent[s] = left[s.send(left):]
                except BlockingIOError:
                    pass
                except OSError:
                    self.drop(s)
        for s in list(self.unsent):
            self.drop(s)
        self.selector.close()


class Server(threading.Thread):
    """Like a GPU plugin: the bytes that answer each question, of which the last one is answered in
    parts, for a window to grow; then the piece for as long as it is read."""

    def __init__(self, path, answers, piece=b"", greeting=frame(SETTINGS, 0, 0)):
        super().__init__(daemon=True)
        self.answers, self.piece, self.greeting = answers, piece, greeting
        self.asked, self.stop = 0, threading.Event()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path + ".new")
        self.listener.listen(64)
        os.rename(path + ".new", path)
        self.start()

    def run(self):
        while not self.stop.is_set():
            try:
                s = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def await_call(self, s, method):
        seen = b""
        while method not in seen:
            more = s.recv(1 << 16)
            if not more:
                raise OSError
            seen += more

    def serve(self, s):
        with contextlib.suppress(OSError), s:
            s.settimeout(5)
            s.sendall(self.greeting)
            self.await_call(s, b"GetDevicePluginOptions")
            if len(self.answers) > 1:
                s.sendall(self.answers[0])
                self.await_call(s, b"GetPreferredAllocation")
            self.asked += 1
            for part in self.answers[-1]:
                s.sendall(part)
                time.sleep(0.03)
            while self.piece and not self.stop.is_set():
                s.sendall(self.piece * max(1, 65536 // len(self.piece)))
            s.settimeout(1)
            while s.recv(1 << 16):
                pass

    def close(self):
        self.stop.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Kubelet(threading.Thread):
    """Pods come and go until `done`: how long each Allocate took, the longest admission, and what
    was refused."""

    def __init__(self, kubelet, order):
        super().__init__(daemon=True)
        self.kubelet, self.order, self.stop = kubelet, order, threading.Event()
        self.ms, self.longest_s, self.refused, self.error = [], 0, [], None

    def run(self):
        n = 0
        try:
            while not self.stop.is_set():
                n += 1
                began = time.monotonic()
                answer = self.kubelet.admit(f"pod{n}", f"main:{GPU}=1,{VF}=1", order=self.order)
                self.longest_s = max(self.longest_s, time.monotonic() - began)
                if answer["event"] != "admitted":
                    self.refused.append(answer)
                else:
                    self.ms += [
                        a["allocate_us"] / 1000
                        for c in answer["containers"]
                        for a in c["rpcs"]
                        if a["resource"] == VF
                    ]
                    self.kubelet.ask(f"remove pod{n}")
        except Exception as e:  # pylint: disable=broad-except
            self.error = e

    def done(self):
        """When the pod that is being admitted is."""
        self.stop.set()
        self.join()


def p99(values):
    return sorted(values)[int(len(values) * 0.99)]


class Attacked(Case):
    """A node with a kubelet, a GPU plugin and a daemon whose plugin socket is `path`."""

    took = {}  # by attack: ms of every Allocate, in calm times and during it
    order, options = "gpu-first", ()

    def setUp(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.n = self.node()
        self.kubelet, self.daemon = self.n.start(daemon=self.options)
        self.folder = self.n.path("dp")
        self.clients = []
        self.addCleanup(lambda: [c.close() for c in self.clients])

    @property
    def path(self):
        """Each registration has one of its own."""
        found = glob.glob(os.path.join(self.folder, VF.replace("/", "_") + ".*.sock"))
        return max(found, key=os.path.getctime, default=os.path.join(self.folder, "none"))

    def connect(self):
        c = Client(self.path)
        self.clients.append(c)
        return c

    def peak_mib(self):
        with open(f"/proc/{self.daemon.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:")) / 1024

    def admitting(self, meanwhile):
        """Pods come and go while something is done; none is refused."""
        admissions = Kubelet(self.kubelet, self.order)
        admissions.start()
        try:
            meanwhile()
            until(lambda: admissions.ms or not admissions.is_alive(), "an admission")
        finally:
            admissions.done()
        self.assertIsNone(self.daemon.child.poll(), self.daemon.stderr())
        self.assertIsNone(admissions.error, admissions.error)
        self.assertEqual(admissions.refused, [])
        return admissions

    def under(self, attack, seconds=1.5):
        """Calm, then the attack, for so long; what held during both."""
        def attacked():
            end = time.monotonic() + seconds
            attack(end)
            time.sleep(max(0, min(end - time.monotonic(), 0.3)))

        for _ in range(ADMISSION_TRIES):
            calm = self.admitting(lambda: time.sleep(0.3)).ms
            admissions = self.admitting(attacked)
            ms, longest = admissions.ms, admissions.longest_s
            if longest <= ADMISSION_MAX_S:
                break
        peak, name = self.peak_mib(), self.id().rsplit(".", 1)[1]
        self.took[name] = calm, ms
        print(
            f"{name}: peak {peak:.1f} MiB, {self.daemon.fds()} descriptors, longest admission "
            f"{longest * 1000:.0f} ms, {len(ms)} Allocates, p99 {p99(ms):.2f} ms "
            f"(calm: {len(calm)}, worst {max(calm):.2f} ms)", flush=True)
        if not os.environ.get(
                "SANITIZED"):  # sanitizers keep freed memory, and shadows of all of it
            self.assertLessEqual(peak, RSS_MAX_MIB, "MiB at most")
            if longest > ADMISSION_MAX_S:
                raise Late(f"an admission took {longest:.2f} s")
