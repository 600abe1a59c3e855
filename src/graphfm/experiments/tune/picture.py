"""Draws the trials of a search."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path
from typing import Any

from graphfm.experiments.tune.record import COMPLETE, Records, of
from graphfm.metrics.names import AUTO
from graphfm.metrics.names import title as title_of

COLORS = 10  # of the palette
MARKERS = "osD^vP*X"


def draw_trials(records: Records, title: str, path: Path) -> None:
    """Draw every trial as a dot, and for each method a line of its best so far, as PNG.

    Hollow dots are trainings that were stopped early.
    """
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5), dpi=120, layout="constrained")
    axes: Any = figure.subplots()
    colors = itertools.cycle([colormaps["tab10"](number) for number in range(COLORS)])
    methods = dict.fromkeys(record.method for record in records)
    for method, color, marker in zip(methods, colors, itertools.cycle(MARKERS), strict=False):
        own = list(enumerate(of(method, records), 1))
        scored = [(number, record) for number, record in own if record.val is not None]
        for number, record in scored:
            face = color if record.state == COMPLETE else "none"
            axes.plot(number, record.val, marker, color=color, markerfacecolor=face, alpha=0.6)
        complete = [(number, r) for number, r in scored if r.state == COMPLETE]
        better = partial(max, key=lambda record: record.gain)
        best = [r.val for r in itertools.accumulate((r for _, r in complete), better)]
        reach = [number for number, _ in complete]
        reach, best = [*reach, *([len(own)] if best else [])], best + best[-1:]  # to the last trial
        axes.step(reach, best, where="post", color=color, label=method)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(xlabel="trial of the method", ylabel=f"validation {score_name(records)}")
    axes.grid(alpha=0.25)
    axes.set_title(title, fontsize=9, wrap=True)
    figure.legend(loc="outside right upper", fontsize=8)
    figure.savefig(path, format="png")


def score_name(records: Records) -> str:
    """What the trials were scored by, in words."""
    metrics = {record.metric for record in records} - {AUTO}
    return title_of(metrics.pop()) if len(metrics) == 1 else "score"
