"""Runs cells several at a time: a thread for each waits for its process and tells of its epochs."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from graphfm.errors import InputError
from graphfm.experiments.cell import Cell
from graphfm.experiments.outcome import BROKEN, STOPPED, Outcome
from graphfm.experiments.process import Watch, run_in_child
from graphfm.experiments.progress import Progress
from graphfm.experiments.runner import Observer
from graphfm.experiments.store import MemoryStore

Train = Callable[[Cell, str | None, Path, Watch], Outcome]
Event = Mapping[str, Any] | Outcome | BaseException


@dataclass(eq=False)
class Job:
    """A cell that runs, and why it was stopped if it was."""

    cell: Cell
    watch: Watch
    thread: threading.Thread | None = None
    stopped: str | None = None

    def stop(self, why: str) -> None:
        """End its process; the outcome will say why."""
        self.stopped = self.stopped or why
        self.watch.end()


class Workers:
    """At most `jobs` cells at a time; leaving the block ends those that still run."""

    def __init__(self, jobs: int, train: Train | None = None) -> None:
        self.jobs, self.train = jobs, train or run_in_child
        self.running: list[Job] = []
        self._events = queue.SimpleQueue[tuple[Job, Event]]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for job in self.running:
            job.watch.end()
        for job in self.running:
            assert job.thread is not None
            job.thread.join()

    @property
    def has_room(self) -> bool:
        return len(self.running) < self.jobs

    def start(
        self,
        cell: Cell,
        fingerprint: str | None,
        scratch: Path,
        *,
        threads: int,
        folder: Path | None = None,
        follow: bool = False,
    ) -> Job:
        """Start a cell. With `follow`, `wait` also returns its epochs, each as it ends."""
        job = Job(cell, Watch(threads=threads, folder=folder))
        if follow:
            job.watch.on_epoch = lambda record: self._events.put((job, record))

        def run() -> None:
            started = time.monotonic()
            try:
                outcome = self.train(cell, fingerprint, scratch, job.watch)
            except BaseException as error:
                self._events.put((job, error))
            else:
                seconds = time.monotonic() - started
                self._events.put((job, replace(outcome, seconds=seconds)))

        job.thread = threading.Thread(target=run, daemon=True)
        self.running.append(job)
        job.thread.start()
        return job

    def wait(self, seconds: float) -> tuple[Job, Mapping[str, Any] | Outcome] | None:
        """The next epoch or outcome of a cell; None if nothing happens in so many seconds."""
        try:
            job, event = self._events.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(event, BaseException):
            raise event
        if isinstance(event, Outcome):
            self.running.remove(job)
            if event.status == BROKEN:
                raise InputError(f"{job.cell.label} cannot be run: {event.error}")
            if job.stopped is not None:
                event = Outcome(status=STOPPED, error=job.stopped, seconds=event.seconds)
        return job, event


class SharedProgress(Progress):
    """Progress where several cells run at a time."""

    def __init__(self, cells: Sequence[Cell], outcomes: Mapping[str, Outcome], jobs: int) -> None:
        super().__init__(cells, outcomes)
        self._jobs, self._at_work, self._ended = jobs, list[Cell](), set[str]()

    @property
    def number(self) -> int:
        return self.num_cells - len(self.todo) + len(self._ended)

    def start(self, index: int) -> bool:
        if not super().start(index):
            self._ended.add(self._todo_keys[index][0])
            return False
        self._at_work.append(self.todo[index])
        return True

    def end_of(self, cell: Cell, outcome: Outcome) -> None:
        """This cell ended and is kept."""
        self._at_work.remove(cell)
        self._ended.add(cell.key)
        self.running = self._at_work[-1] if self._at_work else None
        self.num_done += outcome.settled

    def seconds_left(self) -> float | None:
        by_kind, undefined = self._seconds_by_kind(), self._undefined()
        if not by_kind:
            return None
        average = sum(by_kind.values()) / len(by_kind)
        left = [
            by_kind.get(kind, average)
            for key, kind in self._todo_keys
            if key not in self._ended and kind not in undefined
        ]
        return sum(left) / min(self._jobs, max(len(left), 1))


def run_together(
    cells: Sequence[Cell],
    store: MemoryStore,
    workers: Workers,
    start: Callable[[Cell], Job],
    observer: Observer,
) -> Iterator[tuple[Cell, Outcome]]:
    """As `run_cells`, with several cells at a time; `start` starts a cell at the workers."""
    progress = SharedProgress(cells, store.outcomes, workers.jobs)
    observer.on_begin(progress)
    todo = iter(enumerate(progress.todo))
    while True:
        while workers.has_room and (item := next(todo, None)) is not None:
            if progress.start(item[0]):
                observer.on_start(item[1])
                start(item[1])
        if not workers.running:
            return
        event = workers.wait(seconds=1.0)
        if event is not None and isinstance(event[1], Outcome):
            cell, outcome = event[0].cell, event[1]
            store.add(cell, outcome)
            progress.end_of(cell, outcome)
            observer.on_end(cell, outcome)
            yield cell, outcome
