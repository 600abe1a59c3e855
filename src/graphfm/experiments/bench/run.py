"""Cases one after the other, each against its rival in turns."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from statistics import fmean

import torch

from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.experiments.bench.case import Case
from graphfm.experiments.bench.contender import Contender, Ours
from graphfm.experiments.bench.floor import Reach, step_bytes
from graphfm.experiments.bench.machine import Machine
from graphfm.experiments.bench.measurement import Failure, Measurement, Side
from graphfm.experiments.bench.meter import timed_epoch
from graphfm.memory import is_out_of_memory

WARM_UP = 2  # epochs; a last batch that is smaller is captured in the second
REPEATS = 7
CAUGHT = (InputError, ImportError, MemoryError, RuntimeError)  # which end a case, not a suite


class Graphs:
    """The graph of the case at hand; cases in a row that share one need not make it again."""

    def __init__(self) -> None:
        self.key: tuple[str, str, str] | None = None
        self.graph: Graph | None = None

    def __call__(self, case: Case) -> Graph:
        key = (case.dataset, case.device, case.run().training.features)
        if self.graph is None or key != self.key:
            self.graph = None  # before the next one needs the room
            free_memory()
            self.key, self.graph = key, case.graph()
        return self.graph


def measure_all(
    suite: str, cases: Sequence[Case], machine: Machine, repeats: int = REPEATS
) -> Iterator[Measurement | Failure]:
    """Measure each case; one that cannot run is a line, and the next goes on."""
    graphs = Graphs()
    for case in cases:
        free_memory()
        try:
            yield measure(suite, case, graphs(case), machine, repeats)
        except CAUGHT as error:
            yield Failure(suite=suite, case=case, machine=machine, reason=reason(error))


def measure(
    suite: str, case: Case, graph: Graph, machine: Machine, repeats: int = REPEATS
) -> Measurement:
    """The first epochs of each side apart, then epochs of both in turns."""
    run = case.run()
    ours, no_rival = Ours(run, graph, case.without), None
    sides: list[Contender] = [ours]
    try:
        if (rival := case.make_rival(graph)) is not None:
            sides.append(rival)
    except (InputError, ImportError) as error:
        no_rival = reason(error)
    warmup = [[timed_epoch(side) for side in sides] for _ in range(WARM_UP)]
    steps = ours.trainer.touched["steps"] / WARM_UP
    epochs = [[timed_epoch(side) for side in sides] for _ in range(repeats)]
    measured = [
        Side(
            name=side.name,
            prepare_seconds=side.prepare_seconds,
            warmup=[turn[number] for turn in warmup],
            epochs=[turn[number] for turn in epochs],
        )
        for number, side in enumerate(sides)
    ]
    return Measurement(
        suite=suite,
        case=case,
        machine=machine,
        steps=steps,
        ours=measured[0],
        rival=measured[1] if len(measured) > 1 else None,
        no_rival=no_rival,
        floor=step_bytes(run, graph, reach(ours)),
    )


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
    """Give back what the case before has left."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def reason(error: BaseException) -> str:
    """An error as one line."""
    if is_out_of_memory(error):
        return "there is not enough memory"
    return " ".join(str(error).split()) or type(error).__name__
