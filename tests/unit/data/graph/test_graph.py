"""The graph: its edges, its labels, its fingerprint, and where it lies."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.data.graph.small_graphs import edge_list, edges_of, make, neighbours


def slow_neighbours(num_nodes: int, edges: list[tuple[int, int]]) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(num_nodes)]
    for source, target in edges:
        rows[target].append(source)
    return [sorted(row) for row in rows]


@settings(derandomize=True, deadline=None)
@given(edges_of())
def test_csr_equals_a_slow_reference(case):
    n, pairs = case
    graph = make(edge_list(pairs), n)
    expected = slow_neighbours(n, pairs)
    assert neighbours(graph) == expected
    assert graph.degree.tolist() == [len(row) for row in expected]
    assert (graph.loop_weight > 0).tolist() == [node in row for node, row in enumerate(expected)]
    in_order = sorted(pairs, key=lambda pair: (pair[1], pair[0]))
    assert graph.edge_index.T.tolist() == [list(pair) for pair in in_order]


@settings(derandomize=True, deadline=None)
@given(edges_of(weighted=True))
def test_weights_stay_with_their_edges(case):
    n, triples = case
    graph = make(edge_list(triples), n, edge_weight=[w for *_, w in triples])
    source, target = graph.edge_index.tolist()
    kept = zip(source, target, graph.edge_weight.tolist(), strict=True)
    assert sorted(kept) == sorted(triples)
    totals = [sum(w for _, t, w in triples if t == node) for node in range(n)]
    assert graph.weighted_degree.tolist() == totals


@settings(derandomize=True, deadline=None)
@given(edges_of(weighted=True), st.randoms(use_true_random=False))
def test_the_order_of_edges_does_not_matter(case, random):
    n, triples = case
    shuffled = random.sample(triples, len(triples))
    one, other = (
        make(edge_list(edges), n, edge_weight=[w for *_, w in edges])
        for edges in (triples, shuffled)
    )
    assert one.fingerprint == other.fingerprint


@settings(derandomize=True, deadline=None)
@given(edges_of(weighted=True))
def test_undirected_is_the_symmetric_closure_each_pair_once(case):
    n, triples = case
    graph = make(edge_list(triples), n, edge_weight=[w for *_, w in triples], undirected=True)
    largest: dict[tuple[int, int], float] = {}
    for u, v, w in triples:
        for pair in ((u, v), (v, u)):
            largest[pair] = max(w, largest.get(pair, 0.0))
    pairs = [tuple(pair) for pair in graph.edge_index.T.tolist()]
    assert dict(zip(pairs, graph.edge_weight.tolist(), strict=True)) == largest
    assert len(pairs) == len(largest)


def test_an_edge_says_that_its_target_reads_from_its_source():
    assert neighbours(make([[0], [1]])) == [[], [0], [], []]


def test_duplicate_edges_count_as_often_as_they_are_given():
    graph = make([[0, 0, 2], [1, 1, 1]])
    assert neighbours(graph)[1] == [0, 0, 2]
    assert graph.num_edges == 3


def test_a_self_loop_is_one_neighbour_also_when_undirected():
    graph = make([[2], [2]], undirected=True)
    assert neighbours(graph) == [[], [], [2], []]
    assert (graph.loop_weight > 0).tolist() == [False, False, True, False]


def test_isolated_nodes_have_empty_rows():
    assert make([[0], [0]]).degree.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("edges", [[[], []], np.zeros((2, 0)), torch.zeros(2, 0)])
@pytest.mark.parametrize("undirected", [False, True])
def test_a_graph_may_have_no_edges(edges, undirected):
    graph = make(edges, edge_weight=[], undirected=undirected)
    assert graph.num_edges == 0
    assert graph.weighted_degree.tolist() == [0.0] * 4


def test_unlabelled_nodes_are_minus_one_and_in_no_split():
    graph = make(y=[0, -1, 2, -1], train_mask=[1, 0, 1, 0])
    assert graph.num_classes == 3
    assert graph.y.tolist() == [0, -1, 2, -1]
    assert not graph.val_mask.any()


def test_without_labels_all_are_minus_one_and_there_are_no_classes():
    graph = make()
    assert (graph.num_classes, graph.multi_label) == (0, False)
    assert graph.y.tolist() == [-1] * 4


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int64, np.float32, np.bool_])
def test_many_labels_per_node_of_any_type(kind):
    rows = [[0, 1, 1], [0, 0, 0], [1, 1, 1], [1, 0, 0]]
    graph = make(y=np.array(rows, dtype=kind))
    assert graph.multi_label
    assert graph.num_classes == 3
    assert graph.y.dtype == torch.int8
    assert graph.y.tolist() == rows


def test_a_multi_label_row_of_minus_one_is_unlabelled():
    y = [[0, 1], [-1, -1], [1, 1], [0, 0]]
    assert make(y=y, train_mask=[1, 0, 1, 1]).y.tolist() == y


def test_a_column_of_classes_is_one_class_per_node():
    graph = make(y=[[0], [1], [2], [1]])
    assert not graph.multi_label
    assert graph.y.tolist() == [0, 1, 2, 1]


def test_classes_that_no_node_has_can_be_declared():
    assert make(y=[0, 0, 1, 1], num_classes=5).num_classes == 5
    assert make(y=[0, 0, 1, 1], class_names=["a", "b", "c"]).num_classes == 3


def test_moving_moves_every_tensor_and_forgets_what_was_derived():
    graph = make(y=[0, 1, 0, 1], train_mask=[1, 1, 0, 0], edge_weight=[1, 2, 3])
    assert graph.to("cpu") is graph
    assert graph.degree.device.type == graph.weighted_degree.device.type == "cpu"
    moved = graph.to("meta")
    tensors = {name: value for name, value in vars(moved).items() if torch.is_tensor(value)}
    assert len(tensors) == 8
    assert {tensor.device.type for tensor in tensors.values()} == {"meta"}
    assert moved.degree.device.type == "meta"
    assert graph.device.type == "cpu"


def test_num_bytes_counts_every_tensor():
    graph = make(y=[0, 1, 0, 1])  # indptr, indices, x, y, three masks
    assert graph.num_bytes == 5 * 8 + 3 * 4 + 16 * 4 + 4 * 8 + 3 * 4


@pytest.mark.parametrize(
    "change",
    [
        {"edge_index": [[0, 1, 2], [1, 2, 1]]},
        {"y": [1, 1, 0, 1]},
        {"train_mask": [1, 0, 1, 0]},
        {"edge_weight": [1, 1, 2]},
        {"edge_weight": None},
        {"num_nodes": 5, "y": [0, 1, 0, 1, -1], "train_mask": [1, 1, 0, 0, 0]},
    ],
)
def test_the_fingerprint_tells_graphs_apart(change):
    usual = {"y": [0, 1, 0, 1], "train_mask": [1, 1, 0, 0], "edge_weight": [1, 1, 1]}
    assert make(**{**usual, **change}).fingerprint != make(**usual).fingerprint


def test_the_fingerprint_does_not_depend_on_the_machine():
    graph = make(y=[0, 1, 0, 1], train_mask=[1, 1, 0, 0], edge_weight=[1, 2, 3])
    assert graph.fingerprint == "90cdff4976d9ea0702e5b68aef00f191"
