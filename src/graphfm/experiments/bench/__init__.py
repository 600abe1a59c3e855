"""Benchmarks: how fast an epoch is, against whom, and how far from what memory allows."""

from graphfm.experiments.bench.case import Case
from graphfm.experiments.bench.floor import step_bytes
from graphfm.experiments.bench.machine import Machine
from graphfm.experiments.bench.measurement import Failure, Measurement
from graphfm.experiments.bench.run import measure, measure_all
from graphfm.experiments.bench.suites import SUITES

__all__ = [
    "SUITES", "Case", "Failure", "Machine", "Measurement", "measure", "measure_all", "step_bytes",
]  # fmt: skip
