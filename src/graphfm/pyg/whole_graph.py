"""The graph around a batch: what a convolution cannot see of it, by node id and by edge."""

from __future__ import annotations

import torch
from torch import Tensor

from graphfm.batch import Edges
from graphfm.data.graph import Graph
from graphfm.pyg.whole_degrees import WholeDegrees

EDGE_DATA = ("edge_weight", "edge_attr", "edge_type")


class WholeGraph:
    """Degrees of nodes, and weights, attributes and types of edges."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.degrees = graph, WholeDegrees(graph)
        self.data = edge_data(graph)
        same = graph.indices[1:] == graph.indices[:-1]
        same[graph.indptr[1:-1].clamp(min=1, max=max(graph.num_edges - 1, 1)) - 1] = False
        self.has_parallel = graph.num_edges > 1 and bool(same.any())

    def data_of(self, edges: Edges, src_ids: Tensor, dst_ids: Tensor) -> dict[str, Tensor]:
        """The data of the edges of a block with these nodes."""
        if not self.data:
            return {}
        source, target = src_ids[edges.col.long()], dst_ids[edges.row.long()]
        position = self._positions(source, target)
        if self.has_parallel:
            number = self._positions(source + 1, target) - position
            position += _chosen(edges, number)
        return {name: values[position] for name, values in self.data.items()}

    def _positions(self, src_ids: Tensor, dst_ids: Tensor) -> Tensor:
        """Where edges are in `graph.indices`, by a binary search in the rows of their targets."""
        graph = self.graph
        low, high = graph.indptr[dst_ids], graph.indptr[dst_ids + 1]
        most = int((high - low).max()) if dst_ids.numel() else 0
        for _ in range(most.bit_length()):
            middle = (low + high) // 2
            below = graph.indices[middle.clamp(max=graph.num_edges - 1)] < src_ids
            searching = low < high
            low = torch.where(searching & below, middle + 1, low)
            high = torch.where(searching & ~below, middle, high)
        return low


def edge_data(graph: Graph) -> dict[str, Tensor]:
    """What a graph knows of its edges, by name."""
    found = {name: getattr(graph, name) for name in EDGE_DATA}
    return {name: values for name, values in found.items() if values is not None}


def _chosen(edges: Edges, number: Tensor) -> Tensor:
    """Which of the `number` parallel edges of the graph each edge of a block is, from 0.

    If a block has all of them, they are in order. If it has some, a sampler has not said which: the
    first of them is any, and always the same in the same block.
    """
    keys = edges.row.long() * edges.num_src + edges.col.long()
    ordered, order = torch.sort(keys, stable=True)
    starts = torch.ones_like(ordered, dtype=torch.bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    place = torch.arange(keys.numel(), device=keys.device)
    first = torch.cummax(torch.where(starts, place, 0), dim=0).values
    group = starts.cumsum(0) - 1
    size = torch.bincount(group)[group] if group.numel() else group
    mixed = (ordered + keys.sum()) * 0x9E3779B1 % 0x7FFFFFFF  # differs from batch to batch
    total = number[order].clamp(min=1)
    any_first = torch.where(size < total, mixed, 0)
    return torch.empty_like(place).index_copy_(0, order, (place - first + any_first) % total)
