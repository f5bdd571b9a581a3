"""HTTPS servers that answer as a test tells them, with certificates that are made for the run.
Standard library only."""

import contextlib
import http.client
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

import kubepb


class Certificates:
    """A CA and what it signed, made once a run."""

    def __init__(self, folder):
        self.folder = folder
        for ca in ("ca", "other-ca"):
            self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt",
                         "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{ca}.key", "-out",
                         f"{ca}.crt", "-days", "2", "-subj", f"/CN={ca}")
        self.server("good", "IP:127.0.0.1,DNS:localhost", "2")
        self.server("wrong-host", "DNS:elsewhere.example", "2")
        self.server("expired", "IP:127.0.0.1", "-1")

    def openssl(self, *args):
        subprocess.run(["openssl", *args], cwd=self.folder, check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def server(self, name, names, days):
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                     "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", "/CN=server",
                     "-addext", f"subjectAltName={names}")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
                     "-CAcreateserial", "-days", days, "-copy_extensions", "copy", "-out",
                     f"{name}.crt")

    def path(self, name):
        return os.path.join(self.folder, name)


class Server:
    """
    A TLS server that answers as it is told: `answer` is called with the connection for each
    request, and returns whether the connection stays open.
    """

    def __init__(self, certificates, name="good"):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificates.path(f"{name}.crt"),
                                     certificates.path(f"{name}.key"))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"https://127.0.0.1:{self.port}/pods"
        self.answer = reply(200, b"{}")
        self.connections, self.requests, self.bodies, self.going = 0, [], [], False
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            if self.going:
                connection.close()
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, plain):
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError), plain:
            with self.context.wrap_socket(plain, server_side=True) as connection:
                self.connections += 1
                reader = connection.makefile("rb")
                while True:
                    line = reader.readline().decode()
                    if not line:
                        return
                    headers = dict(http.client.parse_headers(reader))
                    body = reader.read(int(headers.get("Content-Length", 0)))
                    self.requests.append((line.strip(), headers))
                    self.bodies.append(body)  # who waits for it looks at the request, too
                    if not self.answer(connection):
                        return

    def close(self):
        self.going = True
        with contextlib.suppress(OSError):  # wakes accept()
            socket.create_connection(self.listener.getsockname(), 1).close()
        self.thread.join(5)
        self.listener.close()


def head(status, **headers):
    lines = "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in headers.items())
    return f"HTTP/1.1 {status} x\r\n{lines}\r\n".encode()


def reply(status, body, kind=kubepb.TYPE):
    def answer(connection):
        connection.sendall(head(status, content_type=kind, content_length=len(body)) + body)
        return True
    return answer


class Case(unittest.TestCase):
    """With certificates, and servers that go with the test."""

    longMessage = True

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="railmate-https-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.certificates = Certificates(cls.folder)

    def server(self, name="good"):
        server = Server(self.certificates, name)
        self.addCleanup(server.close)
        return server

    def token(self, text):
        path = os.path.join(self.folder, f"token-{self.id()}")
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(path + ".new", path)
        return path

    def account(self, folder):
        """A pod's service account."""
        os.mkdir(folder)
        with open(os.path.join(folder, "token"), "w", encoding="utf-8") as f:
            f.write("the-token")
        shutil.copy(self.certificates.path("ca.crt"), os.path.join(folder, "ca.crt"))
