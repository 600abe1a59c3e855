"""Cluster samplers on small graphs, and the batches of their epochs."""

import torch

from graphfm import Graph
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.samplers.cluster import ClusterSampler
from graphfm.step_plan import StepPlan


def prepared(graph, parts, *, num_layers=2, adjacency=Adjacency.symmetric, **options):
    sampler = ClusterSampler(parts=parts, **options)
    sampler.prepare(adjacency(graph), StepPlan(num_layers=num_layers))
    return sampler


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def batches(sampler, seed=0):
    rng = generator(seed)
    return [sampler.sample(seeds, rng) for seeds in sampler.epoch(rng)]


def graph_of(pairs, num_nodes, weight=None):
    """From (u, v), read by v from u."""
    edges = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    x = torch.arange(2.0 * num_nodes).reshape(num_nodes, 2)
    return Graph.from_edges(edges, x, edge_weight=weight)
