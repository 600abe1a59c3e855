"""Runs what is missing of a comparison, and reports the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import torch

from graphfm.data.datasets import known_size, load
from graphfm.data.graph.size import GraphSize
from graphfm.errors import InputError
from graphfm.experiments.cell import Cell
from graphfm.experiments.compare.columns import choose_columns
from graphfm.experiments.compare.plan import Plan
from graphfm.experiments.compare.report import describe, write_comparison, write_pictures
from graphfm.experiments.compare.row import Row
from graphfm.experiments.outcome import FINISHED, Outcome
from graphfm.experiments.process import run_in_child
from graphfm.experiments.runner import Observer, run_cells
from graphfm.experiments.store import SCRATCH, Store
from graphfm.memory import size
from graphfm.runs.folder import as_file_name
from graphfm.runs.memory_plan import MemoryPlan, by_need, plan_for
from graphfm.runs.run import pick_device
from graphfm.training.setup import check_trainable

RunCell = Callable[[Cell, str, Path], Outcome]


def compare(
    plan: Plan,
    out: str | Path | None = None,
    *,
    observer: Observer | None = None,
    run_cell: RunCell | None = None,
    columns: str | Sequence[str] | None = None,
) -> list[Row]:
    """Fill the table of `plan`; cells that the folder `out` holds already are not run again.

    `columns` chooses those of the table that people read.
    """
    chosen = choose_columns(columns)
    observer, train = observer or Observer(), run_cell or run_in_child
    path, device = Path(out or default_path(plan)), pick_device(plan.shared.device)
    known = known_size(plan.shared.dataset, device)
    if known is not None:  # otherwise only the graph itself tells how large it is
        plan_for(plan.shared, known, device).check_graph(plan.shared.dataset)
    graph = load(plan.shared.dataset, device=device)
    for run in plan.runs:
        check_trainable(graph, run.training)
    settings, fingerprint = plan.settings(graph), graph.fingerprint
    memory = _plan_memory(plan, GraphSize.of(graph), device)
    del graph  # its memory is for the cells
    if device.type == "cuda":
        torch.cuda.empty_cache()
    with Store.open(
        path, settings, plan.asked(), dataset=plan.shared.dataset, defaults=plan.defaults()
    ) as store:
        rows = plan.rows(store.outcomes)
        observer.on_message(describe(plan))
        observer.on_message(_describe_memory(memory))
        _say_what_else(plan, store, observer)

        def run_one(cell: Cell) -> Outcome:
            return train(cell, fingerprint, path / SCRATCH)

        try:
            for _ in run_cells(plan.cells, store, run_one, observer):
                rows = plan.rows(store.outcomes)
                write_comparison(path, plan, rows, chosen)
        finally:
            write_comparison(path, plan, rows, chosen)  # of what there is
            write_pictures(path, plan, rows)
    return rows


def default_path(plan: Plan) -> Path:
    """runs/compare-debian-sage, followed by the names of the swept options."""
    swept = (sweep.name for sweep in plan.sweeps)
    names = ("compare", plan.shared.dataset, plan.shared.backbone, *swept)
    return Path("runs") / "-".join(map(as_file_name, names))


def _say_what_else(plan: Plan, store: Store, observer: Observer) -> None:
    """Say that the folder has trainings which this table leaves out, if it has any."""
    planned = {cell.key for cell in plan.cells}
    finished = [key for key, outcome in store.outcomes.items() if outcome.status == FINISHED]
    if others := sum(key not in planned for key in finished):
        observer.on_message(
            f"{store.path} also keeps {others} finished training{'' if others == 1 else 's'} with "
            "other methods, seeds, values or settings; the tables and pictures are of this "
            "command alone, and all trainings stay in cells.jsonl"
        )


def _plan_memory(plan: Plan, graph: GraphSize, device: torch.device) -> dict[str, MemoryPlan]:
    """By method, what it will take at most. A cell that does not fit says so in its row."""
    plans = dict[str, MemoryPlan]()
    for run in plan.runs:
        with suppress(InputError):  # the method is not defined here, as its row will say
            planned = plan_for(run, graph, device)
            plans[run.method] = max(planned, plans.get(run.method, planned), key=by_need)
    return plans


def _describe_memory(plans: dict[str, MemoryPlan]) -> str:
    """One line; the graph and the device are the same for all methods."""
    if not plans:
        return "no method can be planned on this graph; their rows will say why"
    first = next(iter(plans.values()))
    listed = ", ".join(f"{method} {size(plan.needed)}" for method, plan in plans.items())
    return (
        f"memory on {first.device}, about: graph {size(first.graph)}; beside it "
        f"{size(first.available)} free, {listed}"
    )
