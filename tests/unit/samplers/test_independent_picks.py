"""Independent picks: every set of neighbours is equally likely; at equal distances few are."""

import pytest
import torch

from graphfm import InputError
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.kernels.choice import fixed_positions, uniforms_of
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.samplers.shadow import ShadowSampler
from graphfm.step_plan import StepPlan
from tests.unit.samplers.neighbor_batches import (
    ADJACENCIES,
    estimate,
    everyone,
    exact,
    generator,
    neighbors,
    prepared,
    prepared_for_gpu,
    same,
    simple_graph,
)

MARGIN = 5.0  # standard errors that a share may be off; seeded, so it is met always or never


def pair_shares(graph, sampler, degree, draws):
    """How often two of a node's neighbours, given by their places, are picked together."""
    ids, met = everyone(graph), torch.zeros(degree, degree)
    place = torch.full((graph.num_nodes, graph.num_nodes), -1)
    place[graph.edge_index[1], graph.edge_index[0]] = torch.arange(degree).repeat(graph.num_nodes)
    rng = generator(3)
    for _ in range(draws):
        picked = place[ids.unsqueeze(1), neighbors(sampler.sample(ids, rng).blocks[0])]
        assert int(picked.min()) >= 0
        taken = torch.zeros(graph.num_nodes, degree).scatter_(1, picked, 1.0)
        met += taken.T @ taken
    return met / (draws * graph.num_nodes)


@pytest.mark.parametrize("make", [prepared, prepared_for_gpu])
@pytest.mark.parametrize(("degree", "fanout"), [(12, 4), (30, 2), (9, 6)])
def test_every_pair_of_neighbours_meets_equally_often(make, degree, fanout):
    """A pair with probability r (r - 1) / (d (d - 1)), a single one with r / d."""
    graph, draws = simple_graph(100, degree), 200
    even, free = (
        pair_shares(graph, make(Adjacency.mean(graph), fanout, picks=picks), degree, draws)
        for picks in ("even", "independent")
    )
    chance = torch.full((degree, degree), fanout * (fanout - 1) / (degree * (degree - 1)))
    chance.fill_diagonal_(fanout / degree)
    margin = MARGIN * (chance * (1 - chance) / (draws * graph.num_nodes)).sqrt()
    assert bool(((free - chance).abs() < margin).all())
    # The picks at equal distances are right one by one, and only so.
    assert bool(((even - chance).abs() < margin).diagonal().all())
    assert not bool(((even - chance).abs() < margin).all())


def test_every_set_is_equally_likely_and_nodes_are_independent_of_each_other():
    """Chi-squared of the 20 sets of 3 out of 6, of single nodes and of two together.

    n cells have n - 1 expected, and 6 deviations more are allowed.
    """
    ids = torch.tensor([0, 1, 2, 3, 8, 1024, 1 << 27])
    degree, draws, cells = torch.full_like(ids, 6), 8000, 20
    salts = torch.randint(1 << 62, (draws, 1), generator=generator())
    sets = torch.combinations(torch.arange(6), 3)
    number = torch.full((64,), -1)
    number[(1 << sets).sum(1)] = torch.arange(cells)
    found = torch.stack([
        (1 << fixed_positions(ids * 0, degree, 3, uniforms_of(ids, salt, 3))[0].view(-1, 3)).sum(1)
        for salt in salts
    ])  # fmt: skip
    cell = number[found]
    assert int(cell.min()) >= 0  # three different ones each time

    def far(counts):
        expected, most = draws / counts.numel(), counts.numel() - 1
        return float(((counts - expected) ** 2 / expected).sum()) > most + 6 * (2 * most) ** 0.5

    for node in range(ids.numel()):
        assert not far(torch.bincount(cell[:, node], minlength=cells))
    for one, other in torch.combinations(torch.arange(ids.numel())).tolist():
        joint = cell[:, one] * cells + cell[:, other]
        assert not far(torch.bincount(joint, minlength=cells**2))


@pytest.mark.parametrize("fanout", [(3,), (2, 3)])
@pytest.mark.parametrize("kind", ["symmetric", "paper"])
def test_the_weighted_sum_is_unbiased(make_graph, kind, fanout):
    graph, draws = make_graph(num_nodes=40, num_edges=240, num_features=3, weighted=True), 1000
    adjacency, rng, ids = ADJACENCIES[kind](graph), generator(7), everyone(graph)
    sampler, h = prepared(adjacency, *fanout, picks="independent"), graph.x.double() + 2
    found = torch.stack([estimate(sampler.sample(ids, rng), h) for _ in range(draws)])
    error = (found.mean(0) - exact(adjacency, h, len(fanout))).abs()
    assert bool((error <= MARGIN * found.std(0) / draws**0.5 + 1e-6).all())


@pytest.mark.parametrize("make", [prepared, prepared_for_gpu])
def test_one_pick_is_the_same_in_both_forms(make):
    graph = simple_graph(40, 9)
    one, other = (
        make(Adjacency.mean(graph), 1, 1, picks=picks).sample(everyone(graph), generator())
        for picks in ("even", "independent")
    )
    assert same(one, other)


def test_more_picks_than_neighbours_are_all_of_them_in_both_forms(make_graph):
    graph = make_graph(weighted=True)
    most = int(graph.degree.max())
    one, other = (
        prepared(Adjacency.symmetric(graph), most, most, picks=picks)
        for picks in ("even", "independent")
    )
    assert same(
        one.sample(everyone(graph), generator()), other.sample(everyone(graph), generator())
    )


def test_a_node_that_occurs_twice_in_a_layer_sees_the_same_neighbours():
    graph = simple_graph(12, 9)
    sampler = prepared_for_gpu(Adjacency.mean(graph), 2, 2, 2, picks="independent")
    sampler._crowded = lambda *_: False
    lowest = sampler.sample(everyone(graph), generator()).blocks[0]
    assert lowest.num_dst > graph.num_nodes
    seen = {}
    for node, picked in zip(lowest.dst_ids.tolist(), neighbors(lowest).tolist(), strict=True):
        assert len(set(picked)) == 2
        assert seen.setdefault(node, picked) == picked


def test_subgraphs_of_shadow_have_independent_neighbours():
    """Of 8 neighbours two meet with probability 3 * 2 / (8 * 7); at equal distances some never."""
    graph, draws = simple_graph(30, 8), 800
    hub = graph.indices[graph.indptr[4] : graph.indptr[5]].long()
    shares = {}
    for picks in ("even", "independent"):
        sampler = ShadowSampler(batch_size=1, depth=1, fanout=(3,), picks=picks)
        sampler.prepare(Adjacency.mean(graph), StepPlan(num_layers=1))
        met, rng = torch.zeros(8, 8), generator()
        for _ in range(draws):
            there = torch.isin(hub, sampler.sample(torch.tensor([4]), rng).input_ids).float()
            assert int(there.sum()) == 3
            met += there.outer(there)
        shares[picks] = (met / draws)[~torch.eye(8, dtype=torch.bool)]
    chance = 3 * 2 / (8 * 7)
    margin = MARGIN * (chance * (1 - chance) / draws) ** 0.5
    assert float((shares["independent"] - chance).abs().max()) < margin
    assert float(shares["even"].min()) == 0


@pytest.mark.parametrize("kind", [NeighborSampler, ShadowSampler])
def test_an_unknown_form_is_refused(kind):
    with pytest.raises(InputError, match="picks is odd; expected even or independent"):
        kind(fanout=(2,), batch_size=4, picks="odd")
