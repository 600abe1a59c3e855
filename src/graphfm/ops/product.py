"""Matrix products of float32 by tensor cores: each as three of TF32.

The three passes (both leading parts, and either one times the other's rest) leave out what float32
itself cannot hold: against float64 the result is as exact as cuBLAS's. On the tall thin matrices
of this project it is faster too (`docs/architecture.md`). Wherever else, the library multiplies.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphfm.ops import compiled

# Rows, columns and inner width of a tile, and stages of loads, by the number of 64 x 32 tiles.
SMALL, MEDIUM, LARGE = (64, 32, 64, 4), (64, 64, 64, 3), (64, 128, 32, 4)
MOST_SMALL, MOST_MEDIUM = 264, 4096
LEAST = 64  # below it there is too little to multiply


def fits(rows: Tensor, weight: Tensor) -> bool:
    """Is `multiply` faster than the library, and as exact as is asked?"""
    exact = torch.get_float32_matmul_precision() == "highest"
    plain = rows.dtype == torch.float32 and rows.stride(1) == 1 and rows.size(0) > 0
    small = _tile(rows.size(0), weight.size(0)) == SMALL
    pays = weight.size(1) >= LEAST and (weight.size(0) >= LEAST or not small)
    turned = weight.stride(1) != 1  # then its tiles are turned round on the way
    return exact and plain and pays and (small or not turned) and compiled.available(rows.device)


def multiply(rows: Tensor, weight: Tensor, bias: Tensor | None = None, *, relu: bool) -> Tensor:
    """`rows @ weight.T`, plus a bias, and its positive part if wanted."""
    out = torch.empty(rows.size(0), weight.size(0), device=rows.device)
    _launch(out, rows, None, weight, bias, relu, "tf32x3")
    return out


def put_product(
    out: Tensor, ids: Tensor, weight: Tensor, bias: Tensor, rows: Tensor, *, relu: bool
) -> None:
    """`out[ids] = rows[ids] @ weight.T + bias`, of two tables in any floating-point type."""
    exact = torch.get_float32_matmul_precision() == "highest"
    exact = exact and not torch.is_autocast_enabled(out.device.type)
    _launch(out, rows, ids, weight, bias, relu, "tf32x3" if exact else "tf32")


def _tile(num_rows: int, width: int) -> tuple[int, int, int, int]:
    """The largest of the tiles that still keeps the machine busy."""
    number = -(-num_rows // SMALL[0]) * -(-width // SMALL[1])
    if number <= MOST_SMALL:
        return SMALL
    return LARGE if number > MOST_MEDIUM and width > MEDIUM[1] else MEDIUM


def _launch(
    out: Tensor,
    rows: Tensor,
    ids: Tensor | None,
    weight: Tensor,
    bias: Tensor | None,
    relu: bool,
    precision: str,
) -> None:
    from graphfm.ops import kernels_product as kernels

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
