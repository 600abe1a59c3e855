"""Rows made or learned for nodes, and standardised features, under every method."""

import pytest
import torch

from graphfm import InputError, load_model, resume, train
from graphfm.api import start
from graphfm.checkpointing.errors import TrainingStopped
from graphfm.methods import METHODS
from graphfm.runs.run import Run, backbone_of
from tests.reliability.runs import StopAfter, differences

SMALL = {
    "batch_size": 7, "parts": 6, "parts_per_batch": 1, "budget": 20, "coverage": 5, "fanout": (2,),
    "nodes_per_layer": (12,), "hidden": 6, "layers": 3, "dropout": 0.3, "history": "bf16",
    "staleness_every": 2,
}  # fmt: skip
LEARNING = [name for name in METHODS if backbone_of(name) is None]


@pytest.fixture(autouse=True)
def _no_picture(monkeypatch):
    """Pictures take longer than these trainings."""
    monkeypatch.setattr("graphfm.runs.curves.draw_curves", lambda *given: given[2].touch())


def settled(method, **options):
    """A small run by a method."""
    takes = Run.make(method=method)
    known = {*takes.method_settings, *takes.backbone_settings}
    if METHODS[method]().estimator.keeps_history:
        known |= {"history", "staleness_every"}
    own = {name: value for name, value in SMALL.items() if name in known}
    return Run.make(
        dataset="in-memory", method=method, device="cpu", epochs=4, lr=0.05, **{**own, **options}
    )


@pytest.mark.parametrize("method", LEARNING)
def test_learned_rows_are_trained_resumed_to_the_same_bits_and_loaded(make_graph, tmp_path, method):
    graph = make_graph(undirected=True, num_features=0)
    run = settled(method, node_features="learned", node_width=5)
    whole, parts, stop = tmp_path / "whole", tmp_path / "parts", StopAfter(10**9)
    result = start(run, graph, out=whole, stop_signal=stop)
    with pytest.raises(TrainingStopped):
        start(run, graph, out=parts, stop_signal=StopAfter(max((10**9 - stop.left) // 2, 1)))
    resume(parts, graph)
    assert differences(whole, parts) == []

    model = load_model(whole)
    torch.testing.assert_close(model.predict(graph), result.model.predict(graph), rtol=0, atol=0)
    assert model.evaluate(graph)["test"] == pytest.approx(result.score.test)
    fresh = run.new_backbone(0, 4, 60)
    fresh.node_rows.fit(graph)
    moved = (fresh.learned_rows != model.backbone.learned_rows).any(dim=1)
    assert int(moved.sum()) > 20  # a third of the nodes are in the training split
    with pytest.raises(InputError, match=r"a row for each of 60 nodes, and this graph has 61"):
        model.predict(make_graph(num_nodes=61, num_features=0))


@pytest.mark.parametrize("method", METHODS)
def test_made_rows_and_fitted_values_are_made_again(make_graph, tmp_path, method):
    """The run's own graph gives the same scores again; another graph of the same kind fits."""
    graph = make_graph(undirected=True)
    run = settled(method, node_features="degree", standardize=True)
    result = start(run, graph, out=tmp_path / "run")
    model = load_model(tmp_path / "run")
    assert model.evaluate(graph)["test"] == pytest.approx(result.score.test)
    other = make_graph(num_nodes=80, num_edges=900, seed=5)
    assert model.predict(other).shape == (80, 4)
    scaled = model.backbone.input_rows(other) if backbone_of(method) is None else None
    if scaled is not None:
        wanted = (other.x - graph.x.mean(dim=0)) / graph.x.std(dim=0)  # of the training graph
        torch.testing.assert_close(scaled[:, :7], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_positions_are_made_again_from_the_seed(make_graph, tmp_path, method):
    graph = make_graph(num_features=0)
    result = start(settled(method, node_features="random", seed=3), graph, out=tmp_path / "run")
    again = load_model(tmp_path / "run").predict(graph)
    torch.testing.assert_close(again, result.model.predict(graph), rtol=0, atol=0)


@pytest.mark.parametrize("method", ["sign", "sgc"])
def test_hops_cannot_be_learned(make_graph, method):
    with pytest.raises(InputError, match=f"learned, but method {method} .*; use degree or random"):
        train(make_graph(), method=method, node_features="learned")


@pytest.mark.parametrize("backbone", ["sage", "gcn", "gcnii", "pna", "mlp"])
def test_every_network_learns_rows(make_graph, backbone):
    graph = make_graph()
    result = train(graph, backbone=backbone, node_features="learned", epochs=2, hidden=4)
    assert result.model.backbone.learned_rows.shape == (60, 64)
    assert result.model.evaluate(graph)["test"] == pytest.approx(result.score.test)
