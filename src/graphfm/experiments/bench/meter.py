"""Seconds and bytes of one epoch."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from graphfm.experiments.bench.contender import Contender, synchronise
from graphfm.memory import PeakMemory

FORGET_PEAK = "5"  # what Linux wants to hear


@dataclass(frozen=True)
class EpochCost:
    """What one epoch took."""

    seconds: float
    peak_bytes: int  # allocated on a GPU; on a CPU, resident in the process
    added_bytes: int | None  # of that, what was not there when the epoch began; a CPU's is unknown


def timed_epoch(contender: Contender) -> EpochCost:
    """Train for one epoch and say what it took; evaluation is no part of it."""
    device = contender.device
    synchronise(device)
    _forget_peak(device)
    memory = PeakMemory(device)
    before = torch.cuda.memory_allocated(device) if device.type == "cuda" else None
    started = time.perf_counter()
    contender.epoch()
    synchronise(device)
    seconds = time.perf_counter() - started
    peak = memory.peak()
    # a process keeps what it freed: resident memory says nothing of what one epoch needs
    return EpochCost(seconds, peak, None if before is None else peak - before)


def _forget_peak(device: torch.device) -> None:
    """Let the peak of resident memory begin anew; where the system refuses, it is the process's."""
    if device.type == "cpu":
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text(FORGET_PEAK)
