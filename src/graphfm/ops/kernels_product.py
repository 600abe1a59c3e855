# ruff: noqa: N803
# mypy: ignore-errors
"""The Triton kernel that multiplies matrices; `product.py` launches it."""

import triton
import triton.language as tl


@triton.jit
def product(
    rows, ids, weight, bias, out,
    num_rows,
    IN: tl.constexpr, OUT: tl.constexpr, STRIDE: tl.constexpr, WEIGHT_OUT: tl.constexpr,
    WEIGHT_IN: tl.constexpr, GATHER: tl.constexpr, BIAS: tl.constexpr, RELU: tl.constexpr,
    PRECISION: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr,
):  # fmt: skip
    """Rows times a matrix, plus a bias; rows of a table by their ids, into the same of another."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    there = row < num_rows
    if GATHER:
        row = tl.load(ids + row, there, other=0)
    col = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = col < OUT
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(0, IN, INNER):
        inner = start + tl.arange(0, INNER)
        of = inner < IN
        left = rows + row[:, None] * STRIDE + inner[None, :]
        values = tl.load(left, there[:, None] & of[None, :], other=0.0).to(tl.float32)
        right = weight + col[None, :] * WEIGHT_OUT + inner[:, None] * WEIGHT_IN
        entries = tl.load(right, inside[None, :] & of[:, None], other=0.0)
        total = tl.dot(values, entries, total, input_precision=PRECISION)
    if BIAS:
        total += tl.load(bias + col, inside, other=0.0)[None, :]
    if RELU:
        total = tl.where(total < 0.0, 0.0, total)  # what is not a number stays so
    tl.store(out + row[:, None] * OUT + col[None, :], total, there[:, None] & inside[None, :])
