"""Runs the cases of a suite, one after the other, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch

from graphfm.experiments.bench.case import Case
from graphfm.experiments.bench.machine import Machine
from graphfm.experiments.bench.report import bench_table
from graphfm.experiments.bench.turns import CAUGHT, REPEATS, Graphs, free_memory, measure
from graphfm.experiments.cell import Cell
from graphfm.experiments.outcome import FAILED, FINISHED, Outcome, reason
from graphfm.experiments.runner import Observer, run_cells
from graphfm.experiments.store import MemoryStore, Store, memory_store
from graphfm.experiments.tables import write_tables
from graphfm.runs.provenance import machine as machine_of
from graphfm.runs.provenance import versions

Record = Mapping[str, Any]  # a case as one line of JSON


def run_suite(
    suite: str,
    cases: Sequence[Case],
    machine: Machine,
    repeats: int = REPEATS,
    out: Path | None = None,
    *,
    observer: Observer | None = None,
) -> Iterator[Record]:
    """Measure each case and yield its record; a case that cannot run is a record that says why.

    With `out`, records and tables are kept in that folder, and what it holds already is not
    measured again, but yielded first.
    """
    cells = [_cell(case, repeats) for case in cases]
    by_key = {cell.key: case for cell, case in zip(cells, cases, strict=True)}
    graphs = Graphs()

    def run_case(cell: Cell) -> Outcome:
        free_memory()
        case = by_key[cell.key]
        try:
            found = measure(suite, case, graphs(case), machine, repeats)
        except CAUGHT as error:
            return Outcome(status=FAILED, error=reason(error))
        return Outcome(status=FINISHED, measured=found.to_json())

    def records(store: MemoryStore) -> dict[str, Record]:
        return {
            key: _record(suite, case, machine, store.outcomes[key])
            for key, case in by_key.items()
            if key in store.outcomes
        }

    with _store(out, suite, repeats, machine) as store:
        done = {key: record for key, record in records(store).items() if _is_measured(record)}
        yield from done.values()
        for cell, _ in run_cells(cells, store, run_case, observer):
            found = records(store)
            if out is not None:
                measured = [record for record in found.values() if _is_measured(record)]
                write_tables(out, bench_table(measured, f"suite {suite}, {machine}"))
            yield found[cell.key]


def summarise(outcome: Outcome) -> str:
    """The outcome of a case as one line: our time, and how that compares with which rival."""
    record = outcome.measured
    if record is None:
        return f"failed: {outcome.error}"
    text = f"{record['seconds']:.3g} s an epoch"
    if record["ratio"] is not None:
        return f"{text}, {record['ratio']:.3g} times the rival's; rival: {record['rival']['name']}"
    return f"{text}; {record['note']}" if record["note"] else text


def _cell(case: Case, repeats: int) -> Cell:
    """A case may have the run of another one, but then another name or rival."""
    rival = f"{case.rival} with {case.workers} workers" if case.rival else "nothing"
    measure = f"bench: {case.name} against {rival}, {repeats} times"
    return Cell(case.run(), f"{case.dataset}, {case.name}", measure)


def _store(
    out: Path | None, suite: str, repeats: int, machine: Machine
) -> AbstractContextManager[MemoryStore]:
    if out is None:
        return memory_store()
    settings = {"versions": versions(), "machine": machine_of(torch.device(machine.device))}
    return Store.open(out, settings, {"suite": suite, "repeats": repeats})


def _record(suite: str, case: Case, machine: Machine, outcome: Outcome) -> Record:
    if outcome.measured is not None:
        return outcome.measured
    return {**case.to_json(suite, machine), "status": "failed", "reason": outcome.error}


def _is_measured(record: Record) -> bool:
    return bool(record["status"] == "measured")
