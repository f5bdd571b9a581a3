#!/usr/bin/python3
"""What is known of NIC drivers is in pkg/hw/driver.c alone: no other file of pkg/ or cmd/ compares
with such a name, and every driver of a NIC in the fixtures has its row."""
import pathlib
import re
import sys
import unittest

TOP = pathlib.Path(__file__).parents[2]
TABLE = "pkg/hw/driver.c"
# The same word for another thing.
OTHER = {
    "pkg/devstate/devstate.c": {"uio"},
    "pkg/render/env.c": {"uio"},  # a key of PCIDEVICE_…_INFO
    "cmd/railmatectl/verify/rules.c": {"efa"},  # a provider of libfabric
}
TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|'(?:\\.|[^'\\])'|\"((?:\\.|[^\"\\])*)\"", re.S)


def names():
    """Every name in the table: drivers, modules, and what names of RDMA devices begin with."""
    text = (TOP / TABLE).read_text()
    return set(re.findall(r'\.(?:name|vf|rdma_module|rdma_prefix) = "([^"]+?)_?"', text))


def literals(text):
    """The string literals of C source, those that stand side by side as one."""
    found, end = [], None
    for token in TOKEN.finditer(text):
        if token.group(1) is None:
            continue
        if end is not None and not text[end:token.start()].strip():
            found[-1] += token.group(1)
        else:
            found.append(token.group(1))
        end = token.end()
    return found


def spelt(text, known):
    """Literals that are such a name. One inside a sentence is an example for people."""
    return {s.rstrip("_") for s in literals(text)} & known


def nics_drivers(tree):
    """The drivers of the network functions of a host.tree."""
    lines = tree.read_text(errors="replace").splitlines()
    nics = {m.group(1) for m in (re.match(r"f (\S+)/class = 0x02", line) for line in lines) if m}
    links = (re.match(r"l (\S+)/driver -> \S*/(\S+)$", line) for line in lines)
    return {m.group(2) for m in links if m and m.group(1) in nics}


class Drivers(unittest.TestCase):
    def test_only_the_table_spells_their_names(self):
        known = names()
        for path in sorted([*TOP.glob("pkg/**/*.[ch]"), *TOP.glob("cmd/**/*.[ch]")]):
            rel = str(path.relative_to(TOP))
            if rel == TABLE:
                continue
            with self.subTest(rel):
                self.assertEqual(spelt(path.read_text(), known) - OTHER.get(rel, set()), set())

    def test_every_exception_is_one(self):
        for rel, words in OTHER.items():
            with self.subTest(rel):
                self.assertEqual(spelt((TOP / rel).read_text(), words), words)

    def test_every_driver_of_a_nic_in_a_fixture_has_a_row(self):
        known = names()
        for tree in sorted(TREES.glob("*/host.tree")):
            with self.subTest(tree.parent.name):
                self.assertEqual(nics_drivers(tree) - known, set())


if __name__ == "__main__":
    TREES = pathlib.Path(sys.argv.pop(1))
    unittest.main()
