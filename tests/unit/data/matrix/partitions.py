"""Small graphs to partition, and what is true of every partition."""

import torch

from graphfm import Graph


def graph_of(edges, num_nodes, x=0.0):
    edges = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    return Graph.from_edges(edges, torch.full((num_nodes, 2), x))


def check(part, num_nodes, num_parts):
    assert part.shape == (num_nodes,)
    assert part.dtype == torch.int64
    assert part.device.type == "cpu"
    assert torch.equal(part.unique(), torch.arange(num_parts))
