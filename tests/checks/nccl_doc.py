#!/usr/bin/python3
"""docs/nccl-variables.md against the code: every variable that the code can set is in a table and
the other way round, the rows of the operator's variables say what the code's own table says, and
each variable has tests that exist (nccl_proofs.json). docs/nccl.md, the guide, is short.

    nccl_doc.py POLICY_TABLE RAILMATECTL FIXTURES

FIXTURES is a build's folder of machines. UPDATE_GOLDEN=1 writes the rows that come from the code's
table.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
DOC, GUIDE = TOP / "docs/nccl-variables.md", TOP / "docs/nccl.md"
PROOFS = json.loads((TOP / "tests/checks/nccl_proofs.json").read_text())
PREFIXES = "NCCL|RCCL|UCX|NVSHMEM|MSCCLPP|FI|CCL|PSM3|HSA|CUFILE"
VARIABLE = re.compile(rf"(?:{PREFIXES})_[A-Z0-9_]+")
SET = re.compile(rf'\b(?:env_put|add_env|add_index)\([^,();]*,\s*"((?:{PREFIXES})_[A-Z0-9_]+)"')

OURS = "What railmate sets"
GENERATED = {
    "free": "What only you can know", "risky": "What is right without you",
    "gone": "What is no longer read"
}
TABLE = POLICY_TABLE = RAILMATECTL = FIXTURES = None


def section(text, heading):
    """The text below a heading, up to the next one."""
    match = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.M | re.S)
    if not match:
        raise AssertionError(f"{DOC.name} has no heading '{heading}'")
    return match.group(1)


def rows(text):
    """The cells of a table's rows, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def cell(text):
    return (text or "").replace("|", "\\|")


def names(row):
    return VARIABLE.findall(row[0])


def generated(cls):
    """The table of a class, as it has to be."""
    if cls == "gone":
        head = ["variable", "of", "since"]
        body = [[f"`{v['name']}`", ", ".join(v["profiles"]), f"{v['removed']}: {v['meaning']}"]
                for v in TABLE if v["class"] == cls]
    else:
        head = ["variable", "of", "values", "without it", "since", "what it does", "risk"]
        body = [[
            f"`{v['name']}`", ", ".join(v["profiles"]),
            cell(v["legal"]),
            cell(v["otherwise"]), v["since"] or "",
            cell(v["meaning"]),
            cell(v["risk"])
        ] for v in TABLE if v["class"] == cls]
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, *body]).replace(
        "|\n", f"|\n|{'---|' * len(head)}\n", 1)


def of_class(*classes):
    return {v["name"] for v in TABLE if v["class"] in classes}


def rendered():
    """What the code that writes a container's environment sets."""
    found = set()
    for path in (TOP / "pkg/render").glob("*.c"):
        found.update(SET.findall(path.read_text()))
    return found


class Doc(unittest.TestCase):
    def setUp(self):
        self.text = DOC.read_text()
        self.ours = rows(section(self.text, OURS))

    def test_the_operators_variables_are_as_in_the_code(self):
        text = self.text
        for cls, heading in GENERATED.items():
            below = section(text, heading)
            table = re.search(r"^\|.*\n(?:\|.*\n)*", below, re.M).group(0)
            if os.environ.get("UPDATE_GOLDEN") == "1":
                text = text.replace(heading + "\n" + below,
                                    heading + "\n" + below.replace(table, generated(cls)))
                continue
            self.assertEqual(table.splitlines(),
                             generated(cls).splitlines(),
                             "UPDATE_GOLDEN=1 puts the code's table there")
        if text != self.text:
            DOC.write_text(text)

    def test_what_railmate_sets_is_in_the_table_and_in_the_code(self):
        listed = [name for row in self.ours for name in names(row)]
        self.assertEqual(len(listed), len(set(listed)))
        self.assertEqual(set(listed), rendered())

    def test_what_railmate_sets_is_not_the_operators_or_it_says_so(self):
        listed = {name for row in self.ours for name in names(row)}
        self.assertEqual(of_class("ours") - listed, set())
        sentence = section(self.text, OURS).rpartition("|")[2]
        self.assertEqual(listed - of_class("ours"), set(VARIABLE.findall(sentence)))

    def test_every_row_of_what_railmate_sets_is_whole(self):
        for row in self.ours:
            with self.subTest(row[0]):
                self.assertEqual(len(row), 6)
                self.assertTrue(all(row), row)

    def test_keys_are_those_of_the_code(self):
        keys = {v["name"]: v["key"] for v in TABLE if v["class"] == "ours"}
        for row in self.ours:
            for name in names(row):
                if keys.get(name):
                    self.assertIn(f"`{keys[name]}`", row[1], name)

    def test_every_variable_has_tests_that_exist(self):
        self.assertEqual({name
                          for row in self.ours
                          for name in names(row)},
                         PROOFS.keys() - {"the operator's variables"})
        for variable, proofs in PROOFS.items():
            self.assertTrue(proofs, variable)
            for proof in proofs:
                with self.subTest(f"{variable}: {proof}"):
                    path, name = proof.split(": ")
                    text = (TOP / "tests" / path).read_text()
                    called = rf"\b(?:cmocka_unit_test\w*|T|TEST|UNIT)\({name}\b" if path.endswith(
                        ".c") else rf"\bdef {name}\("
                    self.assertTrue(re.search(called, text), "there is no such test")


# A legal value of each variable whose values are not a range or a list of words.
SAMPLES = {
    "NCCL_NET": "IB",
    "NCCL_NET_PLUGIN": "none",
    "NCCL_NETDEVS_POLICY": "MAX:2",
    "NCCL_NET_FORCE_MERGE": "mlx5_0,mlx5_1",
    "NCCL_TOPO_DUMP_FILE": "/tmp/topo.xml",
    "NCCL_HOSTID": "h1",
    "NCCL_SOCKET_IFNAME": "eth0",
    "NCCL_OOB_NET_IFNAME": "mlx5",
    "NCCL_RAS_ADDR": "localhost:28029",
    "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV",
    "NCCL_DEBUG_FILE": "/tmp/%h.%p",
    "NCCL_COMM_ID": "10.0.0.1:1234",
    "NCCL_ALGO": "Ring",
    "NCCL_PROTO": "Simple",
    "UCX_NET_DEVICES": "eth0",
    "UCX_TLS": "rc,cuda,sm",
    "NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME": "eth0",
    "NVSHMEM_HCA_LIST": "mlx5_0:1",
    "NVSHMEM_HCA_PE_MAPPING": "mlx5_0:1:2",
    "MSCCLPP_SOCKET_IFNAME": "eth0",
    "FI_PROVIDER": "verbs;ofi_rxm",
    "FI_VERBS_NIC_AFFINITY_POLICY": "ratio",
    "FI_VERBS_IFACE": "net1",
    "FI_TCP_IFACE": "eth0",
    "CCL_KVS_IFACE": "eth0",
    "CUFILE_ENV_PATH_JSON": "/etc/cufile.json",
}


def sample(var):
    """The lowest number, the first word, else what stands above."""
    if var["name"] in SAMPLES:
        return SAMPLES[var["name"]]
    return re.match(r"-?\w+", var["legal"]).group(0)


PROFILES = ["nccl", "rccl", "ucx", "nvshmem", "mscclpp", "ofi", "oneccl"]


class Container(unittest.TestCase):
    """The environment of a container, as railmatectl plan tells it."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="railmate-variables-")
        cls.addClassCleanup(folder.cleanup)
        cls.root, cls.config = pathlib.Path(folder.name) / "root", pathlib.Path(
            folder.name) / "config.json"
        subprocess.run(
            [RAILMATECTL, "snapshot", "unpack", FIXTURES / "l40s-no-affinity/host.tree", cls.root],
            check=True, capture_output=True, timeout=60)

    def plan(self, railmate, vfs=1):
        """What railmatectl plan says of a pool with these settings."""
        self.config.write_text(
            json.dumps({
                "resourceList": [{
                    "resourcePrefix": "rdma", "resourceName": "vf", "selectors": {"isRdma": True},
                    "railmate": railmate
                }]
            }))
        return subprocess.run([
            RAILMATECTL, "plan", "--root", self.root, "--config", self.config, "--vfs",
            str(vfs), "--json"
        ], capture_output=True, text=True, timeout=60)

    def env(self, railmate, vfs=1):
        done = self.plan(railmate, vfs)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["env"]

    def test_two_vfs_of_a_port_are_not_fused(self):
        self.assertNotIn("NCCL_IB_MERGE_NICS", self.env({}, vfs=2))
        got = self.env({"env": {"NCCL_NET_MERGE_LEVEL": "PIX"}}, vfs=3)
        self.assertEqual((got["NCCL_IB_MERGE_NICS"], got["NCCL_NET_MERGE_LEVEL"]), ("0", "LOC"))

    def test_every_variable_of_the_operator_reaches_it(self):
        wanted = {v["name"]: sample(v) for v in TABLE if v["class"] != "ours"}
        got = self.env({"env": wanted, "profiles": PROFILES})
        vf = got["UCX_NET_DEVICES"].partition(",")[0]
        wanted["UCX_NET_DEVICES"] = f"{vf},eth0"
        self.assertEqual({name: got.get(name) for name in wanted}, wanted)

    def test_what_railmate_sets_is_left_out_by_name(self):
        for name in sorted(of_class("ours")):
            done = self.plan({"env": {name: "1"}, "profiles": PROFILES})
            self.assertEqual(done.returncode, 0, name)
            self.assertRegex(done.stderr,
                             rf"{name}: railmate sets this.*; the variable is left out")


if __name__ == "__main__":
    FIXTURES = pathlib.Path(sys.argv.pop(3))
    RAILMATECTL = sys.argv.pop(2)
    POLICY_TABLE = sys.argv.pop(1)
    TABLE = json.loads(
        subprocess.run([POLICY_TABLE], capture_output=True, check=True, timeout=60).stdout)
    unittest.main()
