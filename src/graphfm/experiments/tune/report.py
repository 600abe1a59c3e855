"""The tables of a search and of what it found, and the files in its folder."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from graphfm.experiments.compare.plan import Plan
from graphfm.experiments.compare.report import comparison_table, data_table, describe
from graphfm.experiments.compare.sweep import as_words
from graphfm.experiments.outcome import NONE, as_number
from graphfm.experiments.tables import (
    BELOW,
    FILES,
    Column,
    Table,
    as_markdown,
    write_file,
    write_tables,
)
from graphfm.experiments.tune.plan import TunePlan
from graphfm.experiments.tune.record import Records, TrialRecord, best, counts, of
from graphfm.experiments.tune.row import TunedRow
from graphfm.files import atomic_path

CSV, MARKDOWN, LINES, PICTURE = "trials.csv", "trials.md", "trials.jsonl", "trials.png"


def final_table(
    plan: TunePlan, final: Plan | None, rows: Sequence[TunedRow], records: Records, jobs: int
) -> Table:
    """The comparison of the best settings, with what the search cost on validation."""
    table = comparison_table(final or plan.base, rows)
    little = _little_time(plan, records)
    lines = (*table.remarks, *([little] if little else []))
    return replace(table, caption=caption(plan, final, records, jobs), remarks=lines)


def caption(plan: TunePlan, final: Plan | None, records: Records, jobs: int) -> str:
    """What all rows share, and how often validation was looked at to choose their settings."""
    looks = f"the settings were chosen on validation, by {counts(records)}"
    paced = "" if plan.pace is None else plan.pace.in_words()
    return "; ".join(
        filter(None, (f"{describe(final or plan.base)}, {at_a_time(jobs)}", paced, looks))
    )


def search_table(plan: TunePlan, records: Records) -> Table:
    """The search so far: a line per method."""
    columns = (
        Column("method", left=True, names_row=True),
        Column("validation"),
        Column("trials"),
        Column("training, s", rank=2),
        Column("best settings so far", left=True, rank=1),
    )
    rows = []
    for search in plan.searches:
        own = of(search.method, records)
        found = best(own)
        rows.append(
            (
                search.method,
                as_number(None if found is None else found.val),
                str(len(own)),
                f"{sum(record.seconds for record in own):.0f}",
                "" if found is None else _words(found),
            )
        )
    return Table(columns, tuple(rows), f"{describe(plan.base)}; {counts(records)}")


def trials_table(records: Records, title: str) -> Table:
    """Every trial for people."""
    columns = (
        Column("method", left=True, names_row=True),
        Column("trial", names_row=True),
        Column("state", left=True),
        Column("validation"),
        Column("epochs"),
        Column("seconds"),
        Column("settings", left=True, place=FILES),
        Column("note", left=True, place=BELOW),
    )
    rows = tuple(
        (
            record.method, str(record.number), record.state, as_number(record.val),
            NONE if record.epochs is None else str(record.epochs), f"{record.seconds:.1f}",
            _words(record) + (" (defaults)" if record.is_default else ""), record.note,
        )
        for record in records
    )  # fmt: skip
    return Table(columns, rows, title)


def write_trials(path: Path, plan: TunePlan, records: Records) -> None:
    """Write `trials.md`, `trials.csv` and, with the curves, `trials.jsonl`."""
    title = f"{describe(plan.base)}; {counts(records)}"
    write_file(path / MARKDOWN, as_markdown(trials_table(records, title)))
    write_file(path / LINES, "".join(json.dumps(asdict(record)) + "\n" for record in records))
    names = list(dict.fromkeys(name for record in records for name in record.settings))
    numbers = ("val", "epochs", "best_epoch", "seconds", "peak_bytes", "is_default", "note")
    with (
        atomic_path(path / CSV) as unfinished,
        unfinished.open("w", newline="", encoding="utf-8") as stream,
    ):
        writer = csv.writer(stream)
        writer.writerow(["method", "trial", "state", *names, *numbers])
        for record in records:
            values = [record.settings.get(name, "") for name in names]
            told = [getattr(record, name) for name in numbers]
            writer.writerow([record.method, record.number, record.state, *values, *told])


def draw_trials_picture(path: Path, plan: TunePlan, records: Records) -> None:
    """Draw `trials.png`, if there is something to draw."""
    from graphfm.experiments.tune.picture import draw_trials

    if any(record.val is not None for record in records):
        with atomic_path(path / PICTURE) as unfinished:
            draw_trials(records, f"{describe(plan.base)}; {counts(records)}", unfinished)


def write_final(
    path: Path, plan: TunePlan, final: Plan | None, rows: Sequence[TunedRow], table: Table
) -> None:
    """Write `table.md`, `table.tex` and `table.csv`."""
    data = replace(data_table(final or plan.base, rows), caption=table.caption)
    write_tables(path, table, data)


def at_a_time(jobs: int) -> str:
    """In words: 2 trainings at a time."""
    return f"{jobs} training{'' if jobs == 1 else 's'} at a time"


def _little_time(plan: TunePlan, records: Records) -> str:
    alone = [s.method for s in plan.searches if s.space and len(of(s.method, records)) == 1]
    if plan.minutes is None or not alone or plan.trials == 1:
        return ""
    return f"there was time for the defaults alone of {', '.join(alone)}; give more minutes"


def _words(record: TrialRecord) -> str:
    return ", ".join(f"{name} {as_words(value)}" for name, value in record.settings.items())
