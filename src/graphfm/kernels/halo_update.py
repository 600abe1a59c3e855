"""What a batch sends to its halo, straight into a table.

The plain twin is `NodeTable.spread`; `tests/gpu/test_halo_kernels.py` compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional

from graphfm.batch import Block
from graphfm.kernels.table_write import columns_of

EDGES_AT_ONCE = 4  # a row of a halo has few


@dataclass(frozen=True, slots=True)
class Affine:
    """What a layer makes of aggregates, if that is a matrix, a bias and perhaps a ReLU."""

    weight: Tensor  # [out_width, in_width]
    bias: Tensor  # [out_width]
    relu: bool

    def __call__(self, rows: Tensor) -> Tensor:
        out = functional.linear(rows, self.weight, self.bias).float()
        return out.relu_() if self.relu else out

    def product(self, rows: Tensor) -> Tensor:
        """Rows times the matrix alone; what is added up afterwards needs the bias once."""
        return functional.linear(rows, self.weight).float()

    def end(self, rows: Tensor) -> Tensor:
        """Of sums of products, what the layer makes of sums of rows."""
        out = rows + self.bias
        return out.relu_() if self.relu else out


@dataclass(frozen=True, slots=True)
class Blend:
    """How rows move towards sums of products."""

    affine: Affine
    factor: Tensor | None  # [num_rows] of each sum
    share: Tensor  # [num_rows] of the way that each row goes; 0 leaves it as it is


def spread(rows: Tensor, view: Block, table: Tensor, blend: Blend | None) -> None:
    """`NodeTable.spread`, its plain twin, in one launch."""
    from graphfm.kernels.triton_kernels import halo as kernels

    rows, ids = rows.contiguous(), view.dst_ids
    width, unread = table.size(1), view.edges.weight
    columns = columns_of(width)
    factor = unread if blend is None or blend.factor is None else blend.factor
    kernels.spread[(ids.numel(), -(-width // columns))](
        rows,
        view.edges.indptr,
        view.edges.col,
        view.edges.weight,
        ids,
        table,
        factor,
        unread if blend is None else blend.affine.bias,
        unread if blend is None else blend.share,
        view.num_dst,
        WIDTH=width,
        BLEND=blend is not None,
        FACTOR=blend is not None and blend.factor is not None,
        RELU=blend is not None and blend.affine.relu,
        EDGES=EDGES_AT_ONCE,
        BLOCK=columns,
        num_warps=1,
    )
