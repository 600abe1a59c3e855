"""Lists of edges, before they are a graph."""

import torch
from torch import Tensor


def canonical_order(edges: Tensor, weight: Tensor | None, n: int) -> Tensor:
    """By target, then source, then weight: one order, however the edges are given."""
    keys = edges[1] * n + edges[0]
    if weight is None:
        return torch.argsort(keys, stable=True)
    by_weight = torch.argsort(weight, stable=True)
    return by_weight[torch.argsort(keys[by_weight], stable=True)]


def both_ways(edges: Tensor, weight: Tensor | None, n: int) -> tuple[Tensor, Tensor | None]:
    """The symmetric closure, each pair once."""
    source, target = torch.cat([edges, edges.flip(0)], dim=1)
    keys, inverse = torch.unique(target * n + source, return_inverse=True)
    if weight is not None:
        largest = weight.new_zeros(keys.numel())
        weight = largest.scatter_reduce(0, inverse, torch.cat([weight, weight]), "amax")
    return torch.stack([keys % n, keys // n]), weight
