"""Mean and deviation of each feature, fitted chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

NUMBERS_AT_ONCE = 1 << 21
Array = np.ndarray[Any, Any]


def moments(chunks: Iterable[Array], width: int) -> tuple[Array, Array]:
    """Mean and deviation of each column in double, merged chunk by chunk (Chan et al., 1983).

    The deviation of a constant column is infinite, so that dividing by it gives 0.
    """
    count, mean, squares = 0, np.zeros(width), np.zeros(width)
    for chunk in chunks:
        rows = chunk.astype(np.float64, copy=False)
        step = rows.mean(axis=0) - mean
        total = count + len(rows)
        squares += ((rows - rows.mean(axis=0)) ** 2).sum(axis=0)
        squares += step**2 * (count * len(rows) / total)
        mean += step * (len(rows) / total)
        count = total
    # n - 1, because the released code uses torch's std. The deviation of a constant column is
    # rounding error; dividing by it would blow the error up.
    deviation = np.sqrt(squares / max(count - 1, 1))
    deviation[deviation <= 1e-7 * np.abs(mean)] = np.inf
    return mean, deviation


def rows_at_once(width: int) -> int:
    """The number of rows of a chunk."""
    return max(NUMBERS_AT_ONCE // max(width, 1), 1)


def fit(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and 1 / deviation (0 for a constant column) in double, the same on every device."""
    chunks = (part.double().cpu().numpy() for part in torch.split(x, rows_at_once(x.size(1))))
    mean, deviation = moments(chunks, x.size(1))
    return torch.from_numpy(mean), torch.from_numpy(1 / deviation)
