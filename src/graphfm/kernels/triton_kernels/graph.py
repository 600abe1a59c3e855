# ruff: noqa: N803
# mypy: ignore-errors
"""Kernels along edges and over tables: of `neighbor_pick`, `fused_aggregate` and `table_write`.

All arithmetic is float32, whatever type a table has; no sum depends on the order of programs.
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


@triton.jit(do_not_specialize=["num_dst"])
def combine(
    rows, ids, known, weight, own, past, visits, places, inputs, uniform, degree, out, share, seen,
    num_dst, width, beta, log_keep, odds,
    FANOUT: tl.constexpr, INDIRECT: tl.constexpr, KNOWN: tl.constexpr, OWN: tl.constexpr,
    MOMENTUM: tl.constexpr, FRESH: tl.constexpr, PLACED: tl.constexpr, LAG: tl.constexpr,
    NOISE: tl.constexpr, JOIN: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Aggregate the sources of a target, blend with its history, lay its own row beside it."""
    target = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = col < width
    node = target
    if INDIRECT or KNOWN or MOMENTUM:
        node = tl.load(ids + target)
    self_row = node if INDIRECT else target
    total = tl.zeros([BLOCK], tl.float32)
    change = tl.zeros([BLOCK], tl.float32)
    if KNOWN:
        total = tl.load(known + node * width + col, inside, other=0.0).to(tl.float32)
    else:
        for slot in tl.static_range(FANOUT):
            source = num_dst + target * FANOUT + slot
            if INDIRECT:
                source = tl.load(ids + source)
            value = tl.load(rows + source * width + col, inside, other=0.0).to(tl.float32)
            part_of = tl.load(weight + target * FANOUT + slot)
            total += part_of * value
            if LAG:
                change += part_of * since_seen(
                    inputs, tl.load(ids + source), value, col, inside, width
                )
    if OWN or JOIN:
        mine = tl.load(rows + self_row * width + col, inside, other=0.0).to(tl.float32)
    if OWN:
        total += tl.load(own + target) * mine
        if LAG:
            change += tl.load(own + target) * since_seen(inputs, node, mine, col, inside, width)
    if MOMENTUM:
        if PLACED:
            node = tl.load(places + node).to(tl.int64)
        count = tl.load(visits + node) + 1.0
        part = share_of_fresh(count, beta, log_keep, FRESH)
        old = tl.load(past + node * width + col, inside, other=0.0).to(tl.float32)
        if LAG:
            old += tl.where(count > 1.0, change, 0.0)
        if NOISE:
            chance = 1.0 / (1.0 + odds / tl.maximum(tl.load(degree + target), 1.0))
            drawn = tl.load(uniform + target * width + col, inside, other=1.0)
            old = tl.where(drawn < chance, old / chance, 0.0)
        total = moved(old, total, part)
        if tl.program_id(1) == 0:
            tl.store(share + target, part)
            tl.store(seen + target, count)
    stride = width * 2 if JOIN else width
    tl.store(out + target * stride + col, total, inside)
    if JOIN:
        tl.store(out + target * stride + width + col, mine, inside)


@triton.jit
def since_seen(inputs, node, value, col, inside, width):
    """Return how much a row has changed since it was last seen; 0 if it never was (NaN)."""
    change = value - tl.load(inputs + node * width + col, inside, other=0.0).to(tl.float32)
    return tl.where(change == change, change, 0.0)


@triton.jit
def share_of_fresh(count, beta, log_keep, FRESH: tl.constexpr):
    """Return the share of a fresh value that goes into a history at this visit."""
    share = tl.full([], 1.0, tl.float64) * beta
    if FRESH:
        share = share / (1.0 - tl.exp(count.to(tl.float64) * log_keep))
        share = tl.where(count == 1.0, 1.0, share)
    return share.to(tl.float32)


@triton.jit
def moved(old, new, share):
    """Interpolate between two values as `torch.lerp` does."""
    low = old + share * (new - old)
    high = new - (new - old) * (1.0 - share)
    return tl.where(share < 0.5, low, high)


@triton.jit(do_not_specialize=["num_dst"])
def combine_backward(
    grad, weight, own, share, out,
    num_dst, width,
    FANOUT: tl.constexpr, OWN: tl.constexpr, SHARE: tl.constexpr, JOIN: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Turn the gradient of `combine`'s output into that of its rows; each is written once."""
    target = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = col < width
    stride = width * 2 if JOIN else width
    change = tl.load(grad + target * stride + col, inside, other=0.0).to(tl.float32)
    if SHARE:
        change *= tl.load(share + target)
    mine = tl.zeros([BLOCK], tl.float32)
    if JOIN:
        mine = tl.load(grad + target * stride + width + col, inside, other=0.0).to(tl.float32)
    if OWN:
        mine += tl.load(own + target) * change
    tl.store(out + target * width + col, mine, inside)
    for slot in tl.static_range(FANOUT):
        edge = target * FANOUT + slot
        tl.store(out + (num_dst + edge) * width + col, tl.load(weight + edge) * change, inside)


@triton.jit
def keep(
    values, ids, seen, past, visits, places, sink, width, stride, PLACED: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Write aggregates to the history. A node that occurs twice has the same row twice."""
    target = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = col < width
    node = tl.load(ids + target)
    if PLACED:
        node = tl.load(places + node).to(tl.int64)
    value = tl.load(values + target * stride + col, inside, other=0.0)
    value = tl.where(node < sink, value, 0.0)  # nodes without a row leave no trace
    tl.store(past + node * width + col, value, inside)
    if tl.program_id(1) == 0:
        tl.store(visits + node, tl.where(node < sink, tl.load(seen + target), 0.0))


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
