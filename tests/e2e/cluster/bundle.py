"""
What runc is about to create or to run in a container: railmated and railmatectl are shown the
machine of a fixture, as if it were the node's; and railmated a disk that hangs, where there is one beside
the machine.

    bundle.py MACHINE ARGUMENTS-OF-RUNC…
"""
import json
import os
import sys

ROOT = "--root=/machine"
LOOK = {"doctor", "plan", "status", "topo"}  # commands of railmatectl that look at the machine

machine, args = sys.argv[1], sys.argv[2:]
disk = os.path.join(os.path.dirname(machine), "hanging-disk")
creates = "--bundle" in args
path = (os.path.join(args[args.index("--bundle") + 1], "config.json")
        if creates else args[args.index("--process") + 1])
with open(path, encoding="utf-8") as file:
    spec = json.load(file)
words = (spec["process"] if creates else spec)["args"]
program = os.path.basename(words[0])
if program == "railmated" or (program == "railmatectl" and LOOK & set(words[1:2])):
    words.append(ROOT)
    if creates:
        spec["mounts"].append({
            "destination": "/machine", "type": "bind", "source": os.path.realpath(machine),
            "options": ["rbind", "ro"]
        })
        if os.path.isdir(disk):
            spec["mounts"].append({"destination": "/disk", "type": "bind", "source": disk, "options": ["rbind", "ro"]})
            spec["process"]["env"] += ["LD_PRELOAD=/disk/hanging_disk.so", "DISK_HANGS=/disk/hangs"]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(spec, file)
