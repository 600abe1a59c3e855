"""SHADOW's sampler: a subgraph for each target, bounded in hops and nodes."""

import pytest
import torch

from graphfm import Graph, InputError
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.samplers.shadow import RESTART, ShadowSampler
from graphfm.step_plan import StepPlan
from tests.unit.samplers.subgraphs import KINDS, generator, matrix, part_of


def shadow(graph, kind="mean", num_layers=3, **options):
    sampler = ShadowSampler(batch_size=8, **options)
    sampler.prepare(getattr(Adjacency, kind)(graph), StepPlan(num_layers=num_layers))
    return sampler


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {"depth": 2, "fanout": (3,)},
        {"depth": 2, "fanout": (4, 1)},
        {"subgraph": "pagerank", "budget": 7},
    ],
)
def test_subgraphs_are_induced_and_do_not_touch(make_graph, kind, options):
    """Hubs are looked up another way than others; duplicate edges and loops are there."""
    graph = make_graph(num_nodes=60, num_edges=900, weighted=True)
    assert int(graph.degree.max()) > 20  # more than a subgraph has nodes
    seeds = torch.tensor([0, 3, 57, 12])
    batch = shadow(graph, kind, **options).sample(seeds, generator())
    first, _, last = batch.blocks
    assert torch.equal(first.src_ids[:4], seeds)
    assert torch.equal(last.dst_ids, seeds)
    found = matrix(first)
    ends = (found != 0).nonzero()
    group = torch.full((first.num_src,), -1)
    group[:4] = torch.arange(4)
    for _ in range(10):  # who reads whom is in one subgraph
        for row, col in ends.tolist():
            if group[row] >= 0 and group[col] < 0:
                group[col] = group[row]
            if group[col] >= 0 and group[row] < 0:
                group[row] = group[col]
    assert bool((group >= 0).all())
    for root in range(4):
        own = (group == root).nonzero().flatten()
        ids = first.src_ids[own]
        assert ids.unique().numel() == ids.numel()
        want = matrix(getattr(Adjacency, kind)(part_of(graph, ids)).full_block())
        torch.testing.assert_close(found[own][:, own], want)
    torch.testing.assert_close(matrix(last), found[:4])
    assert torch.equal(last.degree, graph.degree[seeds].float())


def test_hops_and_neighbours_are_bounded(make_graph):
    graph = make_graph(num_nodes=300, num_edges=3000)
    sampler = shadow(graph, depth=2, fanout=(3, 2))
    batch = sampler.sample(torch.arange(8), generator())
    assert batch.input_ids.numel() <= 8 * (1 + 3 + 6)
    one = shadow(graph, depth=1, fanout=(3,)).sample(torch.tensor([0]), generator())
    near = set(graph.indices[graph.indptr[0] : graph.indptr[1]].tolist()) | {0}
    assert set(one.input_ids.tolist()) <= near


def test_walks_find_who_has_most_pagerank():
    """A path read one way: from node 0 a walk comes to node k with chance 0.85^k."""
    ids = torch.arange(12)
    graph = Graph.from_edges(torch.stack([ids[1:], ids[:-1]]), torch.randn(12, 2))
    sampler = shadow(graph, subgraph="pagerank", budget=4, walks=200)
    batch = sampler.sample(torch.tensor([0, 5]), generator())
    assert sorted(batch.input_ids.tolist()) == [0, 1, 2, 3, 5, 6, 7, 8]
    assert pytest.approx(0.15) == RESTART


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subgraph": "star"}, "subgraph is star; expected khop or pagerank"),
        ({"depth": 0}, "depth is 0; expected 1 or more"),
        ({"fanout": ()}, "fanout is empty and depth 2"),
        ({"fanout": (1, 2, 3)}, "fanout is 1,2,3 and depth 2"),
        ({"budget": 0}, "budget is 0; expected 1 or more"),
    ],
)
def test_bad_settings_of_shadow_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        ShadowSampler(batch_size=8, **options)
