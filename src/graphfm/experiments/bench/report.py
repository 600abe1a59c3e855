"""Measurements and profiles as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphfm.experiments.bench.profile import SHOWN, StepProfile
from graphfm.experiments.outcome import as_number
from graphfm.experiments.tables import BELOW, Column, Table
from graphfm.memory import size

LONGEST = 48  # characters of a kernel's name
COLUMNS = (
    Column("dataset", left=True, names_row=True, heads=True),
    Column("method", left=True, names_row=True),
    Column("epoch, s"),
    Column("min to max", rank=6),
    Column("warm-up, s", rank=5),
    Column("rival, s", rank=2),
    Column("ratio"),
    Column("its spread", rank=8),
    Column("peak", rank=3),
    Column("an epoch's", rank=7),
    Column("of rival's", rank=10),
    Column("floor, s", rank=9),
    Column("of floor", rank=1),
    Column("note", left=True, place=BELOW),
)


def bench_table(records: Sequence[Mapping[str, Any]], caption: str = "") -> Table:
    """A row for each case that was measured; `records` are as `Measurement.to_json` makes them."""
    return Table(COLUMNS, tuple(_row(record) for record in records), caption)


def _row(record: Mapping[str, Any]) -> tuple[str, ...]:
    rival, added = record["rival"], record["epoch_bytes"]
    return (
        record["dataset"],
        record["case"],
        _seconds(record["seconds"]),
        _range(record["seconds_min"], record["seconds_max"]),
        _seconds(record["warmup_seconds"]),
        "-" if rival is None else _seconds(rival["seconds"]),
        as_number(record["ratio"], ".3g"),
        "-" if rival is None else _range(record["ratio_min"], record["ratio_max"]),
        size(record["peak_bytes"]),
        "-" if added is None else size(added),
        as_number(record["memory_ratio"], ".2f"),
        as_number(record["floor_seconds"], ".3g"),
        as_number(record["floor_share"], ".1%"),
        record["note"],
    )


def _range(low: float, high: float) -> str:
    return f"{_seconds(low)} to {_seconds(high)}"


def _seconds(value: float) -> str:
    return f"{value:.3g}"


def profile_table(found: StepProfile) -> Table:
    """The slowest parts of a step, the rest as one row, and all of them together."""
    columns = (
        Column("row", left=True),
        Column("calls/step"),
        Column("ms/step"),
        Column("share"),
    )
    rows = [
        (_short(part.name), f"{part.calls:.1f}", f"{part.seconds * 1e3:.3f}", f"{part.share:.1%}")
        for part in found.parts[:SHOWN]
    ]
    rest = found.parts[SHOWN:]
    if rest:
        calls, seconds = sum(p.calls for p in rest), sum(p.seconds for p in rest)
        share = sum(p.share for p in rest)
        name = f"{len(rest)} others"
        rows.append((name, f"{calls:.1f}", f"{seconds * 1e3:.3f}", f"{share:.1%}"))
    rows.append(("all", f"{found.calls:.1f}", f"{found.busy * 1e3:.3f}", "100.0%"))
    return Table(columns, tuple(rows), profile_title(found))


def profile_title(found: StepProfile) -> str:
    return (
        f"{found.case.dataset}, {found.case.name}: {found.seconds * 1e3:.3f} ms a step; "
        f"in a pass of its own that was recorded: {found.calls:.0f} calls, "
        f"{found.busy * 1e3:.3f} ms in them"
    )


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 3] + "..."
