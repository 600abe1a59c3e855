"""Dropped edges: what a step leaves out, and what the rest then weighs."""

import pytest
import torch

from graphfm import Graph
from graphfm.backbones import make_backbone
from graphfm.samplers.cluster import ClusterSampler
from graphfm.step_plan import StepPlan

SHARE, NODES = 0.6, 60


def simple_graph(*, directed=False):
    """Distinct edges without loops, so that an entry of the matrix is an edge."""
    rng = torch.Generator().manual_seed(1)
    pairs = torch.randint(NODES, (200, 2), generator=rng).tolist()
    pairs = {(u, v) if directed else (min(u, v), max(u, v)) for u, v in pairs if u != v}
    x = torch.randn(NODES, 3, generator=rng)
    return Graph.from_edges(torch.tensor(sorted(pairs)).T, x, undirected=not directed)


def block_of(graph, backbone, form, *, seed=0, share=SHARE):
    sampler = ClusterSampler(
        parts=3, parts_per_batch=2, how="random", edge_drop=share, edge_drop_form=form
    )
    adjacency = make_backbone(backbone, graph.num_features, 4).adjacency(graph)
    sampler.prepare(adjacency, StepPlan(num_layers=1))
    return sampler.sample(torch.tensor([0, 1]), torch.Generator().manual_seed(seed)).blocks[0]


def dense(block):
    """[num_dst, num_src] entries of a block, those of the diagonal too."""
    matrix = torch.zeros(block.num_dst, block.num_src)
    matrix.index_put_((block.edges.row.long(), block.edges.col.long()), block.edges.weight, True)
    if block.self_weight is not None:
        matrix[range(block.num_dst), range(block.num_dst)] += block.self_weight
    return matrix


def test_gcn_keeps_or_drops_every_entry_of_its_matrix():
    """As the released code: of D^-1/2 (A + I) D^-1/2 entries go, and the others count more."""
    graph = simple_graph()
    whole, some = (dense(block_of(graph, "gcn", "released", share=s)) for s in (0.0, SHARE))
    kept = some != 0
    torch.testing.assert_close(some[kept], whole[kept] / (1 - SHARE))
    own = torch.eye(*whole.shape, dtype=torch.bool)
    for entries in (own, ~own & (whole != 0)):  # 5 standard deviations of a binomial share
        share, number = kept[entries].float().mean(), int(entries.sum())
        assert abs(share - (1 - SHARE)) < 5 * (SHARE * (1 - SHARE) / number) ** 0.5


def test_scaled_never_drops_a_nodes_own_row():
    graph = simple_graph()
    whole, some = (block_of(graph, "gcn", "scaled", share=s) for s in (0.0, SHARE))
    assert torch.equal(whole.self_weight, some.self_weight)
    assert some.edges.num_edges < whole.edges.num_edges
    assert some.from_halo.edges.num_edges == whole.from_halo.edges.num_edges


@pytest.mark.parametrize("backbone", ["pna", "sage"])
def test_a_mean_is_that_of_the_edges_left(backbone):
    block = block_of(simple_graph(), backbone, "released")
    count = block.edges.indptr.diff()
    assert torch.equal(block.degree, count.float())
    assert (count == 0).any()
    torch.testing.assert_close(block.edges.weight, 1 / count[block.edges.row.long()].float())
    scaled = block_of(simple_graph(), backbone, "scaled")
    sums = dense(scaled).sum(1)
    assert sums.max() > 1.2  # ours: a row's total is right on average only
    assert sums[sums > 0].min() < 0.8


@pytest.mark.parametrize("directed", [False, True])
def test_edges_to_the_halo_are_dropped_too(directed):
    graph = simple_graph(directed=directed)
    whole, some = (block_of(graph, "gcn", "released", share=s) for s in (0.0, SHARE))
    assert 0 < some.from_halo.edges.num_edges < whole.from_halo.edges.num_edges
    before, after = dense(whole.from_halo), dense(some.from_halo)
    torch.testing.assert_close(after[after != 0], before[after != 0] / (1 - SHARE))
    if not directed:  # the same edges, seen from the other end
        forth, num_halo = dense(some)[:, some.num_dst :], some.num_src - some.num_dst
        torch.testing.assert_close(after[:, num_halo:], forth.t())
