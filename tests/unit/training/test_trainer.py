"""One step or one evaluation: gradients, weights, refusals, and the settings that hold."""

import dataclasses
import math

import pytest
import torch

from graphfm import Graph, InputError, train
from graphfm.kernels import backend
from graphfm.runs.run import Run, build
from graphfm.training.loop import Loop
from graphfm.training.settings import Training
from graphfm.training.staleness import staleness


def test_clipping_bounds_the_gradient(make_graph):
    trainer = build(Run.make(clip=1e-3), make_graph())
    trainer.epoch()
    squares = [p.grad.square().sum() for p in trainer.backbone.parameters()]
    assert float(torch.stack(squares).sum().sqrt()) == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("missing", ["train", "val"])
def test_a_graph_that_cannot_be_trained_on_is_refused(make_graph, missing):
    graph = make_graph()
    masks = {f"{s}_mask": graph.mask(s) for s in ("train", "val", "test") if s != missing}
    with pytest.raises(InputError, match=f"no {missing}_mask"):
        build(Run.make(), Graph.from_edges(graph.edge_index, graph.x, graph.y, **masks))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("epochs", 0), ("eval_every", 0), ("patience", -1), ("lr", 0.0), ("lr", math.nan),
        ("lr", math.inf), ("weight_decay", -1.0), ("clip", -1.0), ("schedule", "sometimes"),
    ],
)  # fmt: skip
def test_a_bad_setting_is_refused_by_name(setting, value):
    with pytest.raises(InputError, match=f"{setting} is {value}; expected"):
        Training(**{setting: value})


def test_weight_decay_pulls_weights_to_zero(make_graph):
    sizes = []
    for decay in (0.0, 0.5):
        trainer = build(Run.make(weight_decay=decay), make_graph())
        for _ in range(60):
            trainer.epoch()
        sizes.append(sum(float(p.detach().square().sum()) for p in trainer.backbone.parameters()))
    assert sizes[1] < 0.5 * sizes[0]


def test_a_batch_weighs_its_nodes(make_graph):
    """A node of weight zero teaches nothing: as if it were not in the training set."""
    graph = make_graph()
    first = int(graph.train_mask.nonzero()[0])
    mask = graph.train_mask.clone()
    mask[first] = False
    without = Graph.from_edges(
        graph.edge_index, graph.x, graph.y, train_mask=mask, val_mask=graph.val_mask,
        num_classes=graph.num_classes,
    )  # fmt: skip
    weighted, plain = build(Run.make(dropout=0.0), graph), build(Run.make(dropout=0.0), without)
    batch = weighted.method.sampler.batch
    weight = torch.full((graph.num_nodes,), 1 / int(mask.sum()))
    weight[first] = 0.0
    weighted.method.sampler.batch = dataclasses.replace(batch, loss_weight=weight)
    torch.testing.assert_close(weighted.step(batch.target_ids), plain.step(batch.target_ids))


def test_refreshed_histories_are_fresh(make_graph):
    graph = make_graph(undirected=True)
    options = {"method": "gas", "parts": 4, "exact_first_hop": False, "layers": 3}
    for refresh in (False, True):
        trainer = build(Run.make(refresh_histories=refresh, **options), graph)
        trainer.epoch()
        Loop(trainer)._validate(1)
        assert all((layer.relative < 1e-5) == refresh for layer in staleness(trainer))


@pytest.mark.parametrize(("precision", "found"), [("tf32", "high"), ("fp32", "highest")])
@pytest.mark.parametrize("kernels", ["auto", "plain"])
def test_whoever_calls_a_method_the_settings_hold(
    make_graph, monkeypatch, precision, found, kernels
):
    """A step or an evaluation by hand does as `fit` does."""
    run = Run.make(dataset="x", device="cpu", precision=precision, kernels=kernels)
    trainer, seen = build(run, make_graph()), []
    torch.set_float32_matmul_precision("medium")

    def looking(do):
        def look(*given):
            seen.append((torch.get_float32_matmul_precision(), backend.current().triton))
            return do(*given)

        return look

    monkeypatch.setattr(trainer, "loss", looking(trainer.loss))
    monkeypatch.setattr(type(trainer.infer), "__call__", looking(type(trainer.infer).__call__))
    monkeypatch.setattr(trainer.backbone, "whole_pass", looking(trainer.backbone.whole_pass))
    try:
        trainer.step(torch.arange(9))
        trainer.epoch()
        trainer.evaluate(("val",))
        trainer.refresh_histories()
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
    assert seen == [(found, kernels == "auto")] * 4


def test_a_gpus_precision_on_a_cpu_is_told(make_graph, caplog):
    with caplog.at_level("INFO", logger="graphfm"):
        train(make_graph(), precision="tf32", epochs=1, hidden=4)
    assert caplog.text.count("precision tf32 is a GPU's; here it is the same as fp32") == 1
