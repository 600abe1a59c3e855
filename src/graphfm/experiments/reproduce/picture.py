"""Figure 2: score by number of neighbours, and by number of layers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from graphfm.experiments.outcome import Outcome
from graphfm.experiments.reproduce.plan import ReproductionPlan

Curves = dict[str, dict[int, float]]


def draw_figure2(plan: ReproductionPlan, outcomes: Mapping[str, Outcome], path: Path) -> None:
    """Three panels: both methods on each dataset, and momentum by depth."""
    from matplotlib.figure import Figure

    panels = _panels(plan, outcomes)
    figure = Figure(figsize=(4.5 * len(panels), 3.6), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, ((title, label), curves) in zip(axes, panels.items(), strict=True):
        for name, points in curves.items():
            axis.plot(sorted(points), [points[at] for at in sorted(points)], "o-", label=name)
        axis.set(title=title, xlabel=label, ylabel="test micro-F1")
        axis.legend()
    figure.savefig(path, format="png", dpi=120)


def _panels(
    plan: ReproductionPlan, outcomes: Mapping[str, Outcome]
) -> dict[tuple[str, str], Curves]:
    panels: dict[tuple[str, str], Curves] = {}
    for line in plan.lines:
        ended = [outcomes[cell.key].score for cell in line.cells if cell.key in outcomes]
        tests = [score.test for score in ended if score is not None and score.test is not None]
        if tests:
            for place, name, at in _places(line.recipe.run):
                panels.setdefault(place, {}).setdefault(name, {})[at] = fmean(tests)
    return panels


def _places(run: Any) -> list[tuple[tuple[str, str], str, int]]:
    """Panel, curve and position of a run; two layers of momentum stand in two panels."""
    layers, (fanout,) = run.backbone_settings["layers"], run.method_settings["fanout"]
    places = []
    if layers == 2:
        places.append(((run.dataset, "sampled neighbours"), run.method, fanout))
    if run.method == "graphfm-ib" and run.dataset == "reddit" and fanout <= 2:
        panel = ("reddit, graphfm-ib", "layers")
        places.append((panel, f"{fanout} neighbour{'s' if fanout > 1 else ''}", layers))
    return places
