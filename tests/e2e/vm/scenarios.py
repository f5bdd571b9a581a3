"""All scenarios, in this order: those that change the hardware come last, and put it back."""

import sys

import bed
import topology  # noqa: F401  each module adds its own
import pods  # noqa: F401
import traffic  # noqa: F401
import events  # noqa: F401

with open(f"{bed.SHARE}/words", encoding="utf-8") as f:
    sys.exit(bed.run_all(f.read().split()))
