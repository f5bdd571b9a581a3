"""What the real lldpd and the unit for systemd write is what railmatectl reads (docs/design/lldp.md)."""
import json
import os
import pathlib
import shutil
import tempfile
import unittest

from program import CTL, TOP, ProgramTest, machine, run

UNIT = TOP / "deploy/systemd/railmate-lldp.service"
MACHINE = "odd-dual-port"
CABLES = {"enp35s0f1np1": r"fab1-leaf\303\244", "enp49s0f0np0": "fab1-leaf10",
          "enp49s0f1np1": r"fab1-\"leaf9\007\377"}

# In namespaces of its own, where /run is empty: each interface has a cable to a switch.
LAB = r"""
set -e
mount -t tmpfs none /run
mkdir -p /run/lldpd /run/netns
ip link set lo up
cli=$(command -v lldpcli)
while read -r interface switch; do
	ip netns add "$interface"
	ip link add "$interface" type veth peer name swp1 netns "$interface"
	ip link set "$interface" up
	ip -n "$interface" link set swp1 up
	ip netns exec "$interface" lldpd -d -L "$cli" -u "/run/$interface.sock" -p "/run/$interface.pid" -O /dev/null >/run/log 2>&1 &
	at() { lldpcli -u "/run/$interface.sock" "$@"; }
	until at show interfaces >/run/log 2>&1; do sleep 0.1; done
	at configure system hostname "$(printf "$switch")"
	at configure lldp portidsubtype ifname
done <"$1/cables" >/run/log
# Before lldpd runs, and with all neighbours; those names that were sent first are sent once more.
! sh -ec "$2" 2>/run/log
cp -r /run/railmate "$1/before"
lldpd -d -L "$cli" -O /dev/null >/run/log 2>&1 &
until sh -ec "$2" 2>/run/log && [ "$(grep -c fab1- /run/railmate/lldp.json)" = "$(wc -l <"$1/cables")" ]; do
	for socket in /run/enp*.sock; do lldpcli -u "$socket" update >/run/log 2>&1; done
	sleep 0.1
done
cp -r /run/railmate "$1/after"
"""


def unit_commands():
    """What systemd would run, as a script."""
    lines = UNIT.read_text().splitlines()
    return "\n".join(line.removeprefix("ExecStart=") for line in lines if line.startswith("ExecStart="))


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("lldpd") and shutil.which("lldpcli"),
                     "needs root and lldpd: hack/install-deps test")
class RealLldpd(ProgramTest):
    def test_the_switches_it_heard_are_those_of_the_nics(self):
        with tempfile.TemporaryDirectory() as top:
            cables = "".join(f"{nic} {name}\n" for nic, name in CABLES.items())
            pathlib.Path(top, "cables").write_text(cables)
            done = run("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
                       "bash", "-c", LAB, "-", top, unit_commands())
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("lldp.json", os.listdir(f"{top}/before"))
            self.assertEqual(os.listdir(f"{top}/after"), ["lldp.json"])
            root = f"{top}/root"
            shutil.copytree(machine(MACHINE), root, symlinks=True)
            shutil.copytree(f"{top}/after", f"{root}/run/railmate")
            done = run(CTL, "topo", "--root", root, "--json")
        pfs = {pf["netdev"]: (pf["switch"], pf["switch_port"]) for pf in json.loads(done.stdout)["pfs"]}
        self.assertEqual(pfs["enp49s0f0np0"], ("fab1-leaf10", "swp1"), done.stderr)
        # Letters that are not ASCII, and bytes that are not letters.
        for nic in ("enp35s0f1np1", "enp49s0f1np1"):
            self.assertEqual(pfs[nic], (None, None))
            self.assertIn(f"the neighbour of {nic} has no name or port of plain text", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 2, done.stderr)


if __name__ == "__main__":
    unittest.main()
