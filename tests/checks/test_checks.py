#!/usr/bin/python3
"""The checks themselves: each finds what it is there to find, in a small tree made for it."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

HACK = pathlib.Path(__file__).resolve().parents[2] / "hack"

ROOMS = """railmate_room(base)
railmate_room(hw USES base FOREIGN PkgConfig::libpci PkgConfig::numa)
railmate_room(config PURE USES base FOREIGN PkgConfig::jansson)
railmate_room(rpc USES base FOREIGN PkgConfig::grpc_unsecure)
railmate_room(kubelet USES base rpc FOREIGN rm_protobuf)
railmate_room(kubeapi USES base rpc kubelet FOREIGN PkgConfig::libcurl)
railmate_room(watch USES base FOREIGN PkgConfig::libmnl)
railmate_room(web USES base FOREIGN PkgConfig::libmicrohttpd)
railmate_room(daemon USES base hw config rpc kubelet kubeapi watch FOREIGN PkgConfig::libuv)
"""


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)
        self.write("pkg/CMakeLists.txt", ROOMS)
        self.write("pkg/base/base.h", "#include <stddef.h>\n")
        self.write("pkg/base/base.c", '#include "base/base.h"\n#include <sys/types.h>\n')

    def write(self, name, text):
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_check(self, name):
        run = subprocess.run([HACK / "checks" / name, str(self.top)], capture_output=True, text=True,
                             timeout=60, env={**os.environ, "PYTHONPATH": str(HACK)})
        return run.returncode, run.stderr


class Layers(Tree):
    def setUp(self):
        super().setUp()
        self.write_table()

    def write_table(self, **uses):
        """HACKING.md's, of ROOMS but for these."""
        rows = re.findall(r"^railmate_room\((\w+)(?: PURE)?(?: USES (.*?))?(?: FOREIGN.*)?\)", ROOMS,
                          re.M)
        table = "".join(f"| `{room}` | x | {uses.get(room, names)} | |\n" for room, names in rows)
        self.write("HACKING.md", f"## Rooms\n\n{table}\n## Threads\n")

    def expect(self, words):
        code, said = self.run_check("layers")
        self.assertEqual(code, 1, said)
        self.assertIn(words, said)

    def test_is_silent_about_a_tree_that_keeps_the_rules(self):
        self.write("pkg/hw/hw.c",
                   '#include "base/base.h"\n#include <pci/pci.h>\n#include <numa.h>\n')
        self.write("cmd/x/main.c", '#include "hw/hw.h"\n#include <stdio.h>\n')
        self.assertEqual(self.run_check("layers"), (0, ""))

    def test_finds_an_include_from_below(self):
        self.write("pkg/base/up.c", '#include "hw/hw.h"\n')
        self.expect("pkg/base/up.c: includes hw/hw.h")

    def test_finds_an_include_from_a_room_beside(self):
        self.write("pkg/config/side.c", '#include "hw/hw.h"\n')
        self.expect("pkg/config/side.c: includes hw/hw.h, but config may use only: base")

    def test_finds_a_header_of_base_and_a_struct_ahead_without_a_use(self):
        self.write("pkg/base/str.h", "struct other;\nint str_len(struct other *s);\n#define STR 1\n")
        for name, code in (("called", "str_len(0)"), ("macro", "STR"), ("idle", "stray")):
            self.write(f"pkg/hw/{name}.c", f'#include "base/str.h"\nint x = {code};\n')
        self.write("pkg/hw/hw.h", "struct a;\nstruct b;\nint hw(struct b *b);\n")
        code, said = self.run_check("layers")
        self.assertEqual(code, 1, said)
        self.assertEqual(said, "pkg/hw/hw.h: declares a and does not name it again\n"
                         "pkg/hw/idle.c: includes base/str.h and uses nothing of it\n")

    def test_finds_an_internal_header_of_another_room(self):
        self.write("pkg/hw/hw.c", '#include "hw/hw-internal.h"\n#include "base/base-internal.h"\n')
        self.write("cmd/x/main.c", '#include "base/base-internal.h"\n')
        self.expect(
            "pkg/hw/hw.c: includes base/base-internal.h, which is for the files of base alone")
        self.expect("cmd/x/main.c: includes base/base-internal.h")
        self.assertNotIn("hw/hw-internal.h", self.run_check("layers")[1])

    def test_finds_an_edge_in_a_pure_room(self):
        self.write("pkg/config/x.c",
                   '#include "base/base.h"\n#include <string.h>\n#include <sys/queue.h>\n'
                   '#include <linux/pci_regs.h>\n')
        self.assertEqual(self.run_check("layers"), (0, ""))
        self.write("pkg/config/y.c", '#include "base/clock.h"\n#include <unistd.h>\n'
                   '#include <linux/netlink.h>\n')
        self.expect("pkg/config/y.c: includes base/clock.h, but config is pure")
        self.expect("pkg/config/y.c: includes unistd.h, but config is pure")
        self.expect("pkg/config/y.c: includes linux/netlink.h, but config is pure")

    def test_finds_a_pure_room_that_uses_an_edge(self):
        self.write("pkg/CMakeLists.txt",
                   ROOMS.replace("config PURE USES base", "config PURE USES base hw"))
        self.expect("room config is pure and uses hw, which is not")

    def test_finds_a_foreign_header_outside_its_room(self):
        self.write("pkg/hw/json.c", "#include <jansson.h>\n")
        self.expect("belongs to the room of PkgConfig::jansson alone")

    def test_finds_a_foreign_header_in_a_program(self):
        self.write("cmd/x/main.c", "#include <uv.h>\n")
        self.expect("cmd/x/main.c: includes uv.h")

    def test_finds_a_header_of_an_unknown_library(self):
        self.write("pkg/hw/x.c", "#include <openssl/ssl.h>\n")
        self.expect("neither ours, nor libc's")

    def test_finds_a_room_without_an_entry(self):
        self.write("pkg/attic/x.c", "#include <stdio.h>\n")
        self.expect("room attic is not in pkg/CMakeLists.txt")

    def test_finds_a_room_that_is_too_large(self):
        self.write("pkg/hw/a.c", '#include "base/base.h"\n' + "\n" * 3999)
        self.write("pkg/hw/hw.h", "\n" * 500)
        self.assertEqual(self.run_check("layers"), (0, ""))
        self.write("pkg/hw/hw.h", "\n" * 501)
        self.expect("pkg/hw: 4501 lines, more than 4500")

    def test_finds_a_table_that_is_no_layering(self):
        self.write("pkg/CMakeLists.txt",
                   ROOMS.replace("railmate_room(base)", "railmate_room(base USES hw)"))
        self.expect("room base uses hw, which is not above it")

    def test_finds_a_room_that_another_names_in_vain(self):
        self.write("pkg/base/base.h", "struct err {\n};\nint err_set(void); /* of hw */\n")
        self.write("pkg/hw/hw.h", "#include <stddef.h> /* err_set(), struct err */\n")
        self.expect("room hw names base and uses nothing of it")
        for text in ('#include "base/base.h"\nint x(struct err *e);\n', "int x(struct err *e);\n", "x = err_set();\n"):
            self.write("pkg/hw/hw.h", "#include <stddef.h>\n" + text)
            self.assertEqual(self.run_check("layers"), (0, ""), text)

    def test_finds_a_table_in_the_handbook_that_is_another(self):
        self.write_table(watch="hw base")
        self.expect("HACKING.md: room watch may use: base\n")
        self.write("HACKING.md", "## Rooms\n\n| `base` | x | | |\n")
        self.expect("HACKING.md: the table of rooms is not that of pkg/CMakeLists.txt")

    def test_finds_a_library_with_two_rooms(self):
        self.write("pkg/CMakeLists.txt",
                   ROOMS.replace("PkgConfig::libmnl", "PkgConfig::libmnl PkgConfig::numa"))
        self.expect("PkgConfig::numa has 2 user rooms")

    def test_lets_the_main_loop_be_in_each_room_that_names_it(self):
        self.write("pkg/CMakeLists.txt",
                   ROOMS.replace("PkgConfig::libmnl", "PkgConfig::libmnl PkgConfig::libuv"))
        self.write("pkg/watch/x.c", '#include "base/base.h"\n#include <uv.h>\n')
        self.assertEqual(self.run_check("layers"), (0, ""))
        self.write("pkg/web/x.c", "#include <uv.h>\n")
        self.expect("pkg/web/x.c: includes uv.h, which belongs to")


class Links(Tree):
    def expect(self, words):
        code, said = self.run_check("links")
        self.assertEqual(code, 1, said)
        self.assertIn(words, said)

    def test_is_silent_about_links_that_lead_somewhere(self):
        self.write(
            "docs/a.md",
            "# A\n## Two words, `code`\n## Same\n## Same\n[b](../b.md#title) [c](#same-1)\n"
            "[d](#two-words-code) [far](https://example.com/x#y) `[no](link)`\n"
            "```\n[no](link)\n# no heading\n```\n")
        self.write("b.md",
                   "# Title\n[a](docs/a.md) [docs](docs)\n```json\n{}\n```\n```yaml\na: 1\n```\n")
        self.assertEqual(self.run_check("links"), (0, ""))

    def test_finds_a_link_to_no_file(self):
        self.write("a.md", "see [b](docs/b.md)\n")
        self.expect("a.md: links to docs/b.md, which does not exist")

    def test_finds_a_link_to_no_heading(self):
        self.write("a.md", "# Title\n[b](#tilte)\n```\n# tilte\n```\n")
        self.expect("a.md: links to #tilte, and a.md has no such heading")

    def test_finds_a_block_that_does_not_parse(self):
        self.write("a.md", "# Title\n```json\n{,}\n```\n")
        self.expect("a.md: the json block at line 2 does not parse")
        self.write("a.md", "# Title\n```yaml\na: [1\n```\n")
        self.expect("a.md: the yaml block at line 2 does not parse")


class Names(Tree):
    def setUp(self):
        super().setUp()
        self.write("HACKING.md", "| room | names may also begin with |\n|---|---|\n")

    def allow(self, room, *words):
        text = (self.top / "HACKING.md").read_text()
        self.write("HACKING.md", f"{text}| `{room}` | {' '.join(f'`{word}`' for word in words)} |\n")

    def expect(self, words):
        code, said = self.run_check("names")
        self.assertEqual(code, 1, said)
        self.assertIn(words, said)

    def test_is_silent_about_names_that_keep_the_rules(self):
        self.write(
            "pkg/rpc/rpc.h",
            "struct rpc;\ntypedef void (*done_fn)(void *arg);\nstruct rpc *rpc_new(int (*why)(void))\n"
            "\t__attribute__((format(printf, 1, 2)));\nstatic inline int twice(int x)\n{\n\treturn f(x);\n}\n#define MAX(a) f(a)\n"
        )
        self.write("pkg/rpc/rpc-internal.h", "void wake(void);\n")
        self.write("pkg/rpc/guard.h",
                   "/* void old(void); */\nbool guard_is_open(const struct guard *g);\n")
        self.write("pkg/base/str.h", "void strbuf_add(struct strbuf *b);\n")
        self.allow("rpc", "guard_")
        self.allow("base", "strbuf_")
        self.assertEqual(self.run_check("names"), (0, ""))

    def test_finds_a_name_without_its_room(self):
        self.write("pkg/kubelet/pods.h",
                   "extern const int limit;\nconst char *\npods_name(void);\n")
        self.expect("pkg/kubelet/pods.h: pods_name() begins with none of: kubelet_")

    def test_finds_a_name_without_its_room_or_module(self):
        self.allow("hw", "bdf_", "vpd_")
        self.write("pkg/hw/vpd.h", "int vpd_read(void);\n")
        self.write("pkg/hw/bdf.h", "int bdf_parse(const char *s);\nint parse_bdf(const char *s);\nint vpd_bdf(void);\n")
        self.expect("pkg/hw/bdf.h: parse_bdf() begins with none of: hw_, bdf_\n")
        self.expect("pkg/hw/bdf.h: vpd_bdf() begins with none of: hw_, bdf_\n")

    def test_finds_a_module_that_is_not_listed_and_one_that_is_not_there(self):
        self.write("pkg/hw/bdf.h", "int bdf_parse(const char *s);\n")
        self.expect("pkg/hw/bdf.h: bdf_parse() begins with none of: hw_\n")
        self.allow("hw", "bdf_", "vpd_")
        self.expect("HACKING.md: no public name of pkg/hw begins with vpd_")


if __name__ == "__main__":
    unittest.main()
