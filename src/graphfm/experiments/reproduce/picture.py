"""Draws Figure 2: score by number of neighbours, and by number of layers."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from graphfm.experiments.outcome import Outcome, mean, tests_of
from graphfm.experiments.reproduce.plan import Line, ReproductionPlan

Curves = dict[str, dict[int, float]]
Panel = tuple[str, str]  # its title, and the label of its axis


def draw_figure2(
    plan: ReproductionPlan, outcomes: Mapping[str, Outcome], title: str, path: Path
) -> None:
    """Draw both methods on each dataset, and momentum by depth; every panel names its graph."""
    from matplotlib.figure import Figure

    panels = curves_of(plan, outcomes)
    width = 4.5 * len(panels)
    figure = Figure(figsize=(width, 4.0), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, ((name, label), curves) in zip(axes, panels.items(), strict=True):
        for method, points in curves.items():
            axis.plot(sorted(points), [points[at] for at in sorted(points)], "o-", label=method)
        axis.set_title(name, fontsize=9)
        axis.set(xlabel=label, ylabel="test micro-F1")
        axis.legend()
    figure.suptitle("\n".join(textwrap.wrap(title, int(14 * width))), fontsize=9)
    figure.savefig(path, format="png", dpi=120)


def curves_of(plan: ReproductionPlan, outcomes: Mapping[str, Outcome]) -> dict[Panel, Curves]:
    """By panel and curve, the mean test score at each position."""
    panels: dict[Panel, Curves] = {}
    for line in plan.lines:
        score = mean(tests_of(line.scores(outcomes)))
        if score is not None:
            for panel, curve, position in _positions(line):
                panels.setdefault(panel, {}).setdefault(curve, {})[position] = score
    return panels


def _positions(line: Line) -> list[tuple[Panel, str, int]]:
    """Panel, curve and position of a recipe; two layers of momentum stand in two panels."""
    run = line.recipe.run
    layers, (fanout,) = run.backbone_settings["layers"], run.method_settings["fanout"]
    graph = _graph_and_budget(line)
    found = list[tuple[Panel, str, int]]()
    if layers == 2:
        found.append(((graph, "sampled neighbours"), run.method, fanout))
    if run.method == "graphfm-ib" and run.dataset == "reddit" and fanout <= 2:
        curve = f"{fanout} neighbour{'s' if fanout > 1 else ''}"
        found.append(((f"{graph}, graphfm-ib", "layers"), curve, layers))
    return found


def _graph_and_budget(line: Line) -> str:
    """The graph that was trained on, which one it stands for, and the budget."""
    run = line.cells[0].run
    graph = run.dataset
    if graph != line.recipe.run.dataset:
        graph += f" in place of {line.recipe.run.dataset}"
    epochs = run.training.epochs
    return f"{graph}\nat most {epochs} epoch{'' if epochs == 1 else 's'}"
