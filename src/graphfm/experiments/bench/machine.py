"""The machine on which figures were measured, and how fast its memory is."""

from __future__ import annotations

import os
import platform
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from graphfm.experiments.bench.contender import synchronise
from graphfm.memory import available_memory

COPIED = {"cuda": 1 << 30, "cpu": 1 << 28}  # bytes: more than any cache holds
REPEATS = 9


@dataclass(frozen=True)
class Machine:
    """What one must know to read a figure."""

    device: str
    processor: str
    cores: int
    threads: int
    torch_version: str
    bandwidth: float  # bytes a second of a large copy, read and written

    @classmethod
    def of(cls, device: torch.device) -> Machine:
        on_gpu = device.type == "cuda"
        return cls(
            device=device.type,
            processor=torch.cuda.get_device_name(device) if on_gpu else _processor(),
            cores=_cores(),
            threads=torch.get_num_threads(),
            torch_version=torch.__version__,
            bandwidth=bandwidth(device),
        )

    def __str__(self) -> str:
        return (
            f"{self.processor}, {self.cores} CPU cores, {self.threads} threads, "
            f"torch {self.torch_version}, a copy moves {self.bandwidth / 1e9:,.0f} GB/s"
        )


def bandwidth(device: torch.device) -> float:
    """Bytes a second of the fastest of several large copies; bytes read and written both count."""
    num_bytes = min(COPIED[device.type], available_memory() // 8)
    source = torch.ones(num_bytes, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    seconds = []
    for _ in range(REPEATS):
        synchronise(device)
        started = time.perf_counter()
        target.copy_(source)
        synchronise(device)
        seconds.append(time.perf_counter() - started)
    return 2 * num_bytes / min(seconds)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # the cores that we may use; not known on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    return platform.processor() or platform.machine()
