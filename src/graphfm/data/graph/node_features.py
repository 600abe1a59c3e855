"""Features made from the edges alone, for graphs that have none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from graphfm.errors import InputError, known_name

if TYPE_CHECKING:
    from graphfm.data.graph import Graph

KINDS = ("degree", "random")
MOST_WIDTH = 1 << 14
BUCKETS = 16  # of degrees; the last has all from 2**15 - 1 on, so every graph has the same columns
STEPS = 3  # of the mean over neighbours that smooths random rows into positions
ROWS_AT_ONCE = 1 << 16


def node_features(graph: Graph, kind: str, width: int, seed: int) -> Tensor:
    """Return [num_nodes, ...] float32; the same graph and seed give the same values."""
    known_name("kind of features", kind, KINDS)
    check_width("width", width)
    return _degrees(graph) if kind == "degree" else _positions(graph, width, seed)


def width_of(kind: str, width: int) -> int:
    """The number of columns that a kind of features has."""
    return BUCKETS + 2 if kind == "degree" else width


def check_width(name: str, width: int) -> None:
    """Refuse a width that no rows can have."""
    if type(width) is not int or not 1 <= width <= MOST_WIDTH:
        raise InputError(f"{name} is {width!r}; expected a whole number, 1 to {MOST_WIDTH}")


def _degrees(graph: Graph) -> Tensor:
    """One-hot powers of two of the in-degree, and the logarithms of in- and out-degree."""
    degree = graph.degree
    out = torch.bincount(graph.indices.long(), minlength=graph.num_nodes)
    logs = torch.log2(1 + torch.stack([degree, out], dim=1).float())
    buckets = logs[:, 0].floor().long().clamp(max=BUCKETS - 1)
    return torch.cat([torch.nn.functional.one_hot(buckets, BUCKETS).float(), logs], dim=1)


def _positions(graph: Graph, width: int, seed: int) -> Tensor:
    """Random rows, averaged over neighbours several times: near nodes get similar rows."""
    rng = torch.Generator().manual_seed(seed)
    rows = torch.randn(graph.num_nodes, width, generator=rng) / math.sqrt(width)
    rows = rows.to(graph.device)
    for _ in range(STEPS):
        rows = torch.nn.functional.normalize((rows + _mean(graph, rows)) / 2)
    return rows


def _mean(graph: Graph, rows: Tensor) -> Tensor:
    """The mean over in-neighbours; 0 without any."""
    means = torch.zeros_like(rows)
    for start in range(0, graph.num_nodes, ROWS_AT_ONCE):
        first = graph.indptr[start : start + ROWS_AT_ONCE + 1]
        near = rows[graph.indices[int(first[0]) : int(first[-1])].long()]
        local = first - first[0]
        means[start : start + ROWS_AT_ONCE] = torch.segment_reduce(
            near, "sum", offsets=local, axis=0, initial=0
        ) / local.diff().clamp(min=1).unsqueeze(1)
    return means
