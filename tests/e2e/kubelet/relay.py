"""Between railmated and the kubelet: sockets that pass everything on, and can be told to wait.
Standard library only."""
import contextlib
import pathlib
import socket
import threading

PREFACE = 24  # bytes before the first frame of HTTP/2
HEADERS = 1   # the type of frame by which a call, and its answer, begins


class Gate:
    """Open, or the next one waits. wait_for_somebody() returns when one does."""

    def __init__(self):
        self.open, self.somebody, self.pass_first = threading.Event(), threading.Event(), 0
        self.recorded = None  # bytes
        self.open.set()

    def record(self):
        self.recorded = b""

    def close(self, pass_first=0):
        """pass_first: so many calls go through before."""
        self.pass_first = pass_first
        self.somebody.clear()
        self.open.clear()

    def go_through(self):
        if self.open.is_set():
            return
        if self.pass_first:
            self.pass_first -= 1
            return
        self.somebody.set()
        self.open.wait()


def frames(connection):
    """What comes, as (type or None, bytes): whole frames."""
    data, want = b"", PREFACE
    kind, first = None, True
    while chunk := connection.recv(65536):
        data += chunk
        while True:
            if not first and len(data) >= 9:
                want, kind = 9 + int.from_bytes(data[:3], "big"), data[3]
            if len(data) < (want if first else max(want, 9)):
                break
            yield kind, data[:want]
            data, first, kind = data[want:], False, None
            want = 9


def chunks(connection):
    while data := connection.recv(65536):
        yield None, data


class Relay:
    """Listens at front, passes on to back. Calls wait at .calls, answers at .answers."""

    def __init__(self, front, back):
        self.front, self.back = pathlib.Path(front), str(back)
        self.calls, self.answers = Gate(), Gate()
        self.accepted = lambda: None
        self.server = socket.socket(socket.AF_UNIX)
        self.front.unlink(missing_ok=True)
        self.server.bind(str(front))
        self.server.listen(16)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                self.accepted()
                threading.Thread(target=self.join, args=(client,), daemon=True).start()

    def join(self, client):
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self.back)
        except OSError:
            client.close()
            return
        threading.Thread(target=self.pump, args=(frames(client), server, self.calls, HEADERS),
                         daemon=True).start()
        self.pump(chunks(server), client, self.answers, None)

    @staticmethod
    def pump(source, to, gate, at):
        """Ends both directions when one ends, but what has been read is passed on."""
        with contextlib.suppress(OSError):
            for kind, data in source:
                if kind == at:
                    gate.go_through()
                if gate.recorded is not None:
                    gate.recorded += data
                to.sendall(data)
        with contextlib.suppress(OSError):
            to.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.calls.open.set()
        self.answers.open.set()
        with contextlib.suppress(OSError):
            self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        self.front.unlink(missing_ok=True)


class Plugins:
    """railmated's directory of device plugins, which is not the kubelet's: every socket has its
    relay on the other side."""

    def __init__(self, ours, kubelets):
        self.ours, self.kubelets, self.relays = pathlib.Path(ours), pathlib.Path(kubelets), {}
        self.register = Relay(self.ours / "kubelet.sock", self.kubelets / "kubelet.sock")
        self.register.accepted = self.follow

    def follow(self):
        """The kubelet dials a plugin before it answers Register: its socket has to be there by
        then."""
        for path in self.ours.glob("*.sock"):
            if path.name != "kubelet.sock" and path.name not in self.relays:
                self.relays[path.name] = Relay(self.kubelets / path.name, path)

    def newest(self):
        return list(self.relays.values())[-1]

    def close(self):
        for relay in (*self.relays.values(), self.register):
            relay.close()
