"""Files in GraphSAINT's form that are damaged, mislabelled or hostile are refused."""

import struct

import numpy as np
import pytest

from graphfm.data.sources.raw import class_map
from tests.unit.data.sources.refusals import refused

MATRICES = [
    ({"indices": None}, "it does not hold indices"),
    ({"indptr": np.arange(3)}, "indptr has shape"),
    ({"indptr": np.array([0, 5, 3, 9, 14, 14, 14])}, "indptr does not rise"),
    ({"indptr": np.array([0, 1, 2, 3, 4, 5, 99])}, "indptr does not rise"),
    ({"indices": np.full(14, 6)}, "an edge holds node id 6; expected 0 to 5"),
    ({"indices": np.full(14, -1)}, "an edge holds node id -1"),
    ({"indices": np.zeros(14)}, "indices holds float64 values"),
    ({"indices": np.zeros((14, 1), dtype=int)}, "indices \\[14, 1\\]"),
    ({"indices": np.array([None] * 14)}, "only pickle can read"),
    ({"shape": np.array([7, 6])}, "the matrix has shape \\[7, 6\\]; expected \\[6, 6\\]"),
    ({"shape": np.array([1 << 62, 1 << 62])}, "the matrix has shape"),
    ({"format": np.array(b"coo")}, "has format 'coo'; expected 'csr'"),
    ({"format": np.array(b"csr" * 9999)}, "format has .* bytes; expected at most 4,096"),
    ({"format": np.array(3)}, "format holds int64 values; expected text"),
]


@pytest.mark.parametrize(("change", "reason"), MATRICES)
def test_a_matrix_that_is_none_is_refused(published, tmp_path, change, reason):
    published.saint(tmp_path, published.example(), **change)
    refused(published, "graphsaint", tmp_path, reason)


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros(6), "shape \\[6\\]; expected \\[num_nodes, num_features\\]"),
        (np.zeros((6, 0)), "shape \\[6, 0\\]"),
        (np.array([[None]]), "only pickle can read"),
        (np.array([["a"]]), "expected numbers"),
        (np.array([[0, 1, 2]] * 3 + [[0, np.nan, 1]] + [[0, 1, 2]] * 2), "node 3 has features"),
        (
            np.full((6, 2), 1e300),
            "node 0 has features that are NaN, infinite or too large",
        ),
    ],
)
def test_features_that_are_none_are_refused(published, tmp_path, array, reason):
    published.saint(tmp_path, published.example())
    np.save(tmp_path / "raw" / "feats.npy", array, allow_pickle=True)
    refused(published, "graphsaint", tmp_path, reason)


def test_a_shape_larger_than_its_file_is_refused_before_anything_is_allocated(published, tmp_path):
    published.saint(tmp_path, published.example())
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 64)}\n"
    header = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
    (tmp_path / "raw" / "feats.npy").write_bytes(header + bytes(64))
    refused(published, "graphsaint", tmp_path, "256,000,000,000,000 bytes, but 64 bytes follow")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not a JSON object"),
        ("[1, 2]", "not a JSON object"),
        ('{"0": 1', "not valid JSON from"),
        ('{"0": 1, }', "not valid JSON from"),
        ('{"0": 1}{', "more text follows"),
        ('{"0": "a"}', "not valid JSON from"),
        ('{"zero": 1}', "not valid JSON from"),
        ('{"0": 1, "0": 1}', "lists node 0 twice"),
        ('{"6": 1}', "holds node id 6; expected 0 to 5"),
        ('{"999999999999": 1}', "holds node id 999999999999"),
        ('{"0": -1}', "class -1"),
        ('{"0": 5000000}', "class 5000000"),
        ('{"0": [0, 1], "1": [1]}', "node 1 has 1 labels"),
        ('{"0": [0, 1], "1": 1}', "has one class; expected a list"),
        ('{"0": 1, "1": [0, 1]}', "node 1 has 2 labels"),
        ('{"0": [0, 2]}', "labels other than 0 and 1"),
        ('{"0": [,]}', "damaged"),
        ('{"0": []}', "node 0 has 0 labels"),
        ('{"0": 1}', "4 nodes are in the split but have no label"),
        ("\xff", "not a JSON object"),
    ],
)
def test_a_class_map_that_is_none_is_refused(published, tmp_path, text, reason):
    published.saint(tmp_path, published.example())
    (tmp_path / "raw" / "class_map.json").write_text(text)
    refused(published, "graphsaint", tmp_path, reason)


def test_an_entry_that_never_ends_is_refused(published, tmp_path, monkeypatch):
    monkeypatch.setattr(class_map, "TEXT_AT_ONCE", 100)
    monkeypatch.setattr(class_map, "LONGEST_ENTRY", 1000)
    published.saint(tmp_path, published.example())
    (tmp_path / "raw" / "class_map.json").write_text('{"0": [' + "1," * 5000)
    refused(published, "graphsaint", tmp_path, "not valid JSON from")


@pytest.mark.parametrize(
    ("roles", "reason"),
    [
        ("{", "damaged"),
        ("[]", "an object with the lists tr, va, te"),
        ('{"tr": [0], "va": [1]}', "an object with the lists"),
        ('{"tr": [0], "va": [1], "te": 2}', "not a list of node ids"),
        ('{"tr": [0], "va": [1], "te": [2.0]}', "not a list of node ids"),
        ('{"tr": [0], "va": [1], "te": [true]}', "not a list of node ids"),
        ('{"tr": [0], "va": [1], "te": [6]}', "holds node id 6; expected 0 to 5"),
        ('{"tr": [0], "va": [1], "te": [-1]}', "holds node id -1"),
        ('{"tr": [0], "va": [1], "te": [1e999]}', "not a list of node ids"),
        ('{"tr": [0], "va": [1], "te": [99999999999999999999]}', "does not fit in 64 bits"),
        ('{"tr": [0], "va": [1], "te": [0]}', "lists a node twice"),
        ('{"tr": [0, 0], "va": [1], "te": [2]}', "lists a node twice"),
        ('{"tr": [5], "va": [1], "te": [2]}', "1 nodes are in the split but have no label"),
        ('{"tr": [], "va": [1], "te": [2]}', "no training nodes"),
        ("[" * 100_000, "larger than any list of 6 nodes"),
        ("[" * 1100, "damaged|an object"),
    ],
)
def test_roles_that_are_none_are_refused(published, tmp_path, roles, reason):
    published.saint(tmp_path, published.example())
    (tmp_path / "raw" / "role.json").write_text(roles)
    refused(published, "graphsaint", tmp_path, reason)
