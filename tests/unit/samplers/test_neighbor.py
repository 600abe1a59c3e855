"""The neighbour sampler: the shapes of its batches, its epochs, and its settings."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfm import InputError
from graphfm.data.graph.size import GraphSize
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.kernels import weighted_sum
from graphfm.kernels.choice import uniform_of
from graphfm.samplers.drawing.deduplicate import Deduplicate
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.step_plan import COPIED, IN_PLACE, StepPlan
from tests.unit.samplers.neighbor_batches import (
    ADJACENCIES,
    estimate,
    everyone,
    exact,
    generator,
    graphs,
    neighbors,
    prepared,
    prepared_for_gpu,
    same,
    simple_graph,
)


def test_no_layers_no_blocks(make_graph):
    graph = make_graph()
    ids = torch.tensor([4, 1])
    batch = prepared(Adjacency.mean(graph), 3, num_layers=0).sample(ids, generator())
    assert batch.blocks == ()
    assert torch.equal(batch.input_ids, ids)
    assert torch.equal(batch.target_ids, ids)


@settings(max_examples=40, deadline=None)
@given(graphs(), st.data())
def test_shapes_follow_from_the_number_of_seeds(graph, data):
    fanout = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    count = data.draw(st.integers(1, graph.num_nodes))
    seeds = torch.tensor(data.draw(st.permutations(range(graph.num_nodes)))[:count])
    sampler = prepared_for_gpu(Adjacency.mean(graph), *fanout, batch_size=count)
    batch = sampler.sample(seeds, generator(count))
    rows = count
    most = max(int(graph.degree.max()), 1)
    for block, wanted in zip(reversed(batch.blocks), fanout, strict=True):
        each = min(wanted, most)
        if rows * each > graph.num_nodes:  # then each neighbour is there once
            assert rows == block.num_dst
            assert block.num_src <= rows + graph.num_nodes
            neighbor_ids = block.src_ids[rows:]
            assert neighbor_ids.unique().numel() == neighbor_ids.numel()
            return
        assert (block.num_dst, block.edges.num_edges) == (rows, rows * each)
        assert block.edges.weight.shape == block.edges.col.shape
        assert torch.equal(block.edges.indptr.diff(), torch.full((rows,), each).int())
        rows *= 1 + each
        assert block.src_ids.shape == (rows,)
        assert block.num_src == rows
    assert batch.input_ids.shape == (rows,)


@settings(max_examples=30, deadline=None)
@given(graphs(), st.integers(0, 99))
def test_same_seeds_and_state_same_batch(graph, seed):
    sampler, ids = prepared(Adjacency.mean(graph), 2, 1), everyone(graph)
    first, second = generator(seed), generator(seed)
    for _ in range(3):  # nothing is remembered from one call to the next
        assert same(sampler.sample(ids, first), sampler.sample(ids, second))
    assert torch.equal(first.get_state(), second.get_state())


def test_the_neighbours_laid_beside_the_sample_do_not_change_it(make_graph):
    graph = make_graph(weighted=True)
    adjacency = Adjacency.symmetric(graph)
    plain, both = (prepared(adjacency, 2, 1, every_neighbor=flag) for flag in (False, True))
    ids = torch.tensor([3, 50, 59])
    one, other = plain.sample(ids, generator(5)), both.sample(ids, generator(5))
    assert same(one, other)
    assert (plain.views, both.views) == (frozenset(), frozenset({"full"}))
    want = exact(adjacency, graph.x)
    for without, block in zip(one.blocks, other.blocks, strict=True):
        assert without.full is None
        assert torch.equal(block.full.dst_ids, block.dst_ids)
        got = weighted_sum(graph.x[block.full.src_ids], block.full)
        torch.testing.assert_close(got, want[block.dst_ids], atol=1e-5, rtol=1e-5)


def test_a_node_that_occurs_twice_in_a_layer_sees_the_same_neighbours():
    graph = simple_graph(12, 9)
    sampler = prepared_for_gpu(Adjacency.mean(graph), 2, 2, 2)
    for seed in range(5):
        for block in sampler.sample(everyone(graph), generator(seed)).blocks:
            seen = {}
            for node, picked in zip(block.dst_ids.tolist(), neighbors(block).tolist(), strict=True):
                assert seen.setdefault(node, picked) == picked
        assert len(seen) == graph.num_nodes
    assert sampler.sample(everyone(graph), generator()).blocks[0].num_dst > graph.num_nodes


def test_layers_and_steps_see_different_neighbours():
    """Of 40 neighbours two independent picks agree one time in 40."""
    graph = simple_graph(50, 40)
    sampler, rng = prepared(Adjacency.mean(graph), 1, 1), generator()
    ids, agreed = everyone(graph), {"layers": 0.0, "steps": 0.0}
    rounds, before = 40, None
    for _ in range(rounds):
        lower, upper = sampler.sample(ids, rng).blocks
        top, bottom = neighbors(upper), neighbors(lower)[: graph.num_nodes]  # the same targets
        assert torch.equal(lower.dst_ids[: graph.num_nodes], upper.dst_ids)
        agreed["layers"] += float((top == bottom).float().mean()) / rounds
        if before is not None:
            agreed["steps"] += float((top == before).float().mean()) / rounds
        before = top
    assert all(share < 0.1 for share in agreed.values()), agreed


def test_starts_of_different_nodes_are_uniform_and_independent():
    """Chi-squared of joint counts over an 8 by 8 grid: 63 expected, 6 deviations more allowed."""
    ids = torch.tensor([0, 1, 2, 3, 4, 7, 8, 100, 1024, 65_536, 65_537, 1 << 27])
    draws, cells = 10_000, 8
    salts = torch.randint(1 << 62, (draws, 1), generator=generator())
    cell = (uniform_of(ids, salts) * cells).long()
    for first, second in torch.combinations(torch.arange(ids.numel())).tolist():
        counts = torch.bincount(cell[:, first] * cells + cell[:, second], minlength=cells**2)
        expected = draws / cells**2
        assert float(((counts - expected) ** 2 / expected).sum()) < 63 + 6 * 126**0.5


@pytest.mark.parametrize("kind", ADJACENCIES)
def test_a_crowd_of_picks_is_read_once_each_and_sums_the_same(kind, monkeypatch):
    """With and without duplicates: the same neighbours, weights and estimates."""
    graph = simple_graph(30, 12)
    adjacency, ids = ADJACENCIES[kind](graph), everyone(graph)
    few, many = (prepared_for_gpu(adjacency, 3, 2) for _ in range(2))
    small = few.sample(ids, generator())
    monkeypatch.setattr(many, "_crowded", lambda *_: False)
    large = many.sample(ids, generator())
    assert small.input_ids.numel() < large.input_ids.numel()
    torch.testing.assert_close(estimate(small, graph.x), estimate(large, graph.x))


@settings(max_examples=60, deadline=None)
@given(graphs(), st.sampled_from(sorted(ADJACENCIES)), st.booleans(), st.data())
def test_on_a_cpu_each_node_once_and_the_same_sums(graph, kind, in_place, data):
    adjacency = ADJACENCIES[kind](graph)
    fanout = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    count = data.draw(st.integers(1, graph.num_nodes))
    seeds = torch.tensor(data.draw(st.permutations(range(graph.num_nodes)))[:count])
    sampler = NeighborSampler(fanout=fanout, batch_size=8)
    plan = StepPlan(num_layers=len(fanout), features=IN_PLACE if in_place else COPIED)
    sampler.prepare(adjacency, plan)
    batch = sampler.sample(seeds, generator(count))
    fixed = prepared_for_gpu(adjacency, *fanout).sample(seeds, generator(count))
    assert not sampler.static_shapes(GraphSize.of(graph), plan)
    assert batch.whole == in_place
    for depth, (block, other) in enumerate(zip(batch.blocks, fixed.blocks, strict=True)):
        assert block.src_ids.unique().numel() == block.src_ids.numel() == block.num_src
        assert (block.place is not None) == (in_place and depth == 0)
        assert set(block.dst_ids.tolist()) <= set(other.dst_ids.tolist())  # some only fill a row
        assert bool((block.edges.indptr.diff() <= fanout[-1 - depth]).all())
        assert torch.equal(block.degree, graph.degree[block.dst_ids].float())
    want = estimate(fixed, graph.x.double())
    torch.testing.assert_close(estimate(batch, graph.x.double()), want)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 50), st.data())
def test_distinct_ids_come_targets_first(num_nodes, data):
    nodes = st.integers(0, num_nodes - 1)
    targets = torch.tensor(data.draw(st.lists(nodes, unique=True)), dtype=torch.long)
    others = torch.tensor(data.draw(st.lists(nodes)), dtype=torch.long)
    distinct = Deduplicate(num_nodes)
    rubbish = data.draw(st.integers(-2, 60))
    distinct.position_of_node.fill_(rubbish)  # whatever an earlier call has left
    src_ids, place = distinct(targets, others)
    assert torch.equal(src_ids[: targets.numel()], targets)
    assert torch.equal(src_ids[place], others)
    assert sorted(src_ids.tolist()) == sorted({*targets.tolist(), *others.tolist()})


def test_distinct_ids_have_the_same_order_whatever_the_threads():
    ids = torch.randint(1000, (400_000,), generator=generator())
    found = [Deduplicate(1000)(ids[:0], ids)[0] for _ in range(5)]
    assert all(torch.equal(found[0], other) for other in found)
    last = {node: number for number, node in enumerate(ids.tolist())}
    assert found[0].tolist() == sorted(last, key=last.__getitem__)


# ---- epochs and settings


@pytest.mark.parametrize("batch_size", [1, 7, 20, 64])
def test_every_training_node_once_an_epoch(make_graph, batch_size):
    graph = make_graph()
    sampler, rng = prepared(Adjacency.mean(graph), 1, batch_size=batch_size), generator()
    orders = []
    for _ in range(3):
        parts = list(sampler.epoch(rng))
        assert [part.numel() for part in parts[:-1]] == [batch_size] * (len(parts) - 1)
        assert 0 < parts[-1].numel() <= batch_size
        orders.append(torch.cat(parts).tolist())
        assert sorted(orders[-1]) == graph.train_mask.nonzero().flatten().tolist()
    assert orders[0] != orders[1] != orders[2]
    again = prepared(Adjacency.mean(graph), 1, batch_size=batch_size).epoch(generator())
    assert torch.cat(list(again)).tolist() == orders[0]


def test_fanouts_are_given_from_the_targets_outward(make_graph):
    """[5, 2] is 5 neighbours of each target, then 2 of each of those, as in PyG and the paper."""
    graph = make_graph()
    sampler = prepared_for_gpu(Adjacency.mean(graph), 5, 2)
    batch = sampler.sample(torch.tensor([1, 2]), generator())
    lower, upper = batch.blocks
    assert torch.equal(upper.dst_ids, batch.target_ids)
    assert (neighbors(upper).size(1), neighbors(lower).size(1)) == (5, 2)
    alike = prepared_for_gpu(Adjacency.mean(graph), 3, num_layers=3)
    alike = alike.sample(torch.tensor([1]), generator())
    assert [neighbors(block).size(1) for block in alike.blocks] == [3, 3, 3]


@pytest.mark.parametrize("fanout", [(), (0,), (2, 0), (-1, 3)])
def test_a_bad_fanout_is_refused(fanout):
    with pytest.raises(InputError, match=r"fanout is .*; expected numbers of 1 or more"):
        NeighborSampler(fanout=fanout, batch_size=4)


@pytest.mark.parametrize("batch_size", [0, -3])
def test_a_bad_batch_size_is_refused(batch_size):
    with pytest.raises(InputError, match=f"batch_size is {batch_size}; expected 1 or more"):
        NeighborSampler(fanout=(1,), batch_size=batch_size)


@pytest.mark.parametrize("num_layers", [1, 3])
def test_a_wrong_number_of_fanouts_is_refused(make_graph, num_layers):
    with pytest.raises(InputError, match=f"fanout has 2 numbers, but the network has {num_layers}"):
        prepared(Adjacency.mean(make_graph()), 4, 4, num_layers=num_layers)
