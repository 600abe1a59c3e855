"""Regression under every method and backbone, and the identities of methods there."""

import json

import pytest
import torch

from graphfm import Graph, InputError, train
from graphfm.backbones import BACKBONES
from graphfm.methods import METHODS
from graphfm.runs.run import Run, backbone_of, build
from tests.contracts.test_every_method import NETWORKS, WHOLE, gradients, networks, taken

NAN = float("nan")
SMALL = {
    "batch_size": 8, "parts": 4, "parts_per_batch": 2, "budget": 20, "coverage": 2,
    "nodes_per_layer": (20,),
}  # fmt: skip


def regression(graph: Graph, targets: int = 1, gaps: bool = True) -> Graph:
    """The same graph with numbers to find that depend on features, far from zero."""
    rng = torch.Generator().manual_seed(1)
    weight = torch.randn(graph.num_features, targets, generator=rng)
    y = 1000 + 50 * (graph.x @ weight) + torch.randn(graph.num_nodes, targets, generator=rng)
    if gaps and targets > 1:
        y[::4, 0] = NAN
    return Graph.from_edges(
        graph.edge_index, graph.x, y.squeeze(1) if targets == 1 else y,
        train_mask=graph.train_mask, val_mask=graph.val_mask, test_mask=graph.test_mask,
    )  # fmt: skip


def small(method):
    takes = Run.make(method=method).method_settings
    return {name: value for name, value in SMALL.items() if name in takes}


@pytest.mark.parametrize(
    ("method", "backbone"),
    [
        (method, backbone)
        for method in METHODS
        for backbone in networks(method, [b for b in BACKBONES if b not in ("sign", "sgc")])
    ],
)
def test_every_method_trains_it_on_every_backbone(make_graph, method, backbone):
    graph = regression(make_graph(), targets=2)
    network = taken(backbone, hidden=8, layers=2)
    if (method, backbone) == ("graphfm-delta", "pna"):
        network["aggregators"] = ("mean",)
    result = train(
        graph, method=method, backbone=backbone, epochs=2, loss="huber", **small(method), **network
    )
    assert result.score.metric == "r2"
    assert result.score.metrics["test"].keys() == {"r2", "mae", "rmse"}
    values = result.model.predict(graph)
    assert values.shape == (graph.num_nodes, 2)
    assert 500 < float(values.mean()) < 1500  # on the scale of the targets


@pytest.mark.parametrize("loss", ["mse", "mae", "huber"])
@pytest.mark.parametrize(("method", "settings"), WHOLE)
def test_with_the_whole_graph_it_is_full_batch(make_graph, method, settings, loss):
    graph = regression(make_graph(weighted=True), targets=2)
    backbone = backbone_of(method) or "gcn"
    network = {"backbone": backbone, **taken(backbone, dropout=0.0), **NETWORKS[backbone]}
    one, other = (
        build(Run.make(method=name, loss=loss, **how, **network), graph)
        for name, how in ((method, settings), ("full", {}))
    )
    first = [next(iter(t.method.sampler.epoch(t.rng))) for t in (one, other)]
    batches = [t.method.sampler.sample(s, t.rng) for t, s in zip((one, other), first, strict=True)]
    want_loss, want = gradients(other, batches[1])
    found_loss, found = gradients(one, batches[0])
    torch.testing.assert_close(found_loss, want_loss, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found, want, rtol=1e-3, atol=1e-5)


def weights(graph, **options):
    model = train(graph, epochs=3, hidden=8, seed=3, **options).model
    return list(model.backbone.state_dict().values())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"method": "graphfm-ib", "beta": (1.0,), "fanout": (2,), "correct_lag": False},
         {"method": "graphsage", "fanout": (2,)}),
        ({"method": "graphfm-ob", "beta": (0.0,), "parts": 4, "parts_per_batch": 2},
         {"method": "gas", "parts": 4, "parts_per_batch": 2}),
    ],
    ids=["graphfm-ib is graphsage", "graphfm-ob is gas"],
)  # fmt: skip
def test_feature_momentum_of_no_history_is_the_method_below_it(make_graph, one, other):
    graph = regression(make_graph(undirected=True))
    same = {"lr": 0.01, "dropout": 0.0, "backbone": "sage"}
    if one["method"] == "graphfm-ib":
        one, same = {**one, "exact_first_hop": False}, {**same, "batch_size": 8}
    for found, want in zip(
        weights(graph, **one, **same), weights(graph, **other, **same), strict=True
    ):
        assert torch.equal(found, want)


def test_it_learns_what_is_linear_in_the_features(make_graph):
    graph = regression(make_graph(num_nodes=300, num_edges=300))
    result = train(graph, backbone="mlp", hidden=32, epochs=200, lr=0.01, dropout=0.0)
    assert result.score.metrics["test"]["r2"] > 0.9


def test_the_unit_of_a_target_does_not_matter(make_graph):
    """In whole powers of two, so that no bit is lost."""
    graph = regression(make_graph())
    other = Graph.from_edges(
        graph.edge_index, graph.x, graph.y * 1024, train_mask=graph.train_mask,
        val_mask=graph.val_mask, test_mask=graph.test_mask,
    )  # fmt: skip
    one, two = (train(g, epochs=3, hidden=8) for g in (graph, other))
    assert one.score.test == pytest.approx(two.score.test, rel=1e-5)
    torch.testing.assert_close(one.model.predict(graph) * 1024, two.model.predict(graph))


def test_a_gap_is_not_trained_on(make_graph):
    """What stands in a row's other target does not change when one is unknown."""
    graph = regression(make_graph(), targets=2)
    trainer = build(Run.make(epochs=1, hidden=8), graph)
    outputs = torch.randn(graph.num_nodes, 2, requires_grad=True)
    trainer.question.loss.rows(outputs, graph.y).sum().backward()
    assert torch.equal(outputs.grad == 0, graph.y.isnan())


@pytest.mark.parametrize("metric", ["mae", "rmse"])
def test_the_best_epoch_has_the_least_error(make_graph, metric, tmp_path):
    graph = regression(make_graph())
    result = train(graph, epochs=12, hidden=8, lr=0.1, metric=metric, out=tmp_path / "run")
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    vals = [json.loads(line)["val"] for line in lines]
    assert result.score.val == min(vals) < vals[0]
    assert result.score.best_epoch == vals.index(min(vals)) + 1
    assert result.score.metrics["val"][metric] == pytest.approx(result.score.val)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "focal"}, "loss is focal, but y holds a regression; expected mse, mae or huber"),
        ({"metric": "roc-auc"}, "metric is roc-auc, but y holds a regression; expected r2"),
        ({"class_weights": "balanced"}, "class_weights is for classes"),
        ({"label_smoothing": 0.1}, "label_smoothing is for classes"),
        ({"positive": "1"}, "positive is 1, but the graph does not have two classes"),
    ],
)
def test_what_is_for_classes_is_refused(make_graph, options, message):
    with pytest.raises(InputError, match=message):
        train(regression(make_graph()), epochs=1, **options)
