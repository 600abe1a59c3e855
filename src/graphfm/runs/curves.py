"""The plot of a training's curves."""

from collections.abc import Sequence
from pathlib import Path

from graphfm.metrics.names import rounded, title
from graphfm.training.callbacks import EpochRecord, Score

LOSS, VALIDATION = "#888888", "#1f6fb4"


def draw_curves(records: Sequence[EpochRecord], score: Score, path: Path) -> None:
    """Plot loss and validation score by epoch as PNG, with the best epoch marked."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    losses = figure.subplots()
    losses.plot([r.epoch for r in records], [r.loss for r in records], color=LOSS)
    losses.set(xlabel="epoch", ylabel="training loss")
    losses.yaxis.label.set_color(LOSS)
    evaluated = [(r.epoch, r.val) for r in records if r.val is not None]
    values = losses.twinx()
    values.plot(*zip(*evaluated, strict=True), color=VALIDATION)
    values.plot(score.best_epoch, score.val, "o", color=VALIDATION)
    values.set_ylabel(f"validation {title(score.metric, score.positive)}")
    values.yaxis.label.set_color(VALIDATION)
    test = "" if score.test is None else f", test {rounded(score.test)}"
    values.set_title(f"best epoch {score.best_epoch}: validation {rounded(score.val)}{test}")
    figure.savefig(path, format="png", dpi=120)
