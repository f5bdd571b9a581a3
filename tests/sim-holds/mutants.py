#!/usr/bin/python3
"""Every fault in mutants/*.patch, put back into pkg, is found by the simulation: the patched file is compiled, and linked with the build's
sim-holds. What found it once (schedules/NAME.txt) is tried first, then chance.

    tests/sim-holds/mutants.py --build build-gcc [--jobs N] [--schedules N] [--keep DIR] [NAME...]
"""

import argparse
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WRAPPED = ("malloc", "calloc", "realloc", "free", "strdup", "vasprintf")
ROOMS = ("holds", "ledger", "document", "hw", "base")


def patched(patch, folder):
    """The one file that the patch changes, with it applied."""
    with open(patch, encoding="utf-8") as f:
        name = re.search(r"^\+\+\+ b/(\S+)", f.read(), re.M).group(1)
    out = os.path.join(folder, os.path.basename(name))
    done = subprocess.run([
        "patch", "--silent", "--fuzz=0", "--no-backup-if-mismatch", "-o", out,
        os.path.join(ROOT, name), patch
    ], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{patch}: does not apply to {name} any more: {done.stdout}{done.stderr}")
    return out


def build(compiler, build_dir, source, folder):
    program = os.path.join(folder, "sim-holds")
    objects = sorted(
        glob.glob(os.path.join(build_dir, "tests/sim-holds/CMakeFiles/sim-holds.dir/*.o")))
    # The patched file first: it takes the place of the library's.
    subprocess.run([
        compiler, "-std=c11", "-O1", "-D_GNU_SOURCE", "-w", "-I",
        os.path.join(ROOT, "pkg"), source, *objects,
        *(os.path.join(build_dir, f"pkg/librm_{room}.a")
          for room in ROOMS), "-ljansson", "-Wl,--wrap=" + ",--wrap=".join(WRAPPED), "-o", program
    ], check=True)
    return program


def attempt(program, folder, *options):
    """The sentence that says what did not hold; None: everything did. A program that ends otherwise has found nothing."""
    done = subprocess.run(
        [program, *options, "--out", os.path.join(folder, "failed")], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return None
    for line in done.stdout.splitlines():
        if done.returncode == 1 and line.startswith("FAILED: "):
            return line[8:]
    raise SystemExit(f"{program} {' '.join(options)}: exit {done.returncode}:\n{done.stdout[-2000:]}")


def kill(patch, args):
    began = time.monotonic()
    name = os.path.basename(patch)[:-6]
    with tempfile.TemporaryDirectory(prefix="sim-holds-") as folder:
        program = build(args.compiler, args.build, patched(patch, folder), folder)
        known = os.path.join(HERE, "schedules", name + ".txt")
        found = os.path.exists(known) and attempt(program, folder, "--replay", known)
        if not found:
            found = attempt(program, folder, "--schedules", str(args.schedules))
        if found and args.keep and os.path.exists(os.path.join(folder, "failed")):
            shutil.move(os.path.join(folder, "failed"), os.path.join(args.keep, name + ".txt"))
    return name, found, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--schedules", type=int, default=60000)
    parser.add_argument("--keep", metavar="DIR", help="where the shrunk schedules go")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    patches = [p for p in sorted(glob.glob(os.path.join(HERE, "mutants/*.patch")))
               if not args.names or os.path.basename(p)[:-6] in args.names]
    alive = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for name, found, seconds in pool.map(lambda p: kill(p, args), patches):
            print(f"{name} ({seconds:.1f} s): {found or 'NOT FOUND'}", flush=True)
            if not found:
                alive.append(name)
    print(f"{len(patches)} mutants, {len(patches) - len(alive)} found")
    return 1 if alive or not patches else 0


if __name__ == "__main__":
    sys.exit(main())
