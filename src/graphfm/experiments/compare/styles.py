"""What the pictures of a comparison have in common."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from graphfm.experiments.compare.row import Row

MARKERS = "osD^vP*X"
PALETTES = {"tab10": 10, "Dark2": 8}  # colours that show as a thin line on white


def by_method(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows that have a score, by method."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.scores:
            found.setdefault(row.method, []).append(row)
    return found


def styles() -> Iterator[tuple[Any, str]]:
    """Pairs of a colour and a marker; no pair repeats for 72 methods."""
    from matplotlib import colormaps

    colors = [colormaps[name](n) for name, count in PALETTES.items() for n in range(count)]
    return zip(itertools.cycle(colors), itertools.cycle(MARKERS), strict=False)


def scale_x(axes: Any, values: Sequence[float]) -> None:
    """Use a logarithmic axis where values differ eightfold: small ones would lie in a heap."""
    if min(values) > 0 and max(values) / min(values) >= 8:
        axes.set_xscale("log")


def metric_of(rows: Sequence[Row]) -> str:
    """What the rows' scores are, in words."""
    return next((row.metric for row in rows if row.scores), "score")
