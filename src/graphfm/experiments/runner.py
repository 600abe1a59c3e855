"""Runs the cells that are missing of an experiment, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from graphfm.errors import InputError
from graphfm.experiments.cell import Cell
from graphfm.experiments.outcome import BROKEN, Outcome
from graphfm.experiments.progress import Progress
from graphfm.experiments.store import MemoryStore

RunCell = Callable[[Cell], Outcome]


class Observer:
    """Told what happens; does nothing by default."""

    def on_begin(self, progress: Progress) -> None:
        """The store was read; `progress` knows what is done, and is kept up to date."""

    def on_message(self, line: str) -> None:
        """Something that a person should know, before or between cells."""

    def on_start(self, cell: Cell) -> None:
        """A cell starts."""

    def on_end(self, cell: Cell, outcome: Outcome) -> None:
        """A cell ended, and its outcome is kept."""


def run_cells(
    cells: Sequence[Cell], store: MemoryStore, run_cell: RunCell, observer: Observer | None = None
) -> Iterator[tuple[Cell, Outcome]]:
    """Run what `store` does not hold yet, and yield each cell when its outcome is kept.

    A cell that failed in an earlier process is tried again, one that finished is not. A method that
    is not defined for one seed is not tried with another. A cell whose run cannot even be built in
    its process, such as one whose module cannot be imported there, is an error of the whole.
    """
    observer = observer or Observer()
    progress = Progress(cells, store.outcomes)
    observer.on_begin(progress)
    for index, cell in enumerate(progress.todo):
        if not progress.start(index):
            continue
        observer.on_start(cell)
        started = time.monotonic()
        outcome = run_cell(cell)
        if outcome.status == BROKEN:
            raise InputError(f"{cell.label} cannot be run: {outcome.error}")
        outcome = replace(outcome, seconds=time.monotonic() - started)
        store.add(cell, outcome)
        progress.end(outcome)
        observer.on_end(cell, outcome)
        yield cell, outcome
