"""
The guest's scenarios, in this order. /share/part names which: with the fake kubelet, with the
real one, or those of railmate-probe.
Those that change the hardware come last, and put it back.
"""

import importlib
import sys

import bed
import late  # noqa: F401 (the other bed's: scenarios.py puts tests/integration, which has one too, before it)

PARTS = {
    "fake": ["topology", "admin", "pods", "traffic", "events", "ledger", "cni", "truth"],
    "kubelet": ["numa", "binding"],
    "probe": ["probe", "probe_image"],
    "job": ["job"],
}
LIMITS = {"fake": 150, "kubelet": 300, "probe": 150, "job": 600}  # seconds a scenario may take on a quiet machine

part = bed.read(f"{bed.SHARE}/part")
bed.LIMIT = int(LIMITS[part] * float(bed.read(f"{bed.SHARE}/slowness")))
for module in PARTS[part]:
    importlib.import_module(module)  # each adds its scenarios, and those of modules that it stands on
sys.exit(bed.run_all(PARTS[part], bed.read(f"{bed.SHARE}/words").split()))
