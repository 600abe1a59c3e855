"""What is timed: something that can train for an epoch."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

import torch

from graphfm.data.graph import Graph
from graphfm.kernels import backend
from graphfm.runs.run import Run, build


class Contender(ABC):
    """One of the two sides of a case. The constructor prepares everything; `close` ends it."""

    name: str
    device: torch.device
    prepare_seconds: float

    @property
    def note(self) -> str:
        """What a reader of its figures must know."""
        return f"compared with {self.name}"

    @abstractmethod
    def epoch(self) -> float:
        """Train for one epoch; return the mean loss, on the host."""

    def close(self) -> None:  # noqa: B027
        """Stop whatever still runs, such as worker processes; most contenders have none."""


class Ours(Contender):
    """GraphFM, built exactly as `graphfm train` builds it. An ablation switches some parts off."""

    def __init__(self, run: Run, graph: Graph, without: tuple[str, ...] = ()) -> None:
        started = time.perf_counter()
        self.name, self.device, self.without = f"graphfm {run.method}", graph.device, without
        with backend.without(*without):
            self.trainer = build(run, graph)
        self.prepare_seconds = time.perf_counter() - started

    def epoch(self) -> float:
        with backend.without(*self.without):
            return self.trainer.epoch()


def synchronise(device: torch.device) -> None:
    """Wait until the device has finished all its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
