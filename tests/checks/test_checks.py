#!/usr/bin/python3
"""The checks themselves: each finds what it is there to find, in a small tree made for it."""
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
        run = subprocess.run([HACK / name, str(self.top)], capture_output=True, text=True,
                             timeout=60)
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
        code, said = self.run_check("check-layers")
        self.assertEqual(code, 1, said)
        self.assertIn(words, said)

    def test_is_silent_about_a_tree_that_keeps_the_rules(self):
        self.write("pkg/hw/hw.c",
                   '#include "base/base.h"\n#include <pci/pci.h>\n#include <numa.h>\n')
        self.write("cmd/x/main.c", '#include "hw/hw.h"\n#include <stdio.h>\n')
        self.assertEqual(self.run_check("check-layers"), (0, ""))

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
        code, said = self.run_check("check-layers")
        self.assertEqual(code, 1, said)
        self.assertEqual(said, "pkg/hw/hw.h: declares a and does not name it again\n"
                         "pkg/hw/idle.c: includes base/str.h and uses nothing of it\n")

    def test_finds_an_internal_header_of_another_room(self):
        self.write("pkg/hw/hw.c", '#include "hw/hw-internal.h"\n#include "base/base-internal.h"\n')
        self.write("cmd/x/main.c", '#include "base/base-internal.h"\n')
        self.expect(
            "pkg/hw/hw.c: includes base/base-internal.h, which is for the files of base alone")
        self.expect("cmd/x/main.c: includes base/base-internal.h")
        self.assertNotIn("hw/hw-internal.h", self.run_check("check-layers")[1])

    def test_finds_an_edge_in_a_pure_room(self):
        self.write("pkg/config/x.c",
                   '#include "base/base.h"\n#include <string.h>\n#include <sys/queue.h>\n'
                   '#include <linux/pci_regs.h>\n')
        self.assertEqual(self.run_check("check-layers"), (0, ""))
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
        self.assertEqual(self.run_check("check-layers"), (0, ""))
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
            self.assertEqual(self.run_check("check-layers"), (0, ""), text)

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
        self.assertEqual(self.run_check("check-layers"), (0, ""))
        self.write("pkg/web/x.c", "#include <uv.h>\n")
        self.expect("pkg/web/x.c: includes uv.h, which belongs to")


class Files(Tree):
    def expect(self, words):
        code, said = self.run_check("check-files")
        self.assertEqual(code, 1, said)
        self.assertIn(words, said)

    def test_is_silent_about_a_tree_that_keeps_the_rules(self):
        self.write("hack/x", "#!/bin/bash\necho yes\n")
        self.write("x.yaml", "a: [1, 2]\n")
        self.assertEqual(self.run_check("check-files"), (0, ""))

    def test_finds_shell_that_does_not_parse(self):
        self.write("hack/x", "#!/bin/bash\nif true; then\n")
        self.expect("hack/x: ")

    def test_finds_python_that_does_not_parse(self):
        self.write("hack/x", "#!/usr/bin/python3\ndef x(:\n")
        self.expect("hack/x: ")

    def test_finds_a_function_that_another_one_replaces(self):
        self.write("x.py",
                   "class X:\n    def a(self):\n        pass\n\n    def a(self):\n        pass\n")
        self.expect("x.py: line 5: a() is defined twice, and the first never runs")

    def test_finds_a_header_with_the_body_of_a_function(self):
        self.write("pkg/a/x-internal.h", "static inline int x(void)\n{\n\treturn 1;\n}\n")
        self.assertEqual(self.run_check("check-files"), (0, ""))
        self.write("tests/unit/a/x.h", "int y(void);\n\nstatic inline int x(int a,\n\t\t      int b)\n{\n\treturn a + b;\n}\n")
        self.expect("tests/unit/a/x.h:4: a header has the body of a function")

    def test_finds_yaml_and_json_that_do_not_parse(self):
        self.write("x.yaml", "a: [1, 2\n")
        self.write("y.json", "{,}\n")
        self.expect("x.yaml: ")
        self.expect("y.json: ")

    def test_finds_more_than_a_few_lines_that_are_too_wide(self):
        wide, string = "x = " + "1 + " * 25 + "1\n", "x = '" + "1 + " * 25 + "1'\n"
        self.write("x.py", wide + "y = 1\n" * 98 + string * 9)
        self.write("x.c", "/*\t" + "\t" * 12 + " */\n")
        self.assertEqual(self.run_check("check-files"), (0, ""))
        self.write("x.py", wide + "y = 1\n" * 98 + wide)
        self.expect("Python: 2 of 101 lines are wider than 100 columns: x.py:1, x.py:100 …")

    def test_finds_a_path_of_somebodys_machine(self):
        self.write("notes.md", "see /" + "home/me/notes\n")
        self.expect("notes.md:1: names a path of somebody's machine")

    def test_finds_blanks_at_the_end_of_a_line_and_a_missing_line_feed(self):
        self.write("notes.md", "word \nword")
        self.expect("notes.md:1: blanks at the end")
        self.expect("notes.md: does not end with a line feed")


class Links(Tree):
    def expect(self, words):
        code, said = self.run_check("check-links")
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
        self.assertEqual(self.run_check("check-links"), (0, ""))

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


class Citations(Tree):
    def expect(self, words):
        code, said = self.run_check("check-citations")
        self.assertEqual(code, 1, said)
        self.assertIn(words, said)

    def setUp(self):
        super().setUp()
        self.write("docs/design/a.md",
                   "# A\n## 1 One, as in §1.2\n### 1.2 Two\nsee docs/design/b.md §3 and §1\n")
        self.write("docs/design/b.md", "# B\n## 1 One\n## 3 Three\n")

    def test_is_silent_about_what_exists(self):
        self.write("pkg/base/x.c", "/* docs/design/a.md §1.2, §1; RFC 9113 §6.7; about.md */\n")
        self.write("tests/x/y.py", '"""notes.md"""\n# (docs/design/a.md\n# §1)\n')
        self.write("tests/x/notes.md", "# Notes\n")
        self.assertEqual(self.run_check("check-citations"), (0, ""))

    def test_finds_a_document_that_does_not_exist(self):
        self.write("pkg/base/x.c", "/* see notes.md */\n")
        self.expect("pkg/base/x.c: names notes.md, which does not exist")

    def test_finds_a_file_of_ours_that_does_not_exist(self):
        self.write("tests/x/y.py", "# z/a.py, hack/NAME.txt, linux/uio.h, base/rbac.yaml\n")
        self.write("tests/x/z/a.py", "# pkg/base/base.c, base/base.h, tests/x/*.py\n")
        self.assertEqual(self.run_check("check-citations"), (0, ""))
        for name in ("pkg/base/gone.c", "base/gone.h", "tests/x/gone.py"):
            self.write("tests/x/y.py", f"# as {name} has it\n")
            self.expect(f"tests/x/y.py: names {name}, which does not exist")

    def test_finds_a_section_that_does_not_exist(self):
        self.write("pkg/base/x.c", "/*\n * See docs/design/a.md\n * §1.3.\n */\n")
        self.expect("pkg/base/x.c: names §1.3 of docs/design/a.md, which has no such section")

    def test_finds_a_section_of_a_document_that_is_not_named_from_the_top(self):
        self.write("docs/c.md", "# C\n## 1 One\n")
        self.write("pkg/base/x.c", "/* c.md §1 */\n")
        self.expect("names §1 of c.md: with a section, name the document from the top")

    def test_finds_sections_in_one_go(self):
        self.write("pkg/base/x.c", "/* docs/design/a.md §1-2 */\n")
        self.expect("name each section by itself")


class Words(Tree):
    def expect(self, words):
        code, said = self.run_check("check-words")
        self.assertEqual(code, 1, said)
        self.assertIn(words, said)

    def test_is_silent_about_names_and_code(self):
        self.write(
            "pkg/base/x.c",
            '#include "base/truth.h"\n/* "A keeper" of told(). */\nchar q = \'"\'; // it\nchar *s = "stool";\n'
        )
        self.write("docs/a.md", "# A\n`keeper.c`\n```\nit tells\n```\n")
        self.write("tests/x.c", '/* Nobody. */\nchar *s = "told";\n')
        self.assertEqual(self.run_check("check-words"), (0, ""))

    def test_finds_vague_words_in_comments(self):
        self.write("pkg/base/x.c", 'char *s = "/*"; // Nobody.\nint nobody;\n')
        self.expect("pkg/base/x.c:1: 'Nobody': no pod")
        (self.top / "pkg/base/x.c").unlink()
        self.write("pkg/base/x.h", "/* one\n * keeper */\nint told; // whoever asks\n")
        self.expect("pkg/base/x.h:3: 'whoever': name who it is")
        self.write("pkg/base/x.h", "#define X\n/* It is\n * told. */\n")
        self.expect("pkg/base/x.h:3: 'told'")
        self.write("pkg/base/x.h", "/* one\n * keeper */\nint told;\n")
        self.assertEqual(self.run_check("check-words"), (0, ""))
        self.write("proto/x.proto", "// Nobody.\n")
        self.expect("proto/x.proto:1: 'Nobody': no pod")

    def test_finds_an_idiom_in_what_users_read(self):
        self.write("pkg/base/x.c", '/* It is no name. */\nf("there is no %s");\nf("it is no longer there");\n')
        self.assertEqual(self.run_check("check-words"), (0, ""))
        self.write("pkg/base/x.c", 'f("\'%s\' is no %s");\n')
        self.expect("pkg/base/x.c:1: 'is no %s': is not, is not a")
        self.write("docs/a.md", "Files that are no files.\n")
        self.expect("docs/a.md:1: 'are no files'")

    def test_counts_the_terms_of_the_glossary(self):
        rows = "".join(f"| a{i}, b{i} | {i}, of two |\n" for i in range(10))
        self.write("HACKING.md", f"# H\n\n| term | meaning |\n|---|---|\n{rows}\n| c | d |\n")
        self.assertEqual(self.run_check("check-words"), (0, ""))
        self.write("HACKING.md", f"\n| term | meaning |\n|---|---|\n{rows}| a0 | again |\n\n")
        self.expect("HACKING.md: 21 terms; 20 at most\nHACKING.md: 'a0' is two terms")

    def test_finds_a_string_that_is_broken_over_lines(self):
        self.write("pkg/base/x.c", 'f("one " /* and */\n  "two");\n#define X "a " \\\n\t"b"\n')
        self.expect("pkg/base/x.c:1: a string is broken over lines")
        self.expect("pkg/base/x.c:3: a string is broken over lines")

    def test_is_silent_about_texts_of_several_lines(self):
        self.write(
            "pkg/base/x.c", 'static const char usage[] =\n\t"one\\n"\n\t"two\\n";\n'
            'static const char sheet[] = "a{b:c}"\n\t"d{e:f}";\nf("%" PRIu64\n  " x", "y",\n  "z");\n'
        )
        self.assertEqual(self.run_check("check-words"), (0, ""))
        self.write("cmd/x/main.c", 'static const char usage[] =\n\t"one "\n\t"more\\n";\n')
        self.expect("cmd/x/main.c:2: a string is broken over lines")

    def test_finds_a_broken_string_of_a_test(self):
        self.write("tests/unit/x/test_y.c", 'f("one "\n  "two");\n')
        self.expect("tests/unit/x/test_y.c:1: a string is broken over lines")

    def test_is_silent_about_bytes(self):
        self.write("tests/unit/x/test_y.c", 'f("\\x0a\\x01"\n  "a");\n')
        self.assertEqual(self.run_check("check-words"), (0, ""))
        self.write("tests/unit/x/test_y.c", 'f("\\\\x0a"\n  "a");\n')
        self.expect("tests/unit/x/test_y.c:1: a string is broken over lines")

    def test_finds_a_string_of_a_program(self):
        self.write("cmd/x/main.c", '/* one */\nchar *s = "a\\" b, "\n\t  "and Nobody knows";\n')
        self.expect("cmd/x/main.c:3: 'Nobody': no pod")

    def test_finds_a_sentence_of_a_document(self):
        self.write("docs/a.md", "# A\n`x` is\nat rest\n")
        self.expect("docs/a.md:3: 'at rest': idle")

    def test_finds_a_sentence_of_a_manual_page(self):
        self.write("deploy/man/x.8", ".Pp\nIt tells.\n")
        self.expect("deploy/man/x.8:2: 'tells'")


class Names(Tree):
    def setUp(self):
        super().setUp()
        self.write("HACKING.md", "| room | names may also begin with |\n|---|---|\n")

    def allow(self, room, *words):
        text = (self.top / "HACKING.md").read_text()
        self.write("HACKING.md", f"{text}| `{room}` | {' '.join(f'`{word}`' for word in words)} |\n")

    def expect(self, words):
        code, said = self.run_check("check-names")
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
        self.assertEqual(self.run_check("check-names"), (0, ""))

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

    def test_finds_a_room_that_offers_too_much(self):
        self.write("pkg/grant/grant.h", "".join(f"int grant_{i}(void);\n" for i in range(8)))
        self.write("pkg/grant/grant.c", "\n" * 792)
        self.assertEqual(self.run_check("check-names"), (0, ""))
        self.write("pkg/grant/grant.c", "\n" * 791)
        self.expect("pkg/grant: 8 public functions in 799 lines, more than 10 per 1,000")
        self.write("pkg/grant/grant.c", "\n" * 600)
        self.assertEqual(self.run_check("check-names"), (0, ""))


if __name__ == "__main__":
    unittest.main()
