"""Runs what is missing of a comparison, and reports the whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from graphfm.comparison.cell import Cell
from graphfm.comparison.entry import Entry
from graphfm.comparison.observer import Observer
from graphfm.comparison.outcome import UNDEFINED, Outcome
from graphfm.comparison.plan import Plan
from graphfm.comparison.process import run_in_child
from graphfm.comparison.report import write_report, write_tables
from graphfm.comparison.row import Row
from graphfm.comparison.store import Store
from graphfm.data.datasets import load
from graphfm.memory_plan import memory_plan
from graphfm.run import pick_device
from graphfm.training.folder import as_file_name
from graphfm.training.start import check_trainable

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
    path = Path(out or default_path(plan))
    graph = load(plan.shared.dataset, device=pick_device(plan.shared.device))
    check_trainable(graph)
    settings, fingerprint = plan.settings(graph), graph.fingerprint
    plans = {
        entry.method: memory_plan(entry.cells[0].run, graph).needed
        for entry in plan.entries
        if entry.cells
    }
    del graph  # the memory is for the cells
    if plan.shared.device == "cuda":
        torch.cuda.empty_cache()
    with Store.open(path, settings, plan.asked()) as store:
        rows = _rows(plan, store.outcomes)
        cells = plan.cells
        todo = [pair for pair in cells if not _settled(*pair, store.outcomes)]
        done = len(cells) - len(todo)
        observer.on_begin(rows, done, len(cells))
        observer.on_plan(plans)
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
    name = f"compare-{as_file_name(plan.shared.dataset)}-{plan.shared.backbone}"
    return Path("runs") / (name if plan.sweep is None else f"{name}-{plan.sweep.name}")


def _rows(plan: Plan, outcomes: Mapping[str, Outcome]) -> list[Row]:
    return [Row.make(entry, outcomes) for entry in plan.entries]


def _settled(entry: Entry, cell: Cell, outcomes: Mapping[str, Outcome]) -> bool:
    outcome = outcomes.get(cell.key)
    return (outcome is not None and outcome.settled) or _undefined(entry, outcomes)


def _undefined(entry: Entry, outcomes: Mapping[str, Outcome]) -> bool:
    ended = (outcomes.get(cell.key) for cell in entry.cells)
    return any(outcome is not None and outcome.status == UNDEFINED for outcome in ended)
