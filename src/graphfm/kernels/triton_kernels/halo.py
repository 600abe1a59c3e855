# ruff: noqa: N803
# mypy: ignore-errors
"""The kernel of `halo_update`.

All sums are float32, whatever type a table has, and none depends on the order of programs.
"""

import triton
import triton.language as tl

from graphfm.kernels.triton_kernels.graph import moved


@triton.jit
def spread(
    rows, indptr, sources, weight, ids, table, factor, bias, share,
    num_dst,
    WIDTH: tl.constexpr, BLEND: tl.constexpr, FACTOR: tl.constexpr, RELU: tl.constexpr,
    EDGES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sum rows along the edges of a target; add that to its row of a table, or blend."""
    target = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = col < WIDTH
    first, last = tl.load(indptr + target), tl.load(indptr + target + 1)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(first, last, EDGES):
        edge = start + tl.arange(0, EDGES)
        there = edge < last
        source = tl.load(sources + edge, there, other=num_dst).to(tl.int64) - num_dst
        entry = tl.load(weight + edge, there, other=0.0)
        place = source[:, None] * WIDTH + col[None, :]
        values = tl.load(rows + place, there[:, None] & inside[None, :], other=0.0)
        total += tl.sum(entry[:, None] * values, 0)
    place = table + tl.load(ids + target) * WIDTH + col
    old = tl.load(place, inside, other=0.0).to(tl.float32)
    if BLEND:
        if FACTOR:
            total *= tl.load(factor + target)
        total += tl.load(bias + col, inside, other=0.0)
        if RELU:
            total = tl.where(total < 0.0, 0.0, total)  # NaN stays NaN
        part = tl.load(share + target)
        total = moved(old, total, part)
    else:
        total += old
    tl.store(place, total, inside)
