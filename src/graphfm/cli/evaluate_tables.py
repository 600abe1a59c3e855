"""The report of `graphfm evaluate` as tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphfm.experiments.outcome import as_number
from graphfm.experiments.tables import Column, Table
from graphfm.metrics.names import LABELS, title

SHOWN = 20  # most classes, and most confusions, that a terminal shows
WIDE = 8  # most classes whose confusions are shown as a matrix


def tables_of(report: Mapping[str, Any], names: Sequence[str]) -> list[Table]:
    """All parts of a report that exist for its task."""
    split = report["split"]
    tables = [_metrics(report)]
    if "classes" in report:
        what = "label" if report["task"] == LABELS else "class"
        tables.append(_classes(report["classes"], names, f"{what} ({split})"))
    if len(report.get("targets", ())) > 1:
        tables.append(_targets(report["targets"], names, split))
    if "confusion" in report:
        few = len(names) <= WIDE
        tables.append((_matrix if few else _confusions)(report["confusion"], names, split))
    if "calibration" in report:
        tables.append(_calibration(report["calibration"], split))
    return [*tables, _degrees(report["degrees"], report["metric"], split)]


def _metrics(report: Mapping[str, Any]) -> Table:
    splits = report["metrics"]
    names = next((list(found) for found in splits.values() if found), [])
    rows = tuple(
        (title(name, report.get("positive")), *(as_number(f.get(name)) for f in splits.values()))
        for name in names
    )
    columns = (Column("metric", left=True, names_row=True), *map(Column, splits))
    empty = [split for split, found in splits.items() if not found]
    remark = (f"no nodes: {', '.join(empty)}",) if empty else ()
    chosen = f"the best epoch was chosen by {title(report['metric'], report.get('positive'))}"
    return Table(columns, rows, remarks=(*remark, chosen))


def _classes(rows: Sequence[Mapping[str, Any]], names: Sequence[str], heading: str) -> Table:
    """The largest classes first, as far as a terminal has room."""
    order = sorted(range(len(rows)), key=lambda number: -rows[number]["support"])
    numbers = ("precision", "recall", "f1")
    filled = tuple(
        (
            names[number],
            *(as_number(rows[number][name]) for name in numbers),
            f"{rows[number]['support']:,}",
            f"{rows[number]['predicted']:,}",
        )
        for number in order[:SHOWN]
    )
    columns = (
        Column(heading, left=True, names_row=True), Column("precision"),
        Column("recall"), Column("F1"), Column("nodes"), Column("predicted"),
    )  # fmt: skip
    return Table(columns, filled, remarks=_and_more(len(rows), "classes"))


def _targets(rows: Sequence[Mapping[str, Any]], names: Sequence[str], split: str) -> Table:
    metrics = ("r2", "mae", "rmse")
    filled = tuple(
        (name, *(as_number(row[m]) for m in metrics), f"{row['support']:,}")
        for name, row in zip(names[:SHOWN], rows, strict=False)
    )
    columns = (
        Column(f"target ({split})", left=True, names_row=True),
        *(Column(title(m)) for m in metrics),
        Column("nodes"),
    )
    return Table(columns, filled, remarks=_and_more(len(rows), "targets"))


def _matrix(table: Sequence[Sequence[int]], names: Sequence[str], split: str) -> Table:
    columns = (
        Column(f"class ({split})", left=True, names_row=True),
        *(Column(f"as {name}") for name in names),
    )
    filled = tuple(
        (name, *(f"{number:,}" for number in row)) for name, row in zip(names, table, strict=True)
    )
    return Table(columns, filled)


def _confusions(table: Sequence[Sequence[int]], names: Sequence[str], split: str) -> Table:
    """Of many classes the pairs that are confused most."""
    pairs = [
        (number, actual, predicted)
        for actual, row in enumerate(table)
        for predicted, number in enumerate(row)
        if number and actual != predicted
    ]
    pairs.sort(key=lambda pair: (-pair[0], pair[1], pair[2]))
    filled = tuple(
        (names[actual], names[predicted], f"{number:,}", f"{number / sum(table[actual]):.1%}")
        for number, actual, predicted in pairs[:SHOWN]
    )
    columns = (
        Column(f"class ({split})", left=True, names_row=True),
        Column("taken for", left=True, names_row=True),
        Column("nodes"),
        Column("of the class"),
    )
    return Table(columns, filled, remarks=_and_more(len(pairs), "pairs"))


def _calibration(found: Mapping[str, Any], split: str) -> Table:
    filled = tuple(
        (
            f"{row['from']:.1f} to {row['to']:.1f}", f"{row['nodes']:,}",
            as_number(row["certainty"]), as_number(row["accuracy"]),
        )
        for row in found["bins"]
        if row["nodes"]
    )  # fmt: skip
    columns = (
        Column(f"probability ({split})", left=True, names_row=True), Column("predictions"),
        Column("mean"), Column("come true"),
    )  # fmt: skip
    remark = f"expected calibration error {found['ece']:.4f}: the mean distance of the two"
    return Table(columns, filled, remarks=(remark,))


def _degrees(rows: Sequence[Mapping[str, Any]], chosen: str, split: str) -> Table:
    metrics = [name for name in rows[0] if name not in ("from", "to", "nodes")]
    filled = tuple(
        (_range(row), f"{row['nodes']:,}", *(as_number(row[name]) for name in metrics))
        for row in rows
    )
    columns = (
        Column(f"neighbours ({split})", left=True, names_row=True),
        Column("nodes"),
        *(Column(title(name), rank=rank * (name != chosen)) for rank, name in enumerate(metrics)),
    )
    return Table(columns, filled)


def _range(row: Mapping[str, Any]) -> str:
    low, high = row["from"], row["to"]
    if high is None:
        return f"{low:,} or more"
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _and_more(number: int, what: str) -> tuple[str, ...]:
    return (f"and {number - SHOWN:,} more {what} (--json has all)",) if number > SHOWN else ()
