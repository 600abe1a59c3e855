"""The names of the metrics, what they are called in a sentence, and which direction is better."""

from __future__ import annotations

import math

AUTO = "auto"  # micro-F1 of classes, R2 of a regression
CLASSES, LABELS, REGRESSION = "classes", "labels", "regression"  # one of many, many, numbers
OF_CLASSES = ("micro-f1", "macro-f1", "balanced-accuracy", "roc-auc", "average-precision")
OF_REGRESSION = ("r2", "mae", "rmse")
SAME = {"accuracy": "micro-f1"}  # another name for the same number
RANKINGS = frozenset({"roc-auc", "average-precision"})  # of two classes they look for one
LOWER_IS_BETTER = frozenset({"mae", "rmse"})
SMALL = 1e-3  # errors are as small as the unit of a target makes them
TITLES = {
    "micro-f1": "micro-F1", "macro-f1": "macro-F1", "balanced-accuracy": "balanced accuracy",
    "roc-auc": "ROC-AUC", "average-precision": "average precision", "r2": "R²", "mae": "MAE",
    "rmse": "RMSE",
}  # fmt: skip


def names_for(task: str) -> tuple[str, ...]:
    """The metrics of a task, the one that is used unless another is asked for first."""
    return OF_REGRESSION if task == REGRESSION else OF_CLASSES


def gain(metric: str, value: float) -> float:
    """The value with the sign that makes higher better. Every choice of a best one goes by it."""
    return -value if metric in LOWER_IS_BETTER else value


def bounds(metric: str) -> tuple[float, float]:
    """The least and the largest value that a metric can have."""
    if metric in LOWER_IS_BETTER:
        return 0.0, math.inf
    return (-math.inf, 1.0) if metric == "r2" else (0.0, 1.0)


def rounded(value: float, like: float | None = None) -> str:
    """A score with four decimals, or with four digits where decimals would hide it.

    A deviation is rounded `like` its score.
    """
    small = 0 < abs(value if like is None else like) < SMALL
    return f"{value:.4g}" if small else f"{value:.4f}"


def title(metric: str, positive: str | None = None) -> str:
    """The name of a metric in a sentence: "roc-auc" is ROC-AUC; of rankings also the class."""
    found = TITLES[SAME.get(metric, metric)]
    return f"{found} of {positive}" if metric in RANKINGS and positive is not None else found
