"""A comparison while it works: a live table on a terminal, else a line for each training."""

import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from graphfm.cli.output import say
from graphfm.experiments.cell import Cell
from graphfm.experiments.compare.observer import Observer
from graphfm.experiments.compare.plan import Plan
from graphfm.experiments.compare.report import describe, table
from graphfm.experiments.compare.row import Row
from graphfm.experiments.outcome import Outcome
from graphfm.memory import size
from graphfm.runs.memory_plan import MemoryPlan


class ComparisonView(Observer):
    """Counts what is done, and says a line for each training."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.num_done, self.num_cells = plan, 0, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass

    def on_plan(self, plans: Mapping[str, MemoryPlan]) -> None:
        listed = ", ".join(f"{method} {size(plan.needed)}" for method, plan in plans.items())
        for plan in list(plans.values())[:1]:  # graph and device are the same for all
            graph, free = size(plan.graph), size(plan.available)
            say(f"memory on {plan.device}, about: graph {graph}; beside it {free} free, {listed}")

    def on_begin(self, rows: Sequence[Row], num_done: int, num_cells: int) -> None:
        self.num_done, self.num_cells = num_done, num_cells
        say(describe(self.plan))
        if num_done:
            say(f"{num_done} of {num_cells} trainings are done already and are not run again")

    def on_end(self, cell: Cell, outcome: Outcome, rows: Sequence[Row]) -> None:
        self.num_done += outcome.settled
        self.tell(f"{cell.label}: {_summary(outcome)}")

    def tell(self, line: str) -> None:
        say(line)


class _LiveView(ComparisonView):
    """The table as it stands, and which training runs for how long."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.rows = list[Row]()
        self.running, self.started = "", time.monotonic()
        self.live = Live(
            console=Console(file=sys.stderr),
            get_renderable=self._render,
            refresh_per_second=2,
            transient=True,  # the table is printed at the end, on stdout
        )

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.live.stop()

    def on_begin(self, rows: Sequence[Row], num_done: int, num_cells: int) -> None:
        self.rows = list(rows)
        super().on_begin(rows, num_done, num_cells)

    def on_start(self, cell: Cell, number: int) -> None:
        self.running, self.started = f"{number} of {self.num_cells}: {cell.label}", time.monotonic()

    def on_end(self, cell: Cell, outcome: Outcome, rows: Sequence[Row]) -> None:
        self.rows, self.running = list(rows), ""
        super().on_end(cell, outcome, rows)

    def tell(self, line: str) -> None:
        """The table says it."""

    def _render(self) -> RenderableType:
        if not self.rows:
            return Text("reading the graph ...")
        header, *body = table(self.rows, None if self.plan.sweep is None else self.plan.sweep.name)
        shown = Table(box=None, pad_edge=False)
        for name in header:
            left = name in ("method", "note")
            shown.add_column(name, justify="left" if left else "right", no_wrap=name == "method")
        for cells in body:
            shown.add_row(*map(Text, cells))
        seconds = time.monotonic() - self.started
        below = f"{self.running}, {seconds:.0f} s" if self.running else "writing ..."
        return Group(shown, Text(below, style="dim"))


def comparison_view(plan: Plan) -> ComparisonView:
    """What suits where stderr goes."""
    return _LiveView(plan) if sys.stderr.isatty() else ComparisonView(plan)


def _summary(outcome: Outcome) -> str:
    score = outcome.score
    if score is None:
        return f"{outcome.status}: {outcome.error}"
    test = "no test nodes" if score.test is None else f"test {score.test:.4f}"
    return (
        f"{test}, validation {score.val:.4f} after {score.seconds_to_best:.3g} s, "
        f"{score.peak_bytes / 2**20:,.0f} MiB"
    )
