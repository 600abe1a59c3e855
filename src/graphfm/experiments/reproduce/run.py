"""Runs what is missing of a table of the paper, and reports the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

from graphfm.data.datasets import known_size, load
from graphfm.data.graph.size import GraphSize
from graphfm.experiments.cell import Cell
from graphfm.experiments.outcome import FAILED, Outcome
from graphfm.experiments.process import run_in_child
from graphfm.experiments.progress import Progress
from graphfm.experiments.reproduce.plan import Line, ReproductionPlan
from graphfm.experiments.reproduce.report import describe, write_report
from graphfm.experiments.runner import Observer, run_cells
from graphfm.experiments.store import SCRATCH, Store
from graphfm.runs.devices import kind_of
from graphfm.runs.memory_plan import MemoryPlan, TooLarge, plan_for
from graphfm.runs.provenance import machine, versions
from graphfm.runs.run import pick_device

RunCell = Callable[[Cell, str | None, Path], Outcome]


def reproduce(
    plan: ReproductionPlan,
    out: str | Path | None = None,
    *,
    observer: Observer | None = None,
    run_cell: RunCell | None = None,
) -> Mapping[str, Outcome]:
    """Outcomes by the key of their cell; those that the folder `out` holds are not run again."""
    observer, train = observer or Observer(), run_cell or run_in_child
    path = Path(out or default_path(plan))
    settings = {
        "table": plan.table,
        "device": kind_of(plan.device),
        "versions": versions(),
        "machine": machine(torch.device(plan.device)),
    }
    asked = {"seeds": plan.seeds, "recipes": [line.recipe.name for line in plan.lines]}
    with Store.open(path, settings, asked) as store:
        observer.on_message(describe(plan))
        absent = Counter(line.refusal for line in plan.lines if line.refusal)
        for reason, count in absent.items():
            observer.on_message(f"{count} of {len(plan.lines)} recipes are not run: {reason}")
        memory = _plan_memory(Progress(plan.cells, store.outcomes).todo, observer)

        def run_one(cell: Cell) -> Outcome:
            refused = _refused(cell, memory[cell.key])
            return refused or train(cell, None, path / SCRATCH)

        try:
            for _ in run_cells(plan.cells, store, run_one, observer):
                write_report(path, plan, store.outcomes, pictures=False)
        finally:
            write_report(path, plan, store.outcomes)
        return store.outcomes


def default_path(plan: ReproductionPlan) -> Path:
    """runs/reproduce-table3, followed by the name of the substitute."""
    name = f"reproduce-{plan.table}"
    return Path("runs") / (f"{name}-{plan.substitute}" if plan.substitute else name)


def failures(lines: Sequence[Line], outcomes: Mapping[str, Outcome]) -> int:
    """How many trainings were tried and have no score."""
    return sum(len(line.ended(outcomes)) - len(line.scores(outcomes)) for line in lines)


def _plan_memory(cells: Sequence[Cell], observer: Observer) -> dict[str, MemoryPlan]:
    """What each cell will take; the observer is told of the largest on each graph."""
    plans, by_graph = dict[str, MemoryPlan](), dict[str, list[Cell]]()
    for cell in cells:
        by_graph.setdefault(cell.run.dataset, []).append(cell)
    for dataset, of_graph in by_graph.items():
        device = pick_device(of_graph[0].run.device)
        graph = known_size(dataset, device) or GraphSize.of(load(dataset))
        plans |= {cell.key: plan_for(cell.run, graph, device) for cell in of_graph}
        largest = max(of_graph, key=lambda cell: plans[cell.key].needed)
        observer.on_message(f"{dataset}, at most ({largest.label}): {plans[largest.key]}")
    return plans


def _refused(cell: Cell, plan: MemoryPlan) -> Outcome | None:
    """The outcome of a cell that cannot fit into memory; it is tried again another time."""
    try:
        plan.check(cell.run)
    except TooLarge as error:
        return Outcome(status=FAILED, error=str(error))
    return None
