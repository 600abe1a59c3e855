"""Tables and arrays of OGB that are damaged, mislabelled or hostile are refused."""

import gzip
import zipfile

import numpy as np
import pytest

from graphfm.data.sources.raw import number_table
from tests.unit.data.sources.refusals import refused

TABLES = [
    ("num-node-list", b"6\n6\n", "2 rows; expected one"),
    ("num-node-list", b"", "0 rows; expected one"),
    ("num-node-list", b"0\n", "0 nodes; expected 1 to"),
    ("num-node-list", b"-6\n", "-6 nodes"),
    ("num-node-list", b"99999999999\n", "99,999,999,999 nodes"),
    ("num-node-list", b"2000000000\n", "it has 6 rows; expected 2,000,000,000"),
    ("num-node-list", b"5\n", "too many rows; expected 5"),
    ("num-edge-list", b"13\n", "too many rows; expected 13"),
    ("num-edge-list", b"15\n", "14 rows; expected 15"),
    ("num-edge-list", b"-1\n", "-1 edges"),
    ("num-edge-list", b"1\n" * 5000, "too many rows; expected at most 1,024"),
    ("edge", b"0,1\n" * 13 + b"0\n", "another number of columns; expected 2"),
    ("edge", b"0,1\n" * 13 + b"0,1,2\n", "another number of columns; expected 2"),
    ("edge", b"0\n1,2,3\n" + b"0,1\n" * 12, "another number of columns; expected 2"),
    ("edge", b"0,1\n" * 13 + b"0,x\n", "it holds b'x'"),
    ("edge", b"0,1\n" * 13 + b"0,\n", "not a number|a field is empty"),
    ("edge", b"0,1\n" * 13 + b"0,1-2\n", "not a number"),
    ("edge", b"0,1\n" * 13 + b"0,1.5\n", "it holds b'.'"),
    ("edge", b"0,1\n" * 13 + b"0,6\n", "an edge holds node id 6"),
    (
        "edge",
        b"0,1\n" * 13 + b"0,99999999999999999999\n",
        "holds node id 9223372036854775807",
    ),
    ("node-feat", b"1,2\n" * 5 + b"1\n", "another number of columns; expected 2"),
    ("node-feat", b"1,2\n" * 5 + b"1,nan\n", "node 5 has features"),
    ("node-feat", b"\n" * 6, "it is empty"),
    ("node-label", b"0\n1\n2\n0\n1\n", "5 rows; expected 6"),
    ("node-label", b"0\n1\n2\n0\n1\n1.5\n", "not a whole number"),
    ("node-label", b"0\n1\n2\n0\n1\n-7\n", "a label is out of range; expected 0 to"),
    ("node-label", b"0\n1\n2\n0\n1\n1e30\n", "a label is out of range; expected 0 to"),
]


@pytest.mark.parametrize(("name", "text", "reason"), TABLES)
def test_tables_that_are_none_are_refused(published, tmp_path, name, text, reason):
    published.tables(tmp_path, published.example())
    (tmp_path / "raw" / f"{name}.csv.gz").write_bytes(gzip.compress(text))
    refused(published, "ogb-tables", tmp_path, reason)


def test_a_line_that_never_ends_is_refused(published, tmp_path, monkeypatch):
    monkeypatch.setattr(number_table, "BYTES_AT_ONCE", 100)
    monkeypatch.setattr(number_table, "LONGEST_LINE", 1000)
    published.tables(tmp_path, published.example())
    (tmp_path / "raw" / "edge.csv.gz").write_bytes(gzip.compress(b"1" * 5000))
    refused(published, "ogb-tables", tmp_path, "a line is too long")


ARRAYS = [
    ({"edge_index": None}, "it does not hold edge_index"),
    ({"edge_index": np.zeros((14, 2), dtype=int)}, "edge_index has shape \\[14, 2\\]"),
    ({"edge_index": np.zeros((2, 14))}, "edge_index holds float64 values"),
    ({"edge_index": np.full((2, 14), 6)}, "an edge holds node id 6"),
    ({"edge_index": np.array([[None] * 14] * 2)}, "only pickle can read"),
    ({"num_edges_list": np.array([13])}, "edge_index has shape \\[2, 14\\]; expected \\[2, 13\\]"),
    ({"num_nodes_list": np.array([7])}, "node_feat has shape \\[6, 3\\]; expected \\[7,"),
    (
        {"num_nodes_list": np.array([3, 3])},
        "num_nodes_list has shape \\[2\\]; expected .1.",
    ),
    ({"num_nodes_list": np.array([1 << 40])}, "1,099,511,627,776 nodes"),
    ({"node_feat": np.zeros(6)}, "node_feat has shape \\[6\\]"),
]


@pytest.mark.parametrize(("change", "reason"), ARRAYS)
def test_arrays_that_are_none_are_refused(published, tmp_path, change, reason):
    published.arrays(tmp_path, published.example(), **change)
    refused(published, "ogb-arrays", tmp_path, reason)


def test_labels_of_another_shape_are_refused(published, tmp_path):
    published.arrays(tmp_path, published.example())
    np.savez(tmp_path / "raw" / "node-label.npz", node_label=np.zeros((6, 2)))
    refused(published, "ogb-arrays", tmp_path, "node_label has shape \\[6, 2\\]; expected \\[6\\]")


def test_a_pickle_in_place_of_an_archive_is_refused(published, tmp_path):
    published.arrays(tmp_path, published.example())
    with zipfile.ZipFile(tmp_path / "raw" / "data.npz", "w") as archive:
        archive.writestr("num_nodes_list.npy", b"\x80\x04K\x06.")
    refused(published, "ogb-arrays", tmp_path, "data.npz: damaged")


def test_an_array_for_which_the_disk_has_no_room_is_refused(published, tmp_path, monkeypatch):
    published.arrays(tmp_path, published.example())
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 100}))
    refused(published, "ogb-arrays", tmp_path, "needs .* bytes, but only 100 are free")
