#!/usr/bin/python3
"""The page for people, of a daemon that serves, in a browser. Without Chromium (hack/install-deps
browser) only its text."""

import http.client
import http.server
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import unittest.mock
import xml.etree.ElementTree

from exposition import Exposition
from harness import GPU, PATIENCE, VF, Case, main, program, until
from test_metrics import HOST, free_port, get

CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome")
                 if (path := shutil.which(name))), None)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars",
         "--enable-logging=stderr")
REFRESH_MS = 5000


class Between(http.server.ThreadingHTTPServer):
    """Between the browser and railmated: what it passes on is counted, and may be shown in a frame
    at /frame."""

    def __init__(self, port, before=lambda hits: None, frame=None):
        self.port, self.before, self.frame, self.hits = port, before, frame, 0
        super().__init__(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
        self.thread.join()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/frame":
            self.say(200, {"Content-Type": "text/html"}, self.server.frame.encode())
            return
        if self.path == "/":
            self.server.before(self.server.hits)
            self.server.hits += 1
        connection = http.client.HTTPConnection(HOST, self.server.port, timeout=PATIENCE)
        connection.request("GET", self.path)
        answer = connection.getresponse()
        names = ["Content-Type"
                 ] + ["Content-Security-Policy"] * (not self.server.frame)  # which forbids frames
        self.say(answer.status,
                 {name: answer.headers[name]
                  for name in names
                  if answer.headers[name]}, answer.read())
        connection.close()

    def say(self, status, headers, body):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Page(Case):
    def serve(self):
        node, port = self.node(), free_port()
        kubelet, self.daemon = node.start(daemon=(f"--metrics-address={HOST}:{port}",))
        until(lambda: (get(port, "/readyz") or [0])[0] == 200, "it is ready")
        return node, kubelet, port

    def test_the_picture_is_that_of_the_machine(self):
        node, kubelet, port = self.serve()
        kubelet.admit("train", f"main:{GPU}=2,{VF}=2", order="gpu-first")
        kubelet.ask("prestart train")
        row = "<td>default/train</td><td>main</td><td>held</td>"
        text = until(
            lambda: next((t for t in [get(port, "/")[1]]
                          if ">default/train</text>" in t and t.count(row) == 2), None),
            "the pod is drawn, and has two rows")
        svg = xml.etree.ElementTree.fromstring(text[text.index("<svg "):text.index("</svg>") + 6])
        shown = {element.text for element in svg.iter("{http://www.w3.org/2000/svg}text")}
        machine = node.topo().topo
        self.assertLessEqual({g["pci"] for g in machine["gpus"]}, shown)

    def test_a_page_of_a_foreign_name_cannot_read_it(self):
        """DNS rebinding: the browser sends the name that it thinks it talks to."""
        _, _, port = self.serve()
        for host in ("evil.example", f"evil.example:{port}", "localhost.evil.example",
                     f"{HOST}.evil.example:{port}", f"{socket.gethostname()}.evil.example"):
            status, text = get(port, "/", Host=host)
            self.assertEqual((status, "name of the node" in text, "<" in text), (403, True, False))
            for path in ("/metrics", "/healthz", "/readyz"):  # scrapes and probes use many names
                self.assertEqual(get(port, path, Host=host)[0], 200, path)
        for host in (f"{HOST}:{port}", "[::1]", "localhost:1", socket.gethostname().upper()):
            self.assertEqual(get(port, "/", Host=host)[0], 200, host)

    def test_many_who_look_at_once_get_what_was_made_once(self):
        _, _, port = self.serve()
        began = time.monotonic()
        pages = [get(port, "/")[1] for _ in range(100)]
        most = 2 + (time.monotonic() - began)
        self.assertLessEqual(len({re.search(r'nonce="([^"]+)"', page)[1] for page in pages}), most)
        self.assertEqual({page.endswith("</html>\n") for page in pages}, {True})

    def test_doctors_findings_are_those_of_railmatectl_and_follow_the_hardware(self):
        node, _, port = self.serve()
        self.assert_found(node, port, "UNKNOWN")
        vf = next(v["pci"] for v in node.topo().topo["vfs"] if v["rdma"])
        node.unbind(vf, "vfio-pci")
        self.daemon.child.send_signal(signal.SIGHUP)
        self.assert_found(node, port, "FAIL")
        text = get(port, "/")[1]
        self.assertIn(f"<p>VF {vf} is bound to vfio-pci.</p>", text)
        self.assertLess(text.index(">FAIL</b> <b>driver</b>"), text.index(">UNKNOWN</b> <b>"))

    def test_a_doctor_that_dies_takes_nothing_along(self):
        node, port = self.node(), free_port()
        folder, features = pathlib.Path(node.path("bin")), pathlib.Path(node.path("features"))
        folder.mkdir()
        shutil.copy(program("railmated"), folder)
        (folder / "railmatectl").write_text("#!/bin/sh\nkill -SEGV $$\n", encoding="ascii")
        (folder / "railmatectl").chmod(0o755)
        with unittest.mock.patch.dict(os.environ, RAILMATED=str(folder / "railmated")):
            _, daemon = node.start(daemon=(f"--metrics-address={HOST}:{port}", f"--nfd-file={features}"))
        why = "railmatectl doctor was ended by signal 11"
        until(lambda: f">Not checked: {why}</p>" in get(port, "/")[1], "the page says so")
        until(lambda: ">No picture: railmatectl topo was ended by signal 11</p>" in get(port, "/")[1], "and of the picture")
        self.assertIn(f'tried again when the hardware changes error="{why}"', daemon.stderr())
        self.assertFalse("railmate_doctor_findings{" in get(port, "/metrics")[1])
        self.assertIn("railmate.doctor=unknown\n", features.read_text(encoding="ascii"))
        self.assertEqual(get(port, "/readyz")[0], 200)

    def assert_found(self, node, port, verdict):
        until(lambda: f">{verdict}</b></h2>" in get(port, "/")[1], f"doctor says {verdict}")
        found = [f["verdict"].lower() for c in node.doctor()["checks"] for f in c["findings"]]
        metrics = Exposition(get(port, "/metrics")[1])
        self.assertEqual({v: metrics.value("railmate_doctor_findings", verdict=v)
                          for v in ("pass", "unknown", "warn", "fail")},
                         {v: found.count(v) for v in ("pass", "unknown", "warn", "fail")})

    def browse(self, server, *flags, path="/"):
        with tempfile.TemporaryDirectory() as profile:
            run = subprocess.run([
                CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *flags,
                f"http://127.0.0.1:{server.server_address[1]}{path}"
            ], capture_output=True, text=True, timeout=120, env={**os.environ, "HOME": profile})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual([line for line in run.stderr.splitlines() if "CONSOLE" in line], [])
        return run.stdout

    @unittest.skipUnless(CHROMIUM, "no Chromium")
    def test_it_shows_what_happens_without_being_loaded_again(self):
        _, kubelet, port = self.serve()

        def admit(hits):
            if hits == 1:
                kubelet.admit("newcomer", f"main:{GPU}=1,{VF}=1", order="gpu-first")
                kubelet.ask("prestart newcomer")
                # What is shown is a second old at least; the browser's clock stands still meanwhile.
                until(lambda: "default/newcomer" in get(port, "/")[1], "the pod is shown")

        with Between(port, admit) as server:
            dom = self.browse(server, "--dump-dom", f"--virtual-time-budget={4 * REFRESH_MS}")
        self.assertGreaterEqual(server.hits, 2)
        self.assertTrue("default/newcomer" in dom)
        self.assertNotIn("no answer for 1", dom)

    @unittest.skipUnless(CHROMIUM, "no Chromium")
    def test_it_fits_a_narrow_screen(self):
        """A headless window has at least 500; a frame may be narrower."""
        _, kubelet, port = self.serve()
        kubelet.admit("train", f"main:{GPU}=8,{VF}=8", order="gpu-first")
        kubelet.ask("prestart train")
        for width in (400, 1280):
            frame = (
                f'<iframe src="/" width="{width}" height="800" onload="document.title=\'width \'+'
                'this.contentDocument.documentElement.scrollWidth"></iframe>')
            with Between(port, frame=frame) as server:
                dom = self.browse(server, "--dump-dom", "--window-size=1400,900", path="/frame")
            wide = int(re.search(r"<title>width (\d+)</title>", dom).group(1))
            self.assertLessEqual(wide, width)
            self.assertGreater(wide, width - 30)  # it is the page that was measured

    @unittest.skipUnless(CHROMIUM, "no Chromium")
    def test_it_is_light_or_dark_as_the_reader_likes(self):
        _, _, port = self.serve()
        frame = ('<iframe src="/" onload="const w=this.contentWindow,'
                 "of=n=>w.getComputedStyle(w.document.querySelector(n));"
                 "document.title=of('body').backgroundColor+' '+of('body').color+' '"
                 "+of('main svg>rect').fill\"></iframe>")
        for like, colors in ((1, "rgb(255, 255, 255) rgb(31, 41, 51) rgb(255, 255, 255)"),
                             (0, "rgb(18, 23, 29) rgb(221, 227, 234) rgb(18, 23, 29)")):
            with Between(port, frame=frame) as server:
                dom = self.browse(server, "--dump-dom",
                                  f"--blink-settings=preferredColorScheme={like}", path="/frame")
            self.assertIn(f"<title>{colors}</title>", dom)


if __name__ == "__main__":
    main()
