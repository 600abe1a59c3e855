"""The picture of an evaluation: classes, confusions, calibration and degrees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from graphfm.metrics.names import rounded, title

COLOR, OTHER = "#1f6fb4", "#888888"
MOST_NAMES = 30  # classes that an axis has room to name


def draw_report(report: Mapping[str, Any], names: Sequence[str], heading: str, path: Path) -> None:
    """Draw the parts that the report has side by side, as PNG."""
    from matplotlib.figure import Figure

    metric = report["metric"]
    parts: list[Callable[[Any], None]] = []
    if "classes" in report:
        parts.append(partial(_bars, report["classes"], "f1", "F1", names))
    if "targets" in report:
        parts.append(partial(_bars, report["targets"], metric, title(metric), names))
    if "confusion" in report:
        parts.append(partial(_confusion, report["confusion"], names))
    if "calibration" in report:
        parts.append(partial(_calibration, report["calibration"]))
    parts.append(partial(_degrees, report["degrees"], metric))
    figure = Figure(figsize=(5 * len(parts), 4.5), dpi=120, layout="constrained")
    for draw, axes in zip(parts, figure.subplots(1, len(parts), squeeze=False)[0], strict=True):
        draw(axes)
    score = report["metrics"][report["split"]].get(metric)
    shown = "" if score is None else f": {title(metric, report.get('positive'))} {rounded(score)}"
    figure.suptitle(f"{heading}{shown}", fontsize=10)
    figure.savefig(path, format="png")


def _bars(
    rows: Sequence[Mapping[str, Any]], field: str, label: str, names: Sequence[str], axes: Any
) -> None:
    places = range(len(rows))
    axes.barh(places, [row[field] or 0.0 for row in rows], color=COLOR)
    axes.set_xlabel(label)
    axes.invert_yaxis()
    _name(axes.set_yticks, names)


def _confusion(table: Sequence[Sequence[int]], names: Sequence[str], axes: Any) -> None:
    """Each row as shares of its class, so that small classes show too."""
    shares = [[number / max(sum(row), 1) for number in row] for row in table]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set(xlabel="predicted", ylabel="class")
    _name(partial(axes.set_xticks, rotation=90), names)
    _name(axes.set_yticks, names)


def _calibration(found: Mapping[str, Any], axes: Any) -> None:
    bins = [row for row in found["bins"] if row["nodes"]]
    axes.plot([0, 1], [0, 1], color=OTHER, linewidth=0.8)
    axes.plot(
        [row["certainty"] for row in bins], [row["accuracy"] for row in bins], "o-", color=COLOR
    )
    axes.set(
        xlabel="probability", ylabel="come true", title=f"calibration error {found['ece']:.3f}"
    )
    axes.grid(alpha=0.25)


def _degrees(rows: Sequence[Mapping[str, Any]], metric: str, axes: Any) -> None:
    known = [row for row in rows if row[metric] is not None]
    axes.plot([row["from"] for row in known], [row[metric] for row in known], "o-", color=COLOR)
    axes.set_xscale("symlog", linthresh=1)
    axes.set(xlabel="neighbours, at least", ylabel=title(metric))
    axes.grid(alpha=0.25)


def _name(set_ticks: Callable[..., Any], names: Sequence[str]) -> None:
    if len(names) <= MOST_NAMES:
        set_ticks(range(len(names)), names, fontsize=7)
