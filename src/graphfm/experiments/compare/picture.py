"""Draws the pictures of a comparison."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphfm.experiments.compare.point_labels import Box, add_labels
from graphfm.experiments.compare.row import Row
from graphfm.experiments.compare.sweep import Sweep, Value

MARKERS = "osD^vP*X"
PANELS = (  # a field of the score, its unit, the label of its axis
    ("seconds_to_best", 1.0, "seconds of training to the best epoch"),
    ("peak_bytes", 2.0**20, "peak memory, MiB"),
)
PALETTES = {"tab10": 10, "Dark2": 8}  # colours that show as a thin line on white
BAND = 0.15  # opacity


def draw_comparison(rows: Sequence[Row], title: str, path: Path) -> list[list[Box]]:
    """Draw the score against time and against memory, a named point per method, as PNG.

    Where an option was swept, a method's values are joined and the best one carries the name.
    Returns where the names are, by panel.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 6), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, panel in zip(panels, PANELS, strict=True):
        _draw_points(axes, rows, *panel)
    panels[0].set_ylabel(_score_name(rows))
    figure.suptitle(title, fontsize=10)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # names are placed by the pixel: nothing may move from here on
    placed = [_add_names(axes, rows, *panel) for axes, panel in zip(panels, PANELS, strict=True)]
    figure.savefig(path, format="png")
    return placed


def _draw_points(axes: Any, rows: Sequence[Row], name: str, unit: float, label: str) -> None:
    for found, (color, marker) in zip(_by_method(rows).values(), _styles(), strict=False):
        x = [(row.mean(name) or 0) / unit for row in found]
        y = [row.score or 0 for row in found]
        error = [row.score_std or 0 for row in found]
        axes.errorbar(
            x, y, error, color=color, marker=marker, linewidth=0.8, elinewidth=1, capsize=3
        )
    _scale_x(axes, [row.mean(name) or 0 for row in rows if row.scores])
    axes.set_xlabel(label)
    axes.margins(0.12)
    axes.grid(alpha=0.25)


def _add_names(axes: Any, rows: Sequence[Row], name: str, unit: float, _: str) -> list[Box]:
    best = [max(found, key=lambda row: row.score or 0) for found in _by_method(rows).values()]
    points = [((row.mean(name) or 0) / unit, row.score or 0) for row in best]
    errors = [row.score_std or 0 for row in best]
    return add_labels(axes, points, errors, [_point_name(row) for row in best])


def draw_sweep(rows: Sequence[Row], sweep: Sweep, title: str, path: Path) -> None:
    """Draw the score against the swept value, a line and a band per method (the paper's Figure 2).

    A method that does not take the option is a level line.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5), dpi=120, layout="constrained")
    axes = figure.subplots()
    place = _places(sweep)
    for (method, found), style in zip(_by_method(rows).items(), _styles(), strict=False):
        _draw_line(axes, method, found, place, *style)
    _scale_x(axes, list(place.values()))
    axes.set_xticks(list(place.values()), [str(value) for value in place])
    axes.minorticks_off()
    axes.set(xlabel=sweep.name.replace("_", " "), ylabel=_score_name(rows))
    axes.grid(alpha=0.25)
    axes.set_title(title, fontsize=9)
    figure.legend(loc="outside right upper", fontsize=8)
    figure.savefig(path, format="png")


def _places(sweep: Sweep) -> dict[Value, float]:
    """Where each value lies on the axis: numbers at their value, names side by side."""
    numbers = [v for v in sweep.values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) < len(sweep.values):
        return {value: float(place) for place, value in enumerate(sweep.values)}
    return {value: float(value) for value in sorted(numbers)}


def _draw_line(
    axes: Any,
    method: str,
    rows: Sequence[Row],
    place: Mapping[Value, float],
    color: Any,
    marker: str,
) -> None:
    means = [(row.score or 0, row.score_std or 0) for row in rows]
    if rows[0].value is None:
        axes.axhline(means[0][0], color=color, linestyle="--", linewidth=1, label=method)
        return  # without a band: many level bands would cover all lines
    x = [place[row.value] for row in rows if row.value is not None]
    line = sorted(zip(x, means, strict=True))
    x, y = [at for at, _ in line], [mean for _, (mean, _) in line]
    axes.plot(x, y, color=color, marker=marker, label=method)
    low, high = zip(*((mean - std, mean + std) for _, (mean, std) in line), strict=True)
    axes.fill_between(x, low, high, color=color, alpha=BAND, linewidth=0)


def _by_method(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows that have a score, by method."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.scores:
            found.setdefault(row.method, []).append(row)
    return found


def _styles() -> Any:
    """Pairs of a colour and a marker; no pair repeats for 72 methods."""
    from matplotlib import colormaps

    colors = [colormaps[name](n) for name, count in PALETTES.items() for n in range(count)]
    return zip(itertools.cycle(colors), itertools.cycle(MARKERS), strict=False)


def _scale_x(axes: Any, values: Sequence[float]) -> None:
    """Use a logarithmic axis where values differ eightfold: small ones would lie in a heap."""
    if min(values) > 0 and max(values) / min(values) >= 8:
        axes.set_xscale("log")


def _point_name(row: Row) -> str:
    return row.method if row.value is None else f"{row.method}, {row.value}"


def _score_name(rows: Sequence[Row]) -> str:
    return "test micro-F1" if any(row.tests for row in rows) else "validation micro-F1"
