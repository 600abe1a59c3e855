"""What a comparison tells of itself."""

from collections.abc import Mapping, Sequence

from graphfm.experiments.cell import Cell
from graphfm.experiments.compare.row import Row
from graphfm.experiments.outcome import Outcome
from graphfm.runs.memory_plan import MemoryPlan


class Observer:
    """Told of what happens; does nothing by default."""

    def on_plan(self, plans: Mapping[str, MemoryPlan]) -> None:
        """By method, what a training will take; told before the first starts."""

    def on_begin(self, rows: Sequence[Row], num_done: int, num_cells: int) -> None:
        """The folder was read: so many of the cells are done already."""

    def on_start(self, cell: Cell, number: int) -> None:
        """A cell starts, the `number`th of all, counted from 1."""

    def on_end(self, cell: Cell, outcome: Outcome, rows: Sequence[Row]) -> None:
        """A cell ended and is kept; `rows` is the table as it stands."""
