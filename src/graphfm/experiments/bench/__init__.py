"""Benchmarks: how fast an epoch is, against which rival, and how far from what memory allows.

A `Case` is a training and its rival; `suites` lists them, `measure` times both in turns inside this
process (a process per case would change warm-up times), `floor` counts the bytes that a step must
move. Imported by `graphfm.cli`; imports the engine in `graphfm.experiments` and what lies below it.
"""

from graphfm.experiments.bench.case import Case
from graphfm.experiments.bench.floor import step_bytes
from graphfm.experiments.bench.machine import Machine
from graphfm.experiments.bench.measurement import Measurement
from graphfm.experiments.bench.run import run_suite
from graphfm.experiments.bench.suites import SUITES
from graphfm.experiments.bench.turns import measure

__all__ = ["SUITES", "Case", "Machine", "Measurement", "measure", "run_suite", "step_bytes"]
