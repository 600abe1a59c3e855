"""The final trainings: every method with its best settings, over several seeds."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from graphfm.errors import InputError
from graphfm.experiments.cell import Cell
from graphfm.experiments.compare.plan import Plan
from graphfm.experiments.outcome import FINISHED, Outcome
from graphfm.experiments.runner import Observer
from graphfm.experiments.store import MemoryStore, Store
from graphfm.experiments.tune.budget import threads_of
from graphfm.experiments.tune.lease import Lease
from graphfm.experiments.workers import Job, Workers, run_together
from graphfm.files import make_folder
from graphfm.runs.folder import as_file_name
from graphfm.runs.reader import read_config, read_score

FINAL, BEST = "final", "best"


def run_final(
    plan: Plan,
    path: Path,
    settings: Mapping[str, Any],
    workers: Workers,
    lease: Lease,
    observer: Observer,
) -> Iterator[Mapping[str, Outcome]]:
    """Run what is missing, and give all outcomes after each training.

    The training with seed 0 is kept as a run, in `best/METHOD`.
    """
    fingerprint = settings["graph"]["fingerprint"]
    scratch = (lease.path / f"final-{n}" for n in itertools.count())

    def start(cell: Cell) -> Job:
        return workers.start(
            cell, fingerprint, next(scratch), threads=threads_of(workers.jobs),
            folder=_unfinished(lease, cell) if _is_kept(cell) else None,
        )  # fmt: skip

    with Store.open(
        path / FINAL, settings, plan.asked(), dataset=plan.shared.dataset, defaults=plan.defaults()
    ) as store:
        for cell in plan.cells:
            if _is_kept(cell) and not _is_there(path, cell):
                store.outcomes.pop(cell.key, None)
        kept = _Kept(store, path, lease)
        yield store.outcomes
        for _ in run_together(plan.cells, kept, workers, start, observer):
            yield store.outcomes


class _Kept(MemoryStore):
    """Keeps the run of seed 0 before its outcome, which says that the run is there."""

    def __init__(self, store: Store, path: Path, lease: Lease) -> None:
        self._store, self._path, self._lease = store, path, lease
        self.outcomes = store.outcomes

    def add(self, cell: Cell, outcome: Outcome) -> None:
        if _is_kept(cell) and outcome.status == FINISHED:
            place = best_folder(self._path, cell.run.method)
            make_folder(place.parent)
            shutil.rmtree(place, ignore_errors=True)  # of settings that were the best before
            _unfinished(self._lease, cell).rename(place)
        self._store.add(cell, outcome)


def best_folder(path: Path, method: str) -> Path:
    """Where the best run of a method is."""
    return path / BEST / as_file_name(method)


def _unfinished(lease: Lease, cell: Cell) -> Path:
    return lease.path / BEST / as_file_name(cell.run.method)


def _is_kept(cell: Cell) -> bool:
    return cell.run.training.seed == 0


def _is_there(path: Path, cell: Cell) -> bool:
    place = best_folder(path, cell.run.method)
    try:
        run, _ = read_config(place, method=cell.run.named_method, backbone=cell.run.named_backbone)
        return read_score(place) is not None and run.to_json() == cell.run.to_json()
    except InputError:
        return False
