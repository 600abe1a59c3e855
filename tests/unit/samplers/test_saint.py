"""GraphSAINT's sampler: how it draws subgraphs, and how it normalises them."""

from itertools import pairwise

import pytest
import torch

from graphfm import Graph, InputError
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.samplers.drawing.induced_edges import InducedEdges
from graphfm.samplers.saint import SaintSampler, _edge_chances
from graphfm.step_plan import StepPlan
from tests.unit.samplers.subgraphs import generator


@pytest.mark.parametrize("subgraph", ["node", "edge", "walk"])
def test_normalisation_is_that_of_pyg(make_graph, subgraph):
    """PyG's GraphSAINTSampler._compute_norm, written out, on the same subgraphs.

    Its adjacency has targets as rows once an edge index is stored the way messages are aggregated,
    and divides by all nodes where we divide by those that train.
    """
    graph = make_graph()
    sampler = SaintSampler(subgraph=subgraph, budget=15, coverage=30)
    sampler.prepare(Adjacency.mean(graph), StepPlan(num_layers=2))
    rng, n = generator(sampler.seed), graph.num_nodes
    node_count, edge_count = torch.zeros(n), torch.zeros(graph.num_edges)
    num_samples = total_sampled_nodes = 0
    while total_sampled_nodes < n * 30:
        node_idx = sampler._draw(rng)
        node_count[node_idx] += 1
        edge_count[torch.isin(graph.edge_index, node_idx).all(dim=0)] += 1
        total_sampled_nodes += node_idx.numel()
        num_samples += 1
    edge_norm = node_count[graph.edge_index[1]] / edge_count
    node_norm = num_samples / node_count / n
    seen = edge_count > 0
    torch.testing.assert_close(sampler.edge_factor[seen], edge_norm[seen])
    visited = node_count > 0
    scale = n / int(graph.train_mask.sum())
    torch.testing.assert_close(sampler.loss_weight[visited], node_norm[visited] * scale)
    assert sampler.steps == round(n * num_samples / total_sampled_nodes)
    batch = sampler.sample(node_idx, rng)
    edges = batch.blocks[0].edges
    _, _, position = InducedEdges(graph)(node_idx)
    weights = Adjacency.mean(graph).full_block().edges.weight
    torch.testing.assert_close(edges.weight, (weights * sampler.edge_factor)[position])


def test_walks_go_along_edges(make_graph):
    graph = make_graph(num_nodes=300, num_edges=900)
    sampler = SaintSampler(subgraph="walk", budget=20, walk_length=4, coverage=1)
    sampler.prepare(Adjacency.mean(graph), StepPlan(num_layers=1))
    steps = sampler._walks(generator()).view(5, 20)
    known = {tuple(edge) for edge in graph.edge_index.T.tolist()}
    for here, there in pairwise(steps):
        for reader, read in zip(here.tolist(), there.tolist(), strict=True):
            assert (read, reader) in known or (read == reader and graph.degree[reader] == 0)


def test_edges_are_drawn_by_the_degrees_of_their_ends():
    """A star of four leaves and a pair: 1/deg u + 1/deg v is 1.25 for the star's edges, 2 else."""
    pairs = torch.tensor([[0, 1], [0, 2], [0, 3], [0, 4], [5, 6]]).T
    graph = Graph.from_edges(pairs, torch.randn(7, 2), undirected=True)
    sampler = SaintSampler(subgraph="edge", budget=1, coverage=1)
    sampler.prepare(Adjacency.mean(graph), StepPlan(num_layers=1))
    rng, rounds = generator(), 3000
    pair = sum(sampler._draw(rng).tolist() == [5, 6] for _ in range(rounds))
    want = 2 * 2 / (2 * 2 + 8 * 1.25)
    assert abs(pair / rounds - want) < 5 * (want * (1 - want) / rounds) ** 0.5


def test_one_way_edges_are_drawn_by_both_of_their_ends():
    """0 -> 1, 0 -> 2, 1 -> 2: in-degrees 0, 1, 2, out-degrees 2, 1, 0."""
    edges = torch.tensor([[0, 0, 1], [1, 2, 2]])
    graph = Graph.from_edges(edges, torch.randn(3, 2))
    chances = _edge_chances(Adjacency.mean(graph)).double()
    want = torch.tensor([1 + 1 / 2, 1 / 2 + 1 / 2, 1 / 2 + 1]).double()
    torch.testing.assert_close(chances / chances.sum(), want / want.sum())


@pytest.mark.parametrize("subgraph", ["node", "edge", "walk"])
def test_nodes_that_nobody_reads_are_drawn_too(subgraph):
    """Losses add up to an unbiased mean though half of the nodes are alone, or are only readers."""
    ids = torch.arange(40)
    for edges in (
        torch.randint(20, (2, 60), generator=generator()),  # 20 to 39 are alone
        torch.stack([ids[:20], ids[20:]]),  # 20 to 39 read, and are not read
        torch.empty(2, 0, dtype=torch.long),
    ):
        graph = Graph.from_edges(
            edges, torch.randn(40, 2), ids % 2, train_mask=ids >= 20, val_mask=ids < 20
        )
        sampler, rng = SaintSampler(subgraph=subgraph, budget=10, coverage=300), generator()
        sampler.prepare(Adjacency.mean(graph), StepPlan(num_layers=1))
        totals = []
        for _ in range(300):
            batch = sampler.sample(sampler._draw(rng), rng)
            totals.append(batch.loss_weight[graph.train_mask[batch.target_ids]].sum())
        totals = torch.stack(totals).double()
        error = totals.std() / len(totals) ** 0.5
        assert abs(totals.mean() - 1) <= 6 * error + 1e-6, edges


@pytest.mark.parametrize(
    "options", [{"subgraph": "star"}, {"budget": 0}, {"walk_length": 0}, {"coverage": 0}]
)
def test_bad_settings_of_graphsaint_are_refused(options):
    with pytest.raises(InputError, match=rf"{next(iter(options))} is .*; expected"):
        SaintSampler(**{"budget": 5, **options})
