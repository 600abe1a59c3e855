# ruff: noqa: N803
# mypy: ignore-errors
"""Kernels along edges and over tables: of `neighbor_pick`, `sparse_sum` and `table_write`.

All arithmetic is float32, whatever type a table has; no sum depends on the order of programs.
"""

import triton
import triton.language as tl

from graphfm.kernels.triton_kernels.combine import moved


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
