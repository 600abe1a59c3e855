"""Standardises features inside their file: mean 0, standard deviation 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from graphfm.data.formats.npy import read_header

NUMBERS_AT_ONCE = 1 << 21


def standardise(path: Path, shape: tuple[int, int]) -> None:
    """Rewrite a float32 table on disk. A constant column becomes 0."""
    chunk_rows = max(NUMBERS_AT_ONCE // shape[1], 1)
    mean, deviation = _moments(path, shape, chunk_rows)
    with path.open("r+b") as stream:
        start = read_header(stream).start
        for first in range(0, shape[0], chunk_rows):
            count = min(chunk_rows, shape[0] - first)
            offset = start + 4 * first * shape[1]
            stream.seek(offset)
            rows = np.fromfile(stream, "<f4", count * shape[1]).reshape(count, shape[1])
            stream.seek(offset)
            stream.write(((rows - mean) / deviation).astype("<f4").data)


def _moments(path: Path, shape: tuple[int, int], chunk_rows: int) -> tuple[Any, Any]:
    """Mean and deviation of each column in double, merged chunk by chunk (Chan et al., 1983)."""
    count, mean, squares = 0, np.zeros(shape[1]), np.zeros(shape[1])
    with path.open("rb") as stream:
        stream.seek(read_header(stream).start)
        while count < shape[0]:
            size = min(chunk_rows, shape[0] - count) * shape[1]
            rows = np.fromfile(stream, "<f4", size).reshape(-1, shape[1]).astype(np.float64)
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
