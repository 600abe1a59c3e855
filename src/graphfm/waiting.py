"""How OpenMP's threads wait for each other: awake for a moment, then asleep.

By default they stay awake for milliseconds. If other work shares the cores, the thread that they
wait for does not run meanwhile, and a training can take forty times as long. OpenMP reads its
variables when torch is loaded, so `graphfm` imports this module first; processes that are started
from here inherit them.
"""

import os
import sys

# libgomp stays awake for the count, the others not at all. With none, small steps take half as long
# again on an idle machine; with five times as many, twice as long beside other work.
PATIENT = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "2000"}
CHOICES = (*PATIENT, "KMP_BLOCKTIME")  # whoever sets one of them has chosen

CHOSEN = any(name in os.environ for name in CHOICES)
TOO_LATE = not CHOSEN and "torch" in sys.modules  # here, but not for processes started from here

if not CHOSEN:
    os.environ.update(PATIENT)
