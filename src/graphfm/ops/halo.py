"""Bringing rows of a table up to date in place, for as many nodes as a halo has.

Each of the two is one kernel where there are kernels; its plain twin, which every other device
uses, goes some rows at a time. `tests/gpu/test_kernels.py` compares them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from graphfm.batch import HALO_ROWS, Block, halo_chunks
from graphfm.ops import compiled
from graphfm.ops.aggregate import sum_of_rest
from graphfm.ops.product import put_product
from graphfm.ops.rows import columns_of, put_rows

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


@torch.no_grad()
def put_outputs(outputs: Tensor, ids: Tensor, affine: Affine, sums: Tensor) -> None:
    """`outputs[ids] = affine(sums[ids])`, of two tables of all nodes."""
    if ids.numel() and compiled.available(outputs.device):
        put_product(outputs, ids, affine.weight, affine.bias, sums, relu=affine.relu)
        return
    for some in torch.split(ids, HALO_ROWS):
        put_rows(outputs, some, affine(sums.index_select(0, some).float()))


@torch.no_grad()
def spread(rows: Tensor, view: Block, table: Tensor, blend: Blend | None = None) -> None:
    """Sum rows of a batch along the edges to its halo, and add that to the halo's rows of a table.

    With `blend` they are rows times a layer's matrix, and the table's rows are moved towards what
    the layer makes of the sums.
    """
    ids = view.src_ids[: view.num_dst]
    if ids.numel() and compiled.available(table.device):
        _launch_spread(rows.contiguous(), view, table, ids, blend)
        return
    for some, part in halo_chunks(view):
        total = sum_of_rest(rows, part)
        if blend is None:
            put_rows(table, ids[some], total, add=True)
            continue
        if blend.factor is not None:
            total = total * blend.factor[some].unsqueeze(1)
        put_rows(table, ids[some], blend.affine.end(total), shares=blend.share[some])


def _launch_spread(
    rows: Tensor, view: Block, table: Tensor, ids: Tensor, blend: Blend | None
) -> None:
    from graphfm.ops import kernels_halo as kernels

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
