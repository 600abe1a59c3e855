"""Draws the pictures of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from graphfm.experiments.compare.point_labels import Box, add_labels
from graphfm.experiments.compare.row import Row
from graphfm.experiments.compare.styles import by_method, metric_of, scale_x, styles
from graphfm.experiments.compare.sweep import Sweep, Value, as_words, in_words

PANELS = (  # a field of the score, its unit, the label of its axis
    ("seconds_to_best", 1.0, "seconds of training to the best epoch"),
    ("peak_bytes", 2.0**20, "peak memory, MiB"),
)
DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))  # for the lines of one method
BAND = 0.15  # opacity


def draw_comparison(rows: Sequence[Row], title: str, path: Path) -> list[list[Box]]:
    """Draw the score against time and against memory, a named point per method, as PNG.

    Where an option was swept, a method's values are joined, and the best on validation carries the
    name. Returns where the names are, by panel.
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
    for found, (color, marker) in zip(by_method(rows).values(), styles(), strict=False):
        x = [(row.mean(name) or 0) / unit for row in found]
        y = [row.score or 0 for row in found]
        error = [row.score_std or 0 for row in found]
        axes.errorbar(
            x, y, error, color=color, marker=marker, linewidth=0.8, elinewidth=1, capsize=3
        )
    scale_x(axes, [row.mean(name) or 0 for row in rows if row.scores])
    axes.set_xlabel(label)
    axes.margins(0.12)
    axes.grid(alpha=0.25)


def _add_names(axes: Any, rows: Sequence[Row], name: str, unit: float, _: str) -> list[Box]:
    best = [max(found, key=lambda row: row.gain) for found in by_method(rows).values()]
    points = [((row.mean(name) or 0) / unit, row.score or 0) for row in best]
    errors = [row.score_std or 0 for row in best]
    return add_labels(axes, points, errors, [row.name for row in best])


def draw_sweep(rows: Sequence[Row], sweeps: Sequence[Sweep], title: str, path: Path) -> None:
    """Draw validation against the first swept option, a line and a band per method, as PNG.

    Several options make a grid: a method then has a line for each combination of the others. A
    method that does not take the first option is a level line. It is validation that is drawn,
    because a value must not be chosen by the test score.
    """
    from matplotlib.figure import Figure

    first, place = sweeps[0].name, _places(sweeps[0])
    figure = Figure(figsize=(9, 5), dpi=120, layout="constrained")
    axes = figure.subplots()
    for found, (color, marker) in zip(by_method(rows).values(), styles(), strict=False):
        dashed = DASHES[found[0].values.get(first) is None :]  # level lines are never solid
        for (name, line), dashes in zip(_lines(found, first).items(), cycle(dashed), strict=False):
            look = {"color": color, "linestyle": dashes, "marker": marker, "label": name}
            _draw_line(axes, line, first, place, look)
    scale_x(axes, list(place.values()))
    axes.set_xticks(list(place.values()), [as_words(value) for value in place])
    axes.minorticks_off()
    axes.set(xlabel=first.replace("_", " "), ylabel=f"validation {metric_of(rows)}")
    axes.grid(alpha=0.25)
    axes.set_title(title, fontsize=9)
    figure.legend(loc="outside right upper", fontsize=8)
    figure.savefig(path, format="png")


def _lines(rows: Sequence[Row], first: str) -> dict[str, list[Row]]:
    """The rows of a method by what tells its lines apart: the values of all other options."""
    lines: dict[str, list[Row]] = {}
    for row in rows:
        others = {name: value for name, value in row.values.items() if name != first}
        lines.setdefault(in_words(row.method, others), []).append(row)
    return lines


def _places(sweep: Sweep) -> dict[Value, float]:
    """Where each value lies on the axis: numbers at their value, names side by side."""
    numbers = [v for v in sweep.values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) < len(sweep.values):
        return {value: float(place) for place, value in enumerate(sweep.values)}
    return {value: float(value) for value in sorted(numbers)}


def _draw_line(
    axes: Any,
    rows: Sequence[Row],
    first: str,
    place: Mapping[Value, float],
    look: Mapping[str, Any],
) -> None:
    values = [(row.values.get(first), row.val or 0.0, row.val_std or 0.0) for row in rows]
    points = sorted((place[value], mean, std) for value, mean, std in values if value is not None)
    if not points:
        level = {**look, "marker": None, "linewidth": 1}
        axes.axhline(values[0][1], **level)
        return  # without a band: many level bands would cover all lines
    x, means, stds = zip(*points, strict=True)
    axes.plot(x, means, **look)
    low = [mean - std for mean, std in zip(means, stds, strict=True)]
    high = [mean + std for mean, std in zip(means, stds, strict=True)]
    axes.fill_between(x, low, high, color=look["color"], alpha=BAND, linewidth=0)


def _score_name(rows: Sequence[Row]) -> str:
    split = "test" if any(row.tests for row in rows) else "validation"
    return f"{split} {metric_of(rows)}"
