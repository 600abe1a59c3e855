"""Subgraphs as graphs of their own, and blocks as dense matrices."""

import torch

from graphfm import Graph

KINDS = ["mean", "symmetric"]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def matrix(block):
    dense = torch.zeros(block.num_dst, block.num_src)
    index = (block.edges.row.long(), block.edges.col.long())
    dense.index_put_(index, block.edges.weight, accumulate=True)
    if block.self_weight is not None:
        dense.diagonal()[: block.num_dst] += block.self_weight
    return dense


def part_of(graph, ids):
    """The subgraph of some nodes, as a graph of its own."""
    place = torch.full((graph.num_nodes,), -1)
    place[ids] = torch.arange(ids.numel())
    ends = place[graph.edge_index]
    inside = (ends >= 0).all(dim=0)
    weight = None if graph.edge_weight is None else graph.edge_weight[inside]
    return Graph.from_edges(ends[:, inside], graph.x[ids], edge_weight=weight)
