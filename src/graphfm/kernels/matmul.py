"""Matrix products of float32 by tensor cores: each as three of TF32.

The three passes (both leading parts, and either one times the other's rest) leave out what float32
itself cannot hold: against float64 the result is as exact as cuBLAS's. On the tall thin matrices
of this project it is faster too (`docs/architecture.md`). Wherever else, the library multiplies.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphfm.kernels import backend as compiled
from graphfm.kernels import precompile as ahead

# Of a tile: both sides, the inner width, and stages of loads, by the number of 64 x 32 tiles.
SMALL, MEDIUM, LARGE = (64, 32, 64, 4), (64, 64, 64, 3), (64, 128, 32, 4)
MOST_SMALL, MOST_MEDIUM = 264, 4096
LEAST = 64  # below it there is too little to multiply
# Of a matrix's gradient: columns and rows of a tile, the inner width, and warps.
GRADIENT, NARROW_GRADIENT = (128, 128, 32, 8), (128, 64, 32, 4)
PROGRAMS = 132  # that run at once
TURN_ROWS, TURN_COLUMNS = 32, 64
SUM_PARTS, SUM_COLUMNS = 8, 256


def exact() -> bool:
    """Must products have all digits of float32?"""
    return torch.get_float32_matmul_precision() == "highest"


def fits(rows: Tensor, weight: Tensor) -> bool:
    """Is `multiply` faster than the library, and as exact as is asked?"""
    plain = rows.dtype == torch.float32 and rows.stride(1) == 1 and rows.size(0) > 0
    pays = weight.size(1) >= LEAST
    return exact() and plain and pays and compiled.available(rows.device)


def multiply(rows: Tensor, weight: Tensor, bias: Tensor | None = None, *, relu: bool) -> Tensor:
    """`rows @ weight.T`, plus a bias, and its positive part if wanted."""
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
    ahead.launch(
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


def put_product(
    out: Tensor, ids: Tensor, weight: Tensor, bias: Tensor, rows: Tensor, *, relu: bool
) -> None:
    """`out[ids] = rows[ids] @ weight.T + bias`, of two tables in any floating-point type."""
    all_digits = exact() and not torch.is_autocast_enabled(out.device.type)
    _launch(out, rows, ids, weight, bias, relu, "tf32x3" if all_digits else "tf32")


def expect_gradients(rows: Tensor, weight: Tensor, out: Tensor, *, relu: bool) -> None:
    """Have compiled what will be launched when the gradient of `multiply`'s result is there."""
    num_rows, (num_out, width) = rows.size(0), weight.shape
    turned = torch.empty(2, num_out, _room(num_rows), device="meta")
    ahead.expect(turn, out, out if relu else None, key=(num_out, relu))
    ahead.expect(gradients, rows, turned, key=(rows.stride(), width, num_out, num_rows > LEAST))
    if rows.requires_grad and fits(out, weight.t()):
        key = width, num_out, _tile(width, num_rows)
        ahead.expect(multiply_back, out, weight, key=key)


def turn(grad: Tensor, out: Tensor | None) -> tuple[Tensor, Tensor]:
    """A gradient, before the ReLU if that made `out`; and it transposed, for `gradients`."""
    from graphfm.kernels.triton_kernels import matmul as kernels

    num_rows, width = grad.shape
    masked = grad if out is None else torch.empty_like(grad)
    turned = grad.new_empty(2, width, _room(num_rows))
    ahead.launch(
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
    """Of `rows @ weight.T + bias`: the gradients of both, from what `turn` made of its own."""
    from graphfm.kernels.triton_kernels import matmul as kernels
    from graphfm.kernels.triton_kernels.step import sum_parts

    rows = rows if rows.stride(1) == 1 else rows.contiguous()
    (num_rows, width), num_out = rows.shape, turned.size(1)
    columns, outs, inner, warps = GRADIENT if num_out > LEAST else NARROW_GRADIENT
    tiles = -(-width // columns), -(-num_out // outs)
    chunk = max(LEAST, -(-num_rows // max(1, PROGRAMS // (tiles[0] * tiles[1]))))
    chunk = -(-chunk // inner) * inner
    parts = rows.new_empty(-(-num_rows // chunk), num_out * (width + 1))
    ahead.launch(
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
        ahead.launch(
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


def _room(num_rows: int) -> int:
    """For a row that is turned: where each begins, kernels like it."""
    return -(-num_rows // 16) * 16


def _tile(first: int, second: int) -> tuple[int, int, int, int]:
    """The largest of the tiles that still keeps the machine busy, for a result of these sides."""
    number = -(-first // SMALL[0]) * -(-second // SMALL[1])
    if number <= MOST_SMALL:
        return SMALL
    return LARGE if number > MOST_MEDIUM and second > MEDIUM[1] else MEDIUM


def _launch(
    out: Tensor,
    rows: Tensor,
    ids: Tensor | None,
    weight: Tensor,
    bias: Tensor | None,
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
        weight if bias is None else bias,
        out,
        num_rows,
        IN=weight.size(1),
        OUT=weight.size(0),
        STRIDE=rows.stride(0),
        WEIGHT_OUT=weight.stride(0),
        WEIGHT_IN=weight.stride(1),
        GATHER=ids is not None,
        BIAS=bias is not None,
        RELU=relu,
        PRECISION=precision,
        ROWS=tile_rows,
        COLUMNS=tile_columns,
        INNER=inner,
        num_warps=4,
        num_stages=stages,
    )
