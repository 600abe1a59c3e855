"""Measures the seconds and bytes of one epoch."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from graphfm.experiments.bench.contender import Contender, synchronise
from graphfm.memory import PeakMemory


@dataclass(frozen=True)
class EpochCost:
    """What one epoch took."""

    seconds: float
    peak_bytes: int  # allocated on a GPU; on a CPU, resident in the process
    added_bytes: int | None  # of that, added since the epoch began; unknown on a CPU


def timed_epoch(contender: Contender) -> EpochCost:
    """Train for one epoch, without evaluation, and return what it took."""
    device = contender.device
    synchronise(device)
    memory = PeakMemory(device)
    before = torch.cuda.memory_allocated(device) if device.type == "cuda" else None
    started = time.perf_counter()
    contender.epoch()
    synchronise(device)
    seconds = time.perf_counter() - started
    memory.stop()
    peak = memory.measured or memory.peak()  # of the whole process where no other is known
    # A process keeps what it freed: its resident memory does not show what one epoch needs.
    return EpochCost(seconds, peak, None if before is None else peak - before)
