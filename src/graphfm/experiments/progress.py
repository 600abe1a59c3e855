"""How far an experiment is, and how long it will still take."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import fmean

from graphfm.experiments.cell import Cell
from graphfm.experiments.outcome import FINISHED, UNDEFINED, Outcome


class Progress:
    """The cells of an experiment, those that ended, and the one that runs.

    The runner updates it; views read it, also from other threads. The time left is learned from
    cells that ended, also in earlier processes: cells that differ by the seed alone take as long as
    each other, and a method that has not run yet takes as long as the others do on average.
    """

    def __init__(self, cells: Sequence[Cell], outcomes: Mapping[str, Outcome]) -> None:
        self.outcomes = outcomes  # the store's own mapping: it grows
        self._keys = [(cell.key, cell.kind) for cell in cells]
        self.num_cells = len(cells)
        missing = self._missing()
        self.todo = [cells[index] for index in missing]
        self.num_done = self.num_cells - len(missing)  # cells that need not be run again
        self._todo_keys = [self._keys[index] for index in missing]
        self._next = 0  # of `todo`: the cell that runs, or will run next
        self.running: Cell | None = None
        self._started = time.monotonic()

    @property
    def number(self) -> int:
        """Which cell runs or ended last, counted from 1 over all cells."""
        before = self._next + (self.running is not None)
        return self.num_cells - len(self.todo) + before

    @property
    def position(self) -> str:
        """The same in words."""
        return f"{self.number} of {self.num_cells}"

    def start(self, index: int) -> bool:
        """The cell `todo[index]` starts; False if another cell has settled it meanwhile."""
        self._next = index
        key, kind = self._todo_keys[index]
        outcome = self.outcomes.get(key)
        if (outcome is not None and outcome.settled) or kind in self._undefined():
            self._next += 1
            return False
        self.running, self._started = self.todo[index], time.monotonic()
        return True

    def end(self, outcome: Outcome) -> None:
        """The running cell ended and is kept."""
        self.running = None
        self._next += 1
        self.num_done += outcome.settled

    def elapsed(self) -> float:
        """Seconds since the running cell started."""
        return time.monotonic() - self._started

    def seconds_left(self) -> float | None:
        """An estimate for all cells still to come, the running one included; None at first."""
        by_kind = self._seconds_by_kind()
        if not by_kind:
            return None
        average, undefined = fmean(by_kind.values()), self._undefined()
        first = self._next
        seconds = [
            by_kind.get(kind, average) for _, kind in self._todo_keys[first:]
            if kind not in undefined
        ]  # fmt: skip
        if self.running is not None and seconds:
            seconds[0] = max(seconds[0] - self.elapsed(), 0.0)
        return sum(seconds)

    def _missing(self) -> list[int]:
        """Cells to run: without an outcome, or failed; a method is undefined for all its seeds."""
        undefined = self._undefined()
        return [
            index
            for index, (key, kind) in enumerate(self._keys)
            if kind not in undefined
            and not ((outcome := self.outcomes.get(key)) is not None and outcome.settled)
        ]

    def _undefined(self) -> set[str]:
        return {
            kind
            for key, kind in self._keys
            if (outcome := self.outcomes.get(key)) is not None and outcome.status == UNDEFINED
        }

    def _seconds_by_kind(self) -> dict[str, float]:
        """What cells of each kind took; folders of older versions keep only the training itself."""
        whole, training = dict[str, list[float]](), dict[str, list[float]]()
        for key, kind in self._keys:
            outcome = self.outcomes.get(key)
            if outcome is None or outcome.status != FINISHED:
                continue
            if outcome.seconds is not None:
                whole.setdefault(kind, []).append(outcome.seconds)
            elif (score := outcome.score) is not None:
                seconds = score.prepare_seconds + score.epochs * score.seconds_per_epoch
                training.setdefault(kind, []).append(seconds)
        return {kind: fmean(seconds) for kind, seconds in (whole or training).items()}


def duration(seconds: float) -> str:
    """As people say it: 40 s, 4 min, 1 h 20 min."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours < 24 and rest else f"{hours} h"
