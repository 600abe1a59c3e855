"""What graph files hold is checked, read and saved."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from graphfm import Graph, InputError
from tests.unit.data.formats.npz_files import EDGES, X, described, graph, refused, write


def with_meta(path: Path, meta) -> Path:
    return write(path, meta=np.array(meta if isinstance(meta, str) else json.dumps(meta)))


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"edge_index": EDGES + 1}, "edge_index holds node id 3"),
        ({"edge_index": EDGES.astype(float)}, "edge_index holds"),
        ({"x": X * np.nan}, "x holds NaN"),
        ({"x": X[:0]}, "x has shape"),
        ({"y": np.array([0, 1])}, "y has shape"),
        ({"y": np.array([0, 1, 2**40])}, "y holds label"),
        ({"y": np.array(["a", "b", "c"])}, "y holds <U1 values; expected numbers"),
        ({"train_mask": np.ones(3, bool)}, "train_mask is given without y"),
        ({"train_mask": np.zeros(3, bool)}, "train_mask is empty"),
        ({"edge_weight": np.zeros(4)}, "edge_weight holds"),
        ({"edge_weight": np.ones(3)}, "edge_weight has shape"),
    ],
)
def test_wrong_values_are_named_with_the_file(path, members, reason):
    refused(write(path, **members), reason)


@pytest.mark.parametrize(
    ("meta", "reason"),
    [
        ("not JSON", "meta is not one JSON text"),
        ("", "meta is not one JSON text"),
        ("[1, 2]", "meta is a JSON list"),
        ("5", "meta is a JSON int"),
        ("null", "meta is a JSON NoneType"),
        ("[" * 100_000, "meta is not one JSON text"),
        ('{"a":' * 100_000, "meta is not one JSON text"),
        ('{"a": ' + "1" * 10_000 + "}", "meta is not one JSON text"),
        ({"names": ["a"]}, "node_names has 1 entries; expected 3"),
        ({"names": "abc"}, "node_names is a str"),
        ({"names": {"a": 1, "b": 2, "c": 3}}, "node_names is a dict"),
        ({"names": [1, 2, 3]}, "node_names holds a value that is not text"),
        ({"names": ["a", "b", "\ud800"]}, "node_names holds a value that is not text"),
        ({"names": 3}, "node_names is a int"),
        ({"labels": ["a", ["b"]]}, "class_names holds a value that is not text"),
        ({"labels": True}, "class_names is a bool"),
        ({"labels": ["a"], "num_classes": 2}, "class_names has 1 entries; expected 2"),
        ({"num_classes": "many"}, "num_classes is 'many'"),
        ({"num_classes": -1}, "num_classes is -1"),
        ({"num_classes": 2.5}, "num_classes is 2.5"),
    ],
)
def test_meta_that_is_wrong(path, meta, reason):
    refused(with_meta(path, meta), reason)


@pytest.mark.parametrize(
    ("meta", "reason"),
    [
        (np.array(["{}", "{}"]), "meta is not one JSON text"),
        (np.array([], dtype="<U2"), "meta is not one JSON text"),
        (np.array(5), "meta holds int64 values; expected text"),
        (np.array(b"{}"), "meta holds |S2 values; expected text"),
        (described("()", "'<U1'", b"\xff\xff\xff\xff"), "meta is not one JSON text"),
    ],
    ids=["two", "none", "number", "bytes", "no letter"],
)
def test_meta_that_is_no_text(path, meta, reason):
    refused(write(path, meta=meta), reason)


# What is not used


def test_arrays_that_are_not_used_are_named_in_one_warning(path, caplog):
    write(path, edge_attrs=np.ones((4, 2)), pos=np.zeros(4), split=np.array(["a"]))
    assert Graph.from_npz(path).num_edges == 4
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("graphfm", "WARNING")
    assert record.getMessage().startswith(f"{path}: edge_attrs, pos, split are not used")


def test_a_file_whose_arrays_are_all_used_is_read_without_a_warning(path, caplog):
    graph().save(path)
    Graph.from_npz(path)
    assert caplog.records == []


# Quantised features


@pytest.mark.parametrize("kind", ["i1", "u1", "<i2", ">i2"])
def test_quantised_features_are_scaled_back(path, kind):
    x, scale = np.array([[1, 2], [100, 0], [3, 127]]).astype(kind), np.array([0.5, 0.25])
    read = Graph.from_npz(write(path, x=x, x_scale=scale))
    assert read.x.dtype == torch.float32
    assert read.x.tolist() == [[0.5, 0.5], [50.0, 0.0], [1.5, 31.75]]


@pytest.mark.parametrize(
    ("x", "scale", "reason"),
    [
        (X, np.ones(3), r"x_scale has shape \[3\] for x of shape \[3, 2\]"),
        (X, np.ones((1, 2)), "x_scale has shape"),
        (X, np.array(1.0), "x_scale has shape"),
        (X[0], np.ones(2), "x_scale has shape"),
        (X, np.array([1.0, np.nan]), "x_scale holds NaN"),
        (X, np.array([1.0, np.inf]), "x_scale holds NaN or infinite"),
        (X, np.full(2, 3e38, dtype=np.float32), "x holds NaN or infinite"),
        (X, np.full(2, 1e300), "x holds NaN or infinite"),
        (X, np.array(["a", "b"]), "x_scale holds <U1 values"),
    ],
)
def test_scales_that_are_wrong(path, x, scale, reason):
    refused(write(path, x=x, x_scale=scale), reason)


# Saving


def test_saving_over_a_file_replaces_it(path):
    Graph.from_edges(EDGES, X + 1).save(path)
    graph().save(path)
    assert Graph.from_npz(path).fingerprint == graph().fingerprint
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("failure", [OSError("disk full"), KeyboardInterrupt(), MemoryError()])
def test_a_failure_in_the_middle_of_saving_leaves_the_old_file(path, monkeypatch, failure):
    path.write_bytes(b"old")

    def fail_half_way(stream, **arrays):
        stream.write(b"half of it")
        stream.flush()
        assert len(os.listdir(path.parent)) == 2
        raise failure

    monkeypatch.setattr(np, "savez_compressed", fail_half_way)
    with pytest.raises(type(failure)):
        graph().save(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("name", ["", "missing/graph.npz"])
def test_saving_to_an_impossible_place_leaves_nothing(tmp_path, name):
    with pytest.raises(InputError, match="not a file|no such folder"):
        graph().save(tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_saving_keeps_keys_of_meta_apart_from_names(path):
    with_names = Graph.from_edges(EDGES, X, node_names=list("abc"), meta={"names": 7, "k": 1})
    with_names.save(path)
    read = Graph.from_npz(path)
    assert (read.node_names, read.meta) == (("a", "b", "c"), {"k": 1})
