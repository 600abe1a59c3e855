# ruff: noqa: N803
# mypy: ignore-errors
"""Kernels of `fused_aggregate`: an aggregate with what surrounds it, and the write of a history.

All arithmetic is float32, whatever type a table has; no sum depends on the order of programs.
"""

import triton
import triton.language as tl


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
    node = tl.load(ids + target) if INDIRECT or KNOWN or MOMENTUM else target
    total = tl.zeros([BLOCK], tl.float32)
    if KNOWN:
        total = tl.load(known + node * width + col, inside, other=0.0).to(tl.float32)
    else:
        for slot in tl.static_range(FANOUT):
            source = num_dst + target * FANOUT + slot
            source = tl.load(ids + source) if INDIRECT else source
            value = tl.load(rows + source * width + col, inside, other=0.0).to(tl.float32)
            total += tl.load(weight + target * FANOUT + slot) * value
    if OWN or JOIN:
        mine = tl.load(rows + (node if INDIRECT else target) * width + col, inside, other=0.0).to(
            tl.float32
        )
    if OWN:
        total += tl.load(own + target) * mine
    if MOMENTUM:
        node = tl.load(places + node).to(tl.int64) if PLACED else node
        count = tl.load(visits + node) + 1.0
        part = share_of_fresh(count, beta, log_keep, FRESH)
        old = tl.load(past + node * width + col, inside, other=0.0).to(tl.float32)
        if LAG:
            old += since_seen(rows, ids, weight, own, inputs, num_dst, target, col, width, count,
                              FANOUT, OWN, BLOCK)  # fmt: skip
        if NOISE:
            old = dropped(old, uniform + target * width + col, inside, degree + target, odds)
        total = moved(old, total, part)
        if tl.program_id(1) == 0:
            tl.store(share + target, part)
            tl.store(seen + target, count)
    stride = width * 2 if JOIN else width
    tl.store(out + target * stride + col, total, inside)
    if JOIN:
        tl.store(out + target * stride + width + col, mine, inside)


@triton.jit
def dropped(value, uniform, inside, degree, odds):
    """Return an average of so many rows with dropout: 0, or larger so that its mean stays."""
    chance = 1.0 / (1.0 + odds / tl.maximum(tl.load(degree), 1.0))
    return tl.where(tl.load(uniform, inside, other=1.0) < chance, value / chance, 0.0)


@triton.jit
def since_seen(
    rows, ids, weight, own, inputs, num_dst, target, col, width, count,
    FANOUT: tl.constexpr, OWN: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Return how much a target's aggregate has changed since its sources were last seen."""
    inside = col < width
    total = tl.zeros([BLOCK], tl.float32)
    for slot in tl.static_range(FANOUT):
        source = num_dst + target * FANOUT + slot
        change = row_change(rows, ids, inputs, source, col, inside, width)
        total += tl.load(weight + target * FANOUT + slot) * change
    if OWN:
        total += tl.load(own + target) * row_change(rows, ids, inputs, target, col, inside, width)
    return tl.where(count > 1.0, total, 0.0)  # a new history has nothing to correct


@triton.jit
def row_change(rows, ids, inputs, source, col, inside, width):
    """Return how much a row has changed since it was last seen; 0 if it never was (-0.0)."""
    value = tl.load(rows + source * width + col, inside, other=0.0).to(tl.float32)
    value = value.to(inputs.dtype.element_ty).to(tl.float32)  # else rounding looks like a change
    place = inputs + tl.load(ids + source) * width
    first = tl.load(place).to(tl.float32)
    past = tl.load(place + col, inside, other=0.0).to(tl.float32)
    seen = (first != 0.0) | (first.to(tl.int32, bitcast=True) == 0)
    return tl.where(seen, value - past, 0.0)


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
