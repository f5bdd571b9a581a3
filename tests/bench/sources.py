#!/usr/bin/python3
"""How large the rooms are, how much each offers to others, and how finely its files are cut.

    tests/bench/sources.py [TOP]

One line a room: lines of C, public functions and how many a thousand lines have, static functions and how many of them
have one call site only, and are named nowhere else. The last line is the sum, with cmd and without proto.
"""
import importlib.machinery
import importlib.util
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
COMMENT = re.compile(r"/\*.*?\*/", re.S)
LITERAL = re.compile(r"'(?:\\.|[^'\\])+'|\"(?:\\.|[^\"\\])*\"")
STATIC = re.compile(r"^static\s[^;={]*?\b(\w+)\s*\([^;{]*\)\s*\n\{", re.M)


def check_names():
    """hack/checks/names, which knows what a room offers."""
    loader = importlib.machinery.SourceFileLoader("check_names", str(TOP / "hack/checks/names"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def statics(source):
    """How many, and how many with one call site."""
    text = LITERAL.sub('""', COMMENT.sub(" ", source.read_text()))
    names = STATIC.findall(text)
    # Beside its definition, and its declaration if there is one.
    uses = {name: len(re.findall(rf"\b{name}\b", text)) -
                  len(re.findall(rf"^static\s[^;={{]*?\b{name}\s*\(", text, re.M)) for name in names}
    calls = {name: len(re.findall(rf"\b{name}\s*\(", text)) -
                   len(re.findall(rf"^static\s[^;={{]*?\b{name}\s*\(", text, re.M)) for name in names}
    return len(names), sum(uses[name] == calls[name] == 1 for name in names)


def figures(folder, functions):
    """Lines, public functions, statics, those with one call site."""
    files = sorted(folder.rglob("*.[ch]"))
    public = sum(len(list(functions(f))) for f in files
                 if f.suffix == ".h" and not f.name.endswith("-internal.h"))
    cut = [statics(f) for f in files if f.suffix == ".c"]
    return [sum(len(f.read_text().splitlines()) for f in files), public,
            sum(n for n, _ in cut), sum(one for _, one in cut)]


def main():
    top = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else TOP
    functions = check_names().functions
    rows = {room.name: figures(room, functions) for room in sorted((top / "pkg").iterdir()) if room.is_dir()}
    rows["cmd"] = figures(top / "cmd", functions)
    rows["all"] = [sum(column) for column in zip(*rows.values())]
    print(f"{'room':14} lines public  /1000 statics one call site")
    for room, (lines, public, n, one) in rows.items():
        print(f"{room:14} {lines:5} {public:6} {1000 * public / max(lines, 1):6.1f} {n:7} {one:5}  {100 * one / max(n, 1):3.0f} %")


if __name__ == "__main__":
    main()
