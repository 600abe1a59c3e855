"""Reductions along the edges of a block, by kernels of PyTorch alone.

`benchmarks/aggregate.py` compares them: on the CPU torch's CSR product with a `reduce` is the
fastest; on a GPU cuSPARSE is, but its sums differ in the last bit from run to run, so the default
there is `embedding_bag` in two steps, whose sums do not.
"""

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from graphfm.batch import HUB, Block, Edges
from graphfm.kernels import backend


def weighted_sum(h: Tensor, block: Block) -> Tensor:
    """Sum of the sources' rows, each times its edge's weight, and of the target's own row."""
    out = _fixed_sum(h, block.edges) if block.edges.fanout else _product(h, block.edges)
    if block.self_weight is not None:
        out = torch.addcmul(out, block.self_weight.unsqueeze(1), block.own(h))
    return out


def table_sum(h: Tensor, block: Block, table: Tensor) -> Tensor:
    """`weighted_sum` of rows that a table of all nodes holds, those of the targets (`h`) too.

    No row is copied, and only the rows of the targets get a gradient.
    """
    out: Tensor = _TableProduct.apply(h, block, table)  # type: ignore[no-untyped-call]
    if block.self_weight is not None:
        out = torch.addcmul(out, block.self_weight.unsqueeze(1), h)
    return out


def sum_of_rest(rest: Tensor, block: Block) -> Tensor:
    """`weighted_sum` where every edge begins behind the targets; only those rows are given."""
    edges, num_dst = block.edges, block.num_dst
    return _product(rest, Edges(edges.indptr, edges.col - num_dst, edges.weight, rest.size(0)))


def segment_max(h: Tensor, block: Block) -> Tensor:
    """Largest value among the sources of each target, per column; 0 where there are none."""
    edges = block.edges
    if edges.fanout:
        out = h[edges.num_dst :].view(edges.num_dst, edges.fanout, -1).amax(dim=1)
        return out.masked_fill((block.degree == 0).unsqueeze(1), 0.0)
    if h.device.type == "cpu":
        ones = torch.ones_like(edges.weight, dtype=h.dtype)
        out = torch.sparse.mm(_csr(edges, ones), h, "amax")
    else:
        out = torch.segment_reduce(h[edges.col], "max", offsets=edges.indptr.long(), axis=0)
    return out.masked_fill((edges.indptr.diff() == 0).unsqueeze(1), 0.0)


def segment_min(h: Tensor, block: Block) -> Tensor:
    """Smallest value among the sources of each target, per column; 0 where there are none."""
    return -segment_max(-h, block)


def _product(h: Tensor, edges: Edges) -> Tensor:
    if h.device.type == "cpu" and edges.num_edges <= HUB:  # then torch's own gradient is faster
        small: Tensor = torch.sparse.mm(_csr(edges, edges.weight.to(h.dtype)), h, "sum")
        return small
    out: Tensor = _Product.apply(h, edges)  # type: ignore[no-untyped-call]
    return out


def _fixed_sum(h: Tensor, edges: Edges) -> Tensor:
    """Sum sources that lie side by side: no index and no sort, in either direction."""
    shape = (edges.num_dst, edges.fanout or 0, -1)
    weight = edges.weight.to(h.dtype).view(*shape)
    return (h[edges.num_dst :].view(*shape) * weight).sum(dim=1)


class _Product(torch.autograd.Function):
    """`edges @ h`, with the gradient as a product along the transposed edges (kept for reuse)."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, edges: Edges) -> Tensor:
        ctx.edges, ctx.fixed_order = edges, backend.current().deterministic
        return _multiply(edges, h, ctx.fixed_order)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _multiply(ctx.edges.transposed, grad, ctx.fixed_order), None


class _TableProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, block: Block, table: Tensor) -> Tensor:
        assert block.by_id is not None
        ctx.edges, ctx.fixed_order = block.edges, backend.current().deterministic
        return _multiply(block.by_id, table, ctx.fixed_order)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        edges = ctx.edges.back_among_targets
        return _multiply(edges, grad.contiguous(), ctx.fixed_order), None, None


def _multiply(edges: Edges, h: Tensor, fixed_order: bool) -> Tensor:
    weight = edges.weight.to(h.dtype)
    if h.device.type == "cpu":
        product: Tensor = torch.sparse.mm(_csr(edges, weight), h, "sum")
        if edges.hubs is not None:
            rows, some = edges.hubs
            product[rows] = _sum_runs(some, some.weight.to(h.dtype), h)
        return product
    return _sum_runs(edges, weight, h) if fixed_order else _csr(edges, weight) @ h


def _sum_runs(edges: Edges, weight: Tensor, h: Tensor) -> Tensor:
    """Sum runs of a row, then the runs, so that no thread adds up a whole hub."""
    start, first = edges.runs
    sums = embedding_bag(edges.col, h, start, mode="sum", per_sample_weights=weight)
    order = torch.arange(start.numel(), dtype=first.dtype, device=h.device)
    return embedding_bag(order, sums, first, mode="sum")


def _csr(edges: Edges, values: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
        size = (edges.num_dst, edges.num_src)
        return torch.sparse_csr_tensor(
            edges.indptr, edges.col, values, size, check_invariants=False
        )
