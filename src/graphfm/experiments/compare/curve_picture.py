"""Draws validation over the time of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from statistics import fmean
from typing import Any

from graphfm.experiments.compare.best import best_on_validation
from graphfm.experiments.compare.row import Row
from graphfm.experiments.compare.styles import by_method, metric_of, scale_x, styles
from graphfm.experiments.curve import Curve

Points = Mapping[int, tuple[float, float]]  # by epoch: seconds since the start, validation score


def draw_curves(rows: Sequence[Row], title: str, path: Path) -> None:
    """Draw a thick line per method, the mean of its seeds, and a thin one per seed, as PNG.

    Where options were swept, a method is shown with the values that are best on validation.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6), dpi=120, layout="constrained")
    axes = figure.subplots()
    ends = list[float]()
    for (method, found), (color, _) in zip(by_method(rows).items(), styles(), strict=False):
        row = best_on_validation([one for one in found if any(one.curves)])
        if row is None:  # it is of an older version
            continue
        seeds = seed_curves(row)
        for points in seeds:
            axes.plot(*_xy(points), color=color, linewidth=0.6, alpha=0.35)
        mean = mean_curve(seeds)
        label = row.name if len(found) > 1 else method
        axes.plot(*_xy(mean), color=color, linewidth=2, label=label, **_dot(mean))
        ends += [max(seconds for seconds, _ in points.values()) for points in seeds]
    scale_x(axes, ends)
    axes.set(
        xlabel="seconds of training, preparation included", ylabel=f"validation {metric_of(rows)}"
    )
    axes.grid(alpha=0.25)
    axes.set_title(f"{title}\nthick: mean over seeds, up to the shortest training", fontsize=9)
    figure.legend(loc="outside right upper", fontsize=8)
    figure.savefig(path, format="png")


def seed_curves(row: Row) -> list[Points]:
    """The curves of a row's seeds; trainings of older versions have none."""
    found = zip(row.curves, row.scores, strict=True)
    return [points_of(curve, score.prepare_seconds) for curve, score in found if curve]


def points_of(curve: Curve, prepare_seconds: float) -> Points:
    """The epochs that were evaluated."""
    passed = accumulate(curve["seconds"], initial=prepare_seconds)
    next(passed)  # the time before the first epoch
    epochs = zip(curve["epoch"], passed, curve["val"], strict=True)
    return {epoch: (seconds, val) for epoch, seconds, val in epochs if val is not None}


def mean_curve(curves: Sequence[Points]) -> Points:
    """The mean time and score of each epoch that all seeds have evaluated."""
    shared = [epoch for epoch in curves[0] if all(epoch in curve for curve in curves)]
    return {
        epoch: (
            fmean(curve[epoch][0] for curve in curves),
            fmean(curve[epoch][1] for curve in curves),
        )
        for epoch in shared
    }


def _xy(points: Points) -> tuple[list[float], list[float]]:
    return [seconds for seconds, _ in points.values()], [val for _, val in points.values()]


def _dot(points: Points) -> dict[str, Any]:
    """A single epoch is a point, which a line would not show."""
    return {"marker": "o"} if len(points) == 1 else {}
