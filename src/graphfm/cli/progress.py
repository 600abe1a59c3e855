"""A bar with loss, validation score and time left; silent where nobody watches."""

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from graphfm.training.callbacks import Callback, EpochRecord


class Bars:
    """Shown while a block of code runs."""

    progress: Progress

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.progress.stop()


class ProgressBar(Bars, Callback):
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
            shown |= {"val": f"{record.val:.4f}", "best": f"{best:.4f}"}
        self.progress.update(self.task, completed=record.epoch, **shown)  # type: ignore[arg-type]
