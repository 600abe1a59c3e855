"""How OpenMP's threads wait for each other: awake for a moment, then asleep.

By default they stay awake for milliseconds. If other work shares the cores, the thread that they
wait for does not run meanwhile, and a training can take forty times as long. OpenMP reads its
variables when torch is loaded, so `graphfm` imports this module first; processes that are started
from here inherit them. `graphfm.training.crowding` does the rest.
"""

import os
import sys

# libgomp stays awake for that count, some 0.1 ms; other kinds of OpenMP not at all. With a count of
# 0, small steps take half as long again on an idle machine.
PATIENT = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "4000"}
CHOICES = (*PATIENT, "KMP_BLOCKTIME")

_FOUND = {name: os.environ[name] for name in CHOICES if name in os.environ}
CHOSEN = _FOUND not in ({}, PATIENT)  # by the user; a process may also inherit ours
TOO_LATE = not _FOUND and "torch" in sys.modules  # here, but not for processes started from here

if not _FOUND:
    os.environ.update(PATIENT)
