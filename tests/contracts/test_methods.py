"""What every method promises."""

import dataclasses

import pytest
import torch

from graphfm import train
from graphfm.backbones import BACKBONES
from graphfm.data.adjacency import Adjacency
from graphfm.estimators.base import Estimator
from graphfm.methods import METHODS, Method
from graphfm.samplers.full import FullSampler


def batches(method, graph, seed):
    rng = torch.Generator().manual_seed(seed)
    method.sampler.prepare(Adjacency.mean(graph), 2)
    return [method.sampler.sample(seeds, rng) for seeds in method.sampler.epoch(rng)]


@pytest.mark.parametrize("name", METHODS)
def test_same_seed_same_batches(make_graph, name):
    graph = make_graph()
    first, second = (batches(METHODS[name](), graph, seed=3) for _ in range(2))
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one.input_ids, other.input_ids)
        for block, twin in zip(one.blocks, other.blocks, strict=True):
            assert torch.equal(block.edges.col, twin.edges.col)
            assert torch.equal(block.edges.weight, twin.edges.weight)


@pytest.mark.parametrize("name", METHODS)
def test_targets_come_first_and_every_training_node_is_a_target(make_graph, name):
    graph, seen = make_graph(), set()
    for batch in batches(METHODS[name](), graph, seed=0):
        seen |= set(batch.target_ids.tolist())
        for block, following in zip(batch.blocks, batch.blocks[1:], strict=False):
            halo = following.num_src - block.num_dst
            assert torch.equal(block.dst_ids, following.src_ids[: block.num_dst])
            assert halo == 0 or block.from_halo is not None  # else nobody could tell their rows
        assert torch.equal(batch.blocks[-1].dst_ids, batch.target_ids)
        assert torch.equal(batch.blocks[0].src_ids, batch.input_ids)
    assert set(graph.train_mask.nonzero().flatten().tolist()) <= seen


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("name", METHODS)
def test_trains_every_backbone(make_graph, name, backbone):
    options = {"aggregators": ("mean",)} if (name, backbone) == ("graphfm-delta", "pna") else {}
    result = train(make_graph(), method=name, backbone=backbone, epochs=2, **options)
    assert 0 <= result.score.test <= 1


@pytest.mark.parametrize("name", METHODS)
def test_says_in_its_docstring_what_it_is(name):
    assert METHODS[name].__doc__


def test_an_estimator_is_refused_a_sampler_that_does_not_feed_it():
    class NeedsHalo(Estimator):
        views = frozenset({"from_halo"})

    with pytest.raises(
        ValueError, match=r"NeedsHalo reads Block.from_halo, which this FullSampler"
    ):
        Method(FullSampler(), NeedsHalo())


def test_a_batch_with_rows_missing_is_refused(make_graph):
    graph = make_graph()
    (batch,) = batches(METHODS["full"](), graph, seed=0)
    short = dataclasses.replace(batch.blocks[0], src_ids=batch.input_ids)
    with pytest.raises(ValueError, match="only 5 are in the batch"):
        Estimator().sources(1, short, graph.x[:5], graph.x)
