"""Published files that are damaged, mislabelled or hostile are refused, and nothing is left."""

import gzip
import struct
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfm import InputError
from graphfm.data.sources import build as building
from graphfm.data.sources import mapped_folder as stored
from graphfm.data.sources.raw import base, class_map, number_table

FORMS = ("graphsaint", "ogb-tables", "ogb-arrays")


def refused(published, form, folder, reason) -> None:
    """One line that names the folder, and nothing left of the attempt."""
    before = set(folder.rglob("*"))
    with pytest.raises(InputError, match=reason) as error:
        building.build(published.source(form), folder)
    assert "\n" not in str(error.value)
    assert str(folder) in str(error.value)
    assert set(folder.rglob("*")) == before


@pytest.mark.parametrize("form", FORMS)
def test_every_file_is_needed(published, form, tmp_path):
    example = published.example()
    for name in published.source(form).files:
        published.write(form, tmp_path, example)
        (tmp_path / name).unlink()
        refused(published, form, tmp_path, f"{name}: no such file")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kept", [0.0, 0.3, 0.7, 0.98])
def test_every_file_cut_short_is_refused(published, form, tmp_path, kept):
    example = published.example(20, 60)
    for name in published.source(form).files:
        published.write(form, tmp_path, example)
        path = tmp_path / name
        content = path.read_bytes()
        path.write_bytes(content[: min(int(len(content) * kept), len(content) - 1)])
        refused(published, form, tmp_path, path.name)


@pytest.mark.parametrize("form", FORMS)
def test_a_web_page_in_place_of_any_file_is_refused(published, form, tmp_path):
    example = published.example()
    for name in published.source(form).files:
        published.write(form, tmp_path, example)
        (tmp_path / name).write_text("<!DOCTYPE html><html><title>Google Drive</title></html>")
        refused(published, form, tmp_path, f"{name} is a web page, not data")


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FORMS), st.integers(0, 7), st.integers(0, 1 << 20), st.integers(1, 255))
def test_a_flipped_byte_is_refused_or_harmless(published, form, file, place, flip):
    """Whatever it does, it is a graph or one line."""
    example = published.example()
    with tempfile.TemporaryDirectory() as name:
        folder, source = Path(name), published.source(form)
        published.write(form, folder, example)
        path = folder / source.files[file % len(source.files)]
        content = bytearray(path.read_bytes())
        content[place % len(content)] ^= flip
        path.write_bytes(content)
        with suppress(InputError):
            assert stored.open_graph(building.build(source, folder)).num_nodes > 0
        assert not (folder / "graph.unfinished").exists()


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


def test_more_nodes_than_memory_are_refused(published, tmp_path, monkeypatch):
    published.saint(tmp_path, published.example())
    monkeypatch.setattr(building, "available_memory", lambda: 100)
    refused(published, "graphsaint", tmp_path, "building 6 nodes takes more memory")


def test_a_full_disk_is_not_taken_for_a_damaged_file():
    with pytest.raises(OSError, match="No space left"), base.reading(Path("x")):
        raise OSError(28, "No space left on device")
