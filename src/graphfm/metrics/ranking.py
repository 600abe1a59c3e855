"""Metrics of how well scores rank positives before negatives: ROC-AUC and average precision."""

from __future__ import annotations

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
    _, group, sizes = torch.unique(scores, return_inverse=True, return_counts=True)
    last = sizes.cumsum(0).double()
    rank = (last - (sizes.double() - 1) / 2)[group]  # from 1; equal scores share their mean
    above = float(rank[positive].sum()) - num_positive * (num_positive + 1) / 2
    return above / (num_positive * num_negative)


def average_precision(positive: Tensor, scores: Tensor) -> float | None:
    """The mean of the precision at each positive, from the highest score down.

    Equal scores form one step. None without a positive.
    """
    num_positive = int(positive.sum())
    if num_positive == 0:
        return None
    values, group = torch.unique(scores, return_inverse=True)
    steps = values.numel()
    found = torch.bincount(group, weights=positive.double(), minlength=steps).flip(0)
    taken = torch.bincount(group, minlength=steps).double().flip(0)
    precision = found.cumsum(0) / taken.cumsum(0)
    return float((precision * found).sum()) / num_positive
