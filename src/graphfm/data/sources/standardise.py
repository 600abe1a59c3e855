"""Standardises features inside their file: mean 0, standard deviation 1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from graphfm.data.formats.npy import read_header
from graphfm.data.graph.standard import Array, moments, rows_at_once


def standardise(path: Path, shape: tuple[int, int]) -> None:
    """Rewrite a float32 table on disk. A constant column becomes 0."""
    mean, deviation = moments(_chunks(path, shape), shape[1])
    with path.open("r+b") as stream:
        offset = read_header(stream).start
        for rows in _chunks(path, shape):
            stream.seek(offset)
            stream.write(((rows - mean) / deviation).astype("<f4").data)
            offset += rows.nbytes


def _chunks(path: Path, shape: tuple[int, int]) -> Iterator[Array]:
    """Read the rows of a float32 table, chunk by chunk."""
    most = rows_at_once(shape[1])
    with path.open("rb") as stream:
        stream.seek(read_header(stream).start)
        for first in range(0, shape[0], most):
            count = min(most, shape[0] - first)
            yield np.fromfile(stream, "<f4", count * shape[1]).reshape(count, shape[1])
