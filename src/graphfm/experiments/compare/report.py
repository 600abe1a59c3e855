"""The table of a comparison, and the files in its folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from graphfm.experiments.compare.plan import Plan
from graphfm.experiments.compare.row import MEANS, Row
from graphfm.experiments.compare.sweep import as_words
from graphfm.experiments.outcome import NONE, as_number, with_deviation
from graphfm.experiments.tables import BELOW, FILES, Column, Table, write_tables
from graphfm.files import atomic_path

NUMBERS: dict[Column, Callable[[Row], str]] = {
    Column("test"): lambda row: with_deviation(row.test, row.test_std),
    Column("validation", rank=4): lambda row: as_number(row.mean("val")),
    Column("to best, s", rank=3): lambda row: as_number(row.mean("seconds_to_best"), ".3g"),
    Column("epoch, s", rank=1): lambda row: as_number(row.mean("seconds_per_epoch"), ".3g"),
    Column("memory, MiB", rank=2): lambda row: _mebibytes(row),
    Column("nodes/step", rank=6): lambda row: as_number(row.mean("nodes_per_step"), ",.0f"),
    Column("edges/step", rank=5): lambda row: as_number(row.mean("edges_per_step"), ",.0f"),
    Column("epochs", rank=7): lambda row: as_number(row.mean("epochs"), ".0f"),
}


def comparison_table(plan: Plan, rows: Sequence[Row]) -> Table:
    """The table for people: rounded numbers, settings and notes."""
    swept = () if plan.sweep is None else (Column(plan.sweep.name, names_row=True),)
    columns = (
        Column("method", left=True, names_row=True),
        *swept,
        *NUMBERS,
        Column("settings", left=True, place=FILES),
        Column("note", left=True, place=BELOW),
    )
    filled = (
        (
            row.method,
            *((NONE if row.value is None else str(row.value)) for _ in swept),
            *(show(row) for show in NUMBERS.values()),
            row.settings,
            row.note,
        )
        for row in rows
    )
    return Table(columns, tuple(filled), describe(plan), _overrides(plan))


def data_table(plan: Plan, rows: Sequence[Row]) -> Table:
    """The table for programs: all numbers as they are."""
    names = ["method", "backbone", "value", "seeds", "test", "test_std", *MEANS, "failed", "note"]
    names.append("settings")
    if plan.sweep is None:
        names.remove("value")
    columns = tuple(
        Column(plan.sweep.name if plan.sweep and name == "value" else name) for name in names
    )
    records = [row.to_json() for row in rows]
    cells = (
        tuple("" if record[name] is None else str(record[name]) for name in names)
        for record in records
    )
    return Table(columns, tuple(cells), describe(plan))


def describe(plan: Plan) -> str:
    """One line: what all rows share."""
    run, training = plan.shared, plan.shared.training
    seconds = training.max_seconds
    epochs = f"{training.epochs} epoch{'' if training.epochs == 1 else 's'}"
    budget = f"{seconds:g} s" if seconds else epochs
    network = run.backbone_settings
    layers = "" if plan.sweep and plan.sweep.name == "layers" else f" of {network['layers']} layers"
    return (
        f"{run.dataset}, {run.backbone}{layers}, at most {budget}, patience {training.patience}, "
        f"{plan.seeds} {'seed' if plan.seeds == 1 else 'seeds'}, on {run.device}"
    )


def write_comparison(path: Path, plan: Plan, rows: Sequence[Row]) -> None:
    """Write `table.md`, `table.tex` and `table.csv`."""
    write_tables(path, comparison_table(plan, rows), data_table(plan, rows))


def write_pictures(path: Path, plan: Plan, rows: Sequence[Row]) -> None:
    """Draw `comparison.png`, or `sweep.png` where an option is swept."""
    from graphfm.experiments.compare.picture import draw_comparison, draw_sweep

    if not any(row.scores for row in rows):
        return
    title = "\n".join([describe(plan), *_overrides(plan)])
    if plan.sweep is None:
        with atomic_path(path / "comparison.png") as unfinished:
            draw_comparison(rows, title, unfinished)
    else:
        with atomic_path(path / "sweep.png") as unfinished:
            draw_sweep(rows, plan.sweep, title, unfinished)


def _overrides(plan: Plan) -> tuple[str, ...]:
    """A line for each method that was given settings of its own."""
    return tuple(
        f"{method} alone: "
        + ", ".join(f"{name} {as_words(value)}" for name, value in settings.items())
        for method, settings in plan.own.items()
    )


def _mebibytes(row: Row) -> str:
    value = row.mean("peak_bytes")
    return NONE if value is None else f"{value / 2**20:,.0f}"
