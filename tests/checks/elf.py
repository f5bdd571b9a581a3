#!/usr/bin/python3
"""The programs are hardened: what their ELF headers and code say, not what the compiler was asked
for.

    elf.py BUILD_DIR          the programs as they were linked
    elf.py --image FILE       the stripped programs of the image (hack/image)
"""
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

PROBE = "railmate-probe"
PROGRAMS = ("railmated", "railmatectl", "railmate-cni", PROBE)
# Where containers see it, in the image's: its loader and its C library are there.
PROBE_FOLDER = "/run/railmate/probe"
LIBRARIES = ("libcurl.so.4", "libmicrohttpd.so.12")  # hack/libraries.py builds them
WHERE = []
TOP = pathlib.Path(__file__).resolve().parents[2]


def output(*argv):
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True).stdout


def header_faults(path, library=False):
    """What the program headers and the dynamic section lack; stripping leaves them as they are."""
    text = output("readelf", "-hldW", path)
    faults = []
    if not re.search(r"^ +Type: +DYN ", text, re.M):
        faults.append("is not position independent")
    if not library and not re.search(r"\(FLAGS_1\).* PIE\b", text):
        faults.append("is a shared library, not a program")
    if "GNU_RELRO" not in text:
        faults.append("has no RELRO")
    if not re.search(r"\(FLAGS_1\).*\bNOW\b", text):
        faults.append("binds lazily, so its RELRO is not full")
    stack = re.search(r"^ +GNU_STACK .* ([R W]{2}[E ]) ", text, re.M)
    if not stack or "E" in stack.group(1):
        faults.append("may execute its stack")
    if re.search(r"^ +LOAD .* RWE ", text, re.M):
        faults.append("has memory that may be written and executed")
    own = {PROBE_FOLDER} if path.name == PROBE else set()
    if set(re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text)) - own:
        faults.append("looks for its libraries in a path of its own")
    return faults


def symbol_faults(path):
    """A program with shared libraries asks libc for what it calls."""
    wanted = set(re.findall(r" UND (\w+)", output("readelf", "-W", "--dyn-syms", path)))
    faults = []
    if "__stack_chk_fail" not in wanted:
        faults.append("has no stack protector")
    if not any(re.fullmatch(r"__\w+_chk", name) for name in wanted):
        faults.append("has no fortified call")
    return faults


def code_faults(path):
    """In a static program libc's own functions have both: only calls out of our functions count."""
    calls, function = {}, None
    arm64 = "AArch64" in output("readelf", "-h", path)
    objdump = "aarch64-linux-gnu-objdump" if arm64 else "objdump"
    for line in output(objdump, "-d", "--no-show-raw-insn", path).splitlines():
        start = re.match(r"[0-9a-f]+ <([^>]+)>:$", line)
        function = start.group(1) if start else function
        call = re.search(r"\t(?:call|jmp|bl|b)[ \t]+[0-9a-f]+ <([^>+]+)>", line)
        if call:
            calls.setdefault(function, set()).add(call.group(1))
    faults = []
    if "__stack_chk_fail" not in calls.get("err_set", ()):
        faults.append("has no stack protector in err_set()")
    if not any(name.endswith("_chk") for name in calls.get("err_set", ())):
        faults.append("has no fortified call in err_set()")
    return faults


FLAGS = ("-fstack-protector-strong", "-fstack-clash-protection", "-ftrivial-auto-var-init=zero",
         "-D_FORTIFY_SOURCE=3")
FLAGS_OF_AMD64 = ("-fcf-protection=full",)


def flag_faults(command, amd64):
    """What leaves no certain trace in a program: the compiler is asked for it, and not asked to undo
    it."""
    words = command.split()
    wanted = FLAGS + (FLAGS_OF_AMD64 if amd64 else ())
    faults = [f"is compiled without {flag}" for flag in wanted if flag not in words]
    undone = r"-fno-stack-(protector|clash-protection)|-fcf-protection=none|-U_FORTIFY_SOURCE|" \
             r"-D_FORTIFY_SOURCE=[012]|-ftrivial-auto-var-init=uninitialized"
    for flag in wanted:
        if flag in words:
            behind = words[len(words) - words[::-1].index(flag):]
            faults += [f"undoes {flag} by {w}" for w in behind
                       if re.fullmatch(undone, w) and w.lstrip("-fnoUD").split("=")[0] in flag]
    return faults


def lands_anywhere(path, function="err_set"):
    """Whether the function begins without the mark of a place where an indirect call may land."""
    text = output("objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", path)
    begin = re.search(rf"<{function}>:\n.*?:\s+(\w+)", text)
    return not begin or begin.group(1) != "endbr64"


def is_static(path):
    return "INTERP" not in output("readelf", "-lW", path)


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = WHERE[0]
        self.stripped = WHERE[1]

    def test_headers_are_those_of_a_hardened_program(self):
        for name in PROGRAMS:
            with self.subTest(name):
                self.assertEqual(header_faults(self.folder / name), [])

    def test_code_is_that_of_a_hardened_program(self):
        for name in PROGRAMS:
            path = self.folder / name
            if is_static(path) and self.stripped:
                continue
            with self.subTest(name):
                self.assertEqual(code_faults(path) if is_static(path) else symbol_faults(path), [])

    def test_every_object_is_compiled_with_what_hardens_it(self):
        if self.stripped:
            return
        commands = json.loads((self.folder.parent / "compile_commands.json").read_text())
        ours = [c for c in commands if c["file"].startswith((f"{TOP}/pkg/", f"{TOP}/cmd/"))]
        self.assertGreater(len(ours), 200)
        amd64 = "X86-64" in output("readelf", "-h", self.folder / "railmated")
        for c in ours:
            self.assertEqual(flag_faults(c["command"], amd64), [], c["file"])
        for name in PROGRAMS if amd64 else ():
            self.assertFalse(lands_anywhere(self.folder / name), name)

    def test_libraries_that_we_build_are_hardened(self):
        for path in sorted(self.folder.glob("lib*.so.*")):
            with self.subTest(path.name):
                self.assertEqual(header_faults(path, library=True) + symbol_faults(path), [])
        found = {path.name for path in self.folder.glob("lib*.so.*")}
        self.assertEqual(found, set(LIBRARIES) if self.stripped else set())

    def test_only_the_program_that_the_host_executes_is_static(self):
        self.assertEqual([name for name in PROGRAMS if is_static(self.folder / name)],
                         ["railmate-cni"])


    def test_the_probe_needs_the_c_library_alone_and_in_containers_its_own(self):
        text = output("readelf", "-ldW", self.folder / PROBE)
        needed = re.findall(r"\(NEEDED\).*\[(\S+)\]", text)
        needed = {name for name in needed if not name.startswith("ld-linux")}
        self.assertLessEqual(needed, {"libc.so.6", "libm.so.6"})
        if self.stripped:
            self.assertIn(f"interpreter: {PROBE_FOLDER}/ld.so]", text)
            self.assertRegex(text, rf"\(RPATH\).*\[{PROBE_FOLDER}\]")

    def test_the_image_looks_into_etc_hosts_before_it_asks_dns(self):
        if self.stripped:
            conf = (self.folder.parents[1] / "etc/nsswitch.conf").read_text()
            self.assertRegex(conf, r"(?m)^hosts: files\b")


def unpack_image(file, folder):
    with tarfile.open(file) as tar:
        layer = json.load(tar.extractfile("manifest.json"))[0]["Layers"][0]
        with tarfile.open(fileobj=tar.extractfile(layer), mode="r:gz") as root:
            root.extract("etc/nsswitch.conf", folder)
            for member in root.getmembers():
                if member.isfile() and pathlib.Path(member.name).name in PROGRAMS + LIBRARIES:
                    member.name = "usr/bin/" + pathlib.Path(member.name).name
                    root.extract(member, folder)
    return pathlib.Path(folder, "usr/bin")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as top:
        if sys.argv[1] == "--image":
            del sys.argv[1]
            WHERE[:] = [unpack_image(sys.argv.pop(1), top), True]
        else:
            WHERE[:] = [pathlib.Path(sys.argv.pop(1), "cmd"), False]
        unittest.main()
