"""No command prints what a terminal would obey: names come from pods, from other hosts' logs, from
whoever renamed an interface."""
import json
import pathlib
import re
import shutil
import sys
import tempfile
import unicodedata
import unittest

from program import CTL, DAEMON, FIXTURES, TOP, ProgramTest, run

sys.path.insert(0, str(TOP / "tests/support"))
from ledger import ledger_text

# Clears the screen, sets the title; the same with one byte of C1 in UTF-8; turns the order of what
# follows around.
HOSTILE = "\x1b]0;EVIL\x07", "\x9b2JEVIL", "\u202eEVIL"
HARMLESS = "\n\t"
P = "p-0:1:20 [0] NCCL INFO "


class Terminal(ProgramTest):
    @classmethod
    def setUpClass(cls):
        """A machine whose interfaces, RDMA devices and drivers were named by an enemy, in turn."""
        cls.top = pathlib.Path(tempfile.mkdtemp(prefix="railmate-cli-"))
        cls.addClassCleanup(shutil.rmtree, cls.top, True)
        tree = (FIXTURES / "hgx-h100/host.tree").read_text()
        netdevs = sorted(set(re.findall(r"/net/(\w+)/address", tree)))
        devices = sorted(set(re.findall(r"/infiniband/(\w+)/", tree)))
        for names in (netdevs, devices):
            for i, name in enumerate(names):
                text = HOSTILE[i % len(HOSTILE)].replace("EVIL", "EVIL%x" % i)
                escaped = "".join(c if 0x20 <= ord(c) < 0x7f else "".join("\\x%02x" % b
                                                                          for b in c.encode())
                                  for c in text)
                tree = re.sub(rf"\b{name}\b", lambda _, e=escaped: e, tree)
        (cls.top / "host.tree").write_text(tree)
        cls.machine = cls.top / "machine"
        done = run(CTL, "snapshot", "unpack", cls.top / "host.tree", cls.machine)
        assert done.returncode == 0, done.stderr

    def printed(self, *argv, shows="EVIL", stdin="", program=CTL):
        """What a command prints has the names, and nothing of what a terminal obeys."""
        done = run(program, *argv, **({"stdin": open(stdin, encoding="utf-8")} if stdin else {}))
        text = done.stdout + done.stderr
        found = [
            c for c in text
            if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in HARMLESS
        ]
        self.assertEqual(found, [], (argv, text))
        self.assertIn(shows, text)
        return done

    def test_topo_plan_and_simulate(self):
        self.printed("topo", "--root", self.machine)
        self.printed("topo", "--json", "--root", self.machine)
        self.printed("topo", "--svg", "--root", self.machine)
        self.printed("plan", "--root", self.machine, "--gpus", "0000:1b:00.0", "--vfs", "1",
                     shows="VF 0000")
        self.printed("plan", "--root", self.machine, "--gpus", "0000:1b:00.0", "--vfs", "1",
                     "--json", shows="VF 0000")
        self.printed("simulate", "--root", self.machine, "--pods", "5", shows="")

    def test_json_tells_the_names_as_they_are(self):
        text = run(CTL, "topo", "--json", "--root", self.machine).stdout
        names = {value for value in re.findall(r'"netdev": ("[^"]*EVIL[^"]*")', text)}
        self.assertEqual({json.loads(name)[0]
                          for name in names}, {name[0]
                                               for name in HOSTILE}, names)

    def test_the_topology_file(self):
        self.printed("topo", "--nccl-xml", "--root", self.machine, shows="<system")

    def test_doctor(self):
        self.printed("doctor", "--root", self.machine)
        self.printed("doctor", "--json", "--root", self.machine)
        self.printed("doctor", "--fix-manifest", "grub", "--root", self.machine, shows="")

    def test_snapshot_is_exact_all_the_same(self):
        done = self.printed("snapshot", "--root", self.machine)
        again = self.top / "again"
        (self.top / "copy").write_text(done.stdout)
        self.assertEqual(run(CTL, "snapshot", "unpack", self.top / "copy", again).returncode, 0)
        self.assertEqual(run(CTL, "snapshot", "--root", again).stdout, done.stdout)
        self.assertEqual({p.name for p in again.glob("sys/class/infiniband/*")},
                         {p.name for p in self.machine.glob("sys/class/infiniband/*")})

    def test_explain(self):
        for i, name in enumerate(HOSTILE):
            owner = {"namespace": "team", "pod": name, "uid": "u", "container": name}
            holds = [{
                "vf": "0000:18:00.1", "resource": "rdma/vf", **owner, "since_ms": 1795273331000,
                "decision": 1
            }]
            decisions = [{
                "number": 1, "at_ms": 1795273331000, "resource": "rdma/vf", **owner, "asked": 1,
                "known": "known", "free": [[name, 8]], "chosen": ["0000:18:00.1"], "pairs": []
            }]
            text = ledger_text(holds, decisions, escape=i == 0)
            (self.top / "ledger.json").write_text(text)
            for more in ((), ("--json",)):
                for what in (("last",), ("vf", "0000:18:00.1")):
                    done = self.printed("explain", *what, "--control-socket=none", "--state-dir",
                                        self.top, *more)
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_verify(self):
        for name in HOSTILE:
            log = self.write(
                f"{P}NET/IB : Using [0]{name}:1/RoCE [RO]; OOB {name}:10.1.0.4<0>\n{P}Using network {name}\n"
                f"p-0:1:20 [0] NCCL WARN Call to {name} failed: {name}\n", "log")
            for more in ((), ("--json",)):
                self.printed("verify", log, *more)
        self.printed("verify", "--counters", "begin", self.top / "counters", "--root", self.machine,
                     shows="")
        self.printed("verify", "--counters", "end", self.top / "counters", "--root", self.machine,
                     shows="")

    def test_refusals(self):
        for name in HOSTILE:
            path = self.write(
                json.dumps({"resourceList": [{"resourceName": name}]}, ensure_ascii=False))
            self.printed("topo", "--root", self.machine, "--config", path)
            self.printed("topo", "--root", f"/nowhere/{name}")
            self.printed("topo", name)
            self.printed("topo", f"--{name}")
            self.printed("topo", f"--json={name}")
            self.printed("topo", f"-{name}", shows="invalid option")
            self.printed("snapshot", f"--{name}")
            self.printed("verify", f"--{name}")
            self.printed("cluster", "status", f"--{name}")
            self.printed(name)
            for word in f"--{name}", f"-{name}", name, f"--check-config={name}", f"--cdi={name}":
                self.printed(word, program=DAEMON)
            self.printed("plan", "--root", self.machine, "--vfs", "1", "--gpus", name)
            self.printed("plan", "--root", self.machine, "--vfs", name)
            self.printed("explain", "vf", name)
            self.printed("verify", f"/nowhere/{name}")
            self.printed("snapshot", "unpack", self.write(f"f {name}\n", "tree"), "/nowhere/x",
                         shows="")


if __name__ == "__main__":
    unittest.main()
