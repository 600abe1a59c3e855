# ruff: noqa: N803
# mypy: ignore-errors
"""Kernels along edges and over tables: of `neighbor_pick`, `sparse_sum` and `table_write`.

All arithmetic is float32, whatever type a table has; no sum depends on the order of programs.
"""

import triton
import triton.language as tl

from graphfm.kernels.triton_kernels.combine import moved


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
    mixed = (target ^ tl.load(salt)) * -7046029254386353131
    mixed = (mixed ^ ((mixed >> 32) & 0xFFFFFFFF)) * -4658895280553007687
    start = ((mixed >> 40) & 0xFFFFFF).to(tl.float64) / 16777216.0
    spread = ((start + slot.to(tl.float64)) / FANOUT * count.to(tl.float64)).to(tl.int64)
    few = count <= FANOUT
    chosen = tl.where(few, slot % tl.maximum(count, 1), spread)
    position = tl.minimum(first + chosen, num_edges - 1)
    neighbor = tl.load(indices + position, there, other=0).to(tl.int64)
    whole = tl.where(slot < count, 1.0, 0.0)
    factor = tl.where(few, whole, tl.div_rn(count.to(tl.float32), FANOUT * 1.0))
    entry = tl.full([BLOCK], 1.0, tl.float32)
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


@triton.jit
def expand(
    ids, first_out, indptr, indices, edge_weight, row_scale, col_scale,
    neighbors, weight, read,
    WEIGHTED: tl.constexpr, ROW: tl.constexpr, COL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write all neighbours of a node and their weights, and mark that they are read."""
    target = tl.program_id(0)
    node = tl.load(ids + target)
    first, last = tl.load(indptr + node), tl.load(indptr + node + 1)
    shift = tl.load(first_out + target) - first
    factor = 1.0
    if ROW:
        factor = tl.load(row_scale + node)
    for start in range(first, last, BLOCK):
        edge = start + tl.arange(0, BLOCK)
        there = edge < last
        neighbor = tl.load(indices + edge, there, other=0)
        entry = tl.full([BLOCK], 1.0, tl.float32)
        if WEIGHTED:
            entry = tl.load(edge_weight + edge, there, other=0.0)
        entry = entry * factor
        if COL:
            entry *= tl.load(col_scale + neighbor, there, other=0.0)
        tl.store(neighbors + shift + edge, neighbor, there)
        tl.store(weight + shift + edge, entry, there)
        tl.store(read + neighbor, tl.full([BLOCK], True, tl.int1), there)


@triton.jit
def put(
    values, ids, table, shares, width, stride, ADD: tl.constexpr, BLEND: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Write rows of a table, add to them, or move them by a share."""
    row = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = col < width
    place = table + tl.load(ids + row) * width + col
    value = tl.load(values + row * stride + col, inside, other=0.0)
    if ADD:
        value += tl.load(place, inside, other=0.0)
    if BLEND:
        old = tl.load(place, inside, other=0.0).to(tl.float32)
        part = tl.load(shares + row)
        value = moved(old, value, part)
    tl.store(place, value, inside)


@triton.jit
def sum_of_all(
    ids, indptr, indices, edge_weight, row_scale, col_scale, table, out, width,
    WEIGHTED: tl.constexpr, ROW: tl.constexpr, COL: tl.constexpr, EDGES: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Sum the rows of all neighbours of a node in a table, `EDGES` of them at a time."""
    target = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = col < width
    node = tl.load(ids + target)
    first, last = tl.load(indptr + node), tl.load(indptr + node + 1)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(first, last, EDGES):
        edge = start + tl.arange(0, EDGES)
        there = edge < last
        neighbor = tl.load(indices + edge, there, other=0).to(tl.int64)
        entry = tl.where(there, 1.0, 0.0)
        if WEIGHTED:
            entry *= tl.load(edge_weight + edge, there, other=0.0)
        if COL:
            entry *= tl.load(col_scale + neighbor, there, other=0.0)
        place = neighbor[:, None] * width + col[None, :]
        rows = tl.load(table + place, there[:, None] & inside[None, :], other=0.0)
        total += tl.sum(entry[:, None] * rows.to(tl.float32), 0)
    if ROW:
        total *= tl.load(row_scale + node)
    tl.store(out + target * width + col, total, inside)
