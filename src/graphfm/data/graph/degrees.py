"""Weights of the edges into each node, summed in chunks of nodes: edges may fill the memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from graphfm.batch import offsets

if TYPE_CHECKING:
    from graphfm.data.graph import Graph

NODES_AT_ONCE = 1 << 18


def weighted_degree(graph: Graph) -> Tensor:
    """[num_nodes] float32 sum of the weights of the edges into each node."""
    weight = graph.edge_weight
    if weight is None:
        return graph.degree.float()
    total = torch.empty(graph.num_nodes, device=graph.device)
    for nodes, edges in _chunks(graph):
        total[nodes] = _sums(weight[edges], offsets(graph.degree[nodes]))
    return total


def loop_weight(graph: Graph) -> Tensor:
    """[num_nodes] float32 total weight of each node's self-loops, 0 without any."""
    total = torch.zeros(graph.num_nodes, device=graph.device)
    for nodes, edges in _chunks(graph):
        ids = torch.arange(nodes.start, nodes.stop, dtype=torch.int32, device=graph.device)
        size = edges.stop - edges.start
        targets = ids.repeat_interleave(graph.degree[nodes], output_size=size)
        place = (targets == graph.indices[edges]).nonzero().squeeze(1)
        counts = torch.bincount(targets[place] - nodes.start, minlength=ids.numel())
        if graph.edge_weight is None:
            total[nodes] = counts.float()
        else:  # edges are sorted by target
            total[nodes] = _sums(graph.edge_weight[edges][place], offsets(counts))
    return total


def _sums(values: Tensor, first: Tensor) -> Tensor:
    """Sums of runs of values, in double: a hub has too many edges for float32."""
    return torch.segment_reduce(values.double(), "sum", offsets=first, initial=0).float()


def _chunks(graph: Graph) -> Iterator[tuple[slice, slice]]:
    """Ranges of nodes, and the range of edges into them."""
    for start in range(0, graph.num_nodes, NODES_AT_ONCE):
        end = min(start + NODES_AT_ONCE, graph.num_nodes)
        first, last = graph.indptr[[start, end]].tolist()
        yield slice(start, end), slice(first, last)
