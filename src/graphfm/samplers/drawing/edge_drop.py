"""DropEdge (Rong et al., 2020): a step leaves out a random share of the edges of its block."""

from dataclasses import replace

import torch
from torch import Tensor

from graphfm.batch import Block, Edges, offsets


def drop_scaled(block: Block, share: float, rng: torch.Generator) -> Block:
    """Drop edges and scale up the others, so that sums keep their mean. A node's own row stays."""
    edges = kept_edges(block.edges, share, rng)
    scaled = replace(edges, weight=edges.weight / (1 - share))
    return replace(block, edges=scaled, by_id=None)


def drop_released(block: Block, share: float, rng: torch.Generator, *, averages: bool) -> Block:
    """Drop entries of the matrix, those of its diagonal too, as GNNAutoScale's code does.

    Entries that are left are scaled up, unless the matrix averages (`averages`): a row is then the
    mean of what is left of it, and the degree is the number of edges left.
    """
    edges, own = kept_edges(block.edges, share, rng), block.self_weight
    if own is not None:
        own = own * (_dice(own.numel(), rng) >= share)
    if not averages:
        edges = replace(edges, weight=edges.weight / (1 - share))
        own = None if own is None else own / (1 - share)
        return replace(block, edges=edges, self_weight=own, by_id=None)
    total = torch.segment_reduce(edges.weight, "sum", offsets=edges.indptr.long(), initial=0)
    total = total if own is None else total + own
    scale = torch.where(total > 0, 1 / total, 0.0)
    edges = replace(edges, weight=edges.weight * scale[edges.row])
    degree, own = edges.indptr.diff().float(), None if own is None else own * scale
    return replace(block, edges=edges, degree=degree, self_weight=own, by_id=None)


def kept_edges(edges: Edges, share: float, rng: torch.Generator) -> Edges:
    """The edges without a random share of them; weights stay as they are."""
    keep = (_dice(edges.num_edges, rng) >= share).nonzero().squeeze(1)
    indptr = offsets(torch.bincount(edges.row[keep], minlength=edges.num_dst)).to(edges.col.dtype)
    return Edges(indptr, edges.col[keep], edges.weight[keep], edges.num_src)


def _dice(number: int, rng: torch.Generator) -> Tensor:
    return torch.rand(number, generator=rng, device=rng.device)
