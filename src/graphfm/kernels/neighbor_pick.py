"""Reading a matrix that is kept as a graph and factors, some of its rows in one launch.

The plain twins are `samplers/neighbor.py`, `Adjacency.block` and the estimators' sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphfm.batch import Neighborhoods
from graphfm.kernels.table_write import columns_of, given_or

PICKS_PER_PROGRAM, EDGES_AT_ONCE, EDGES_PER_PASS = 128, 16, 128


@dataclass(frozen=True, slots=True)
class Picks:
    """What `pick` found: the targets with their neighbours behind them."""

    src_ids: Tensor  # [num_dst * (fanout + 1)]
    weight: Tensor  # [num_dst * fanout]
    degree: Tensor  # [num_dst * (fanout + 1)] of each of them, as float32


@dataclass(frozen=True, slots=True)
class Expanded:
    """What `expand` found."""

    neighbor_ids: Tensor  # [num_edges] int32
    weight: Tensor  # [num_edges]
    read: Tensor  # [num_nodes] is it one of them?


def pick(dst_ids: Tensor, salt: Tensor, fanout: int, where: Neighborhoods) -> Picks:
    """What `NeighborSampler` picks for a layer; weights may differ in their last bit."""
    from graphfm.kernels.triton_kernels import graph as kernels

    num_dst, device = dst_ids.numel(), dst_ids.device
    src_ids = torch.empty(num_dst * (fanout + 1), dtype=torch.int64, device=device)
    weight = torch.empty(num_dst * fanout, device=device)
    degree = torch.empty(num_dst * (fanout + 1), device=device)
    kernels.pick[(-(-num_dst * fanout // PICKS_PER_PROGRAM),)](
        dst_ids,
        salt,
        *_arrays(where, weight),
        src_ids,
        weight,
        degree,
        num_dst,
        where.indices.numel(),
        FANOUT=fanout,
        **_factors(where),
        BLOCK=PICKS_PER_PROGRAM,
    )
    return Picks(src_ids, weight, degree)


def expand(ids: Tensor, indptr: Tensor, total: int, where: Neighborhoods) -> Expanded:
    """All neighbours of `ids`, whose rows begin at `indptr` in what is returned."""
    from graphfm.kernels.triton_kernels import graph as kernels

    num_nodes, device = where.indptr.numel() - 1, ids.device
    neighbor_ids = torch.empty(total, dtype=torch.int32, device=device)
    weight = torch.empty(total, device=device)
    read = torch.zeros(num_nodes, dtype=torch.bool, device=device)
    if ids.numel():
        kernels.expand[(ids.numel(),)](
            ids,
            indptr,
            *_arrays(where, weight),
            neighbor_ids,
            weight,
            read,
            **_factors(where),
            BLOCK=EDGES_PER_PASS,
        )
    return Expanded(neighbor_ids, weight, read)


def sum_of_all(ids: Tensor, where: Neighborhoods, table: Tensor) -> Tensor:
    """`weighted_sum` over every neighbour of each node, of rows that a table holds."""
    from graphfm.kernels.triton_kernels import graph as kernels

    width, columns = table.size(1), columns_of(table.size(1))
    out = torch.empty(ids.numel(), width, device=table.device)
    kernels.sum_of_all[(ids.numel(), -(-width // columns))](
        ids,
        *_arrays(where, out),
        table,
        out,
        width,
        **_factors(where),
        EDGES=EDGES_AT_ONCE,
        BLOCK=columns,
    )
    return out


def _arrays(where: Neighborhoods, other: Tensor) -> tuple[Tensor, ...]:
    """A matrix as arguments of a kernel."""
    factors = (where.edge_weight, where.row_scale, where.col_scale)
    return where.indptr, where.indices, *(given_or(factor, other) for factor in factors)


def _factors(where: Neighborhoods) -> dict[str, bool]:
    """Which of them it is to look at."""
    return {
        "WEIGHTED": where.edge_weight is not None,
        "ROW": where.row_scale is not None,
        "COL": where.col_scale is not None,
    }
