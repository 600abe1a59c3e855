"""Show a running experiment: live on a terminal, else a line at least every 30 seconds."""

import logging
import sys
import threading
from collections.abc import Callable
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from graphfm.cli.output import folded, is_quiet, say
from graphfm.experiments.cell import Cell
from graphfm.experiments.outcome import Outcome, summary
from graphfm.experiments.progress import Progress, duration
from graphfm.experiments.runner import Observer
from graphfm.experiments.tables import Table, text_rows

EVERY = 30.0  # seconds between lines while a cell runs
Summary = Callable[[Outcome], str]


class ExperimentView(Observer):
    """Prints a line for each cell, and one every 30 seconds while a cell runs."""

    def __init__(self, what: str = "trainings", summarise: Summary = summary) -> None:
        self.what, self.summarise = what, summarise
        self.progress: Progress | None = None
        self._ended = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    @property
    def num_done(self) -> int:
        return 0 if self.progress is None else self.progress.num_done

    def __enter__(self) -> Self:
        self._ticker.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._ticker.join()

    def on_begin(self, progress: Progress) -> None:
        self.progress = progress
        done, total = progress.num_done, progress.num_cells
        if done:
            of_all = f" of {total}" if total else ""  # a search does not know how many it will try
            self.on_message(f"{done}{of_all} {self.what} are done already and are not run again")

    def on_message(self, line: str) -> None:
        say(line)

    def on_end(self, cell: Cell, outcome: Outcome) -> None:
        assert self.progress is not None
        ended = f"{self._position()}: {cell.label}: {self.summarise(outcome)}"
        self.on_message(ended + self._time_left())

    def _position(self) -> str:
        assert self.progress is not None
        return self.progress.position

    def _running(self) -> str | None:
        """Which cell runs, since when, and how long the rest will take."""
        progress = self.progress
        cell = None if progress is None else progress.running
        if progress is None or cell is None:
            return None
        elapsed = duration(progress.elapsed())
        return f"{self._position()}: {cell.label}: running for {elapsed}{self._time_left()}"

    def _time_left(self) -> str:
        assert self.progress is not None
        left = self.progress.seconds_left()
        if left is None or (left == 0 and self.progress.running is None):
            return ""
        return f"; about {duration(left)} left"

    def _tick(self) -> None:
        """Print a line when a cell has been running for another 30 seconds."""
        said_of, at = None, 0.0
        while not self._ended.wait(EVERY / 30):
            progress = self.progress
            cell = None if progress is None else progress.running
            if progress is None or cell is None:
                continue
            if cell is not said_of:
                said_of, at = cell, 0.0
            if progress.elapsed() - at >= EVERY and (line := self._running()):
                at = progress.elapsed()
                self.on_message(line)


class LiveView(ExperimentView):
    """Shows the running cell and the time left, below the printed lines or the table so far."""

    def __init__(
        self,
        what: str = "trainings",
        summarise: Summary = summary,
        table: Callable[[], Table] | None = None,
    ) -> None:
        super().__init__(what, summarise)
        self.table = table
        self.console = Console(file=sys.stderr)
        self.live = Live(
            console=self.console,
            get_renderable=self._render,
            refresh_per_second=2,
            redirect_stdout=False,  # stdout may be a file
            transient=True,  # the table is printed at the end, on stdout
        )
        self._log_streams = list[tuple["logging.StreamHandler[Any]", Any]]()

    def __enter__(self) -> Self:
        self.live.start()
        for handler in logging.getLogger().handlers:  # the log must not write into the live view
            if isinstance(handler, logging.StreamHandler):
                self._log_streams.append((handler, handler.setStream(sys.stderr)))
        return self

    def __exit__(self, *error: object) -> None:
        self.live.stop()
        for handler, stream in self._log_streams:
            if stream is not None:
                handler.setStream(stream)

    def on_message(self, line: str) -> None:
        self.console.print(Text(folded(line, self.console.file)))

    def on_end(self, cell: Cell, outcome: Outcome) -> None:
        if self.table is None:  # otherwise the table shows it
            super().on_end(cell, outcome)

    def _render(self) -> RenderableType:
        if self.progress is None:
            return Text("reading the graph ...", style="dim")
        running = self._running() or "writing ..."
        status = Text(running, style="dim", no_wrap=True, overflow="ellipsis")
        if self.table is None:
            return status
        lines, _ = text_rows(self.table(), self.console.width)
        shown = self._window(lines, self.console.height - 4)
        return Group(Text("\n".join(shown), no_wrap=True, overflow="crop"), status)

    def _window(self, lines: list[str], height: int) -> list[str]:
        """The header and as many rows as fit, around the running one."""
        header, rows = lines[0], lines[1:]
        room = max(height - 1, 1)
        if len(rows) <= room or self.progress is None:
            return lines
        cell = self.progress.running
        names = cell.label.split(", seed")[0].split(", ") if cell else []
        at = next((i for i, row in enumerate(rows) if names and row.startswith(names[0])), 0)
        first = min(max(at - room // 2, 0), len(rows) - room)
        return [header, *rows[first : first + room]]


def experiment_view(
    what: str = "trainings",
    summarise: Summary = summary,
    table: Callable[[], Table] | None = None,
) -> ExperimentView:
    """A live view, with `table`, if stderr is a terminal; else plain lines. Quiet shows neither."""
    if sys.stderr.isatty() and not is_quiet():
        return LiveView(what, summarise, table)
    return ExperimentView(what, summarise)
