"""A row of the table before it is filled."""

from __future__ import annotations

from dataclasses import dataclass

from graphfm.experiments.cell import Cell
from graphfm.experiments.compare.sweep import Value


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One method, one value of the sweep: a cell for each seed, or the reason why there is none."""

    method: str
    backbone: str
    value: Value | None  # None where nothing is swept, or the method does not take it
    cells: tuple[Cell, ...] = ()
    refusal: str | None = None
