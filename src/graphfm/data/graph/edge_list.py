"""Lists of edges, and how they become the CSR form of a graph."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from graphfm.batch import offsets
from graphfm.data.graph import conversion
from graphfm.errors import InputError


class Csr(NamedTuple):
    """Edges sorted by target, with all that belongs to them; the fields are those of a graph."""

    indptr: Tensor
    indices: Tensor
    edge_weight: Tensor | None
    edge_attr: Tensor | None
    edge_type: Tensor | None
    edge_order: Tensor | None


def as_csr(
    edge_index: Any,
    num_nodes: int,
    weight: Any = None,
    undirected: bool = False,
    *,
    attr: Any = None,
    kind: Any = None,
    keep_order: bool = False,
) -> Csr:
    """Check the edges and sort them by target. `keep_order` remembers where each of them was."""
    edges = conversion.as_edge_index(edge_index, num_nodes)
    count = edges.size(1)
    weight = None if weight is None else conversion.as_edge_weight(weight, count)
    attr = None if attr is None else conversion.as_edge_attr(attr, count)
    kind = None if kind is None else conversion.as_edge_type(kind, count)
    if undirected:
        if attr is not None or kind is not None:
            raise InputError(
                "undirected merges edges, but edge_attr and edge_type cannot be merged; give both "
                "directions of each edge, and leave undirected out"
            )
        edges, weight = both_ways(edges, weight, num_nodes)
    order = canonical_order(edges, weight, num_nodes, kind)
    return Csr(
        indptr=offsets(torch.bincount(edges[1], minlength=num_nodes)),
        indices=edges[0][order].to(torch.int32),
        edge_weight=None if weight is None else weight[order],
        edge_attr=None if attr is None else attr[order],
        edge_type=None if kind is None else kind[order],
        edge_order=_as_kept(order) if keep_order and not undirected else None,
    )


def canonical_order(
    edges: Tensor, weight: Tensor | None, num_nodes: int, kind: Tensor | None = None
) -> Tensor:
    """Order edges by target, source, weight and type, so that equal graphs are stored equally."""
    keys = edges[1] * num_nodes + edges[0]
    order = None
    for values in (kind, weight):
        if values is not None:
            by_value = torch.argsort(values if order is None else values[order], stable=True)
            order = by_value if order is None else order[by_value]
    if order is None:
        return torch.argsort(keys, stable=True)
    return order[torch.argsort(keys[order], stable=True)]


def in_given_order(order: Tensor | None, values: Tensor) -> Tensor:
    """Put the values of all edges, one row each, back where the edges were given."""
    if order is None:
        return values
    given = torch.empty_like(values)
    given[order.to(values.device).long()] = values
    return given


def both_ways(edges: Tensor, weight: Tensor | None, num_nodes: int) -> tuple[Tensor, Tensor | None]:
    """Return the symmetric closure with each directed pair once; of several weights the largest."""
    source, target = torch.cat([edges, edges.flip(0)], dim=1)
    keys, inverse = torch.unique(target * num_nodes + source, return_inverse=True)
    if weight is not None:
        largest = weight.new_zeros(keys.numel())
        weight = largest.scatter_reduce(0, inverse, torch.cat([weight, weight]), "amax")
    return torch.stack([keys % num_nodes, keys // num_nodes]), weight


def _as_kept(order: Tensor) -> Tensor | None:
    """The order in main memory and four bytes per edge; None if the edges were sorted already."""
    if torch.equal(order, torch.arange(order.numel(), device=order.device)):
        return None
    small = order.numel() <= torch.iinfo(torch.int32).max
    return order.to("cpu", torch.int32 if small else torch.int64)
