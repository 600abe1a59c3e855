"""Runs what is missing of a comparison, and reports the whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import torch

from graphfm.data.datasets import known_size, load
from graphfm.data.graph.size import GraphSize
from graphfm.errors import InputError
from graphfm.experiments.cell import Cell
from graphfm.experiments.compare.entry import Entry
from graphfm.experiments.compare.observer import Observer
from graphfm.experiments.compare.plan import Plan
from graphfm.experiments.compare.report import write_report, write_tables
from graphfm.experiments.compare.row import Row
from graphfm.experiments.outcome import UNDEFINED, Outcome
from graphfm.experiments.process import run_in_child
from graphfm.experiments.store import Store
from graphfm.runs.folder import as_file_name
from graphfm.runs.memory_plan import MemoryPlan, by_need, plan_for
from graphfm.runs.run import pick_device
from graphfm.training.setup import check_trainable

RunCell = Callable[[Cell, str, Path], Outcome]
SCRATCH = ".cell"


def compare(
    plan: Plan,
    out: str | Path | None = None,
    *,
    observer: Observer | None = None,
    run_cell: RunCell | None = None,
) -> list[Row]:
    """The table of `plan`; cells that the folder `out` holds already are not run again."""
    observer, run_cell = observer or Observer(), run_cell or run_in_child
    path, device = Path(out or default_path(plan)), pick_device(plan.shared.device)
    known = known_size(plan.shared.dataset, device)
    if known is not None:  # else the graph has to tell how large it is
        plan_for(plan.shared, known, device).check_graph(plan.shared.dataset)
    graph = load(plan.shared.dataset, device=device)
    check_trainable(graph)
    settings, fingerprint = plan.settings(graph), graph.fingerprint
    memory = _plan_memory(plan, GraphSize.of(graph), device)
    del graph  # the memory is for the cells
    if plan.shared.device == "cuda":
        torch.cuda.empty_cache()
    with Store.open(path, settings, plan.asked()) as store:
        rows = _rows(plan, store.outcomes)
        cells = plan.cells
        todo = [pair for pair in cells if not _settled(*pair, store.outcomes)]
        done = len(cells) - len(todo)
        observer.on_begin(rows, done, len(cells))
        observer.on_plan(memory)
        try:
            for number, (entry, cell) in enumerate(todo, start=done + 1):
                if _undefined(entry, store.outcomes):  # another seed has told
                    continue
                observer.on_start(cell, number)
                outcome = run_cell(cell, fingerprint, path / SCRATCH)
                store.add(cell, outcome)
                rows = _rows(plan, store.outcomes)
                observer.on_end(cell, outcome, rows)
                write_tables(path, plan, rows)
        finally:
            write_report(path, plan, rows)  # of what there is
    return rows


def default_path(plan: Plan) -> Path:
    """runs/compare-debian-sage, and the name of what is swept behind it."""
    name = "-".join(map(as_file_name, ("compare", plan.shared.dataset, plan.shared.backbone)))
    return Path("runs") / (name if plan.sweep is None else f"{name}-{plan.sweep.name}")


def _plan_memory(plan: Plan, graph: GraphSize, device: torch.device) -> dict[str, MemoryPlan]:
    """By method, what it will take at most. A cell that does not fit says so in its row."""
    plans = dict[str, MemoryPlan]()
    for run in (entry.cells[0].run for entry in plan.entries if entry.cells):
        with suppress(InputError):  # the method is not defined here, as its row will say
            planned = plan_for(run, graph, device)
            plans[run.method] = max(planned, plans.get(run.method, planned), key=by_need)
    return plans


def _rows(plan: Plan, outcomes: Mapping[str, Outcome]) -> list[Row]:
    return [Row.make(entry, outcomes) for entry in plan.entries]


def _settled(entry: Entry, cell: Cell, outcomes: Mapping[str, Outcome]) -> bool:
    outcome = outcomes.get(cell.key)
    return (outcome is not None and outcome.settled) or _undefined(entry, outcomes)


def _undefined(entry: Entry, outcomes: Mapping[str, Outcome]) -> bool:
    ended = (outcomes.get(cell.key) for cell in entry.cells)
    return any(outcome is not None and outcome.status == UNDEFINED for outcome in ended)
