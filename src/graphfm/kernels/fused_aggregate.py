"""One kernel for what the hooks of an estimator do in a dozen, where the fan-out is fixed.

Sampling a layer is one launch; so is gathering, adding up, blending with a history and laying each
target's own row beside the result. The plain twins are `samplers/neighbor.py` and the hooks of the
estimators, which every other device and shape uses; `tests/gpu/test_kernels.py` compares the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphfm.batch import Block, Rows
from graphfm.kernels import side_stream as branch
from graphfm.kernels.table_write import columns_of, given_or

MOST_FANOUT = 64  # kernels write the loop over it out


@dataclass(frozen=True, slots=True)
class Momentum:
    """A history to blend with: what it holds, and by how much it moves."""

    past: Tensor  # [num_nodes + 1, width]
    visits: Tensor  # [num_nodes + 1, 1]
    place: Tensor | None  # [num_nodes] row of each node in both, where only some have one
    beta: float
    fresh: bool  # the first visit takes all (visit-count correction)
    whole_gradient: bool


@dataclass(frozen=True, slots=True)
class Combined:
    """Aggregates of a block's targets, with their own rows beside them where a layer joins."""

    rows: Tensor  # [num_dst, width], or [num_dst, 2 * width]
    width: int
    seen: Tensor | None  # [num_dst] visits, this one included


def fits(block: Block) -> bool:
    """Is the fan-out of a block fixed, and small enough to be written out in a kernel?"""
    return 0 < (block.edges.fanout or 0) <= MOST_FANOUT


def combine(
    rows: Tensor | Rows,
    block: Block,
    *,
    join: bool,
    known: Tensor | None = None,
    momentum: Momentum | None = None,
) -> Combined:
    """Aggregate the sources' rows; `known` aggregates of all nodes are looked up instead."""
    if isinstance(rows, Rows):
        out, _, seen = _launch(rows.table, block, join, known, momentum, indirect=True)
        return Combined(out, rows.table.size(1), seen)
    assert known is None  # of raw features only, which are read from their table
    out, seen = _Combine.apply(rows, block, join, momentum)  # type: ignore[no-untyped-call]
    return Combined(out, rows.size(1), seen)


def keep(combined: Combined, ids: Tensor, momentum: Momentum) -> None:
    """Write the aggregates to their history, and that they were seen once more."""
    from graphfm.kernels.triton_kernels import graph as kernels

    assert combined.seen is not None
    width, block = combined.width, columns_of(combined.width)
    rows = combined.rows.detach()
    with branch.beside(branch.current(), rows, ids, combined.seen):
        kernels.keep[(ids.numel(), -(-width // block))](
            rows,
            ids,
            combined.seen,
            momentum.past,
            momentum.visits,
            given_or(momentum.place, ids),
            momentum.past.size(0) - 1,
            width,
            rows.stride(0),
            PLACED=momentum.place is not None,
            BLOCK=block,
        )


class _Combine(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        block: Block,
        join: bool,
        momentum: Momentum | None,
    ) -> tuple[Tensor, Tensor | None]:
        out, share, seen = _launch(h.contiguous(), block, join, None, momentum, indirect=False)
        scaled = momentum is not None and not momentum.whole_gradient
        ctx.set_materialize_grads(False)
        ctx.block, ctx.join, ctx.share = block, join, share if scaled else None
        ctx.kind = h.dtype
        if seen is not None:
            ctx.mark_non_differentiable(seen)
        return out, seen

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor, None, None, None]:
        from graphfm.kernels.triton_kernels import graph as kernels

        block, grad = ctx.block, grad.contiguous()
        width = grad.size(1) // 2 if ctx.join else grad.size(1)
        out = grad.new_empty(block.num_src, width, dtype=ctx.kind)
        weight, columns = block.edges.weight, columns_of(width)
        kernels.combine_backward[(block.num_dst, -(-width // columns))](
            grad,
            weight,
            given_or(block.self_weight, weight),
            given_or(ctx.share, weight),
            out,
            block.num_dst,
            width,
            FANOUT=block.edges.fanout,
            OWN=block.self_weight is not None,
            SHARE=ctx.share is not None,
            JOIN=ctx.join,
            BLOCK=columns,
        )
        return out, None, None, None


def _launch(
    rows: Tensor,
    block: Block,
    join: bool,
    known: Tensor | None,
    momentum: Momentum | None,
    *,
    indirect: bool,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    from graphfm.kernels.triton_kernels import graph as kernels

    num_dst, width, device = block.num_dst, rows.size(1), rows.device
    kind = _number_type(device) if indirect else rows.dtype
    kind = kind if momentum is None else torch.float32  # a history has all digits of its table
    out = torch.empty(num_dst, width * (1 + join), dtype=kind, device=device)
    share = None if momentum is None else torch.empty(num_dst, device=device)
    seen = None if momentum is None else torch.empty(num_dst, device=device)
    fresh = momentum is not None and momentum.fresh and 0 < momentum.beta < 1
    columns = columns_of(width)
    kernels.combine[(num_dst, -(-width // columns))](
        rows,
        block.src_ids,
        given_or(known, rows),
        block.edges.weight,
        given_or(block.self_weight, out),
        rows if momentum is None else momentum.past,
        out if momentum is None else momentum.visits,
        block.src_ids if momentum is None else given_or(momentum.place, block.src_ids),
        out,
        given_or(share, out),
        given_or(seen, out),
        num_dst,
        width,
        1.0 if momentum is None else momentum.beta,
        math.log1p(-momentum.beta) if momentum is not None and fresh else -1.0,
        FANOUT=block.edges.fanout or 0,
        INDIRECT=indirect,
        KNOWN=known is not None,
        OWN=block.self_weight is not None and known is None,
        MOMENTUM=momentum is not None,
        FRESH=fresh,
        PLACED=momentum is not None and momentum.place is not None,
        JOIN=join,
        BLOCK=columns,
    )
    return out, share, seen


def _number_type(device: torch.device) -> torch.dtype:
    """Of rows read from a table: what the next matrix product wants."""
    if torch.is_autocast_enabled(device.type):
        return torch.get_autocast_dtype(device.type)
    return torch.float32
