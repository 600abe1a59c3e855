"""Runs what is missing of a table, and reports the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

from graphfm.data.datasets import known_size, load
from graphfm.data.graph.size import GraphSize
from graphfm.experiments.outcome import FAILED, Outcome
from graphfm.experiments.process import run_in_child
from graphfm.experiments.reproduce.plan import Line, NamedCell, ReproductionPlan, named_key
from graphfm.experiments.reproduce.report import write_report
from graphfm.experiments.store import Store
from graphfm.runs.memory_plan import MemoryPlan, TooLarge, plan_for
from graphfm.runs.provenance import machine, versions
from graphfm.runs.run import pick_device

RunCell = Callable[[NamedCell, str | None, Path], Outcome]
Tell = Callable[[str], None]


def reproduce(
    plan: ReproductionPlan,
    out: str | Path | None = None,
    *,
    tell: Tell = lambda line: None,
    run_cell: RunCell | None = None,
) -> Mapping[str, Outcome]:
    """Outcomes by the key of their cell; those that the folder `out` holds are not run again."""
    path, run_cell = Path(out or default_path(plan)), run_cell or run_in_child
    settings = {
        "table": plan.table,
        "device": plan.device,
        "versions": versions(),
        "machine": machine(torch.device(plan.device)),
    }
    asked = {"seeds": plan.seeds, "recipes": [line.recipe.name for line in plan.lines]}
    with Store.open(path, settings, asked, named_key) as store:
        todo = [cell for cell in plan.cells if not _settled(cell, store.outcomes)]
        done, number = len(plan.cells) - len(todo), len(plan.cells)
        if done:
            tell(f"{done} of {number} trainings are done already and are not run again")
        absent = Counter(line.absent for line in plan.lines if line.absent)
        for reason, count in absent.items():
            tell(f"{count} of {len(plan.lines)} recipes are not run: {reason}")
        memory = _plan_memory(todo, tell)
        try:
            for count, cell in enumerate(todo, start=done + 1):
                if _settled(cell, store.outcomes):  # on a substitute, two recipes may be one run
                    continue
                outcome = _refused(cell, memory[cell.key]) or run_cell(cell, None, path / ".cell")
                store.add(cell, outcome)
                tell(f"{count} of {number}: {cell.label}: {_summary(outcome)}")
        finally:
            write_report(path, plan, store.outcomes)
        return store.outcomes


def default_path(plan: ReproductionPlan) -> Path:
    """runs/reproduce-table3, and the substitute behind it."""
    name = f"reproduce-{plan.table}"
    return Path("runs") / (f"{name}-{plan.substitute}" if plan.substitute else name)


def failures(lines: tuple[Line, ...], outcomes: Mapping[str, Outcome]) -> int:
    """How many trainings were tried and have no score."""
    ended = [outcomes[c.key] for line in lines for c in line.cells if c.key in outcomes]
    return sum(outcome.score is None for outcome in ended)


def _plan_memory(cells: Sequence[NamedCell], tell: Tell) -> dict[str, MemoryPlan]:
    """What each cell will take; told of the largest on each graph."""
    plans, by_graph = dict[str, MemoryPlan](), dict[str, list[NamedCell]]()
    for cell in cells:
        by_graph.setdefault(cell.run.dataset, []).append(cell)
    for dataset, of_graph in by_graph.items():
        device = pick_device(of_graph[0].run.device)
        graph = known_size(dataset, device) or GraphSize.of(load(dataset))
        plans |= {cell.key: plan_for(cell.run, graph, device) for cell in of_graph}
        largest = max(of_graph, key=lambda cell: plans[cell.key].needed)
        tell(f"{dataset}, at most ({largest.label}): {plans[largest.key]}")
    return plans


def _refused(cell: NamedCell, plan: MemoryPlan) -> Outcome | None:
    """The outcome of a cell that cannot fit; it is tried again another time."""
    try:
        plan.check(cell.run)
    except TooLarge as error:
        return Outcome(status=FAILED, error=str(error))
    return None


def _settled(cell: NamedCell, outcomes: Mapping[str, Outcome]) -> bool:
    return cell.key in outcomes and outcomes[cell.key].settled


def _summary(outcome: Outcome) -> str:
    if outcome.score is None:
        return f"{outcome.status}: {outcome.error}"
    test = "no test nodes" if outcome.score.test is None else f"test {outcome.score.test:.4f}"
    return f"{test}, {outcome.score.seconds_per_epoch:.3g} s an epoch"
