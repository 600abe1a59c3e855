"""The neighbour sampler estimates the weighted sum without bias, on odd graphs too."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfm import Graph
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.kernels.choice import (
    distinct_positions,
    fixed_positions,
    numbers_for,
    uniforms_of,
)  # fmt: skip
from tests.unit.samplers.neighbor_batches import (
    ADJACENCIES,
    estimate,
    everyone,
    exact,
    generator,
    graphs,
    neighbors,
    paper_mean,
    prepared,
    prepared_for_gpu,
    same,
    simple_graph,
)

MARGIN = 5.0  # standard errors an average may be off; seeded, so it is met always or never
DRAWS = 2000


@pytest.mark.parametrize("fanout", [(1,), (3,), (2, 1)])
@pytest.mark.parametrize("kind", ADJACENCIES)
def test_the_weighted_sum_is_unbiased(make_graph, kind, fanout):
    """Directed, weighted, with duplicates, loops and isolated nodes; over two layers as well."""
    graph = make_graph(num_nodes=40, num_edges=240, num_features=3, weighted=True)
    adjacency, rng = ADJACENCIES[kind](graph), generator(7)
    sampler, ids, h = prepared(adjacency, *fanout), everyone(graph), graph.x.double() + 2
    draws = torch.stack([estimate(sampler.sample(ids, rng), h) for _ in range(DRAWS)])
    want = exact(adjacency, h, len(fanout))
    error = (draws.mean(0) - want).abs()
    standard = draws.std(0) / DRAWS**0.5
    assert bool((error <= MARGIN * standard + 1e-6).all())
    assert int((standard > 1e-3).sum()) > graph.num_nodes  # most of it was chance indeed
    # the margin is tight enough to tell a bias: a sum too large by a tenth is noticed
    assert bool(((draws * 1.1).mean(0) - want).abs().gt(MARGIN * standard + 1e-6).any())


def test_every_edge_is_equally_likely():
    degree, fanout, draws = 7, 3, 3000
    graph = simple_graph(20, degree)
    sampler, rng, ids = prepared(Adjacency.mean(graph), fanout), generator(1), everyone(graph)
    count = torch.zeros(graph.num_nodes, graph.num_nodes)
    for _ in range(draws):
        picked = neighbors(sampler.sample(ids, rng).blocks[0])
        count[ids.unsqueeze(1), picked] += 1
    source, target = graph.edge_index
    share, chance = count[target, source] / draws, fanout / degree
    standard = (chance * (1 - chance) / draws) ** 0.5
    assert float((share - chance).abs().max()) < MARGIN * standard


@pytest.mark.parametrize("spare", [0, 3])
@pytest.mark.parametrize("kind", ADJACENCIES)
def test_exact_where_the_fanout_covers_the_degree(make_graph, kind, spare):
    graph = make_graph(weighted=True)
    adjacency, most = ADJACENCIES[kind](graph), int(graph.degree.max())
    batch = prepared(adjacency, most + spare, most).sample(everyone(graph), generator())
    torch.testing.assert_close(
        estimate(batch, graph.x), exact(adjacency, graph.x, 2), atol=1e-5, rtol=1e-5
    )


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(1, 6), st.integers(0, 99), st.sampled_from(sorted(ADJACENCIES)))
def test_exact_for_the_nodes_with_few_neighbours(graph, fanout, seed, kind):
    adjacency = ADJACENCIES[kind](graph)
    batch = prepared(adjacency, fanout).sample(everyone(graph), generator(seed))
    few = graph.degree <= fanout
    got, want = estimate(batch, graph.x), exact(adjacency, graph.x)
    torch.testing.assert_close(got[few], want[few], atol=1e-5, rtol=1e-5)
    # and a mean stays a mean of what was picked: equal rows give that row, whoever is left out
    if kind == "mean" and graph.edge_weight is None:
        ones = estimate(batch, torch.ones(graph.num_nodes, 1)).squeeze(1)
        torch.testing.assert_close(ones, (graph.degree > 0).float())


@settings(max_examples=40, deadline=None)
@given(graphs(least_edges=1), st.integers(1, 6), st.integers(0, 99))
def test_what_is_picked_are_in_neighbours(graph, fanout, seed):
    block = prepared(Adjacency.mean(graph), fanout).sample(everyone(graph), generator(seed))
    block = block.blocks[0]
    first, ids = block.edges.indptr.tolist(), block.src_ids[block.edges.col.long()].tolist()
    for node in range(graph.num_nodes):
        true = graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist()
        row = slice(first[node], first[node + 1])
        picked, weight = ids[row], block.edges.weight[row].tolist()
        counted = [u for u, w in zip(picked, weight, strict=True) if w != 0]
        assert len(counted) == min(fanout, len(true))
        for u in set(counted):  # no edge twice
            assert counted.count(u) <= true.count(u)
        if true:
            assert set(picked) <= set(true)


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(1, 9), st.integers(0, 99), st.booleans())
def test_picks_without_those_that_fill_a_row(graph, fanout, seed, independent):
    ids = torch.randint(graph.num_nodes, (12,), generator=generator(seed))
    uniform = numbers_for(ids, torch.tensor([seed]), fanout, independent)
    position, factor = fixed_positions(graph.indptr[ids], graph.degree[ids], fanout, uniform)
    if independent and fanout > 1:  # then it is asked for the numbers of nodes that choose
        uniform = partial(uniforms_of, salt=torch.tensor([seed]), fanout=fanout)
    count, found, factors = distinct_positions(graph.indptr, ids, fanout, uniform)
    assert torch.equal(count, graph.degree[ids].clamp(max=fanout))
    assert torch.equal(found, position[factor != 0])
    assert torch.equal(factors, factor[factor != 0])


@pytest.mark.parametrize("make", [prepared, prepared_for_gpu])
@pytest.mark.parametrize("kind", ADJACENCIES)
def test_a_fanout_beyond_every_degree_takes_all_neighbours_and_no_more(make_graph, kind, make):
    graph = make_graph(num_nodes=60, num_edges=200)
    most = int(graph.degree.max())
    seeds = torch.arange(0, 60, 7)
    large, just = (
        make(ADJACENCIES[kind](graph), fanout, num_layers=2).sample(seeds, generator())
        for fanout in (10**9, most)
    )
    assert same(large, just)
    h = torch.randn(60, 3, generator=generator())
    whole = exact(ADJACENCIES[kind](graph), h, 2)[seeds]
    torch.testing.assert_close(estimate(large, h), whole, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("fanout", [1, 2, 5, 9, 10])
def test_picks_are_distinct(fanout):
    graph = simple_graph(25, 10)
    for seed in range(20):
        batch = prepared(Adjacency.mean(graph), fanout).sample(everyone(graph), generator(seed))
        for picked in neighbors(batch.blocks[0]).tolist():
            assert len(set(picked)) == fanout


def test_the_papers_estimate_node_by_node():
    """1 / (|N| + 1) h_v + |N| / (|N| + 1) mean(h_u : u in B_v), and v is in every time."""
    graph, fanout = simple_graph(15, 6), 2
    sampler = prepared(paper_mean(graph), fanout)
    for seed in range(20):
        batch = sampler.sample(everyone(graph), generator(seed))
        picked = neighbors(batch.blocks[0])
        want = graph.x / 7 + 6 / 7 * graph.x[picked].mean(dim=1)
        torch.testing.assert_close(estimate(batch, graph.x), want)


@pytest.mark.parametrize("kind", ["symmetric", "paper"])
def test_a_node_is_never_sampled_away_from_itself(kind):
    graph = simple_graph(15, 6)
    adjacency = ADJACENCIES[kind](graph)
    sampler, marks = prepared(adjacency, 1), torch.eye(graph.num_nodes)
    for seed in range(20):
        batch = sampler.sample(everyone(graph), generator(seed))
        own = estimate(batch, marks).diagonal()  # the weight of v's row in v's estimate
        torch.testing.assert_close(own, adjacency.self_weight)
        assert bool((own > 0).all())


# ---- odd graphs


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ADJACENCIES)
def test_an_isolated_node_keeps_to_itself(make_graph, kind, weighted):
    graph = make_graph(weighted=weighted)
    ids = torch.arange(graph.num_nodes - 3, graph.num_nodes)
    assert int(graph.degree[ids].sum()) == 0
    batch = prepared(ADJACENCIES[kind](graph), 2, 3).sample(ids, generator())
    want = torch.zeros_like(graph.x[ids]) if kind == "mean" else graph.x[ids]
    assert torch.equal(estimate(batch, graph.x), want)
    assert torch.equal(batch.blocks[-1].degree, torch.zeros(3))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ADJACENCIES)
def test_a_graph_without_edges(kind, weighted):
    graph = Graph.from_edges(
        torch.empty(2, 0, dtype=torch.long),
        torch.randn(4, 3),
        edge_weight=torch.empty(0) if weighted else None,
    )
    batch = prepared(ADJACENCIES[kind](graph), 2, 1).sample(everyone(graph), generator())
    want = torch.zeros_like(graph.x) if kind == "mean" else graph.x
    assert torch.equal(estimate(batch, graph.x), want)


def test_true_degrees_whatever_was_sampled(make_graph):
    graph = make_graph()
    batch = prepared(Adjacency.mean(graph), 1, 2).sample(everyone(graph), generator())
    for block in batch.blocks:
        assert torch.equal(block.degree, graph.degree[block.dst_ids].float())
