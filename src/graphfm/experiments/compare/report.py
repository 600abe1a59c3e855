"""The table of a comparison, and the files in its folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from graphfm.experiments.compare.columns import (
    SETTINGS,
    SHOWN,
    about_difference,
    default_columns,
)
from graphfm.experiments.compare.differences import settings_of
from graphfm.experiments.compare.plan import Plan
from graphfm.experiments.compare.row import MEANS, Row, settings_text
from graphfm.experiments.compare.sweep import as_words
from graphfm.experiments.outcome import NONE
from graphfm.experiments.tables import BELOW, Column, Table, write_tables
from graphfm.files import atomic_path

HEADING = "settings in which rows differ, and those of a method alone:"


def comparison_table(
    plan: Plan, rows: Sequence[Row], columns: Sequence[str] | None = None
) -> Table:
    """The table for people: rounded numbers, settings and notes.

    `columns` chooses among those of `columns.SHOWN`; what names a row and notes are always there.
    """
    chosen = list(columns or default_columns(rows, swept=bool(plan.sweeps)))
    chosen += [] if SETTINGS in chosen else [SETTINGS]  # a table never hides them
    swept = [sweep.name for sweep in plan.sweeps]
    shown = [SHOWN[name] for name in chosen]
    about = {"difference": about_difference(rows)}
    headed = (
        Column("method", left=True, names_row=True),
        *(Column(name, names_row=True) for name in swept),
        *(replace(column, about=about.get(column.name, column.about)) for column, _ in shown),
        Column("note", left=True, place=BELOW),
    )
    filled = (
        (
            row.method,
            *(NONE if (v := row.values.get(name)) is None else as_words(v) for name in swept),
            *(show(row) for _, show in shown),
            row.note,
        )
        for row in rows
    )
    remarks = _settings_lines(rows, swept)
    return Table(headed, tuple(filled), describe(plan), remarks)


def _settings_lines(rows: Sequence[Row], swept: Sequence[str]) -> tuple[str, ...]:
    """A line for each method, or for each row where those of a method differ."""
    texts = dict[str, dict[str, str]]()  # by method and row; a swept option has its own column
    for row in rows:
        kept = {name: value for name, value in row.options.items() if name not in swept}
        texts.setdefault(row.method, {})[row.name] = settings_text(kept)
    by_text = dict[str, list[str]]()
    for method, found in texts.items():
        same = len(set(found.values())) == 1
        for name, text in {method: next(iter(found.values()))}.items() if same else found.items():
            by_text.setdefault(text, []).append(name)
    by_text.pop("", None)
    lines = [f"  {'; '.join(names)}: {text}" for text, names in by_text.items()]
    return (HEADING, *lines) if lines else ()


def data_table(plan: Plan, rows: Sequence[Row]) -> Table:
    """The table for programs: all numbers as they are."""
    swept = [sweep.name for sweep in plan.sweeps]
    names = (
        "method", "backbone", *swept, "seeds", "test", "test_std", *MEANS, "val_std", "difference",
        "difference_low", "difference_high", "difference_p", "reference", "is_reference",
        "is_best", "failed", "note", "settings",
    )  # fmt: skip
    cells = list[tuple[str, ...]]()
    for row in rows:
        difference = row.difference
        record = row.to_json() | {
            "difference": difference and difference.mean,
            "difference_low": difference and difference.low,
            "difference_high": difference and difference.high,
            "difference_p": difference and difference.p,
            "reference": difference and difference.reference,
            **row.values,
        }
        cells.append(tuple("" if record[name] is None else str(record[name]) for name in names))
    return Table(tuple(map(Column, names)), tuple(cells), describe(plan))


def describe(plan: Plan) -> str:
    """One line: what all rows share."""
    run, common = plan.shared, plan.common
    layers = f" of {common['layers']} layers" if "layers" in common else ""
    patience = f", patience {common['patience']}" if "patience" in common else ""
    return (
        f"{run.dataset}, {run.backbone}{layers}, {_budget(plan)}{patience}, "
        f"{plan.seeds} {'seed' if plan.seeds == 1 else 'seeds'}, on {run.device}"
    )


def _budget(plan: Plan) -> str:
    seconds, epochs = plan.common.get("max_seconds"), plan.common.get("epochs")
    if seconds:
        return f"at most {seconds:g} s"
    if epochs is None:
        return "epochs by row"
    return f"at most {epochs} epoch{'' if epochs == 1 else 's'}"


def write_comparison(
    path: Path, plan: Plan, rows: Sequence[Row], columns: Sequence[str] | None = None
) -> None:
    """Write `table.md`, `table.tex` and `table.csv`."""
    write_tables(path, comparison_table(plan, rows, columns), data_table(plan, rows))


def write_pictures(path: Path, plan: Plan, rows: Sequence[Row]) -> None:
    """Draw `comparison.png`, or `sweep.png` where options are swept, and `curves.png`."""
    from graphfm.experiments.compare.curve_picture import draw_curves
    from graphfm.experiments.compare.picture import draw_comparison, draw_sweep

    if not any(row.scores for row in rows):
        return
    title = "\n".join([describe(plan), *_remarks(plan)])
    if not plan.sweeps:
        with atomic_path(path / "comparison.png") as unfinished:
            draw_comparison(rows, title, unfinished)
    else:
        with atomic_path(path / "sweep.png") as unfinished:
            draw_sweep(rows, plan.sweeps, title, unfinished)
    if any(curve for row in rows for curve in row.curves):
        with atomic_path(path / "curves.png") as unfinished:
            draw_curves(rows, title, unfinished)


def _remarks(plan: Plan) -> list[str]:
    """What a picture says of settings: those given to a method alone, and where all others are."""
    given = [f"{method} alone: {settings_text(options)}" for method, options in plan.own.items()]
    swept = {sweep.name for sweep in plan.sweeps}
    named = {n for run in plan.runs for n in settings_of(run) if n not in run.method_settings}
    named -= {*swept, *plan.common, *(n for own in plan.own.values() for n in own)}
    if named:
        given.append(f"rows also differ in {', '.join(sorted(named))}; table.md lists their values")
    return given
