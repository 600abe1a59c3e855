"""Small graphs for networks of PyG, with everything that makes edges hard to tell apart."""

import torch

from graphfm import Graph
from tests.pyg.zoo import ATTRIBUTES, IN, OUT, TYPES

NODES, EDGES = 90, 260


def make_graph(*data, num_nodes=NODES, num_edges=EDGES, plain=False, undirected=False, seed=0):
    """A random graph with the named data of edges.

    Unless it is `plain`, it has self-loops, parallel edges and isolated nodes; of a pair of
    parallel edges each has data of its own.
    """
    rng = torch.Generator().manual_seed(seed)
    edges = torch.randint(num_nodes - 4, (2, num_edges), generator=rng)
    if plain:
        edges = torch.unique(edges[:, edges[0] != edges[1]], dim=1)
    else:
        edges[:, :10] = edges[:, 20:30]
        edges[0, 10:16] = edges[1, 10:16]
    count = edges.size(1)
    values = {
        "edge_weight": torch.rand(count, generator=rng) + 0.2,
        "edge_attr": torch.randn(count, ATTRIBUTES, generator=rng),
        "edge_type": torch.randint(TYPES, (count,), generator=rng),
    }
    split = torch.arange(num_nodes) % 4
    return Graph.from_edges(
        edges,
        torch.randn(num_nodes, IN, generator=rng),
        torch.randint(OUT, (num_nodes,), generator=rng),
        train_mask=split < 2, val_mask=split == 2, test_mask=split == 3,
        undirected=undirected,
        **{name: values[name] for name in data},
    )  # fmt: skip
