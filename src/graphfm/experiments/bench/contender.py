"""What is timed: something that can train for an epoch."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

import torch

from graphfm.data.graph import Graph
from graphfm.kernels import backend
from graphfm.runs.run import Run, build


class Contender(ABC):
    """One of the two sides of a comparison. Made ready where it is made; then only `epoch`."""

    name: str
    device: torch.device
    prepare_seconds: float

    @abstractmethod
    def epoch(self) -> float:
        """Train for one epoch; the mean loss, on the host."""


class Ours(Contender):
    """GraphFM, through the same door as everybody; an ablation runs it without some parts."""

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
    """Wait until the device has done all it was told to."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
