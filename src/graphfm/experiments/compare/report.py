"""The table as text, Markdown and CSV, and the pictures beside it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

from graphfm.experiments.compare.plan import Plan
from graphfm.experiments.compare.row import MEANS, Row
from graphfm.files import atomic_path

COLUMNS: dict[str, Callable[[Row], str]] = {
    "test": lambda row: _with_std(row),
    "validation": lambda row: _number(row, "val", ".4f"),
    "to best, s": lambda row: _number(row, "seconds_to_best", ".3g"),
    "epoch, s": lambda row: _number(row, "seconds_per_epoch", ".3g"),
    "memory, MiB": lambda row: _number(row, "peak_bytes", ",.0f", 1 / 2**20),
    "nodes/step": lambda row: _number(row, "nodes_per_step", ",.0f"),
    "edges/step": lambda row: _number(row, "edges_per_step", ",.0f"),
    "epochs": lambda row: _number(row, "epochs", ".0f"),
}
LEFT = {"method", "settings", "note", "row", "dataset"}  # words, not numbers
LONGEST_NOTE = 100  # characters, in a table for people


def table(
    rows: Sequence[Row], sweep: str | None = None, *, settings: bool = False
) -> list[list[str]]:
    """Cells as text, the header first; last columns for settings, and for notes if there are."""
    notes = any(row.note for row in rows)
    last = [*(["settings"] if settings else []), *(["note"] if notes else [])]
    header = ["method", *([sweep] if sweep else []), *COLUMNS, *last]
    body = [
        [
            row.method,
            *([_value(row)] if sweep else []),
            *(show(row) for show in COLUMNS.values()),
            *([row.settings] if settings else []),
            *([_short(row.note)] if notes else []),
        ]
        for row in rows
    ]
    return [header, *body]


def as_text(cells: Sequence[Sequence[str]]) -> str:
    """Aligned columns: names and notes to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    left = LEFT
    lines = []
    for line in cells:
        padded = [
            f"{text:<{width}}" if name in left else f"{text:>{width}}"
            for name, text, width in zip(cells[0], line, widths, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def as_markdown(cells: Sequence[Sequence[str]]) -> str:
    header, *body = cells
    rule = ["---" if name in LEFT else "---:" for name in header]
    lines = ["| " + " | ".join(_escape(text) for text in line) + " |" for line in (header, *body)]
    return "\n".join([lines[0], "|" + "|".join(rule) + "|", *lines[1:]]) + "\n"


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


def write_tables(path: Path, plan: Plan, rows: Sequence[Row]) -> None:
    """`table.md` and `table.csv`, each whole or not at all."""
    sweep = None if plan.sweep is None else plan.sweep.name
    with atomic_path(path / "table.md") as unfinished:
        text = f"{describe(plan)}\n\n{as_markdown(table(rows, sweep, settings=True))}"
        unfinished.write_text(text, encoding="utf-8")
    with atomic_path(path / "table.csv") as unfinished:
        _write_csv(unfinished, rows, sweep)


def write_report(path: Path, plan: Plan, rows: Sequence[Row]) -> None:
    """The tables and the pictures."""
    from graphfm.experiments.compare.picture import draw_comparison, draw_sweep

    write_tables(path, plan, rows)
    if not any(row.scores for row in rows):
        return
    if plan.sweep is None:
        with atomic_path(path / "comparison.png") as unfinished:
            draw_comparison(rows, describe(plan), unfinished)
    else:
        with atomic_path(path / "sweep.png") as unfinished:
            draw_sweep(rows, plan.sweep, describe(plan), unfinished)


def _write_csv(path: Path, rows: Sequence[Row], sweep: str | None) -> None:
    names = ["method", "backbone", "value", "seeds", "test", "test_std", *MEANS, "failed", "note"]
    names.append("settings")
    header = [sweep if sweep and name == "value" else name for name in names]
    if sweep is None:
        names.remove("value")
        header.remove("value")
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        for row in rows:
            record = row.to_json()
            writer.writerow([record[name] for name in names])


def _with_std(row: Row) -> str:
    if row.test is None:
        return "-"
    return f"{row.test:.4f}" + ("" if row.test_std is None else f" ± {row.test_std:.4f}")


def _number(row: Row, name: str, form: str, factor: float = 1) -> str:
    value = row.mean(name)
    return "-" if value is None else f"{value * factor:{form}}"


def _value(row: Row) -> str:
    return "-" if row.value is None else str(row.value)


def _short(note: str) -> str:
    """The first clause: what to do about it is for those who train that method alone."""
    clause = note.split(";")[0]
    return clause if len(clause) <= LONGEST_NOTE else clause[: LONGEST_NOTE - 3] + "..."


def _escape(text: str) -> str:
    return text.replace("|", "\\|")
