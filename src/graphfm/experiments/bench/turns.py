"""Measures one case: our epochs and the rival's, in turns."""

from __future__ import annotations

import gc
from statistics import fmean

import torch

from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.experiments.bench.case import Case
from graphfm.experiments.bench.contender import Contender, Ours
from graphfm.experiments.bench.floor import Reach, step_bytes
from graphfm.experiments.bench.machine import Machine
from graphfm.experiments.bench.measurement import Measurement, Side
from graphfm.experiments.bench.meter import EpochCost, timed_epoch
from graphfm.experiments.outcome import reason

WARM_UP = 2  # epochs; a smaller last batch is captured in the second
REPEATS = 7
CAUGHT = (InputError, ImportError, MemoryError, RuntimeError)  # end a case, but not the suite


class Graphs:
    """Keeps the graph of the last case, for the next case if that has the same one."""

    def __init__(self) -> None:
        self.key: tuple[str, str, str] | None = None
        self.graph: Graph | None = None

    def __call__(self, case: Case) -> Graph:
        key = (case.dataset, case.device, case.run().training.features)
        if self.graph is None or key != self.key:
            self.graph = None  # freed before the next one needs the room
            free_memory()
            self.key, self.graph = key, case.graph()
        return self.graph


class Turns:
    """Epochs of ours and of the rival in turns.

    A rival that cannot start, fails or takes too long is closed, and ours goes on alone.
    """

    def __init__(self, case: Case, graph: Graph) -> None:
        self.ours = Ours(case.run(), graph, case.without)
        self.rival: Contender | None = None
        self.no_rival: str | None = None  # why there is none, although there should be
        try:
            self.rival = case.make_rival(graph)
        except CAUGHT as error:
            self.no_rival = reason(error)

    def run(self, number: int) -> tuple[list[EpochCost], list[EpochCost]]:
        """So many epochs of each side."""
        ours, theirs = list[EpochCost](), list[EpochCost]()
        for _ in range(number):
            ours.append(timed_epoch(self.ours))
            if self.rival is None:
                continue
            try:
                theirs.append(timed_epoch(self.rival))
            except CAUGHT as error:
                self.no_rival = f"{self.rival.name} gave up: {reason(error)}"
                self.close()
        return ours, theirs

    def close(self) -> None:
        """End the rival's worker processes: they must not run beside the next case."""
        if self.rival is not None:
            self.rival.close()
            self.rival = None
            free_memory()


def measure(
    suite: str, case: Case, graph: Graph, machine: Machine, repeats: int = REPEATS
) -> Measurement:
    """Time the first epochs of each side on their own, then epochs of both in turns."""
    turns = Turns(case, graph)
    try:
        warm_ours, warm_theirs = turns.run(WARM_UP)
        steps = turns.ours.trainer.touched["steps"] / WARM_UP
        ours, theirs = turns.run(repeats)
        rival = None
        if turns.rival is not None:
            rival = Side.of(turns.rival, warm_theirs, theirs)
        return Measurement(
            suite=suite,
            case=case,
            machine=machine,
            steps=steps,
            ours=Side.of(turns.ours, warm_ours, ours),
            rival=rival,
            no_rival=turns.no_rival,
            floor=step_bytes(case.run(), graph, reach(turns.ours)),
        )
    finally:
        turns.close()


def reach(ours: Ours) -> Reach:
    """How far the parts of a graph reach beyond themselves, on average over an epoch's batches."""
    sampler, rng = ours.trainer.method.sampler, torch.Generator(ours.trainer.graph.device)
    if "from_halo" not in sampler.views:
        return Reach(0, 0)
    halo, cut = list[int](), list[int]()
    for seeds in sampler.epoch(rng):
        block = sampler.sample(seeds, rng).blocks[0]
        halo.append(block.num_src - block.num_dst)
        cut.append(int((block.edges.col >= block.num_dst).sum()))
    return Reach(halo=fmean(halo), cut=fmean(cut))


def free_memory() -> None:
    """Give back the memory that the case before has left."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
