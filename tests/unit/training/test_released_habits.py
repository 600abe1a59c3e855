"""What the released code does around a step: histories filled first, batches that are skipped."""

import copy

import pytest
import torch

from graphfm import InputError, resume
from graphfm.api import start
from graphfm.checkpointing.errors import TrainingStopped
from graphfm.runs.run import Run, build
from graphfm.training.setup import seeded
from tests.reliability.runs import StopAfter, differences

SMALL = {"hidden": 6, "layers": 3, "dropout": 0.0, "parts": 5, "parts_per_batch": 1,
         "device": "cpu"}  # fmt: skip
HALO = ["gas", "graphfm-ob", "graphfm-delta"]


def trainer_of(graph, method, **options):
    return build(Run.make(backbone="gcn", method=method, **{**SMALL, **options}), graph)


def rows_of(trainer):
    named = trainer.method.estimator.histories_by_name().items()
    return {name: table.rows[:-1].clone() for name, table in named}


@pytest.mark.parametrize("method", HALO)
def test_histories_are_exact_before_the_first_step(make_graph, method):
    options = {"exact_first_hop": False, "fill_histories": True}
    trainer = trainer_of(make_graph(undirected=True), method, **options)
    reference = trainer_of(make_graph(undirected=True), method, exact_first_hop=False)
    reference.backbone.load_state_dict(trainer.backbone.state_dict())
    reference.refresh_histories()
    first = {}

    def draw(seeds):
        if not first:
            first.update(rows_of(trainer))
        return original(seeds)

    original, trainer.draw = trainer.draw, draw
    trainer.epoch()
    assert any(bool(rows.any()) for rows in first.values())
    torch.testing.assert_close(first, rows_of(reference), rtol=0, atol=0)


def test_they_are_filled_once(make_graph):
    trainer = trainer_of(make_graph(undirected=True), "gas", fill_histories=True)
    filled = []
    refresh, trainer.refresh_histories = trainer.refresh_histories, lambda: filled.append(refresh())
    trainer.epoch()
    trainer.epoch()
    assert len(filled) == 1


def test_only_histories_can_be_filled():
    with pytest.raises(InputError, match="fill_histories applies to histories, but method full"):
        Run.make(method="full", fill_histories=True)


def untaught(graph, trainer):
    """A part without training nodes, and the same trainer's graph with that changed."""
    sampler = trainer.method.sampler
    ids = sampler.members[sampler.bounds[2] : sampler.bounds[3]]
    graph.train_mask[ids] = False
    return ids


@pytest.mark.parametrize("untrained", ["record", "skip"])
@pytest.mark.parametrize("method", ["gas", "graphfm-ob"])
def test_a_batch_without_training_nodes_moves_no_weight(make_graph, method, untrained):
    options = {"untrained": untrained, "exact_first_hop": False, "batch_norm": True}
    graph = make_graph(undirected=True)
    ids = untaught(graph, trainer_of(graph, method, **options))
    trainer = trainer_of(graph, method, **options)
    trainer.backbone.train()
    for part in (0, 1):  # Adam remembers gradients now
        trainer.step(torch.tensor([part]))
    before, rows = copy.deepcopy(trainer.backbone.state_dict()), rows_of(trainer)
    assert float(trainer.step(torch.tensor([2]))) == 0.0
    torch.testing.assert_close(trainer.backbone.state_dict(), before, rtol=0, atol=0)
    moved = bool((rows_of(trainer)["output.0"][ids] != rows["output.0"][ids]).any())
    assert moved == (untrained == "record")


def test_cluster_gcn_skips_it_as_well(make_graph):
    graph = make_graph(undirected=True)
    untaught(graph, trainer_of(graph, "cluster-gcn"))
    trainer = trainer_of(graph, "cluster-gcn")
    trainer.step(torch.tensor([0]))
    before = copy.deepcopy(trainer.backbone.state_dict())
    trainer.step(torch.tensor([2]))
    torch.testing.assert_close(trainer.backbone.state_dict(), before, rtol=0, atol=0)


def test_an_epoch_without_training_nodes_has_no_loss(make_graph):
    graph = make_graph(undirected=True)
    untaught(graph, trainer_of(graph, "gas"))
    trainer = trainer_of(graph, "gas")
    trainer.method.sampler.epoch = lambda rng: [torch.tensor([2])]
    assert trainer.epoch() == 0.0


@pytest.mark.parametrize("untrained", ["record", "skip"])
def test_a_run_with_skipped_batches_resumes_with_the_same_bits(
    make_graph, tmp_path, caplog, untrained
):
    graph = make_graph(undirected=True)
    graph.train_mask[:] = False
    graph.train_mask[0] = True  # in one of five parts
    graph.val_mask[0] = graph.test_mask[0] = False
    options = {**SMALL, "dataset": "in-memory", "untrained": untrained, "epochs": 3}
    run = Run.make(backbone="gcn", method="gas", **options)
    start(run, graph, out=tmp_path / "whole")
    for stop in (1, 2, 4, 7, 10):
        parts = tmp_path / f"parts{stop}"
        with pytest.raises(TrainingStopped):
            start(run, graph, out=parts, stop_signal=StopAfter(stop))
        resume(parts, graph=graph)
        assert differences(tmp_path / "whole", parts) == []
    assert "the beginning" not in caplog.text  # which would end the same too


@pytest.mark.parametrize("within", [False, True])
def test_histories_hold_dropout_only_if_asked(make_graph, within):
    """With `dropout_in_histories` the rows are those that the training pass computed."""
    options = {"dropout": 0.5, "dropout_in_histories": within, "exact_first_hop": False}
    trainer = trainer_of(make_graph(undirected=True), "gas", **options)
    computed = []
    layer = trainer.backbone.layers[0]
    update = layer.update
    layer.update = lambda agg, targets: computed.append(update(agg, targets)) or computed[-1]
    trainer.backbone.train()
    with seeded(3, trainer.graph.device):
        trainer.step(torch.tensor([1]))
    assert trainer.plan.recording_pass != within
    sampler = trainer.method.sampler
    ids = sampler.members[sampler.bounds[1] : sampler.bounds[2]]
    kept = trainer.method.estimator.histories[0].pull(ids)
    last = computed[-1].detach()  # of the pass that the loss is taken of
    assert len(computed) == (1 if within else 2)
    assert torch.equal(kept, computed[0].detach())
    second = trainer.method.estimator.histories[1].pull(ids)
    assert torch.equal(kept, last)  # the first layer drops nothing
    assert second.any()


def test_dropout_gets_into_histories_of_deeper_layers(make_graph):
    rows = {}
    for within in (False, True):
        options = {"dropout": 0.5, "dropout_in_histories": within, "exact_first_hop": False}
        trainer = trainer_of(make_graph(undirected=True), "gas", **options)
        trainer.backbone.train()
        drawn = []
        for seed in (1, 2):  # of dropout; the weights stay
            with seeded(seed, trainer.graph.device):
                trainer.loss(trainer.draw(torch.tensor([1])))
            drawn.append(rows_of(trainer)["output.1"])
        rows[within] = not torch.equal(*drawn)
    assert rows == {False: False, True: True}


@pytest.mark.parametrize("method", HALO)
def test_compensation_gives_a_batch_without_training_nodes_a_gradient(make_graph, method):
    """Gradients from beyond the batch reach it, so it takes its step."""
    graph = make_graph(undirected=True)
    untaught(graph, trainer_of(graph, method))
    trainer = trainer_of(graph, method, compensate=True)
    trainer.backbone.train()
    for part in (0, 1, 3, 4):
        trainer.step(torch.tensor([part]))
    weight = trainer.backbone.layers[0].linear.weight
    before = weight.detach().clone()
    trainer.step(torch.tensor([2]))
    assert weight.grad.abs().max() > 0
    assert not torch.equal(weight, before)


@pytest.mark.parametrize(("untrained", "written"), [("record", True), ("skip", False)])
def test_ages_know_what_a_batch_without_training_nodes_wrote(make_graph, untrained, written):
    graph = make_graph(undirected=True)
    ids = untaught(graph, trainer_of(graph, "gas"))
    options = {"untrained": untrained, "exact_first_hop": False, "staleness_every": 1}
    trainer = trainer_of(graph, "gas", **options)
    trainer.step(torch.tensor([2]))
    never = trainer.ages.summary(0).never
    assert never == pytest.approx(1 - ids.numel() / graph.num_nodes if written else 1.0)


def test_filling_is_not_in_the_memory_of_training(make_graph):
    trainer = trainer_of(make_graph(undirected=True), "gas", fill_histories=True)
    calls = []
    trainer.refresh_histories = lambda: calls.append("fill")
    for name in ("stop", "start"):
        setattr(trainer.memory, name, lambda name=name: calls.append(name))
    trainer.epoch()
    assert calls == ["stop", "fill", "start"]
