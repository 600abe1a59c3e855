"""Metrics of how well scores rank positives before negatives: ROC-AUC and average precision."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def roc_auc(positive: Tensor, scores: Tensor) -> float | None:
    """The share of pairs in which the positive has the higher score; ties count one half.

    None without a positive or without a negative.
    """
    num_positive = int(positive.sum())
    num_negative = positive.numel() - num_positive
    if num_positive == 0 or num_negative == 0:
        return None
    found, taken = _steps(positive, scores)
    start = found.new_zeros(1)
    wrong = torch.cat([start, taken - found])
    area = torch.trapezoid(torch.cat([start, found]), wrong)
    return float(area) / (num_positive * num_negative)


def average_precision(positive: Tensor, scores: Tensor) -> float | None:
    """The mean of the precision at each positive, from the highest score down.

    Equal scores form one step. None without a positive.
    """
    num_positive = int(positive.sum())
    if num_positive == 0:
        return None
    found, taken = _steps(positive, scores)
    new = found.diff(prepend=found.new_zeros(1))
    return float((found / taken * new).sum()) / num_positive


def _steps(positive: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Positives found and nodes taken down to each different score, from the highest, in double."""
    order = _descending(scores)
    ordered = scores[order]
    is_last = torch.ones_like(positive)  # of the nodes with its score
    torch.ne(ordered[1:], ordered[:-1], out=is_last[:-1])
    last = is_last.nonzero().squeeze(1)
    return positive[order].cumsum(0)[last].double(), (last + 1).double()


def _descending(scores: Tensor) -> Tensor:
    """The order of scores from the highest; on a CPU numpy sorts much faster than torch."""
    if scores.device.type != "cpu":
        return scores.argsort(descending=True)
    scores = scores if scores.dtype == torch.float64 else scores.float()  # numpy has no bfloat16
    return torch.from_numpy(np.argsort(scores.numpy())).flip(0)
