"""The graph: what goes in, what is kept, what comes back."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data, HeteroData

from graphfm import Graph, InputError

TRIANGLE = [[0, 1, 2], [1, 2, 0]]


def make(edge_index=TRIANGLE, num_nodes=4, **options) -> Graph:
    return Graph.from_edges(edge_index, np.eye(num_nodes, dtype=np.float32), **options)


def neighbours(graph: Graph) -> list[list[int]]:
    """The in-neighbours of each node, by Python slices."""
    indptr, indices = graph.indptr.tolist(), graph.indices.tolist()
    return [indices[start:end] for start, end in pairwise(indptr)]


def slow_neighbours(num_nodes: int, edges: list[tuple[int, int]]) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(num_nodes)]
    for source, target in edges:
        rows[target].append(source)
    return [sorted(row) for row in rows]


def edge_list(pairs: list[tuple[int, ...]]) -> np.ndarray:
    return np.array([pair[:2] for pair in pairs], dtype=np.int64).reshape(-1, 2).T


@st.composite
def edges_of(draw, weighted: bool = False):
    """A number of nodes, and a list of edges (with loops and duplicates) between them."""
    n = draw(st.integers(1, 8))
    node = st.integers(0, n - 1)
    parts = [node, node] + ([st.sampled_from([0.5, 1.0, 2.0, 3.0])] if weighted else [])
    return n, draw(st.lists(st.tuples(*parts), max_size=30))


@st.composite
def graphs(draw):
    """A graph with any mixture of labels, splits, weights and names."""
    n, pairs = draw(edges_of(weighted=True))
    num_classes = draw(st.integers(1, 5))
    label, split = st.integers(-1, num_classes - 1), st.sampled_from(["train", "val", "test", ""])
    y = np.array(draw(st.lists(label, min_size=n, max_size=n)))
    if multi := draw(st.booleans()) and num_classes > 1:
        bits = st.lists(st.integers(0, 1), min_size=num_classes, max_size=num_classes)
        rows = draw(st.lists(bits, min_size=n, max_size=n))
        y = np.where(y[:, None] < 0, -1, np.array(rows).reshape(n, num_classes))
    splits = np.array(draw(st.lists(split, min_size=n, max_size=n)))
    splits[(y < 0).any(axis=1) if multi else y < 0] = ""
    masks = {f"{s}_mask": splits == s for s in ("train", "val", "test") if (splits == s).any()}
    weight = [w for *_, w in pairs] if draw(st.booleans()) else None
    names = draw(st.none() | st.lists(st.text(max_size=5), min_size=n, max_size=n))
    classes = [f"class {c}" for c in range(num_classes)] if draw(st.booleans()) else None
    x = draw(
        st.lists(
            st.floats(width=32, allow_nan=False, allow_infinity=False),
            min_size=2 * n,
            max_size=2 * n,
        )
    )
    return Graph.from_edges(
        edge_list(pairs),
        np.array(x, dtype=np.float32).reshape(n, 2),
        y,
        edge_weight=weight,
        node_names=names,
        class_names=classes,
        num_classes=num_classes,
        meta={"source": "hypothesis"},
        **masks,
    )


def assert_same(one: Graph, other: Graph) -> None:
    assert one.fingerprint == other.fingerprint
    for name in ("num_classes", "multi_label", "node_names", "class_names", "meta"):
        assert getattr(one, name) == getattr(other, name), name


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


@settings(derandomize=True, deadline=None)
@given(graphs())
def test_a_round_trip_through_npz_keeps_everything(tmp_path_factory, graph):
    path = tmp_path_factory.mktemp("graph") / "graph.npz"
    graph.save(path)
    assert_same(Graph.from_npz(path), graph)


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


def test_declared_classes_survive_a_round_trip(tmp_path):
    for number, y in enumerate(([0, 0, 1, 1], None)):
        path = tmp_path / f"{number}.npz"
        make(y=y, num_classes=np.int64(5)).save(path)
        assert Graph.from_npz(path).num_classes == 5


def test_names_are_kept_as_text_whatever_their_letters(tmp_path):
    names = ["zażółć", "名前", 'comma, "quote"', "line\nbreak"]
    make(y=[0, 1, 0, 1], node_names=np.array(names), class_names=["", "🐍"]).save(tmp_path / "g")
    again = Graph.from_npz(tmp_path / "g.npz")
    assert again.node_names == tuple(names)
    assert again.class_names == ("", "🐍")


def test_meta_is_copied_and_comes_back(tmp_path):
    meta = {"source": "here", "list": [1, {"two": None}]}
    graph = make(meta=meta)
    meta["list"].append("later")
    graph.save(tmp_path / "g.npz")
    assert Graph.from_npz(tmp_path / "g.npz").meta == {"source": "here", "list": [1, {"two": None}]}


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_is_kept_in_memory_and_read_back_as_single(tmp_path, kind):
    x = torch.tensor([[0.1], [2.0], [-3.0]]).to(kind)
    graph = Graph.from_edges([[0], [1]], x)
    assert graph.x.dtype == kind
    graph.save(tmp_path / "g.npz")
    again = Graph.from_npz(tmp_path / "g.npz")
    assert again.x.dtype == torch.float32
    assert torch.equal(again.x, x.float())


@pytest.mark.parametrize(
    "kind", ["<i4", ">i4", "<i8", ">i8", "<f8", ">f8", "<f4", "u1", "<u2", "<u4", "<u8", "?", "g"]
)
def test_features_of_any_number_type_become_single_precision(kind):
    x = np.array([[0, 1], [1, 0], [1, 1]]).astype(kind)
    graph = Graph.from_edges([[0], [1]], x)
    assert graph.x.dtype == torch.float32
    assert graph.x.tolist() == [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    "kind", [torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int16]
)
def test_tensors_of_any_integer_type_are_taken(kind):
    edges, y = torch.tensor(TRIANGLE).to(kind), torch.tensor([[0, 1]] * 4).to(kind)
    graph = make(edges, y=y, train_mask=torch.ones(4).to(kind))
    assert neighbours(graph) == neighbours(make())
    assert graph.y.tolist() == [[0, 1]] * 4
    assert graph.train_mask.all()


def test_arrays_that_lie_oddly_in_memory_are_taken():
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    frozen = x.copy()
    frozen.flags.writeable = False
    for odd in (np.asfortranarray(x), np.ascontiguousarray(x[::-1])[::-1], frozen):
        graph = Graph.from_edges(TRIANGLE, odd)
        assert graph.fingerprint == Graph.from_edges(TRIANGLE, x).fingerprint


def test_gradients_are_left_behind():
    graph = Graph.from_edges(TRIANGLE, torch.ones(3, 2, requires_grad=True))
    assert not graph.x.requires_grad


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


def test_from_pyg_takes_all_that_a_data_holds():
    data = Data(
        x=torch.eye(3),
        edge_index=torch.tensor([[0, 1, 1], [1, 0, 2]]),
        y=torch.tensor([[0], [1], [-1]]),
        train_mask=torch.tensor([True, False, False]),
        val_mask=torch.tensor([False, True, False]),
        edge_weight=torch.tensor([1.0, 2.0, 3.0]),
    )
    graph = Graph.from_pyg(data)
    assert neighbours(graph) == [[1], [0], [1]]
    assert graph.y.tolist() == [0, 1, -1]
    assert graph.edge_weight.tolist() == [2.0, 1.0, 3.0]
    assert [int(graph.mask(split).sum()) for split in ("train", "val", "test")] == [1, 1, 0]


def test_from_pyg_takes_many_float_labels():
    y = torch.tensor([[0.0, 1.0], [1.0, 1.0]])
    data = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), y=y)
    assert Graph.from_pyg(data).y.tolist() == [[0, 1], [1, 1]]


def test_what_pyg_data_holds_and_a_graph_does_not_use_is_named(caplog):
    data = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    Graph.from_pyg(data)
    assert caplog.records == []
    data.edge_attr = torch.ones(1, 3)
    assert Graph.from_pyg(data).num_edges == 1
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("graphfm", "WARNING")
    assert record.getMessage().startswith("the PyG data: edge_attr is not used")


@pytest.mark.parametrize(
    ("data", "culprit"),
    [
        (Data(edge_index=torch.zeros(2, 0, dtype=torch.long)), "no x"),
        (Data(x=torch.ones(2, 1)), "no edge_index"),
        (HeteroData(), "no x"),
        (None, "no x"),
        (
            Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [2]])),
            "edge_index holds node id 2",
        ),
    ],
)
def test_from_pyg_says_what_is_missing_or_wrong(data, culprit):
    with pytest.raises(InputError, match=culprit):
        Graph.from_pyg(data)


def test_features_in_half_precision(make_graph):
    graph = make_graph()
    half = graph.with_features(torch.float16)
    assert half.x.dtype == torch.float16
    assert half.fingerprint != graph.fingerprint
    assert graph.with_features(torch.float32) is graph
    large = dataclasses.replace(graph, x=graph.x * 1e6)
    with pytest.raises(InputError, match=r"torch.float16 holds at most .* use --features bf16"):
        large.with_features(torch.float16)
    assert large.with_features(torch.bfloat16).x.isfinite().all()
