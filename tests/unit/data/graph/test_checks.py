"""Every mistake a user can make about a graph is refused with a line that names it."""

import numpy as np
import pytest
import torch

from graphfm import Graph, InputError

NAN, INF = float("nan"), float("inf")
USUAL = {"edge_index": [[0, 1, 2], [1, 2, 0]], "x": np.eye(4), "y": [0, 1, 2, -1]}
MULTI = [[0, 1], [1, 0], [1, 1], [0, 0]]


def build(**changes) -> Graph:
    return Graph.from_edges(**{**USUAL, **changes})


def rows(value) -> np.ndarray:
    """Good features, but for one value at node 2."""
    x = np.eye(4)
    x[2, 1] = value
    return x


WRONG_EDGES = [
    (
        [[0, 4], [1, 2]],
        r"holds node id 4; expected 0 to 3, because the graph has 4 nodes",
    ),
    ([[0, 1], [1, 10**12]], r"edge_index holds node id 1000000000000"),
    ([[0, -1], [1, 2]], r"edge_index holds node id -1"),
    (np.array([[2**64 - 1], [0]], dtype=np.uint64), r"edge_index holds 18446744073709551615"),
    ([[0.0, 1.0], [1.0, 2.0]], r"edge_index holds torch.float\d+ values; expected integer"),
    ([[True], [False]], r"edge_index holds torch.bool values"),
    (torch.ones(2, 1, dtype=torch.complex64), r"edge_index is strided complex64"),
    (torch.eye(2).long().to_sparse(), r"edge_index is sparse_coo"),
    ([[0, 1], [1, 2], [2, 3]], r"edge_index has shape \(3, 2\).*transpose it"),
    ([[0, 1, 2]], r"edge_index has shape \(1, 3\)"),
    ([0, 1], r"edge_index has shape \(2,\)"),
    (5, r"edge_index has shape \(\)"),
    ([], r"edge_index has shape \(0,\)"),
    ([[0, 1], [1]], r"edge_index is not an array"),
    ([["a"], ["b"]], r"edge_index holds <U1 values"),
    ([[0, None], [1, 2]], r"edge_index holds object values"),
    ([[2**70], [0]], r"edge_index holds object values"),
    (None, r"edge_index holds object values"),
]

WRONG_FEATURES = [
    (rows(NAN), r"x holds NaN or infinite values, the first at node 2"),
    (rows(INF), r"x holds NaN or infinite values, the first at node 2"),
    (rows(-INF), r"x holds NaN or infinite values, the first at node 2"),
    (rows(1e300), r"x holds NaN or infinite values, the first at node 2"),
    (torch.full((4, 2), NAN, dtype=torch.float16), r"x holds NaN .* at node 0"),
    (np.full((4, 2), np.longdouble(1e300)), r"x holds NaN .* at node 0"),
    (np.ones(4), r"x has shape \(4,\)"),
    (np.ones((4, 2, 2)), r"x has shape \(4, 2, 2\)"),
    (np.ones((4, 0)), r"x has shape \(4, 0\); expected .* both at least 1"),
    (np.ones((0, 4)), r"x has shape \(0, 4\); expected .* both at least 1"),
    ([], r"x has shape \(0,\)"),
    (3.0, r"x has shape \(\)"),
    (None, r"neither x nor num_nodes is given; give x"),
    ([[1.0], [2.0, 3.0], [1.0], [1.0]], r"x is not an array"),
    ([["a"], ["b"], ["c"], ["d"]], r"x holds <U1 values"),
    (np.eye(4).astype(object), r"x holds object values"),
    (np.eye(4).astype(complex), r"x holds complex128 values"),
    (torch.eye(4, dtype=torch.complex64), r"x is strided complex64"),
    (torch.eye(4).to_sparse(), r"x is sparse_coo"),
    (np.zeros(4, dtype="M8[s]"), r"x holds datetime64"),
]

WRONG_LABELS = [
    ([0, 1, 2], r"y has shape \(3,\); expected \[4\]"),
    ([[0, 1]], r"y has shape \(1, 2\)"),
    (np.zeros((4, 0)), r"y has shape \(4, 0\)"),
    (np.zeros((4, 2, 2)), r"y has shape \(4, 2, 2\)"),
    (1, r"y has shape \(\)"),
    ([0, 1, 2, -2], r"y holds label -2"),
    ([0, 1, 2, 10**9], r"y holds label 1000000000; expected class numbers below"),
    ([0.0, 1.0, INF, -1.0], r"y holds infinite values"),
    ([0.0, 1.0, 0.5, 1e300], r"y holds numbers that float32 cannot"),
    ([[0, 2], *MULTI[1:]], r"multi-label y holds values other than 0, 1"),
    ([[-2, -2], *MULTI[1:]], r"multi-label y holds values other than 0, 1"),
    (np.array([[255, 255], *MULTI[1:]], dtype=np.uint8), r"multi-label y holds values other"),
    (["a", "b", "c", "d"], r"y holds <U1 values"),
    ([0, 1, None, 2], r"y holds object values"),
    ([[0], [1, 2], [0], [1]], r"y is not an array"),
    (np.array([2**64 - 1] * 4, dtype=np.uint64), r"y holds 18446744073709551615"),
]

WRONG_MASKS = [
    ([True, False], r"_mask has shape \(2,\); expected \[4\]"),
    ([0, 2], r"_mask has shape \(2,\).*from a list of ids"),
    ([0, 1, 2, 3], r"_mask holds values other than 0 and 1"),
    ([0.5, 0, 0, 0], r"_mask holds values other than 0 and 1"),
    ([NAN, 0, 0, 0], r"_mask holds values other than 0 and 1"),
    ([[True, False]] * 4, r"_mask has shape \(4, 2\)"),
    ([False] * 4, r"_mask is empty"),
    (["yes", "no", "no", "no"], r"_mask holds <U3 values"),
    ([True, None, False, False], r"_mask holds object values"),
]

WRONG_WEIGHTS = [
    ([1.0, 0.0, 1.0], r"edge_weight holds 0; expected positive"),
    ([1.0, -1.0, 1.0], r"edge_weight holds -1; expected positive"),
    ([1.0, NAN, 1.0], r"edge_weight holds nan; expected positive"),
    ([1.0, INF, 1.0], r"edge_weight holds inf; expected positive"),
    ([1.0, 1e-300, 1.0], r"edge_weight holds 0; expected positive"),
    ([1.0, 1.0], r"edge_weight has shape \(2,\); expected \[3\]"),
    ([[1.0, 1.0, 1.0]], r"edge_weight has shape \(1, 3\)"),
    (1.0, r"edge_weight has shape \(\)"),
    (["a", "b", "c"], r"edge_weight holds <U1 values"),
    ([1.0, None, 1.0], r"edge_weight holds object values"),
]

WRONG_OTHERS = [
    ({"node_names": ["a", "b"]}, r"node_names has 2 entries; expected 4"),
    (
        {"node_names": ["a", "b", "c", 4]},
        r"node_names holds a value that is not text",
    ),
    (
        {"node_names": [b"a", b"b", b"c", b"d"]},
        r"node_names holds a value that is not text",
    ),
    (
        {"node_names": ["a", "b", "c", "\ud800"]},
        r"node_names holds a value that is not text",
    ),
    ({"node_names": "abcd"}, r"node_names is a str; expected a list"),
    ({"node_names": dict.fromkeys("abcd")}, r"node_names is a dict; expected a list"),
    ({"node_names": 4}, r"node_names is a int; expected a list"),
    ({"class_names": ["a", "b"]}, r"y holds label 2; expected 0 to 1"),
    (
        {"class_names": ["a", "b", 3]},
        r"class_names holds a value that is not text",
    ),
    ({"class_names": "abc"}, r"class_names is a str"),
    ({"class_names": ["a", "b"], "num_classes": 3}, r"class_names has 2 entries; expected 3"),
    ({"num_classes": 2}, r"y holds label 2; expected 0 to 1"),
    ({"num_classes": -1}, r"num_classes is -1"),
    ({"num_classes": 2.5}, r"num_classes is 2.5"),
    ({"num_classes": True}, r"num_classes is True"),
    ({"num_classes": "3"}, r"num_classes is '3'"),
    ({"y": MULTI, "num_classes": 3}, r"y is int8 \[4, 2\]; expected int8 \[4, 3\]"),
    ({"y": None, "train_mask": [1, 0, 0, 0]}, r"train_mask is given without y"),
    ({"meta": {"a": object()}}, r"meta is not a dictionary of JSON values"),
    ({"meta": 5}, r"meta is not a dictionary of JSON values"),
    ({"meta": "ab"}, r"meta is not a dictionary of JSON values"),
]


def refused(message: str, **changes) -> None:
    with pytest.raises(InputError, match=message):
        build(**changes)


@pytest.mark.parametrize(("edge_index", "message"), WRONG_EDGES)
def test_wrong_edges(edge_index, message):
    refused(message, edge_index=edge_index)


@pytest.mark.parametrize(("x", "message"), WRONG_FEATURES)
def test_wrong_features(x, message):
    refused(message, x=x)


@pytest.mark.parametrize(("y", "message"), WRONG_LABELS)
def test_wrong_labels(y, message):
    refused(message, y=y)


@pytest.mark.parametrize("split", ["train", "val", "test"])
@pytest.mark.parametrize(("mask", "message"), WRONG_MASKS)
def test_wrong_masks(split, mask, message):
    refused(f"^{split}{message}", **{f"{split}_mask": mask})


@pytest.mark.parametrize(("weight", "message"), WRONG_WEIGHTS)
def test_wrong_weights(weight, message):
    refused(message, edge_weight=weight)


@pytest.mark.parametrize(("changes", "message"), WRONG_OTHERS)
def test_wrong_names_classes_and_meta(changes, message):
    refused(message, **changes)


@pytest.mark.parametrize(("one", "other"), [("train", "val"), ("train", "test"), ("val", "test")])
def test_overlapping_masks(one, other):
    masks = {f"{one}_mask": [1, 1, 0, 0], f"{other}_mask": [0, 1, 1, 0]}
    refused(f"{one}_mask and {other}_mask share 1 nodes", **masks)


@pytest.mark.parametrize(
    "y",
    [[[-1, -1], *MULTI[1:]], [-1, 0, 1, 0], [NAN, 0.5, 1.5, 2.5], [[NAN, NAN], *[[0.5, 1]] * 3]],
)
def test_a_node_without_any_label_is_left_out_of_its_split(y, caplog):
    graph = build(y=y, val_mask=[1, 1, 0, 0])
    assert graph.val_mask.tolist() == [False, True, False, False]
    assert "val_mask: 1 nodes without a label are left out of it" in caplog.text


def test_nan_is_found_beyond_the_first_chunk_of_rows(monkeypatch):
    monkeypatch.setattr("graphfm.data.graph.checks.ROWS_AT_ONCE", 2)
    refused("the first at node 2", x=rows(NAN))


def test_what_is_right_passes():
    graph = build(train_mask=[1, 0, 0, 0], edge_weight=[1, 2, 3], node_names=list("abcd"))
    assert graph.num_classes == 3
