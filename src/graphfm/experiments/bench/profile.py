"""Profiles a step: where its time goes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from graphfm.data.graph import Graph
from graphfm.experiments.bench.case import Case
from graphfm.experiments.bench.contender import Ours, synchronise

STEPS = 20
SHOWN = 15


@dataclass(frozen=True)
class Part:
    """A kernel on a GPU or an operator on a CPU, with its own time, without what it calls."""

    name: str
    calls: float  # a step
    seconds: float  # a step
    share: float  # of all parts' time


@dataclass(frozen=True)
class StepProfile:
    """The parts of a step, the slowest first."""

    case: Case
    seconds: float  # of a step, without the profiler
    busy: float  # of a step, all parts together
    calls: float  # of all parts
    parts: Sequence[Part]

    def to_json(self) -> dict[str, Any]:
        return {
            "case": self.case.name,
            "dataset": self.case.dataset,
            "seconds_per_step": self.seconds,
            "busy_per_step": self.busy,
            "calls_per_step": self.calls,
            "parts": [asdict(part) for part in self.parts],
        }


def profile_step(case: Case, graph: Graph) -> StepProfile:
    """Train some steps, time as many, then record as many."""
    case = replace(case, options={**case.options, "steps_per_epoch": STEPS})
    ours = Ours(case.run(), graph, case.without)
    ours.epoch()
    steps = float(ours.trainer.touched["steps"])  # an epoch may have fewer than STEPS
    synchronise(ours.device)
    started = time.perf_counter()
    ours.epoch()
    synchronise(ours.device)
    seconds = (time.perf_counter() - started) / steps
    activities = [ProfilerActivity.CPU]
    if ours.device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities) as recorded:
        ours.epoch()
        synchronise(ours.device)
    return _summary(case, seconds, recorded, steps, ours.device)


def _summary(
    case: Case, seconds: float, recorded: profile, steps: float, device: torch.device
) -> StepProfile:
    on_gpu = device.type == "cuda"
    wanted = torch.profiler.DeviceType.CUDA if on_gpu else torch.profiler.DeviceType.CPU
    times = {
        event.key: (
            event.count / steps,
            (event.self_device_time_total if on_gpu else event.self_cpu_time_total) / 1e6 / steps,
        )
        for event in recorded.key_averages()
        if event.device_type == wanted
    }
    busy = sum(taken for _, taken in times.values())
    parts = [Part(name, calls, taken, taken / busy) for name, (calls, taken) in times.items()]
    return StepProfile(
        case=case,
        seconds=seconds,
        busy=busy,
        calls=sum(calls for calls, _ in times.values()),
        parts=sorted(parts, key=lambda part: -part.seconds),
    )
