"""The aggregate of a layer with a fixed fan-out, fused with what surrounds it.

`combine` gathers the sources, adds them up, blends the sum with a history and lays each target's
own row beside the result; `keep` writes the history. On a GPU each is one launch. Training without
kernels calls the hooks of an estimator instead, which are the reference for both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphfm.batch import Block, Rows
from graphfm.kernels import backend, side_stream
from graphfm.kernels.momentum import Momentum, were_seen
from graphfm.kernels.sparse_sum import weighted_sum
from graphfm.kernels.table_write import columns_of, given_or, put_rows, put_rows_plain

MOST_FANOUT = 64  # the kernels unroll the loop over it


@dataclass(frozen=True, slots=True)
class Combined:
    """Aggregates of a block's targets, with their own rows beside them where a layer joins."""

    rows: Tensor  # [num_dst, width], or [num_dst, 2 * width]
    width: int
    seen: Tensor | None  # [num_dst] visits, this one included


def largest_fanout(device: torch.device) -> int:
    """The largest fan-out that `combine` computes with one kernel; 0 where no kernel runs."""
    return MOST_FANOUT if backend.available(device) else 0


def fits(block: Block) -> bool:
    """True if the fan-out of a block is fixed, and small enough to be unrolled in a kernel."""
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
    device = rows.table.device if isinstance(rows, Rows) else rows.device
    if not backend.available(device) or not (known is not None or fits(block)):
        return combine_plain(rows, block, join=join, known=known, momentum=momentum)
    if isinstance(rows, Rows):
        out, _, seen = _launch(rows.table, block, join, known, momentum, indirect=True)
        return Combined(out, rows.table.size(1), seen)
    assert known is None  # of raw features only, which are read from their table
    out, seen = _Combine.apply(rows, block, join, momentum)  # type: ignore[no-untyped-call]
    return Combined(out, rows.size(1), seen)


def combine_plain(
    rows: Tensor | Rows,
    block: Block,
    *,
    join: bool,
    known: Tensor | None = None,
    momentum: Momentum | None = None,
) -> Combined:
    """`combine` in plain PyTorch."""
    if isinstance(rows, Rows):
        dtype = _number_type(rows.table.device)
        h = rows.table.index_select(0, rows.ids).float()
    else:
        dtype, h = rows.dtype, rows.float()
    out = weighted_sum(h, block) if known is None else known[block.dst_ids].float()
    seen = None
    if momentum is not None:
        out, seen = _blended(out, h, block, momentum)
        dtype = torch.float32
    joined = torch.cat([out, block.own(h)], dim=1) if join else out
    return Combined(joined.to(dtype), h.size(1), seen)


def _blended(fresh: Tensor, h: Tensor, block: Block, momentum: Momentum) -> tuple[Tensor, Tensor]:
    """Move a history towards fresh aggregates; return that, and the visits with this one."""
    row, beta = momentum.rows_of(block.dst_ids), momentum.beta
    seen = momentum.visits.index_select(0, row) + 1
    share = torch.full_like(seen, beta)
    if momentum.corrects:
        share = beta / -torch.expm1(seen * math.log1p(-beta))
    past = momentum.past.index_select(0, row).float()
    if momentum.inputs is not None:
        last = momentum.inputs.index_select(0, block.src_ids)
        now = h.detach().to(last.dtype)  # else rounding would look like a change
        change = torch.where(were_seen(last), now.float() - last.float(), 0.0)
        past = past + weighted_sum(change, block) * (seen > 1)
    if momentum.noise is not None:
        past = momentum.noise.drop(past, torch.rand_like(past), block.degree)
    out = torch.lerp(past, fresh, share.expand_as(fresh))
    if momentum.whole_gradient:
        out = out.detach() + (fresh - fresh.detach())
    return out, seen.squeeze(1)


def keep(combined: Combined, ids: Tensor, momentum: Momentum) -> None:
    """Write the aggregates and the visits of some nodes to their history."""
    assert combined.seen is not None
    if not backend.available(ids.device):
        keep_plain(combined, ids, momentum)
        return
    rows = combined.rows.detach()
    with side_stream.beside(side_stream.current(), rows, ids, combined.seen):
        _launch_keep(rows, combined.width, ids, combined.seen, momentum)


def keep_plain(combined: Combined, ids: Tensor, momentum: Momentum) -> None:
    """`keep` in plain PyTorch."""
    assert combined.seen is not None
    row = momentum.rows_of(ids)
    put_rows_plain(momentum.past, row, combined.rows.detach()[:, : combined.width])
    put_rows_plain(momentum.visits, row, combined.seen.unsqueeze(1))
    momentum.past[-1], momentum.visits[-1] = 0, 0  # nodes without a row leave no trace


def keep_inputs(rows: Tensor, ids: Tensor, inputs: Tensor) -> None:
    """Write the rows with which some nodes were seen as sources."""
    rows = rows.detach()
    with side_stream.beside(side_stream.current(), rows, ids):
        put_rows(inputs, ids, rows)


def _launch_keep(rows: Tensor, width: int, ids: Tensor, seen: Tensor, momentum: Momentum) -> None:
    from graphfm.kernels.triton_kernels import combine as kernels

    columns = columns_of(width)
    kernels.keep[(ids.numel(), -(-width // columns))](
        rows, ids, seen, momentum.past, momentum.visits, given_or(momentum.place, ids),
        momentum.past.size(0) - 1, width, rows.stride(0),
        PLACED=momentum.place is not None, BLOCK=columns,
    )  # fmt: skip


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
        from graphfm.kernels.triton_kernels import combine as kernels

        block, grad = ctx.block, grad.contiguous()
        width = grad.size(1) // 2 if ctx.join else grad.size(1)
        out = grad.new_empty(block.num_src, width, dtype=ctx.kind)
        weight, columns = block.edges.weight, columns_of(width)
        kernels.combine_backward[(block.num_dst, -(-width // columns))](
            grad, weight, given_or(block.self_weight, weight), given_or(ctx.share, weight), out,
            block.num_dst, width,
            FANOUT=block.edges.fanout, OWN=block.self_weight is not None,
            SHARE=ctx.share is not None, JOIN=ctx.join, BLOCK=columns,
        )  # fmt: skip
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
    from graphfm.kernels.triton_kernels import combine as kernels

    num_dst, width, device = block.num_dst, rows.size(1), rows.device
    kind = _number_type(device) if indirect else rows.dtype
    kind = kind if momentum is None else torch.float32  # blends are exact; the table may round
    out = torch.empty(num_dst, width * (1 + join), dtype=kind, device=device)
    share = None if momentum is None else torch.empty(num_dst, device=device)
    seen = None if momentum is None else torch.empty(num_dst, device=device)
    fresh = momentum is not None and momentum.corrects
    noise = None if momentum is None else momentum.noise
    uniform = None if noise is None else torch.rand(num_dst, width, device=device)
    inputs = None if momentum is None else momentum.inputs
    columns = columns_of(width)
    kernels.combine[(num_dst, -(-width // columns))](
        rows, block.src_ids, given_or(known, rows), block.edges.weight,
        given_or(block.self_weight, out),
        rows if momentum is None else momentum.past,
        out if momentum is None else momentum.visits,
        block.src_ids if momentum is None else given_or(momentum.place, block.src_ids),
        given_or(inputs, out), given_or(uniform, out), given_or(block.degree, out),
        out, given_or(share, out), given_or(seen, out), num_dst, width,
        1.0 if momentum is None else momentum.beta,
        math.log1p(-momentum.beta) if momentum is not None and fresh else -1.0,
        0.0 if noise is None else noise.odds,
        FANOUT=block.edges.fanout or 0, INDIRECT=indirect, KNOWN=known is not None,
        OWN=block.self_weight is not None and known is None, MOMENTUM=momentum is not None,
        FRESH=fresh, PLACED=momentum is not None and momentum.place is not None,
        LAG=inputs is not None, NOISE=noise is not None, JOIN=join,
        BLOCK=columns,
    )  # fmt: skip
    return out, share, seen


def _number_type(device: torch.device) -> torch.dtype:
    """Return the type that the next matrix product wants of rows read from a table."""
    if torch.is_autocast_enabled(device.type):
        return torch.get_autocast_dtype(device.type)
    return torch.float32
