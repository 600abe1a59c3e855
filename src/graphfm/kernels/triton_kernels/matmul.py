# ruff: noqa: N803
# mypy: ignore-errors
"""The kernels of `matmul`.

Tensor cores take the left operand from registers in any order, but the right one from shared memory
and only along the inner dimension. So each kernel computes its result or the transpose, whichever
has the operand in that order on the right. Rows beyond the last are read as the last and not
written, which costs less than a mask.
"""

import triton
import triton.language as tl

from graphfm.kernels.triton_kernels.step import before_relu


@triton.jit(do_not_specialize=["num_rows"])
def product(
    rows, ids, weight, bias, out,
    num_rows,
    IN: tl.constexpr, OUT: tl.constexpr, STRIDE: tl.constexpr, WEIGHT_OUT: tl.constexpr,
    WEIGHT_IN: tl.constexpr, GATHER: tl.constexpr, RELU: tl.constexpr,
    PRECISION: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr,
):  # fmt: skip
    """Multiply rows by a matrix and add a bias; with `GATHER`, rows of two tables by their ids."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    there = row < num_rows
    row = tl.minimum(row, num_rows - 1)
    if GATHER:
        row = tl.load(ids + row)
    col = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = col < OUT
    of_column = weight + tl.minimum(col, OUT - 1) * WEIGHT_OUT
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(0, IN, INNER):
        inner = start + tl.arange(0, INNER)
        left = rows + row[:, None] * STRIDE + inner[None, :]
        values = tl.load(left, (inner < IN)[None, :], other=0.0).to(tl.float32)
        right = of_column[None, :] + inner[:, None] * WEIGHT_IN
        entries = tl.load(right, (inner < IN)[:, None], other=0.0)
        total = tl.dot(values, entries, total, input_precision=PRECISION)
    total += tl.load(bias + col, inside, other=0.0)[None, :]
    if RELU:
        total = tl.where(total < 0.0, 0.0, total)  # NaN stays NaN
    tl.store(out + row[:, None] * OUT + col[None, :], total, there[:, None] & inside[None, :])


@triton.jit(do_not_specialize=["num_rows"])
def turned_product(
    rows, weight, out,
    num_rows,
    IN: tl.constexpr, OUT: tl.constexpr, STRIDE: tl.constexpr, PRECISION: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr,
):  # fmt: skip
    """Multiply rows by a matrix of shape [IN, OUT]."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    there, inside = (row < num_rows)[None, :], (col < OUT)[:, None]
    row = tl.minimum(row, num_rows - 1)
    total = tl.zeros([COLUMNS, ROWS], tl.float32)
    for start in range(0, IN, INNER):
        inner = start + tl.arange(0, INNER)
        left = weight + inner[None, :] * OUT + col[:, None]
        entries = tl.load(left, inside & (inner < IN)[None, :], other=0.0)
        right = rows + row[None, :] * STRIDE + inner[:, None]
        values = tl.load(right, (inner < IN)[:, None], other=0.0)
        total = tl.dot(entries, values, total, input_precision=PRECISION)
    tl.store(out + row[None, :] * OUT + col[:, None], total, there & inside)


@triton.jit(do_not_specialize=["num_rows"])
def gradient(
    rows, turned, parts,
    num_rows, stride, chunk,
    IN: tl.constexpr, OUT: tl.constexpr, STRIDE: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr,
):  # fmt: skip
    """Gradients of a matrix and a bias over some rows: `turned` ([2, OUT, stride]) times the rows.

    Each of the three passes over a tile is added to what came before by float32 arithmetic: tensor
    cores round their own sums down, which shows after thousands of rows.
    """
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    first = tl.program_id(2) * chunk
    total = tl.zeros([COLUMNS, ROWS], tl.float32)
    sums = tl.zeros([INNER, ROWS], tl.float32)
    of_row = turned + tl.minimum(row, OUT - 1).to(tl.int64) * stride
    for start in range(first, min(first + chunk, num_rows), INNER):
        inner = start + tl.arange(0, INNER)
        left = rows + tl.minimum(inner, num_rows - 1).to(tl.int64)[None, :] * STRIDE + col[:, None]
        values = tl.load(left, (col < IN)[:, None], other=0.0)
        right, there = of_row[None, :] + inner[:, None], (inner < stride)[:, None]
        changes = tl.load(right, there, other=0.0)  # behind the last row are zeros
        rest = tl.load(right + OUT * stride.to(tl.int64), there, other=0.0)
        lead = leading(values)
        some = tl.dot(values - lead, changes, input_precision="tf32")
        some = tl.dot(lead, rest, some, input_precision="tf32")
        total += tl.dot(lead, changes, some, input_precision="tf32")
        sums += changes + rest
    part = parts + tl.program_id(2).to(tl.int64) * (IN * OUT + OUT)
    place = row[None, :] * IN + col[:, None]
    tl.store(part + place, total, (col < IN)[:, None] & (row < OUT)[None, :])
    if tl.program_id(0) == 0:
        tl.store(part + IN * OUT + row, tl.sum(sums, 0), row < OUT)


@triton.jit(do_not_specialize=["num_rows"])
def mask_and_turn(
    grad, out, result, turned, num_rows, width, stride,
    RELU: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the gradient before a ReLU, and its transpose as leading parts and the rest."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    value = before_relu(grad, out, result, row, col, num_rows, width, RELU).T
    place = turned + col.to(tl.int64)[:, None] * stride + row[None, :]
    inside = (col < width)[:, None] & (row < stride)[None, :]
    lead = leading(value)
    tl.store(place, lead, inside)
    tl.store(place + width * stride.to(tl.int64), value - lead, inside)


@triton.jit
def leading(value):
    """Return the nearest TF32 number: the first 10 of the 23 binary digits behind the point.

    It may make a number of a NaN; then the rest, `value - leading(value)`, is NaN.
    """
    bits = value.to(tl.uint32, bitcast=True) + 0x1000
    return (bits & 0xFFFFE000).to(tl.float32, bitcast=True)
