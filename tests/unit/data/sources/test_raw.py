"""Published files are read as they are meant, against a matrix."""

import gzip
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfm.data.sources import build as building
from graphfm.data.sources import mapped_folder as stored
from graphfm.data.sources.raw import class_map, number_table

FORMS = ("graphsaint", "ogb-tables", "ogb-arrays")


def rows_of(graph) -> np.ndarray:
    """[target, source]: how often the graph holds each edge."""
    counts = np.zeros((graph.num_nodes,) * 2, dtype=int)
    sources, targets = graph.edge_index.numpy()
    np.add.at(counts, (targets, sources), 1)
    return counts


def read(published, form, folder, **preparation):
    return stored.open_graph(building.build(published.source(form, **preparation), folder))


def same(graph, example) -> None:
    assert (rows_of(graph) == example.counts).all()
    assert np.array_equal(graph.x.numpy(), example.x)
    assert np.array_equal(graph.y.numpy(), example.y)
    for part, name in enumerate(("train", "val", "test")):
        assert np.array_equal(graph.mask(name).numpy(), example.split == part)


@pytest.mark.parametrize("form", FORMS)
def test_files_are_read_back(published, form, tmp_path):
    example = published.example()
    published.write(form, tmp_path, example)
    same(read(published, form, tmp_path), example)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=25, deadline=None)
@given(st.integers(3, 12), st.integers(0, 40), st.integers(0, 1 << 16), st.integers(1, 30))
def test_any_graph_is_read_back_in_any_pieces(published, form, nodes, edges, seed, size):
    example = published.example(nodes, edges, seed=seed)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for module in ("graphsaint", "ogb_arrays"):
            patch.setattr(f"graphfm.data.sources.raw.{module}.EDGES_AT_ONCE", size)
            patch.setattr(f"graphfm.data.sources.raw.{module}.NUMBERS_AT_ONCE", size)
        patch.setattr(number_table, "BYTES_AT_ONCE", size)
        patch.setattr(class_map, "TEXT_AT_ONCE", size)
        published.write(form, Path(folder), example)
        same(read(published, form, Path(folder)), example)


def test_many_labels_per_node(published, tmp_path):
    example = published.example(multi_label=True)
    published.saint(tmp_path, example)
    graph = read(published, "graphsaint", tmp_path)
    assert graph.multi_label
    assert graph.num_classes == 4
    same(graph, example)


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_in_either_order(published, tmp_path, order, compressed):
    example = published.example(7, 20)
    published.arrays(tmp_path, example, order=order, compressed=compressed)
    same(read(published, "ogb-arrays", tmp_path), example)


@pytest.mark.parametrize("dtype", ["float64", "float16", ">f4", "int8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_features_of_other_types(published, tmp_path, dtype, order):
    example = published.example()
    example.x = np.round(example.x).astype(dtype)
    published.saint(tmp_path, example, compressed=False, format=np.array("csr"))
    np.save(tmp_path / "raw" / "feats.npy", np.array(example.x, order=order))
    graph = read(published, "graphsaint", tmp_path)
    assert np.array_equal(graph.x.numpy(), example.x.astype("float32"))


def test_a_node_that_is_not_in_the_class_map_is_unlabelled(published, tmp_path):
    example = published.example(8)
    published.saint(tmp_path, example)
    assert read(published, "graphsaint", tmp_path).y[5] == -1


def test_the_last_line_may_lack_its_end(published, tmp_path):
    example = published.example()
    published.tables(tmp_path, example)
    path = tmp_path / "raw" / "edge.csv.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).rstrip(b"\n")))
    same(read(published, "ogb-tables", tmp_path), example)


def test_roles_are_json_of_the_size_of_the_graph(published, tmp_path):
    example = published.example(40)
    published.saint(tmp_path, example)
    roles = json.loads((tmp_path / "raw" / "role.json").read_text())
    (tmp_path / "raw" / "role.json").write_text(json.dumps(roles, indent=8))
    same(read(published, "graphsaint", tmp_path), example)
