# ruff: noqa: N803
# mypy: ignore-errors
"""Kernels of the rest of a step: of `linear`, `cross_entropy` and `adam`.

All arithmetic is float32; no sum depends on the order of programs.
"""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["num_rows"])
def count_marked(ids, mask, total, num_rows, BLOCK: tl.constexpr):
    """Count the marked nodes. One program does it, because a batch has few rows."""
    found = tl.zeros([BLOCK], tl.float32)
    for start in range(0, num_rows, BLOCK):
        row = start + tl.arange(0, BLOCK)
        node = tl.load(ids + row, row < num_rows, other=0)
        marked = tl.load(mask + node, row < num_rows, other=0)
        found += tl.where((marked != 0) & (row < num_rows), 1.0, 0.0)
    tl.store(total, tl.sum(found, 0))


@triton.jit
def cross_entropy(logits, ids, labels, mask, total, loss, grad, num_classes, BLOCK: tl.constexpr):
    """Write a row's part of the mean loss over marked nodes, and its gradient."""
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    inside = col < num_classes
    node = tl.load(ids + row)
    label = tl.load(labels + node)
    counts = (tl.load(mask + node) != 0) & (label >= 0)
    weight = tl.where(counts, 1.0, 0.0) / tl.maximum(tl.load(total), 1.0)
    value = tl.load(logits + row * num_classes + col, inside, other=-float("inf")).to(tl.float32)
    value -= tl.max(value, 0)
    power = tl.exp(value)
    norm = tl.sum(power, 0)
    actual = tl.sum(tl.where(col == label, value, 0.0), 0)
    tl.store(loss + row, weight * (tl.log(norm) - actual))
    change = power / norm - tl.where(col == label, 1.0, 0.0)
    tl.store(grad + row * num_classes + col, weight * change, inside)


@triton.jit(do_not_specialize=["num_rows"])
def mask_and_sum(
    grad, out, result, sums, num_rows, width, RELU: tl.constexpr, ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the gradient before a ReLU, and the sums of its columns over some rows."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    value = before_relu(grad, out, result, row, col, num_rows, width, RELU)
    tl.store(sums + tl.program_id(0) * width + col, tl.sum(value, 0), col < width)


@triton.jit
def before_relu(grad, out, result, row, col, num_rows, width, RELU: tl.constexpr):
    """Load a tile of a gradient; with `RELU`, take it before the ReLU and write that."""
    inside = (row < num_rows)[:, None] & (col < width)[None, :]
    place = row.to(tl.int64)[:, None] * width + col[None, :]
    value = tl.load(grad + place, inside, other=0.0)
    if RELU:
        value = tl.where(tl.load(out + place, inside, other=0.0) > 0, value, 0.0)
        tl.store(result + place, value, inside)
    return value


@triton.jit(do_not_specialize=["num_parts"])
def sum_parts(parts, out, num_parts, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Sum over the first dimension, for some columns."""
    col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, num_parts, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row < num_parts)[:, None] & (col < width)[None, :]
        place = row[:, None] * width + col[None, :]
        total += tl.sum(tl.load(parts + place, inside, other=0.0), 0)
    tl.store(out + col, total, col < width)


@triton.jit
def adam(
    weights, grads, means, squares, sizes, starts, step, rate,
    rest1, beta2, rest2, log_beta1, log_beta2, eps, decay, DECOUPLED: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Take a step of Adam on several parameters; number i begins at program `starts[i]`.

    `step` counts the steps before this one. A decoupled decay shrinks the weights (AdamW) and is no
    part of the gradient.
    """
    number = tl.program_id(0)
    count = tl.load(step).to(tl.float64) + 1.0
    scale = (tl.load(rate) / (1.0 - tl.exp(count * log_beta1))).to(tl.float32)
    root = tl.sqrt((1.0 - tl.exp(count * log_beta2)).to(tl.float32))
    shrink = (tl.load(rate) * decay).to(tl.float32)
    for i in tl.static_range(len(weights)):
        place = (number - starts[i]) * BLOCK + tl.arange(0, BLOCK)
        if (number >= starts[i]) & ((number - starts[i]) * BLOCK < sizes[i]):
            adam_some(
                weights[i], grads[i], means[i], squares[i], place, place < sizes[i],
                scale, root, rest1, beta2, rest2, eps, decay, shrink, DECOUPLED,
            )  # fmt: skip


@triton.jit
def adam_some(
    weight, grad, mean, square, place, inside, scale, root, rest1, beta2, rest2, eps, decay,
    shrink, DECOUPLED: tl.constexpr,
):  # fmt: skip
    old, change = tl.load(weight + place, inside), tl.load(grad + place, inside)
    if DECOUPLED:
        old -= shrink * old
    else:
        change += decay * old
    first = tl.load(mean + place, inside)
    first += rest1 * (change - first)
    second = beta2 * tl.load(square + place, inside) + rest2 * change * change
    tl.store(weight + place, old - scale * first / (tl.sqrt(second) / root + eps), inside)
    tl.store(mean + place, first, inside)
    tl.store(square + place, second, inside)


@triton.jit(do_not_specialize=["num_rows"])
def add_up(losses, total, loss, totals, num_rows, BLOCK: tl.constexpr):
    """Sum the loss of a batch, and add to the totals of an epoch. One program does it."""
    found = tl.zeros([BLOCK], tl.float32)
    for start in range(0, num_rows, BLOCK):
        row = start + tl.arange(0, BLOCK)
        found += tl.load(losses + row, row < num_rows, other=0.0)
    mean, weight = tl.sum(found, 0), tl.load(total)
    tl.store(loss, mean)
    tl.store(totals, tl.load(totals) + mean * weight)
    tl.store(totals + 1, tl.load(totals + 1) + weight)
