"""What `run` and hack/kind-e2e both build before they start. Standard library only."""
import pathlib
import subprocess

BED = pathlib.Path(__file__).resolve().parent
TOP = BED.parent.parent.parent


def peers(kind):
    """The words behind this one, of every such line in tests/e2e/peers."""
    lines = [line.split() for line in (BED.parent / "peers").read_text().splitlines()]
    return [words[1:] for words in lines if words and words[0] == kind]


class Lacking(Exception):
    """This machine cannot run the bed, and why."""


def helper(name, *args):
    """The last line that one of the bed's scripts prints: a path; with exit status 77, what the
    machine lacks."""
    done = subprocess.run([BED / name, *args], stdout=subprocess.PIPE, text=True,
                          stdin=subprocess.DEVNULL)
    last = (done.stdout.strip().splitlines() or [""])[-1]
    if done.returncode == 77:
        raise Lacking(last)
    if done.returncode != 0:
        print(f"FAILED: {name} {' '.join(args)}\n0 passed, 1 failed")
        raise SystemExit(1)
    return last


def quietly(*argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        print(done.stdout[-4000:])
        print(f"kubelet bed: FAILED: {argv[0]} exits with {done.returncode}\n0 passed, 1 failed")
        raise SystemExit(1)


def build_programs(build, *more):
    quietly(TOP / "hack/install-deps", "test", "image")
    if not (build / "build.ninja").exists():
        quietly("cmake", "-S", TOP, "-B", build, "-G", "Ninja")
    quietly("ninja", "-C", build, "railmated", "railmatectl", "railmate-cni",
            "railmate-probe", "fakegpu", "podres", "podspecs", "hanging_disk", "fixtures", *more)
    image = build / "railmate.oci.tar"
    made_of = [*(build / "cmd").glob("railmate*"),
               *(TOP / "hack" / name
                 for name in ("image", "image-root", "libraries.py", "sysroot"))]
    if image.exists() and all(file.stat().st_mtime < image.stat().st_mtime for file in made_of):
        return
    quietly(TOP / "hack/image", "-o", image)
