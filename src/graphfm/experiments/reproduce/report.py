"""A table of the paper beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from graphfm.experiments.outcome import (
    NONE,
    Outcome,
    as_number,
    deviation,
    mean,
    tests_of,
    with_deviation,
)  # fmt: skip
from graphfm.experiments.reproduce.plan import Line, ReproductionPlan
from graphfm.experiments.tables import BELOW, Column, Table, as_html, write_file, write_tables
from graphfm.files import atomic_path
from graphfm.training.callbacks import Score

NAMES = (
    Column("row", left=True, names_row=True),
    Column("dataset", left=True, names_row=True, heads=True),
)
NOTE = Column("note", left=True, place=BELOW)
SCORES = (
    *NAMES, Column("paper"), Column("ours"), Column("difference", rank=1),
    Column("paper, s", rank=4), Column("epoch, s", rank=2), Column("paper, MiB", rank=5),
    Column("memory, MiB", rank=3), Column("with evaluation, MiB", rank=7),
    Column("seeds", rank=6), NOTE,
)  # fmt: skip
STALENESS = (
    *NAMES, Column("layer"), Column("paper"), Column("ours"), Column("relative", rank=2),
    Column("test", rank=1), Column("seeds", rank=3), NOTE,
)  # fmt: skip


def paper_table(plan: ReproductionPlan, outcomes: Mapping[str, Outcome]) -> Table:
    """The paper's numbers and ours, a row for each recipe; of Table 4, one for each layer too."""
    if plan.table == "table4":
        rows = [row for line in plan.lines for row in _staleness_rows(line, outcomes)]
        return Table(STALENESS, tuple(rows), describe(plan))
    return Table(SCORES, tuple(_row(line, outcomes) for line in plan.lines), describe(plan))


def describe(plan: ReproductionPlan) -> str:
    """One line: what the table holds."""
    seeds = f"{plan.seeds} {'seed' if plan.seeds == 1 else 'seeds'}"
    text = f"{plan.table}, {seeds} at most, on {plan.device}"
    if plan.substitute and plan.cells:
        graphs = {cell.run.dataset for cell in plan.cells}
        text += f"; NOT the paper's graphs but {', '.join(sorted(graphs))}"
    if plan.epochs is not None:
        text += f"; NOT the paper's epochs but {plan.epochs}"
    return text


def write_report(
    path: Path, plan: ReproductionPlan, outcomes: Mapping[str, Outcome], *, pictures: bool = True
) -> None:
    """Write `table.md`, `table.tex`, `table.csv` and `table.html`, and draw Figure 2."""
    table = paper_table(plan, outcomes)
    write_tables(path, table)
    write_file(path / "table.html", as_html(table, f"GraphFM: {plan.table} of the paper, again"))
    if plan.table == "figure2" and pictures and any(line.scores(outcomes) for line in plan.lines):
        from graphfm.experiments.reproduce.picture import draw_figure2

        with atomic_path(path / "figure2.png") as unfinished:
            draw_figure2(plan, outcomes, describe(plan), unfinished)


def _row(line: Line, outcomes: Mapping[str, Outcome]) -> tuple[str, ...]:
    recipe, scores = line.recipe, line.scores(outcomes)
    tests = tests_of(scores)
    ours = mean(tests)
    difference = NONE  # on another graph it would mean nothing
    if ours is not None and recipe.paper is not None and line.dataset == recipe.run.dataset:
        difference = f"{ours - recipe.paper:+.4f}"
    return (
        recipe.row,
        line.dataset,
        recipe.paper_instead or with_deviation(recipe.paper, recipe.paper_std),
        with_deviation(ours, deviation(tests)),
        difference,
        as_number(recipe.paper_seconds, "g"),
        as_number(_mean(scores, "seconds_per_epoch"), ".3g"),
        as_number(recipe.paper_mebibytes, ","),
        _mebibytes(scores, "train_bytes"),
        _mebibytes(scores, "peak_bytes"),
        str(len(scores)),
        _note(line, outcomes),
    )


def _staleness_rows(line: Line, outcomes: Mapping[str, Outcome]) -> list[tuple[str, ...]]:
    recipe, scores = line.recipe, line.scores(outcomes)
    measured = [score.staleness for score in scores if score.staleness]
    rows = list[tuple[str, ...]]()
    for layer in range(recipe.run.backbone_settings["layers"] - 1):
        paper = recipe.paper_staleness[layer] if recipe.paper_staleness else None
        ours = [of_seed[layer] for of_seed in measured]
        rows.append((
            recipe.row,
            line.dataset,
            str(layer + 1),
            as_number(paper),
            *(_average([of[name] for of in ours]) for name in ("score", "relative")),
            as_number(mean(tests_of(scores))),
            str(len(scores)),
            _note(line, outcomes),
        ))  # fmt: skip
    return rows


def _note(line: Line, outcomes: Mapping[str, Outcome]) -> str:
    """Why numbers are missing; else what no source tells and was chosen here."""
    if note := line.note(outcomes):
        return note
    epochs = line.cells[0].run.training.epochs if line.cells else None
    notes = [f"chosen here: {'; '.join(line.recipe.chosen)}"] if line.recipe.chosen else []
    if epochs is not None and epochs != line.recipe.run.training.epochs:
        notes.insert(0, f"at most {epochs} epochs instead of {line.recipe.run.training.epochs}")
    return "; ".join(notes)


def _average(values: Sequence[float | None]) -> str:
    return as_number(mean([value for value in values if value is not None]))


def _mean(scores: Sequence[Score], name: str) -> float | None:
    values = [getattr(score, name) for score in scores]
    return mean([value for value in values if value is not None])


def _mebibytes(scores: Sequence[Score], name: str) -> str:
    number = _mean(scores, name)
    return NONE if number is None else f"{number / 2**20:,.0f}"
