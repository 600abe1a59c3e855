"""Matrix products of float32 on tensor cores, each computed as three products of TF32.

The three passes (both leading parts, and either one times the other's rest) leave out what float32
itself cannot hold: against float64 the result is as exact as cuBLAS's. On the tall thin matrices
of this project it is faster too (`docs/architecture.md`). Elsewhere the library multiplies.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphfm.batch import HALO_ROWS
from graphfm.kernels import backend, precompile
from graphfm.kernels.halo_update import Affine
from graphfm.kernels.table_write import put_rows_plain

# Of a tile: both sides, the inner width, and stages of loads, by the number of 64 x 32 tiles.
SMALL, MEDIUM, LARGE = (64, 32, 64, 4), (64, 64, 64, 3), (64, 128, 32, 4)
MOST_SMALL, MOST_MEDIUM = 264, 4096
LEAST = 64  # below it there is too little to multiply
# Of a matrix's gradient: columns and rows of a tile, the inner width, and warps.
GRADIENT, NARROW_GRADIENT = (128, 128, 32, 8), (128, 64, 32, 4)
PROGRAMS = 132  # that run at once
TURN_ROWS, TURN_COLUMNS = 32, 64
SUM_PARTS, SUM_COLUMNS = 8, 256


def by_three_passes() -> bool:
    """True if products must have all digits of float32, and three passes may compute them."""
    return _exact() and backend.allows("three_pass")


def fits(rows: Tensor, weight: Tensor) -> bool:
    """True if `multiply` is faster than the library on these shapes."""
    return rows.stride(1) == 1 and weight.size(1) >= LEAST


def multiply(rows: Tensor, weight: Tensor, bias: Tensor, *, relu: bool) -> Tensor:
    """`rows @ weight.T + bias`, and its positive part if `relu`."""
    out = torch.empty(rows.size(0), weight.size(0), device=rows.device)
    _launch(out, rows, None, weight, bias, relu, "tf32x3")
    return out


def multiply_back(rows: Tensor, weight: Tensor) -> Tensor:
    """`rows @ weight`."""
    from graphfm.kernels.triton_kernels import matmul as kernels

    weight = weight.contiguous()
    num_rows, (inner_width, width) = rows.size(0), weight.shape
    out = torch.empty(num_rows, width, device=rows.device)
    tile_columns, tile_rows, inner, stages = _tile(width, num_rows)
    precompile.launch(
        kernels.turned_product,
        (-(-num_rows // tile_rows), -(-width // tile_columns)),
        rows,
        weight,
        out,
        num_rows,
        IN=inner_width,
        OUT=width,
        STRIDE=rows.stride(0),
        PRECISION="tf32x3",
        ROWS=tile_rows,
        COLUMNS=tile_columns,
        INNER=inner,
        num_warps=4,
        num_stages=stages,
    )
    return out


def put_product(table: Tensor, ids: Tensor, affine: Affine, sums: Tensor) -> None:
    """`table[ids] = affine(sums[ids])`, of two tables in any floating-point type."""
    exact = _exact() and not torch.is_autocast_enabled(table.device.type)
    allowed = backend.allows("three_pass") or not exact
    if ids.numel() > 0 and allowed and backend.available(table.device):
        precision = "tf32x3" if exact else "tf32"
        _launch(table, sums, ids, affine.weight, affine.bias, affine.relu, precision)
    else:
        put_product_plain(table, ids, affine, sums)


def put_product_plain(table: Tensor, ids: Tensor, affine: Affine, sums: Tensor) -> None:
    """`put_product` in plain PyTorch."""
    for some in torch.split(ids, HALO_ROWS):
        put_rows_plain(table, some, affine(sums.index_select(0, some).float()))


def expect_gradients(rows: Tensor, weight: Tensor, out: Tensor, *, relu: bool) -> None:
    """Compile what the backward pass of `multiply` will launch."""
    num_rows, (num_out, width) = rows.size(0), weight.shape
    turned = torch.empty(2, num_out, _room(num_rows), device="meta")
    precompile.expect(turn, out, out if relu else None, key=(num_out, relu))
    precompile.expect(
        gradients, rows, turned, key=(rows.stride(), width, num_out, num_rows > LEAST)
    )
    if rows.requires_grad and fits(out, weight.t()):
        key = width, num_out, _tile(width, num_rows)
        precompile.expect(multiply_back, out, weight, key=key)


def turn(grad: Tensor, out: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the gradient before a ReLU that made `out`, and its transpose for `gradients`."""
    from graphfm.kernels.triton_kernels import matmul as kernels

    num_rows, width = grad.shape
    masked = grad if out is None else torch.empty_like(grad)
    turned = grad.new_empty(2, width, _room(num_rows))
    precompile.launch(
        kernels.mask_and_turn,
        (-(-turned.size(2) // TURN_ROWS), -(-width // TURN_COLUMNS)),
        grad,
        grad if out is None else out,
        masked,
        turned,
        num_rows,
        width,
        turned.stride(1),
        RELU=out is not None,
        ROWS=TURN_ROWS,
        BLOCK=TURN_COLUMNS,
    )
    return masked, turned


def gradients(rows: Tensor, turned: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of matrix and bias of `rows @ weight.T + bias`, after `turn`."""
    from graphfm.kernels.triton_kernels import matmul as kernels
    from graphfm.kernels.triton_kernels.step import sum_parts

    rows = rows if rows.stride(1) == 1 else rows.contiguous()
    (num_rows, width), num_out = rows.shape, turned.size(1)
    columns, outs, inner, warps = GRADIENT if num_out > LEAST else NARROW_GRADIENT
    tiles = -(-width // columns), -(-num_out // outs)
    chunk = max(LEAST, -(-num_rows // max(1, PROGRAMS // (tiles[0] * tiles[1]))))
    chunk = -(-chunk // inner) * inner
    parts = rows.new_empty(-(-num_rows // chunk), num_out * (width + 1))
    precompile.launch(
        kernels.gradient,
        (*tiles, parts.size(0)),
        rows,
        turned,
        parts,
        num_rows,
        turned.stride(1),
        chunk,
        IN=width,
        OUT=num_out,
        STRIDE=rows.stride(0),
        ROWS=outs,
        COLUMNS=columns,
        INNER=inner,
        num_warps=warps,
        num_stages=3,
    )
    total = parts[0]
    if parts.size(0) > 1:
        total = torch.empty_like(total)
        precompile.launch(
            sum_parts,
            (-(-total.numel() // SUM_COLUMNS),),
            parts,
            total,
            parts.size(0),
            total.numel(),
            ROWS=SUM_PARTS,
            BLOCK=SUM_COLUMNS,
        )
    return total[: num_out * width].view(num_out, width), total[num_out * width :]


def _exact() -> bool:
    """True if products must have all digits of float32."""
    return torch.get_float32_matmul_precision() == "highest"


def _room(num_rows: int) -> int:
    """Return the length of a row of the transpose: a multiple of 16, so that all are aligned."""
    return -(-num_rows // 16) * 16


def _tile(first: int, second: int) -> tuple[int, int, int, int]:
    """Return the largest tile that still keeps the GPU busy, for a result with these sides."""
    number = -(-first // SMALL[0]) * -(-second // SMALL[1])
    if number <= MOST_SMALL:
        return SMALL
    return LARGE if number > MOST_MEDIUM and second > MEDIUM[1] else MEDIUM


def _launch(
    out: Tensor,
    rows: Tensor,
    ids: Tensor | None,
    weight: Tensor,
    bias: Tensor,
    relu: bool,
    precision: str,
) -> None:
    from graphfm.kernels.triton_kernels import matmul as kernels

    num_rows = rows.size(0) if ids is None else ids.numel()
    tile_rows, tile_columns, inner, stages = _tile(num_rows, weight.size(0))
    kernels.product[(-(-num_rows // tile_rows), -(-weight.size(0) // tile_columns))](
        rows,
        rows if ids is None else ids,
        weight,
        bias,
        out,
        num_rows,
        IN=weight.size(1),
        OUT=weight.size(0),
        STRIDE=rows.stride(0),
        WEIGHT_OUT=weight.stride(0),
        WEIGHT_IN=weight.stride(1),
        GATHER=ids is not None,
        RELU=relu,
        PRECISION=precision,
        ROWS=tile_rows,
        COLUMNS=tile_columns,
        INNER=inner,
        num_warps=4,
        num_stages=stages,
    )
