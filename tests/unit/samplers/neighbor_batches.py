"""Neighbour samplers on small graphs, and what their batches add up to."""

import torch
from hypothesis import strategies as st

from graphfm import Graph
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.kernels import weighted_sum
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.step_plan import StepPlan


def paper_mean(graph):
    """The paper's mean over N_v and v itself."""
    share = 1 / (graph.degree.float() + 1)
    return Adjacency(graph, row_scale=share, self_weight=share)


ADJACENCIES = {"mean": Adjacency.mean, "symmetric": Adjacency.symmetric, "paper": paper_mean}


def prepared(adjacency, *fanout, num_layers=None, batch_size=8, **options):
    sampler = NeighborSampler(fanout=fanout, batch_size=batch_size, **options)
    sampler.prepare(
        adjacency, StepPlan(num_layers=len(fanout) if num_layers is None else num_layers)
    )
    return sampler


def prepared_for_gpu(*args, **options):
    """Of fixed shapes, as on a GPU."""
    sampler = prepared(*args, **options)
    sampler.distinct = None
    return sampler


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def everyone(graph):
    return torch.arange(graph.num_nodes)


def estimate(batch, h):
    """The batch's blocks applied one after the other, with nothing in between."""
    h = h[batch.input_ids]
    for block in batch.blocks:
        h = weighted_sum(h, block)
    return h


def exact(adjacency, h, num_layers=1):
    for _ in range(num_layers):
        h = weighted_sum(h, adjacency.full_block())
    return h


def neighbors(block):
    """[num_dst, fanout] the sampled ids."""
    return block.src_ids[block.edges.col].view(block.num_dst, -1)


def same(one, other):
    pairs = [(one.input_ids, other.input_ids), (one.target_ids, other.target_ids)]
    for a, b in zip(one.blocks, other.blocks, strict=True):
        pairs += [(a.src_ids, b.src_ids), (a.edges.col, b.edges.col)]
        pairs += [(a.edges.weight, b.edges.weight), (a.edges.indptr, b.edges.indptr)]
    return all(torch.equal(*pair) for pair in pairs)


@st.composite
def graphs(draw, least_edges=0):
    n = draw(st.integers(1, 12))
    node = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(node, node), min_size=least_edges, max_size=40))
    weighted = draw(st.booleans())
    rng = generator(draw(st.integers(0, 99)))
    return Graph.from_edges(
        torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T,
        torch.randn(n, 3, generator=rng),
        edge_weight=torch.rand(len(pairs), generator=rng) + 0.1 if weighted and pairs else None,
    )


def simple_graph(num_nodes, degree, seed=0):
    """`degree` distinct in-neighbours each, none of them the node itself."""
    rng = generator(seed)
    rank = torch.rand(num_nodes, num_nodes, generator=rng).fill_diagonal_(2.0).argsort(dim=1)
    source = rank[:, :degree].flatten()
    target = torch.arange(num_nodes).repeat_interleave(degree)
    return Graph.from_edges(torch.stack([source, target]), torch.randn(num_nodes, 3, generator=rng))
