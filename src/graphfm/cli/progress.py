"""Progress of a training: a bar on a terminal, else a plain line at least every 30 seconds."""

import math
import sys
import threading
import time
from collections.abc import Sequence
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from graphfm.cli.output import is_quiet, say
from graphfm.experiments.progress import duration
from graphfm.metrics.names import rounded
from graphfm.training.callbacks import Callback, EpochRecord
from graphfm.training.settings import Training

EVERY = 30.0  # seconds between lines, at most


class Bars:
    """Progress bars that are shown while a block of code runs, unless --quiet was given."""

    progress: Progress

    def __enter__(self) -> Self:
        self.progress.disable = self.progress.disable or is_quiet()
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()


class ProgressBar(Bars, Callback):
    """Epochs, loss, validation score and time left on one line of a terminal."""

    def __init__(self, epochs: int) -> None:
        self.progress = Progress(
            TextColumn("epoch"),
            MofNCompleteColumn(),
            BarColumn(),
            TextColumn(
                "loss {task.fields[loss]}  val {task.fields[val]} (best {task.fields[best]})"
            ),
            TimeRemainingColumn(),
            console=Console(file=sys.stderr),
            disable=not sys.stderr.isatty(),
        )
        self.task = self.progress.add_task("", total=epochs, loss="-", val="-", best="-")

    def on_begin(self, records: Sequence[EpochRecord]) -> None:
        self.progress.update(self.task, completed=len(records))

    def on_epoch(self, record: EpochRecord, best: float) -> None:
        shown = {"loss": f"{record.loss:.4f}"}
        if record.val is not None:
            shown |= {"val": rounded(record.val), "best": rounded(best)}
        self.progress.update(self.task, completed=record.epoch, **shown)  # type: ignore[arg-type]


class ProgressLines(Callback):
    """A line for the first and the last epoch, and between them at least one every 30 seconds."""

    def __init__(self, training: Training, every: float = EVERY) -> None:
        self.training, self.every = training, every
        self.line, self.val = "preparing", "-"  # the latest line and validation score
        self.num_before, self.num_heard, self.said = 0, 0, True
        self.started = self.last = time.monotonic()
        self._end, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._fill_silence, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()
        if error[0] is None and not self.said:  # the last epoch was not printed yet
            say(self.line)

    def on_begin(self, records: Sequence[EpochRecord]) -> None:
        self.num_before, self.started = len(records), time.monotonic()

    def on_epoch(self, record: EpochRecord, best: float) -> None:
        with self._lock:
            first, self.num_heard = self.num_heard == 0, record.epoch - self.num_before
            if record.val is not None:
                self.val = f"{rounded(record.val)} (best {rounded(best)})"
            self.line = (
                f"epoch {record.epoch} of {self.training.epochs}: loss {record.loss:.4f}, "
                f"validation {self.val}{self._time_left(record.epoch)}"
            )
            self.said = False
            if first or time.monotonic() - self.last >= self.every:
                self._say(self.line)

    def _say(self, line: str) -> None:
        say(line)
        self.said, self.last = True, time.monotonic()

    def _time_left(self, epoch: int) -> str:
        """The time left, as an upper bound: patience may end a training earlier."""
        if epoch >= self.training.epochs:
            return ""
        spent = time.monotonic() - self.started
        seconds = spent / self.num_heard * (self.training.epochs - epoch)
        if self.training.max_seconds:
            seconds = min(seconds, max(self.training.max_seconds - spent, 0))
        return f", at most {duration(math.ceil(seconds))} left"

    def _fill_silence(self) -> None:
        """Print a line if an epoch takes longer than the time between lines."""
        while not self._end.wait(max(self.last + self.every - time.monotonic(), 0.01)):
            with self._lock:
                if time.monotonic() - self.last >= self.every:
                    spent = duration(time.monotonic() - self.started)
                    self._say(f"{self.line}; {spent} so far")


def progress_of(training: Training) -> ProgressBar | ProgressLines:
    """A bar if stderr is a terminal, else lines."""
    return ProgressBar(training.epochs) if sys.stderr.isatty() else ProgressLines(training)
