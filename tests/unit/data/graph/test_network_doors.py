"""Graphs from and to networkx and scipy."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from graphfm import Graph, InputError
from tests.unit.data.graph.small_graphs import edge_list, edges_of


def labels_of(n):
    """Classes, labels and amounts, with names and without, with gaps and without."""
    numbers, gap = np.arange(n), np.where(np.arange(n) == 1, np.nan, np.arange(n) - 1.0)
    return [
        {"y": numbers % 2}, {"y": np.eye(n, 2)}, {"y": np.where(numbers == 1, -1, 0)},
        {"y": numbers % 2 * 2, "num_classes": 4},
        {"y": numbers % 2, "class_names": ["z", "a", "b"]},
        {"y": np.eye(n, 2), "class_names": ["z", "a"]}, {"y": gap, "task": "regression"},
        {"y": numbers - 0.5, "class_names": ["price"]},
        {"y": np.stack([gap, gap + 0.5], 1), "class_names": ["z", "a"]},
    ]  # fmt: skip


@st.composite
def graphs(draw):
    """A graph with weights, types, attributes and splits, or without them; edges may be doubled."""
    n, pairs = draw(edges_of(weighted=True))
    count, options = len(pairs), {}
    if count and draw(st.booleans()):
        options["edge_weight"] = [w for *_, w in pairs]
    if count and draw(st.booleans()):
        options["edge_attr"] = torch.arange(2.0 * count).view(count, 2)
        options["edge_type"] = torch.arange(count) % 2
    if draw(st.booleans()):
        options |= draw(st.sampled_from(labels_of(n)))
        options["train_mask"] = np.arange(n) == 0
    x = np.arange(2.0 * n, dtype=np.float32).reshape(n, 2) if draw(st.booleans()) else None
    if draw(st.booleans()):
        options["node_names"] = [f"node {number}" for number in range(n)]
    return Graph.from_edges(edge_list(pairs), x, num_nodes=n, **options)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(graphs())
def test_networkx_gives_back_what_it_got(graph):
    again = Graph.from_networkx(graph.to_networkx())
    assert again.fingerprint == graph.fingerprint
    assert (again.node_names, again.class_names) == (graph.node_names, graph.class_names)
    for name in ("edge_attr", "edge_type"):
        one, other = getattr(again, name), getattr(graph, name)
        assert (one is None and other is None) or torch.equal(one, other)


def test_a_label_that_is_not_among_the_names_of_classes_is_refused():
    network = Graph.from_edges([[0], [1]], y=[0, 1], num_nodes=2, class_names=["a", "b"])
    network = network.to_networkx()
    network.nodes[0]["y"] = "c"
    with pytest.raises(InputError, match="holds 'c', which class_names does not list"):
        Graph.from_networkx(network)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(graphs())
def test_scipy_gives_back_the_edges(graph):
    matrix = graph.to_scipy()
    again = Graph.from_scipy(matrix, num_nodes=graph.num_nodes)
    assert torch.equal(again.edge_index, graph.edge_index)
    assert torch.equal(again.weighted_degree, graph.weighted_degree)
    dense = np.zeros((graph.num_nodes,) * 2)
    weight = torch.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight
    np.add.at(dense, tuple(graph.edge_index.numpy()), weight.numpy())
    assert np.allclose(matrix.toarray(), dense)


def test_an_undirected_graph_has_both_directions():
    network = nx.MultiGraph([("a", "b"), ("a", "b"), ("c", "c")])
    graph = Graph.from_networkx(network)
    assert graph.node_names == ("a", "b", "c")
    assert sorted(graph.edge_index.T.tolist()) == [[0, 1], [0, 1], [1, 0], [1, 0], [2, 2]]


def test_attributes_of_networkx_are_features_and_classes(caplog):
    network = nx.DiGraph()
    network.add_node(5, age=1.0, group="red", part="train", color="x")
    network.add_node(6, age=2.0, group="blue", part="test", color="y")
    network.add_edge(5, 6, cost=2.0, year=1990)
    graph = Graph.from_networkx(network, label="group", split="part", weight="cost")
    assert graph.x.tolist() == [[1.0], [2.0]]
    assert graph.class_names == ("blue", "red")
    assert graph.edge_weight.tolist() == [2.0]
    assert graph.test_mask.tolist() == [False, True]
    assert "the table of nodes: not used: color" in caplog.text
    assert "the table of edges: not used: year" in caplog.text


def test_equal_names_are_not_taken_for_nodes_of_networkx():
    graph = Graph.from_edges([[0], [1]], np.ones((2, 1)), node_names=["same", "same"])
    assert list(graph.to_networkx().nodes) == [0, 1]


@pytest.mark.parametrize(("network", "options", "message"), [
    (nx.Graph(), {}, "the networkx graph has no nodes"),
    ([[0, 1]], {}, "from_networkx got a list"),
    (nx.path_graph(2), {"label": "group"}, "has no column 'group'"),
    (nx.path_graph(2), {"weight": "cost"}, "has no column 'cost'"),
    (nx.Graph([(0, 1, {"weight": -1.0})]), {}, "edge_weight holds -1; expected positive"),
    (nx.Graph([(0, 1, {3: 1.0})]), {}, "attributes of edges are named 3; expected text"),
])  # fmt: skip
def test_wrong_networks_are_refused(network, options, message):
    with pytest.raises(InputError, match=message):
        Graph.from_networkx(network, **options)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.coo_array, sparse.csc_matrix])
def test_matrices_of_every_kind_are_read(kind):
    matrix = kind(np.array([[0, 2.0], [0, 0]]))
    graph = Graph.from_scipy(matrix, np.ones((2, 3)), [0, 1])
    assert graph.edge_index.tolist() == [[0], [1]]  # row to column
    assert graph.edge_weight.tolist() == [2.0]
    assert (graph.num_features, graph.num_classes) == (3, 2)


def test_a_matrix_of_ones_has_no_weights():
    assert Graph.from_scipy(sparse.eye_array(3, dtype=bool)).edge_weight is None


@pytest.mark.parametrize(("matrix", "message"), [
    (np.eye(2), "from_scipy got a ndarray"),
    (sparse.csr_array(np.ones((2, 3))), r"shape \(2, 3\); expected \[num_nodes, num_nodes\]"),
    (sparse.csr_array(np.array([[0, -1], [0, 0]])), "edge_weight holds -1; expected pos"),
])  # fmt: skip
def test_wrong_matrices_are_refused(matrix, message):
    with pytest.raises(InputError, match=message):
        Graph.from_scipy(matrix)
