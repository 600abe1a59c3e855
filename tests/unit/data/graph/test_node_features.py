"""Features that are made from edges, and what a graph without any may be used for."""

import dataclasses

import pytest
import torch

from graphfm import Graph, InputError, train
from graphfm.data.graph.node_features import width_of
from graphfm.data.graph.summary import summarize

PARTS = {"train_mask": [1, 0, 1, 0, 0], "val_mask": [0, 1, 0, 1, 0]}


def star() -> Graph:
    """Node 0 hears from three others; node 4 is alone."""
    return Graph.from_edges(
        [[1, 2, 3, 0], [0, 0, 0, 1]], None, [0, 1, 0, 1, 0], num_nodes=5, **PARTS
    )


def test_degrees_are_told_apart():
    x = star().with_node_features("degree").x
    assert x[:, -2:].tolist() == [[2, 1], [1, 1], [0, 1], [0, 1], [0, 0]]  # log2(1 + degree)
    assert x[:, :-2].argmax(dim=1).tolist() == [2, 1, 0, 0, 0]
    assert x[:, :-2].sum(dim=1).tolist() == [1] * 5
    assert x.size(1) == width_of("degree", 4) == 18  # of every graph, so that a model fits others


def test_hubs_share_the_last_bucket():
    sources = torch.arange(1 << 17)
    graph = Graph.from_edges(torch.stack([sources, sources >> 16]), num_nodes=1 << 17)
    assert graph.with_node_features("degree").x[:3, :-2].argmax(dim=1).tolist() == [15, 15, 0]


def test_positions_are_near_where_nodes_are():
    """Two rings without a link: rows are more alike inside a ring. Seeded; the margin is 0.1."""
    ring = torch.arange(20)
    pairs = torch.cat([torch.stack([ring, (ring + step) % 20]) for step in (1, 2, 3)], dim=1)
    graph = Graph.from_edges(torch.cat([pairs, pairs + 20], dim=1), num_nodes=40, undirected=True)
    x = graph.with_node_features("random", width=16).x
    alike = x @ x.T
    inside = (alike[:20, :20].mean() + alike[20:, 20:].mean()) / 2
    assert x.shape == (40, 16)
    assert float(inside - alike[:20, 20:].mean()) > 0.1
    again = graph.with_node_features("random", width=16)
    assert torch.equal(again.x, x)
    assert not torch.equal(graph.with_node_features("random", width=16, seed=1).x, x)


def test_positions_do_not_depend_on_the_size_of_pieces(monkeypatch):
    sources = torch.tensor([1, 2, 3, 4, 4, 0, 1])
    graph = Graph.from_edges(
        torch.stack([sources, torch.tensor([0, 0, 1, 2, 3, 4, 4])]), num_nodes=5
    )
    whole = graph.with_node_features("random", width=3).x
    monkeypatch.setattr("graphfm.data.graph.node_features.ROWS_AT_ONCE", 2)
    assert torch.equal(graph.with_node_features("random", width=3).x, whole)


@pytest.mark.parametrize(("kind", "width", "message"), [
    ("degre", 4, r"unknown kind of features 'degre'.*did you mean degree"),
    ("random", 0, "width is 0; expected a whole number"),
    ("random", 1.5, "width is 1.5; expected a whole number"),
])  # fmt: skip
def test_other_features_are_refused(kind, width, message):
    with pytest.raises(InputError, match=message):
        star().with_node_features(kind, width=width)


def test_a_graph_without_features_is_described_saved_and_not_trained_on(tmp_path):
    graph = star()
    assert summarize(graph)["features"] == 0
    graph.save(tmp_path / "g.npz")
    assert Graph.from_npz(tmp_path / "g.npz").fingerprint == graph.fingerprint
    with pytest.raises(InputError, match="no features; give it x, or set node_features"):
        train(graph, epochs=1)
    result = train(graph.with_node_features("degree"), hidden=2, epochs=1, device="cpu")
    with pytest.raises(InputError, match="features"):
        result.model.predict(graph)


def test_a_training_says_once_that_attributes_are_not_read(caplog):
    graph = star().with_node_features("degree")
    graph = dataclasses.replace(graph, edge_attr=torch.ones(4, 2), edge_type=torch.zeros(4).long())
    train(graph, hidden=2, epochs=1, device="cpu")
    told = [record.getMessage() for record in caplog.records]
    assert told == ["the graph has edge_attr and edge_type, which the network does not read"]
