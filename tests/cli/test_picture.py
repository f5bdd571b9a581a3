"""
railmatectl topo --svg from its users' side, and in a browser: every text has to keep to the frame
that it is in and to leave the others alone, whatever fonts there are. Without Chromium
(hack/install-deps browser) that part is skipped.
"""
import html
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

from program import CTL, FIXTURES, TOP, ProgramTest, machine, run

sys.path[:0] = str(TOP / "tests/fixtures"), str(TOP / "tests/support")
import picture
from ledger import ledger_text

HGX = "hgx-h100"
HELD = ("--control-socket=none", "--state-dir", TOP / "tests/fixtures" / HGX)
CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome")
                 if (path := shutil.which(name))), None)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars")
FONTS = "Helvetica, Arial, sans-serif", "'DejaVu Sans', Verdana, sans-serif"  # usual ones, and the widest of the usual ones
MACHINES = sorted(path.parent.name for path in FIXTURES.glob("*/host.tree"))


def svg(name, *args):
    done = run(CTL, "topo", "--svg", "--root", machine(name), *args)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Picture(ProgramTest):
    def topo(self, name):
        return self.one_object(run(CTL, "topo", "--json", "--root", machine(name)))

    def test_a_wrong_command_line_is_refused(self):
        for other in ("--json", "--nccl-xml"):
            self.refused(run(CTL, "topo", "--svg", other, "--root", machine(HGX)), 2,
                         "one at a time")
        for other in ("--control-socket=none", "--state-dir=/nowhere"):
            self.refused(run(CTL, "topo", other, "--root", machine(HGX)), 2, "for --svg")

    def test_shows_the_pods_that_hold_vfs(self):
        top = picture.check(svg(HGX, *HELD), self.topo(HGX))
        told = picture.cells(top)
        self.assertEqual(told["0000:40:00.1"], "0000:40:00.1 mlx5_20: ml/train-0")
        self.assertEqual(told["0000:40:00.2"], "0000:40:00.2 mlx5_21")
        for pod, vfs in (("ml/train-0", "4 VFs; GPU 0, 1, 2, 3"), ("inference/chat-6d9f8-x2kpl",
                                                                   "1 VF; GPU 6")):
            self.assertIn(pod, picture.texts(top))
            self.assertIn(vfs, picture.texts(top))
        self.assertIn("A", picture.texts(picture.tile(top, "0000:43:00.0")))
        self.assertIn("8 VFs, 2 held", picture.texts(picture.tile(top, "0000:dc:00.0")))

    def test_a_class_by_data_direct_has_a_mark(self):
        for name, gpu, marked in (("gb300-like", "0008:06:00.0", True), (HGX, "0000:43:00.0",
                                                                         False)):
            top = picture.check(svg(name), self.topo(name))
            classes = [t for t in picture.texts(picture.tile(top, gpu)) if t[:2] in ("PI", "PX")]
            self.assertEqual([t[3:] for t in classes], ["*" if marked else ""], name)
            self.assertEqual("by data direct" in picture.texts(top), marked, name)

    def test_the_ledger_is_named_when_the_daemon_is_not_asked(self):
        done = run(CTL, "topo", "--svg", "--root", machine(HGX), *HELD)
        self.assertIn("railmated was not asked; this is what its ledger in", done.stderr)

    def test_another_machine_is_not_asked_for_this_ones_pods(self):
        done = run(CTL, "topo", "--svg", "--root", machine(HGX))
        self.assertEqual(done.stderr, "")
        self.assertNotIn("held", done.stdout)

    def test_without_daemon_and_ledger_there_is_a_picture(self):
        done = run(CTL, "topo", "--svg", "--root", machine(HGX), "--control-socket=/nowhere/socket",
                   "--state-dir=/nowhere")
        self.assertEqual(done.returncode, 0)
        self.assertIn("the picture does not show who holds VFs: railmated does not run",
                      done.stderr)
        self.assertEqual(done.stdout, svg(HGX))

    def test_of_a_broken_ledger_there_is_a_picture(self):
        folder = self.write("{", "ledger.json").parent
        done = run(CTL, "topo", "--svg", "--root", machine(HGX), "--control-socket=none",
                   "--state-dir", folder)
        self.assertEqual((done.returncode, done.stdout), (0, svg(HGX)))
        self.assertIn("ledger.json", done.stderr)


# Of all pictures of a page: {machine: [what is wrong]}. A text belongs to the first frame of its
# group, else to the page.
MEASURE = """
const wrong = {};
const inside = (a, b) => a.x >= b.x - 1 && a.y >= b.y - 1 && a.x + a.width <= b.x + b.width + 1 && a.y + a.height <= b.y + b.height + 1;
const apart = (a, b) => a.x + a.width <= b.x + 1 || b.x + b.width <= a.x + 1 || a.y + a.height <= b.y + 4 || b.y + b.height <= a.y + 4;
for (const font of FONTS) {
  document.getElementById('font').textContent = 'text { font-family: ' + font + ' !important }';
  for (const svg of document.querySelectorAll('svg')) {
    const name = svg.parentNode.id, found = wrong[name] = wrong[name] || [];
    const groups = new Map();
    for (const text of svg.querySelectorAll('text')) {
      const group = text.closest('g') || svg, box = text.getBBox();
      const frame = group === svg ? svg.viewBox.baseVal : group.querySelector(':scope > rect').getBBox();
      if (!box.width) found.push(font + ': ' + text.textContent + ' is not drawn');
      if (!inside(box, frame)) found.push(font + ': ' + text.textContent + ' leaves its frame');
      for (const [other, words] of groups.get(group) || [])
        if (!apart(box, other)) found.push(font + ': ' + text.textContent + ' lies on ' + words);
      groups.set(group, [...(groups.get(group) || []), [box, text.textContent]]);
    }
  }
}
document.body.textContent = JSON.stringify(wrong);
"""


def pixels(data):
    """Rows of (r, g, b) of a PNG of 8 bits a channel without interlacing, as Chromium writes it."""
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, _, depth, color, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert (depth, interlaced) == (8, 0) and color in (2, 6), body
        elif kind == b"IDAT":
            packed += body
        at += size + 12
    step = 4 if color == 6 else 3
    raw, line = zlib.decompress(packed), bytes(width * step)
    for start in range(0, len(raw), width * step + 1):
        how, line = raw[start], unfiltered(raw[start], raw[start + 1:start + 1 + width * step],
                                           line, step)
        assert how <= 4
        yield [tuple(line[i:i + 3]) for i in range(0, len(line), step)]


def unfiltered(how, row, above, step):
    out = bytearray(row)
    if how == 2:
        return bytes((a + b) & 255 for a, b in zip(row, above))
    for i in range(len(row)) if how else ():
        left, up, corner = (out[i - step], above[i],
                            above[i - step]) if i >= step else (0, above[i], 0)
        if how == 1:
            guess = left
        elif how == 3:
            guess = (left + up) // 2
        else:
            guess = min(
                (left, up, corner),
                key=lambda v: abs(left + up - corner - v)) if left != up or up != corner else up
        out[i] = (row[i] + guess) & 255
    return bytes(out)


@unittest.skipUnless(
    CHROMIUM, "there is no Chromium: nobody looked at the pictures (hack/install-deps browser)")
class Browser(ProgramTest):
    def chromium(self, *args):
        with tempfile.TemporaryDirectory(prefix="railmate-browser-") as home:
            done = subprocess.run([CHROMIUM, *FLAGS, f"--user-data-dir={home}/profile", *args],
                                  stdin=subprocess.DEVNULL, capture_output=True,
                                  env={**os.environ, "HOME": home}, timeout=200, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode()

    def measure(self, pictures):
        body = "".join(f'<div id="{name}">{text}</div>\n' for name, text in pictures.items())
        page = self.write(
            '<!DOCTYPE html><html><head><meta charset="utf-8"><style id="font"></style></head><body>\n'
            + body +
            f"<script>const FONTS = {json.dumps(FONTS)};{MEASURE}</script></body></html>\n",
            "page.html")
        shown = self.chromium("--dump-dom", f"file://{page}")
        return json.loads(html.unescape(re.search(r"<body>(.*)</body>", shown, re.S).group(1)))

    def crowded(self):
        """Every VF held by a pod of its own, and all names as wide and as long as they can be."""
        tree = (FIXTURES / HGX / "host.tree").read_text()
        for i, name in enumerate(
                sorted(
                    set(re.findall(r"/net/(\w+)/address", tree))
                    | set(re.findall(r"/infiniband/(\w+)/", tree)))):
            tree = re.sub(rf"\b{name}\b", "W" * 11 + f"{i:04}", tree)
        tree = tree.replace("NVIDIA H100 80GB HBM3", "W" * 60)
        root = self.write(tree, "host.tree").parent / "machine"
        self.assertEqual(
            run(CTL, "snapshot", "unpack", root.parent / "host.tree", root).returncode, 0)
        vfs = [
            v["pci"] for v in json.loads(run(CTL, "topo", "--json", "--root", root).stdout)["vfs"]
        ]
        gpus = [f"0000:{bus}:00.0" for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df")]
        common = {"resource": "rdma/vf", "namespace": "M" * 63, "uid": "u", "container": "main"}
        holds = [{**common, "vf": vf, "pod": "W" * 250 + f"{i:03}", "since_ms": 1, "decision": 1}
                 for i, vf in enumerate(vfs)]
        chosen = {
            **common, "pod": "W", "number": 1, "at_ms": 1, "asked": len(vfs), "known": "known",
            "free": [], "chosen": vfs, "pairs": [], "checked": True, "real_gpus": gpus
        }
        state = self.write(ledger_text(holds, [chosen]), "ledger.json").parent
        done = run(CTL, "topo", "--svg", "--root", root, "--control-socket=none", "--state-dir",
                   state)
        self.assertIn(f">{'A' * 2}</text>", done.stdout)
        return done.stdout

    def test_every_text_keeps_to_its_frame(self):
        pictures = {name: svg(name) for name in MACHINES}
        pictures |= {"held": svg(HGX, *HELD), "crowded": self.crowded()}
        spoilt = svg(HGX).replace(">GPU0<",
                                  ">GPU0 with a name that is much too long for its frame<")
        wrong = self.measure({**pictures, "spoilt": spoilt})
        self.assertTrue(wrong.pop("spoilt"))
        self.assertEqual(set(wrong), set(pictures))
        self.assertEqual({name: found for name, found in wrong.items() if found}, {})

    def test_what_is_seen(self):
        """GPUs, NICs and the VFs of each pod have their colours on a white page."""
        text = svg(HGX, *HELD)
        height = int(re.search(r'height="(\d+)"', text).group(1))
        page = self.write(f'<!DOCTYPE html><body style="margin:0">{text}', "page.html")
        shot = pathlib.Path(page).with_name("shot.png")
        self.chromium(f"--window-size=1000,{height + 200}", f"--screenshot={shot}",
                      f"file://{page}")
        rows = list(pixels(shot.read_bytes()))
        self.assertEqual((len(rows), len(rows[0])), (height + 200, 1000))
        self.assertEqual({color for row in rows[:10] for color in row}, {(255, 255, 255)})
        seen = {}
        for row in rows:
            for color in row:
                seen[color] = seen.get(color, 0) + 1
        for name, color, least in (("GPU", (0xe3, 0xf4, 0xe1), 8 * 5000), ("NIC", (0xe6, 0xef,
                                                                                   0xfb), 8 * 8000),
                                   ("first pod", (0xb3, 0x3a, 0x00),
                                    13 * 80), ("fourth pod", (0x00, 0x69, 0x5c), 5 * 80)):
            self.assertGreater(seen.get(color, 0), least, name)


if __name__ == "__main__":
    unittest.main()
