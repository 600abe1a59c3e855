"""What every method promises."""

import dataclasses

import pytest
import torch

from graphfm import InputError, train
from graphfm.backbones import BACKBONES
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.estimators.base import Estimator
from graphfm.estimators.layer_step import ForwardPass, LayerStep
from graphfm.methods import METHODS, Method
from graphfm.runs.run import Run, backbone_of, build
from graphfm.samplers.full import FullSampler
from graphfm.step_plan import StepPlan
from graphfm.training.setup import seeded

TRAINS = [  # each method with each backbone it is for
    (name, backbone) for name in METHODS for backbone in BACKBONES
    if backbone_of(name) in (None, backbone)
]  # fmt: skip
OPTIONS = {("graphfm-delta", "pna"): {"aggregators": ("mean",)}}


def batches(name, graph, seed):
    """An epoch of a method; networks of their own have no graph layers."""
    method, rng = METHODS[name](), torch.Generator().manual_seed(seed)
    method.sampler.prepare(
        Adjacency.mean(graph), StepPlan(num_layers=2 if backbone_of(name) is None else 0)
    )
    return [method.sampler.sample(seeds, rng) for seeds in method.sampler.epoch(rng)]


@pytest.mark.parametrize("name", METHODS)
def test_same_seed_same_batches(make_graph, name):
    graph = make_graph()
    first, second = (batches(name, graph, seed=3) for _ in range(2))
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one.input_ids, other.input_ids)
        for block, twin in zip(one.blocks, other.blocks, strict=True):
            assert torch.equal(block.edges.col, twin.edges.col)
            assert torch.equal(block.edges.weight, twin.edges.weight)


@pytest.mark.parametrize("name", METHODS)
def test_targets_come_first_and_every_training_node_is_a_target(make_graph, name):
    graph, seen = make_graph(), set()
    for batch in batches(name, graph, seed=0):
        seen |= set(batch.target_ids.tolist())
        for block, following in zip(batch.blocks, batch.blocks[1:], strict=False):
            halo = following.num_src - block.num_dst
            assert torch.equal(block.dst_ids, following.src_ids[: block.num_dst])
            assert halo == 0 or block.from_halo is not None  # else nobody could tell their rows
        last = batch.blocks[-1].dst_ids if batch.blocks else batch.input_ids
        assert torch.equal(last, batch.target_ids)
        first = batch.blocks[0].src_ids if batch.blocks else batch.target_ids
        assert torch.equal(first, batch.input_ids)
    assert set(graph.train_mask.nonzero().flatten().tolist()) <= seen


@pytest.mark.parametrize(("name", "backbone"), TRAINS)
def test_trains_every_backbone(make_graph, name, backbone):
    options = OPTIONS.get((name, backbone), {})
    result = train(make_graph(), method=name, backbone=backbone, epochs=2, **options)
    assert 0 <= result.score.test <= 1


@pytest.mark.parametrize("name", METHODS)
def test_a_network_of_its_own_is_brought_along_and_any_other_refused(name):
    own = backbone_of(name)
    assert Run.make(method=name).backbone == (own or "sage")
    for backbone in BACKBONES:
        if (name, backbone) in TRAINS:
            assert Run.make(method=name, backbone=backbone).backbone == backbone
        else:
            with pytest.raises(InputError, match=f"method {name} has its own network .* leave"):
                Run.make(method=name, backbone=backbone)


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
    (batch,) = batches("full", graph, seed=0)
    short = dataclasses.replace(batch.blocks[0], src_ids=batch.input_ids)
    step = LayerStep(1, None, short, graph.x[:5], graph.x, ForwardPass())
    with pytest.raises(ValueError, match="but the batch has only 5"):
        Estimator().sources(step)


ROUNDED = [  # differences of maxima mean nothing
    (name, backbone)
    for name in ("full", "graphsage", "graphfm-ib", "vr-gcn", "gas", "graphfm-ob", "graphfm-delta")
    for backbone in ("sage", "gcn", "gcnii", "pna")
    if (name, backbone) != ("graphfm-delta", "pna")
]


@pytest.mark.parametrize(("name", "backbone"), ROUNDED)
def test_trains_in_bfloat16(make_graph, name, backbone):
    """Products in bfloat16, which changes the losses; weights and histories stay float32."""
    options = {"layers": 3, "dropout": 0.2, "batch_norm": True, "device": "cpu"}
    losses = {}
    for precision in ("fp32", "bf16"):
        run = Run.make(method=name, backbone=backbone, precision=precision, **options)
        trainer = build(run, make_graph())
        with seeded(0, trainer.graph.device):
            losses[precision] = [trainer.epoch() for _ in range(2)]
        kept = [table.rows for table in trainer.method.estimator.histories_by_name().values()]
        for rows in (*trainer.backbone.parameters(), *kept):
            assert rows.dtype == torch.float32
            assert rows.isfinite().all()
    assert losses["bf16"] != losses["fp32"]
    assert losses["bf16"] == pytest.approx(losses["fp32"], rel=0.1)
