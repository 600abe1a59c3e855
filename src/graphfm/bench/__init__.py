"""Benchmarks: how fast an epoch is, against whom, and how far from what memory allows."""

from graphfm.bench.case import Case
from graphfm.bench.floor import step_bytes
from graphfm.bench.machine import Machine
from graphfm.bench.measurement import Failure, Measurement
from graphfm.bench.running import measure, measure_all
from graphfm.bench.suites import SUITES

__all__ = [
    "SUITES", "Case", "Failure", "Machine", "Measurement", "measure", "measure_all", "step_bytes",
]  # fmt: skip
