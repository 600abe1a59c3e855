"""Reading some rows of a matrix that is kept as a graph and factors (`Neighborhoods`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from graphfm.batch import Neighborhoods, expand_rows, offsets
from graphfm.kernels import backend
from graphfm.kernels.choice import (
    distinct_positions,
    fixed_positions,
    numbers_for,
    uniform_of,
    uniforms_of,
)  # fmt: skip
from graphfm.kernels.fused_aggregate import MOST_FANOUT
from graphfm.kernels.table_write import columns_of, given_or

PICKS_PER_PROGRAM, EDGES_AT_ONCE, EDGES_PER_PASS = 128, 16, 128


@dataclass(frozen=True, slots=True)
class Picks:
    """The targets with their sampled neighbours behind them."""

    src_ids: Tensor  # [num_dst * (fanout + 1)]
    weight: Tensor  # [num_dst * fanout]
    degree: Tensor  # [num_dst * (fanout + 1)] of each of them, as float32


@dataclass(frozen=True, slots=True)
class Expanded:
    """All neighbours of some nodes."""

    neighbor_ids: Tensor  # [num_edges] int32
    weight: Tensor  # [num_edges]
    read: Tensor | None  # [num_nodes] True if it is one of them; only the kernel marks this


def pick(
    dst_ids: Tensor, salt: Tensor, fanout: int, where: Neighborhoods, independent: bool = False
) -> Picks:
    """Sample `fanout` neighbours of each target, at equal distances or independently.

    A hash of the node and the salt decides. A node with fewer neighbours has them all, and then the
    same again with a weight of zero.
    """
    fits = where.indices.numel() > 0 and fanout <= MOST_FANOUT
    if fits and backend.available(dst_ids.device):
        return _pick_launch(dst_ids, salt, fanout, where, independent and fanout > 1)
    return pick_plain(dst_ids, numbers_for(dst_ids, salt, fanout, independent), fanout, where)


def pick_plain(dst_ids: Tensor, uniform: Tensor, fanout: int, where: Neighborhoods) -> Picks:
    """`pick` in plain PyTorch, from what `numbers_for` has made."""
    first, degree = where.indptr.index_select(0, dst_ids), _degree(where, dst_ids)
    position, factor = fixed_positions(first, degree, fanout, uniform)
    targets, num_edges = dst_ids.repeat_interleave(fanout), where.indices.numel()
    if num_edges == 0:
        neighbor_ids, weight = targets, torch.zeros_like(factor)
    else:
        position = position.clamp(max=num_edges - 1)  # an isolated node points anywhere
        neighbor_ids = where.indices.index_select(0, position).long()
        weight = factor * entries(where, targets, neighbor_ids, position)
    degrees = torch.cat([degree, _degree(where, neighbor_ids)]).float()
    return Picks(torch.cat([dst_ids, neighbor_ids]), weight, degrees)


def pick_distinct(
    dst_ids: Tensor, salt: Tensor, fanout: int, where: Neighborhoods, independent: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Sample as `pick` does, but each neighbour once: numbers per target, ids, weights.

    Shapes depend on the degrees, so there is no kernel for it. It serves a CPU, and a GPU where
    there are more picks than nodes.
    """
    uniform: Tensor | Callable[[Tensor], Tensor]
    if independent and fanout > 1:
        uniform = partial(uniforms_of, salt=salt, fanout=fanout)
    else:
        uniform = uniform_of(dst_ids, salt)
    count, position, factor = distinct_positions(where.indptr, dst_ids, fanout, uniform)
    targets = dst_ids.repeat_interleave(count, output_size=position.numel())
    neighbor_ids = where.indices.index_select(0, position).long()
    return count, neighbor_ids, factor * entries(where, targets, neighbor_ids, position)


def expand(ids: Tensor, indptr: Tensor, where: Neighborhoods) -> Expanded:
    """Find all neighbours of `ids`, whose rows begin at `indptr` in what is returned."""
    if backend.available(ids.device):
        return _expand_launch(ids, indptr, where)
    return expand_plain(ids, where)


def expand_plain(ids: Tensor, where: Neighborhoods) -> Expanded:
    """`expand` in plain PyTorch."""
    target, position = expand_rows(where.indptr, ids)
    neighbor_ids = where.indices[position]
    return Expanded(neighbor_ids, entries(where, ids[target], neighbor_ids, position), None)


def sum_of_all(ids: Tensor, where: Neighborhoods, table: Tensor) -> Tensor:
    """`weighted_sum` over every neighbour of each node, of rows that a table holds."""
    if backend.available(table.device):
        return _sum_launch(ids, where, table)
    return sum_of_all_plain(ids, where, table)


def sum_of_all_plain(ids: Tensor, where: Neighborhoods, table: Tensor) -> Tensor:
    """`sum_of_all` in plain PyTorch."""
    found, first = expand_plain(ids, where), offsets(_degree(where, ids))[:-1]
    neighbor_ids = found.neighbor_ids.long()
    return embedding_bag(
        neighbor_ids, table.float(), first, mode="sum", per_sample_weights=found.weight
    )


def entries(
    where: Neighborhoods, dst_ids: Tensor, src_ids: Tensor, position: Tensor | slice
) -> Tensor:
    """Entries of the matrix, of edges given by both ends and their position in the graph."""
    if where.edge_weight is None:
        weight = torch.ones(src_ids.numel(), device=src_ids.device)
    else:
        weight = where.edge_weight[position]
    if where.row_scale is not None:
        weight = weight * where.row_scale[dst_ids]
    if where.col_scale is not None:
        weight = weight * where.col_scale[src_ids]
    return weight


def _degree(where: Neighborhoods, ids: Tensor) -> Tensor:
    return where.indptr.index_select(0, ids + 1) - where.indptr.index_select(0, ids)


def _pick_launch(
    dst_ids: Tensor, salt: Tensor, fanout: int, where: Neighborhoods, independent: bool
) -> Picks:
    from graphfm.kernels.triton_kernels import pick as kernels

    num_dst, device = dst_ids.numel(), dst_ids.device
    src_ids = torch.empty(num_dst * (fanout + 1), dtype=torch.int64, device=device)
    weight = torch.empty(num_dst * fanout, device=device)
    degree = torch.empty(num_dst * (fanout + 1), device=device)
    kernel, blocks = kernels.pick, {"BLOCK": PICKS_PER_PROGRAM}
    programs = -(-num_dst * fanout // PICKS_PER_PROGRAM)
    if independent:
        slots = 1 << (fanout - 1).bit_length()
        kernel, blocks = kernels.pick_independent, {"ROWS": PICKS_PER_PROGRAM // slots}
        blocks["SLOTS"], programs = slots, -(-num_dst // blocks["ROWS"])
    kernel[(programs,)](
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
        **blocks,
    )
    return Picks(src_ids, weight, degree)


def _expand_launch(ids: Tensor, indptr: Tensor, where: Neighborhoods) -> Expanded:
    from graphfm.kernels.triton_kernels import graph as kernels

    num_nodes, total, device = where.indptr.numel() - 1, int(indptr[-1]), ids.device
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


def _sum_launch(ids: Tensor, where: Neighborhoods, table: Tensor) -> Tensor:
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
    """Return a matrix as arguments of a kernel."""
    factors = (where.edge_weight, where.row_scale, where.col_scale)
    return where.indptr, where.indices, *(given_or(factor, other) for factor in factors)


def _factors(where: Neighborhoods) -> dict[str, bool]:
    """Tell a kernel which of the factors it has to read."""
    return {
        "WEIGHTED": where.edge_weight is not None,
        "ROW": where.row_scale is not None,
        "COL": where.col_scale is not None,
    }
