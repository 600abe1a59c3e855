"""Progress bars for downloads and preparation, shown on a terminal only."""

import sys

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from graphfm.cli.progress import Bars


class TransferBar(Bars):
    """Progress bars on stderr, one per file or step."""

    def __init__(self) -> None:
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,} of {task.total:,}"),
            TimeRemainingColumn(),
            console=Console(file=sys.stderr),
            disable=not sys.stderr.isatty(),
        )
        self.tasks: dict[str, TaskID] = {}

    def tell(self, what: str, done: int, total: int) -> None:
        """Update the bar of `what`; a total of 0 means that it is not known."""
        if what not in self.tasks:
            self.tasks[what] = self.progress.add_task(what)
        self.progress.update(self.tasks[what], completed=done, total=total or done)
