"""Every metric of a split, from the outputs of the network and the labels of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import torch
from torch import Tensor

from graphfm.metrics import counting
from graphfm.metrics.names import LABELS, OF_REGRESSION, REGRESSION
from graphfm.metrics.ranking import average_precision, roc_auc

Metrics = dict[str, float | None]
Ranking = Callable[[Tensor, Tensor], float | None]
ROWS_AT_ONCE = 1 << 16
LAST = -1  # the positive class of two, where nobody says which


def micro_f1(logits: Tensor, y: Tensor) -> float:
    """Micro-averaged F1 of labelled rows. With one class per node that is accuracy.

    1 where there is no label to find and none was claimed.
    """
    if y.ndim == 1:
        return float((logits.argmax(dim=1) == y).float().mean())
    known = y >= 0
    predicted, actual = (logits > 0) & known, y > 0
    agreed = int((predicted & actual).sum())
    claimed = int(predicted.sum()) + int(actual.sum())
    return 2 * agreed / claimed if claimed else 1.0


def score(name: str, task: str, logits: Tensor, y: Tensor, positive: int = LAST) -> float | None:
    """One metric; None where it is not defined. `logits` of a regression are predicted values."""
    if y.size(0) == 0:
        return None
    if task == REGRESSION:
        return regression_score(name, logits, y)
    if name == "micro-f1":
        return micro_f1(logits, y)
    if name in ("roc-auc", "average-precision"):
        ranking = roc_auc if name == "roc-auc" else average_precision
        return _ranked(ranking, task, logits, y, positive)
    if task == LABELS:
        predicted = logits > 0
        if name == "balanced-accuracy":
            return counting.balanced_accuracy_of_labels(predicted, y)
        return counting.macro_f1_of_labels(counting.Counts.of_labels(predicted, y))
    counts = counting.Counts.of_classes(logits.argmax(dim=1), y, logits.size(1))
    if name == "balanced-accuracy":
        return counting.balanced_accuracy_of_classes(counts)
    return counting.macro_f1_of_classes(counts)


def all_scores(
    names: Sequence[str], task: str, logits: Tensor, y: Tensor, positive: int = LAST
) -> Metrics:
    """Several metrics, by name."""
    return {name: score(name, task, logits, y, positive) for name in names}


def _ranked(ranking: Ranking, task: str, logits: Tensor, y: Tensor, positive: int) -> float | None:
    """Of two classes that of the positive one; else the mean over classes where it is defined."""
    if task == LABELS:
        columns = ((y[:, c] >= 0, y[:, c] > 0, logits[:, c]) for c in range(y.size(1)))
        return mean_of(ranking(actual[known], scores[known]) for known, actual, scores in columns)
    if logits.size(1) == 2:
        positive %= 2
        return ranking(y == positive, (logits[:, positive] - logits[:, 1 - positive]).double())
    total = _log_sum(logits)
    present = torch.unique(y).tolist()  # a class that does not occur is not ranked
    return mean_of(ranking(y == c, _chance(logits, total, c)) for c in present)


def _log_sum(logits: Tensor) -> Tensor:
    """[num_rows] log of the sum of exponentials, in chunks: a copy in double would be large."""
    return torch.cat([part.double().logsumexp(dim=1) for part in torch.split(logits, ROWS_AT_ONCE)])


def _chance(logits: Tensor, log_sum: Tensor, column: int) -> Tensor:
    """[num_rows] probability of one class; rounded, so that equal ones are equal bits."""
    return (logits[:, column].double() - log_sum).exp().float()


def regression_score(name: str, values: Tensor, y: Tensor) -> float | None:
    """R2, MAE or RMSE: the mean over targets, of the nodes whose target is known."""
    found = partial(_of_target, name)
    values, y = values.reshape(y.size(0), -1).double(), y.reshape(y.size(0), -1).double()
    known = ~y.isnan()
    pairs = ((values[known[:, t], t], y[known[:, t], t]) for t in range(y.size(1)))
    return mean_of(found(*pair) for pair in pairs)


def _of_target(name: str, values: Tensor, y: Tensor) -> float | None:
    """One metric of one target; None without nodes, and for R2 where all have the same value."""
    assert name in OF_REGRESSION
    if y.numel() == 0:
        return None
    errors = values - y
    if name == "mae":
        return float(errors.abs().mean())
    if name == "rmse":
        return float(errors.square().mean().sqrt())
    if bool((y == y[0]).all()):
        return None
    return 1 - float(errors.square().sum() / (y - y.mean()).square().sum())


def mean_of(values: Iterable[float | None]) -> float | None:
    """The mean of the numbers among values that may be None; None if there are none."""
    found = [value for value in values if value is not None]
    return sum(found) / len(found) if found else None


def is_defined(name: str, task: str, y: Tensor, num_outputs: int, positive: int = LAST) -> bool:
    """True if a metric exists for nodes with these labels, whatever is predicted."""
    nothing = torch.zeros(y.size(0), num_outputs, device=y.device)
    return score(name, task, nothing, y, positive) is not None
