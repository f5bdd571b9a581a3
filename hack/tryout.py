"""Programs of an image, started in nothing but the image: of this machine's architecture in a chroot,
which takes root, of another one under an emulator."""
import os
import shutil
import subprocess

from debian import EMULATORS, host_arch


def starter(root, arch):
    """What to put before the command; None: this machine cannot."""
    if arch == host_arch():
        return ["/usr/sbin/chroot", root] if os.geteuid() == 0 else None
    # Which takes files of the machine only where the image has none, and libraries of ours it has nowhere else.
    return [EMULATORS[arch], "-L", root] if shutil.which(EMULATORS[arch]) else None


def start(root, arch, *command, env=None):
    """True: it ran."""
    inside = arch == host_arch()
    argv = [*starter(root, arch), command[0] if inside else f"{root}{command[0]}", *command[1:]]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=60,
                         env=env or {"PATH": "/usr/bin"}, stdin=subprocess.DEVNULL, check=False)
    said = (run.stdout + run.stderr).strip().splitlines()
    # The first line of who ran says what it is, the last ones of who failed say why.
    print("image: %s: %s: %s" % (arch, " ".join(command), said[-3:] if run.returncode else said[:1]))
    return run.returncode == 0
