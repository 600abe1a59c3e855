# ruff: noqa: N803
# mypy: ignore-errors
"""Kernels that pick neighbours of nodes; both write the same arrays.

Their numbers are those of `graphfm.kernels.choice`, bit for bit.
"""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["num_dst"])
def pick(
    dst, salt, indptr, indices, edge_weight, row_scale, col_scale,
    src, weight, degree,
    num_dst, num_edges,
    FANOUT: tl.constexpr, WEIGHTED: tl.constexpr, ROW: tl.constexpr, COL: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Pick `FANOUT` neighbours of each target; write them behind the targets, with weights."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = place < num_dst * FANOUT
    row, slot = place // FANOUT, place % FANOUT
    target = tl.load(dst + row, there, other=0)
    first = tl.load(indptr + target, there, other=0)
    count = tl.load(indptr + target + 1, there, other=0) - first
    start = ((mixed(target, tl.load(salt)) >> 40) & 0xFFFFFF).to(tl.float64) / 16777216.0
    spread = ((start + slot.to(tl.float64)) / FANOUT * count.to(tl.float64)).to(tl.int64)
    write(
        indptr, indices, edge_weight, row_scale, col_scale, src, weight, degree, num_dst, num_edges,
        place, row, slot, there, target, first, count, spread,
        FANOUT, WEIGHTED, ROW, COL,
    )  # fmt: skip


@triton.jit(do_not_specialize=["num_dst"])
def pick_independent(
    dst, salt, indptr, indices, edge_weight, row_scale, col_scale,
    src, weight, degree,
    num_dst, num_edges,
    FANOUT: tl.constexpr, WEIGHTED: tl.constexpr, ROW: tl.constexpr, COL: tl.constexpr,
    ROWS: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """`pick`, where every set of neighbours is equally likely (Floyd's algorithm)."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    slot = tl.arange(0, SLOTS)[None, :]
    inside, key = row < num_dst, tl.load(salt)
    target = tl.load(dst + row, inside, other=0)
    first = tl.load(indptr + target, inside, other=0)
    count = tl.load(indptr + target + 1, inside, other=0) - first
    spare = tl.maximum(count - FANOUT, 0)
    chosen = tl.full([ROWS, SLOTS], -1, tl.int64)
    for number in range(FANOUT):
        bits = (mixed(target, mixed(number, key)) >> 16) & 0xFFFFFFFFFFFF
        last = spare + number
        wanted = (bits.to(tl.float64) / 281474976710656.0 * (last + 1).to(tl.float64)).to(tl.int64)
        taken = tl.max((chosen == wanted[:, None]).to(tl.int32), axis=1) > 0
        chosen = tl.where(slot == number, tl.where(taken, last, wanted)[:, None], chosen)
    whole = tl.zeros([ROWS, SLOTS], tl.int64)
    write(
        indptr, indices, edge_weight, row_scale, col_scale, src, weight, degree, num_dst, num_edges,
        row[:, None] * FANOUT + slot, row[:, None] + whole, slot + whole,
        inside[:, None] & (slot < FANOUT),
        target[:, None] + whole, first[:, None] + whole, count[:, None] + whole, chosen,
        FANOUT, WEIGHTED, ROW, COL,
    )  # fmt: skip


@triton.jit
def mixed(ids, salt):
    """A hash of 64 bits."""
    once = (ids ^ salt) * -7046029254386353131
    return (once ^ ((once >> 32) & 0xFFFFFFFF)) * -4658895280553007687


@triton.jit
def write(
    indptr, indices, edge_weight, row_scale, col_scale, src, weight, degree, num_dst, num_edges,
    place, row, slot, there, target, first, count, spread,
    FANOUT: tl.constexpr, WEIGHTED: tl.constexpr, ROW: tl.constexpr, COL: tl.constexpr,
):  # fmt: skip
    """Write picks, given the place of each among all and, of a large row, among its neighbours."""
    few = count <= FANOUT
    chosen = tl.where(few, slot % tl.maximum(count, 1), spread)
    position = tl.minimum(first + chosen, num_edges - 1)
    neighbor = tl.load(indices + position, there, other=0).to(tl.int64)
    whole = tl.where(slot < count, 1.0, 0.0)
    factor = tl.where(few, whole, tl.div_rn(count.to(tl.float32), FANOUT * 1.0))
    entry = tl.full(factor.shape, 1.0, tl.float32)
    if WEIGHTED:
        entry = tl.load(edge_weight + position, there, other=0.0)
    if ROW:
        entry *= tl.load(row_scale + target, there, other=0.0)
    if COL:
        entry *= tl.load(col_scale + neighbor, there, other=0.0)
    of_neighbor = tl.load(indptr + neighbor + 1, there, other=0)
    of_neighbor -= tl.load(indptr + neighbor, there, other=0)
    tl.store(src + num_dst + place, neighbor, there)
    tl.store(degree + num_dst + place, of_neighbor.to(tl.float32), there)
    tl.store(weight + place, factor * entry, there)
    tl.store(src + row, target, there & (slot == 0))
    tl.store(degree + row, count.to(tl.float32), there & (slot == 0))
