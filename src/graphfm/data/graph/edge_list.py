"""Lists of edges, and how they become the CSR form of a graph."""

from typing import Any

import torch
from torch import Tensor

from graphfm.batch import offsets
from graphfm.data.graph import conversion


def as_csr(
    edge_index: Any, edge_weight: Any, num_nodes: int, undirected: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Check the edges and sort them by target: `indptr`, `indices` and weights."""
    edges = conversion.as_edge_index(edge_index, num_nodes)
    weight = None if edge_weight is None else conversion.as_edge_weight(edge_weight, edges.size(1))
    if undirected:
        edges, weight = both_ways(edges, weight, num_nodes)
    order = canonical_order(edges, weight, num_nodes)
    indptr = offsets(torch.bincount(edges[1], minlength=num_nodes))
    weight = None if weight is None else weight[order]
    return indptr, edges[0][order].to(torch.int32), weight


def canonical_order(edges: Tensor, weight: Tensor | None, num_nodes: int) -> Tensor:
    """Order edges by target, then source, then weight, so that equal graphs are stored equally."""
    keys = edges[1] * num_nodes + edges[0]
    if weight is None:
        return torch.argsort(keys, stable=True)
    by_weight = torch.argsort(weight, stable=True)
    return by_weight[torch.argsort(keys[by_weight], stable=True)]


def both_ways(edges: Tensor, weight: Tensor | None, num_nodes: int) -> tuple[Tensor, Tensor | None]:
    """Return the symmetric closure with each directed pair once; of several weights the largest."""
    source, target = torch.cat([edges, edges.flip(0)], dim=1)
    keys, inverse = torch.unique(target * num_nodes + source, return_inverse=True)
    if weight is not None:
        largest = weight.new_zeros(keys.numel())
        weight = largest.scatter_reduce(0, inverse, torch.cat([weight, weight]), "amax")
    return torch.stack([keys % num_nodes, keys // num_nodes]), weight
