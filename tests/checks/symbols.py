#!/usr/bin/python3
"""The names that C code has for all of a program: none of ours is there twice, or is also a
library's, a room calls those of the rooms that it may use, and what it offers is called by more
than its own file and tests.

    symbols.py BUILD_DIR

Ours are the global symbols of the rooms' archives and of the programs' own files. The libraries are
all that the programs load, the one that they open later, and jansson's archive, which railmate-cni
links. A linker takes what it finds first and says nothing, whatever the types are.
"""
import collections
import pathlib
import re
import subprocess
import sys
import unittest

PROGRAMS = ("railmated", "railmatectl", "railmate-cni")
TOP = pathlib.Path(__file__).parents[2]
SHELVES = ("pkg", "cmd/railmatectl")
# What no other file of the product calls, and why it is offered all the same.
FOR_TESTS = {
    "lldp_read": "what discovery reads of neighbours, which fuzz_lldp feeds with any bytes",
    "diagnosis_verdict_of": "the verdict of one check, which the text and the JSON of a diagnosis have, too",
    "hw_drivers_n": "the length of a table that is offered",
    "rpc_call_stream": "the asking side of streams is the state machine of unary calls",
    "rpc_subscription_cancel": "of rpc_call_stream()",
    "rpc_subscription_pause": "of rpc_call_stream()",
    "rpc_server_open": "peers' servers have no guard, and a guard is not a part of what tests ask",
}
WHERE = []


def output(*argv):
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True).stdout


def defined(*argv):
    """The global names that a file, or each member of an archive, defines."""
    return {
        m.group(1)
        for m in re.finditer(r"^[0-9a-f]+ [A-TV-Zi] ([^@\s]+)",
                             output("nm", "-g", "--defined-only", *argv), re.M)
    }


def wanted(*argv):
    """The names that a file, or the members of an archive, leave to others or to each other."""
    return set(re.findall(r"^ +[Uw] ([^@\s]+)", output("nm", "-g", *argv), re.M))


def by_object(*files):
    """Each file, or member of an archive → the names that it defines, those that it wants."""
    found = collections.defaultdict(lambda: (set(), set()))
    for m in re.finditer(r"^(.+): *(?:[0-9a-f]+ +)?([A-Za-z]) ([^@\s]+)$",
                         output("nm", "-gA", *files), re.M):
        found[m[1]][m[2] in "Uw"].add(m[3])
    return found


def uncalled(objects):
    """What is defined in one object and wanted by no other."""
    users = collections.Counter(name for _, calls in objects.values() for name in calls)
    return {name for names, _ in objects.values() for name in names if not users[name]}


def inside():
    """The words of headers that are for the files, and the tests, of one room."""
    return set(re.findall(r"\w+", "".join(
        path.read_text() for shelf in SHELVES for path in TOP.glob(f"{shelf}/*/*-internal.h"))))


def table():
    """The rooms as the link order has them → those that each may use."""
    text = "".join((TOP / shelf / "CMakeLists.txt").read_text() for shelf in SHELVES)
    return {
        m[1]: (m[2] or "").partition(" FOREIGN")[0].split()
        for m in re.finditer(r"^railmate_room\((\w+)(?: PURE)?(?: USES ([\w ]*\w))?", text, re.M)
    }


def archive(build, room):
    """Of one of pkg/, or of cmd/railmatectl/."""
    return next(path for path in (build / folder / f"librm_{room}.a" for folder in ("pkg", "cmd/rooms"))
                if path.exists())


def libraries(build):
    """name → its names. ldd has what a program needs and what that needs."""
    paths = set()
    for program in ("railmated", "railmatectl"):
        paths.update(re.findall(r"(/\S+) \(0x", output("ldd", build / "cmd" / program)))
    for loaded in ("libcurl-gnutls.so.4", "libmicrohttpd.so.12"):
        paths.add(output("gcc", f"-print-file-name={loaded}").strip())
    found = {pathlib.Path(path).name: defined("-D", path) for path in paths}
    found["libjansson.a"] = defined(output("gcc", "-print-file-name=libjansson.a").strip())
    return found


def owners(build):
    """The name of an archive, or of a program → its names. Every program has its main()."""
    archives = [archive(build, room) for room in table()]
    archives += [build / "librm_protobuf.a",
                 build / "tests/librm_support.a"]  # what protoc-c writes, what tests share
    found = {path.stem[3:]: defined(path) for path in archives}
    for program in PROGRAMS:
        objects = sorted((build / f"cmd/CMakeFiles/{program}.dir/{program}").glob("*.o"))
        found[program] = defined(*objects) - {"main"}
    return found


def twice(ours):
    """Names in two places that may meet in a program: two programs do not."""
    places = collections.defaultdict(set)
    for owner, names in ours.items():
        for name in names:
            places[name].add(owner)
    return {name: sorted(where) for name, where in places.items()
            if len(where) > 1 and not where <= set(PROGRAMS)}


def taken(ours, theirs):
    """Names of ours that a library has: name → the library."""
    return {
        name: library
        for library, names in theirs.items()
        for own in ours.values()
        for name in names & own
    }


def leaks(ours, calls, uses):
    """What rooms call of rooms that they may not use: a struct's member or a header that another
    one includes hides it from hack/check layers."""
    owner = {name: room for room in uses for name in ours[f"rm_{room}"]}
    return {
        room: names
        for room, others in uses.items()
        if (names := sorted(name for name in calls[room]
                            if owner.get(name, room) not in [room, *others]))
    }


class Symbols(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.build = WHERE[0]
        cls.ours = owners(cls.build)

    def test_no_name_is_defined_twice(self):
        self.assertEqual(twice(self.ours), {})

    def test_rooms_call_what_they_may_use(self):
        uses = table()
        calls = {room: wanted(archive(self.build, room)) for room in uses}
        for room, name in (("choice", "topo_place"), ("hw", "str_eq")):
            self.assertIn(name, calls[room])
        self.assertEqual(leaks(self.ours, calls, uses), {})

    def test_what_a_room_offers_is_called_by_another_file_of_the_product(self):
        objects = by_object(
            *(archive(self.build, room) for room in table()),
            *(path for program in PROGRAMS
              for path in (self.build / f"cmd/CMakeFiles/{program}.dir/{program}").glob("*.o")))
        offered = set().union(*(self.ours[f"rm_{room}"] for room in table())) - inside()
        self.assertEqual(uncalled(objects) & offered, set(FOR_TESTS))

    def test_no_name_is_also_a_librarys(self):
        theirs = libraries(self.build)
        for library, name in (("libc.so.6", "strlen"), ("libjansson.so.4", "json_loadb"),
                              ("libjansson.a", "json_loadb"),
                              ("libcurl-gnutls.so.4", "curl_easy_init"), ("libmicrohttpd.so.12",
                                                                          "MHD_start_daemon")):
            self.assertTrue(name in theirs[library], library)
        self.assertEqual(taken(self.ours, theirs), {})

    def test_programs_export_nothing_of_ours(self):
        every = set().union(*self.ours.values())
        for program in PROGRAMS:
            with self.subTest(program):
                self.assertEqual(defined("-D", self.build / "cmd" / program) & every, set())


if __name__ == "__main__":
    WHERE.append(pathlib.Path(sys.argv.pop(1)))
    unittest.main()
