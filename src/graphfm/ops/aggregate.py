"""Reductions along the edges of a block.

On the CPU torch's CSR product with a `reduce` is the fastest thing measured (ten times
`index_add`, five times the int64 product, see `benchmarks/aggregate.py`); on CUDA the plain CSR
product goes to cuSPARSE, and `segment_reduce` has a fixed order of summation.
"""

import warnings
from typing import Any

import torch
from torch import Tensor

from graphfm.batch import Block, Edges


def weighted_sum(h: Tensor, block: Block) -> Tensor:
    """Sum of the sources' rows, each times its edge's weight, and of the target's own row."""
    out: Tensor = _Product.apply(h, block.edges)  # type: ignore[no-untyped-call]
    if block.self_weight is not None:
        out = out + block.self_weight.unsqueeze(1) * h[: block.num_dst]
    return out


def segment_max(h: Tensor, block: Block) -> Tensor:
    """Largest value among the sources of each target, per column; 0 where there are none."""
    edges = block.edges
    if h.device.type == "cpu":
        ones = torch.ones_like(edges.weight, dtype=h.dtype)
        largest: Tensor = torch.sparse.mm(_csr(edges, ones), h, "amax")
        return largest
    out = torch.segment_reduce(h[edges.col], "max", offsets=edges.indptr.long(), axis=0)
    return out.masked_fill((edges.indptr.diff() == 0).unsqueeze(1), 0.0)


def segment_min(h: Tensor, block: Block) -> Tensor:
    """Smallest value among the sources of each target, per column; 0 where there are none."""
    return -segment_max(-h, block)


class _Product(torch.autograd.Function):
    """`edges @ h`, with the gradient as a product along the transposed edges (kept for reuse)."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, edges: Edges) -> Tensor:
        ctx.edges = edges
        return _multiply(edges, h)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _multiply(ctx.edges.transposed, grad), None


def _multiply(edges: Edges, h: Tensor) -> Tensor:
    matrix = _csr(edges, edges.weight.to(h.dtype))
    return torch.sparse.mm(matrix, h, "sum") if h.device.type == "cpu" else matrix @ h


def _csr(edges: Edges, values: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        size = (edges.num_dst, edges.num_src)
        return torch.sparse_csr_tensor(
            edges.indptr, edges.col, values, size, check_invariants=False
        )
