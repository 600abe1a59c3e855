"""What a batch sends to its halo, written straight into a table."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional

from graphfm.batch import Block, halo_chunks
from graphfm.kernels import backend
from graphfm.kernels.sparse_sum import sum_of_rest
from graphfm.kernels.table_write import columns_of, put_rows_plain

EDGES_AT_ONCE = 4  # a row of a halo has few


@dataclass(frozen=True, slots=True)
class Affine:
    """A layer's update of an aggregate, if that is a matrix, a bias and perhaps a ReLU."""

    weight: Tensor  # [out_width, in_width]
    bias: Tensor  # [out_width]
    relu: bool

    def __call__(self, rows: Tensor) -> Tensor:
        out = functional.linear(rows, self.weight, self.bias).float()
        return out.relu_() if self.relu else out

    def product(self, rows: Tensor) -> Tensor:
        """Multiply rows by the matrix alone; sums of such rows need the bias only once."""
        return functional.linear(rows, self.weight).float()

    def end(self, rows: Tensor) -> Tensor:
        """Turn sums of products into the layer's output of the sums of rows."""
        out = rows + self.bias
        return out.relu_() if self.relu else out


@dataclass(frozen=True, slots=True)
class Blend:
    """How rows move towards sums of products."""

    affine: Affine
    factor: Tensor | None  # [num_rows] of each sum
    share: Tensor  # [num_rows] of the way that each row goes; 0 leaves it as it is


def spread(table: Tensor, rows: Tensor, view: Block, blend: Blend | None) -> None:
    """Sum a batch's rows along the edges to its halo, and add that to the halo's rows of a table.

    With `blend` they are rows times a layer's matrix, and the halo's rows are moved towards what
    the layer makes of the sums.
    """
    if view.num_dst > 0 and backend.available(table.device):
        _launch(table, rows, view, blend)
    else:
        spread_plain(table, rows, view, blend)


def spread_plain(table: Tensor, rows: Tensor, view: Block, blend: Blend | None) -> None:
    """`spread` in plain PyTorch."""
    ids = view.dst_ids
    for some, part in halo_chunks(view):
        total = sum_of_rest(rows, part)
        if blend is None:
            put_rows_plain(table, ids[some], total, add=True)
            continue
        if blend.factor is not None:
            total = total * blend.factor[some].unsqueeze(1)
        end = blend.affine.end(total)
        put_rows_plain(table, ids[some], end, shares=blend.share[some])


def _launch(table: Tensor, rows: Tensor, view: Block, blend: Blend | None) -> None:
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
