"""The cluster sampler: its epochs, its parts, and its settings."""

from dataclasses import replace

import pytest
import torch

from graphfm import InputError
from graphfm.data.graph.size import GraphSize
from graphfm.samplers.cluster import ClusterSampler
from tests.unit.samplers.cluster_batches import batches, generator, graph_of, prepared


@pytest.mark.parametrize("how", ["metis", "random"])
@pytest.mark.parametrize(("parts", "each", "steps"), [(6, 1, 6), (6, 3, 2), (7, 3, 3), (5, 5, 1)])
def test_an_epoch_visits_every_node_once(make_graph, parts, each, steps, how):
    graph = make_graph()
    sampler = prepared(graph, parts, parts_per_batch=each, how=how)
    seen = batches(sampler)
    assert len(seen) == steps
    ids = torch.cat([batch.target_ids for batch in seen])
    assert ids.sort().values.tolist() == list(range(graph.num_nodes))


def test_the_last_batch_takes_the_parts_that_are_left(make_graph):
    sampler = prepared(make_graph(), 7, parts_per_batch=3)
    seeds = list(sampler.epoch(generator()))
    assert [s.numel() for s in seeds] == [3, 3, 1]
    assert sorted(torch.cat(seeds).tolist()) == list(range(7))


def test_targets_are_the_nodes_of_the_parts(make_graph):
    graph = make_graph()
    sampler = prepared(graph, 5, parts_per_batch=2)
    of_part = [sampler.sample(torch.tensor([p]), generator()).target_ids for p in range(5)]
    assert all(ids.numel() > 0 for ids in of_part)
    batch = sampler.sample(torch.tensor([4, 1]), generator())
    assert set(batch.target_ids.tolist()) == {*of_part[1].tolist(), *of_part[4].tolist()}
    other = sampler.sample(torch.tensor([1, 4]), generator())
    assert torch.equal(batch.target_ids, other.target_ids)  # in whatever order parts are drawn


def test_same_seed_same_epochs(make_graph):
    first, again = (prepared(make_graph(), 8, parts_per_batch=3) for _ in range(2))
    rng, same_rng = generator(5), generator(5)
    epochs = []
    for _ in range(3):
        ours = [s.tolist() for s in first.epoch(rng)]
        assert ours == [s.tolist() for s in again.epoch(same_rng)]
        epochs.append(str(ours))
    assert len(set(epochs)) == 3  # and each in an order of its own
    assert torch.equal(first.members, again.members)
    pairs = zip(batches(first, 1), batches(again, 1), strict=True)
    assert all(torch.equal(a.input_ids, b.input_ids) for a, b in pairs)


@pytest.mark.parametrize("num_layers", [0, 1, 3])
def test_every_layer_has_the_same_block(make_graph, num_layers):
    batch = batches(prepared(make_graph(), 4, num_layers=num_layers))[0]
    assert len(batch.blocks) == num_layers
    if num_layers == 0:
        assert torch.equal(batch.input_ids, batch.target_ids)
    for block in batch.blocks:
        assert block is batch.blocks[0]
        assert torch.equal(block.dst_ids, batch.target_ids)
        assert torch.equal(block.src_ids, batch.input_ids)


@pytest.mark.parametrize("how", ["metis", "random"])
@pytest.mark.parametrize("parts", [1, 3, 5])
def test_a_graph_without_edges(parts, how):
    graph = graph_of([], 5)
    seen = batches(prepared(graph, parts, how=how))
    assert len(seen) == parts
    for batch in seen:
        assert batch.blocks[0].num_src == batch.target_ids.numel()
        assert batch.blocks[0].from_halo is None
        assert batch.blocks[0].edges.num_edges == 0


def test_isolated_nodes_are_visited_and_have_no_halo(make_graph):
    graph = make_graph()
    sampler = prepared(graph, graph.num_nodes, parts_per_batch=1, how="random")
    alone = {int(b.target_ids) for b in batches(sampler) if b.blocks[0].from_halo is None}
    assert {57, 58, 59} <= alone


@pytest.mark.parametrize(("parts", "each"), [(1, 1), (4, 4)])
def test_the_whole_graph_has_no_halo(make_graph, parts, each):
    graph = make_graph()
    (batch,) = batches(prepared(graph, parts, parts_per_batch=each))
    assert batch.target_ids.numel() == graph.num_nodes
    assert batch.blocks[0].halo_ids.numel() == 0
    assert batch.blocks[0].from_halo is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"parts": 0}, "^parts is 0"),
        ({"parts": -3}, "^parts is -3"),
        ({"parts": 2, "parts_per_batch": 0}, "^parts_per_batch is 0"),
        ({"parts": 2, "parts_per_batch": 3}, "^parts_per_batch is 3 and parts 2"),
    ],
)
def test_numbers_that_cannot_be(options, said):
    with pytest.raises(InputError, match=said):
        ClusterSampler(**options)


@pytest.mark.parametrize("halo", [True, False])
@pytest.mark.parametrize("how", ["metis", "random"])
@pytest.mark.parametrize(("parts", "each", "steps"), [(4, 1, 3), (4, 2, 2), (200, None, 1)])
def test_a_graph_with_fewer_nodes_than_parts_has_a_part_for_each(parts, each, steps, how, halo):
    """No part is empty; a batch may then hold the whole graph."""
    graph = graph_of([(0, 1), (1, 2)], 3)
    sampler = prepared(graph, parts, parts_per_batch=each, how=how, halo=halo)
    assert (sampler.parts, sampler.num_parts) == (parts, 3)
    seen = batches(sampler)
    assert len(seen) == steps
    assert all(batch.target_ids.numel() > 0 for batch in seen)
    assert sorted(torch.cat([batch.target_ids for batch in seen]).tolist()) == [0, 1, 2]


@pytest.mark.parametrize(
    ("parts", "each", "per_batch"),
    [(200, None, 20), (24, None, 2), (19, None, 1), (10, None, 1), (1, None, 1), (24, 4, 4)],
)
def test_a_step_has_a_tenth_of_the_parts_unless_it_is_given(make_graph, parts, each, per_batch):
    sampler = prepared(make_graph(num_nodes=300), parts, parts_per_batch=each, how="random")
    assert sampler.per_batch == per_batch
    sizes = [seeds.numel() for seeds in sampler.epoch(generator())]
    assert sum(sizes) == parts
    assert set(sizes[:-1]) <= {per_batch}
    assert sizes[-1] <= per_batch


@pytest.mark.parametrize(
    ("parts", "each", "nodes", "targets"),
    [(200, None, 1000, 100), (200, 100, 1000, 500), (200, None, 100, 20), (200, None, 10, 10),
     (4, None, 100, 25), (4, 1, 0, 0)],
)  # fmt: skip
def test_a_footprint_counts_the_parts_that_there_are(parts, each, nodes, targets):
    graph = graph_of([(0, 1)], 2)
    size = replace(GraphSize.of(graph), num_nodes=nodes, num_edges=4 * nodes)
    sampler = ClusterSampler(parts=parts, parts_per_batch=each)
    assert [layer.targets for layer in sampler.footprint(size, 2)] == [pytest.approx(targets)] * 2


def test_unknown_way_to_cut(make_graph):
    with pytest.raises(InputError, match="unknown partitioner 'halves'; choose one of metis"):
        prepared(make_graph(), 2, how="halves")
