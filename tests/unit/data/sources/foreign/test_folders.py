"""Folders of OGB, GraphSAINT and .npy files are read under any name."""

import gzip
import shutil

import numpy as np
import pytest

from graphfm import InputError, load, train
from graphfm.data.datasets import path_of
from graphfm.data.graph.summary import summarize


def check(graph, example):
    counts = np.zeros_like(example.counts)
    source, target = graph.edge_index.numpy()
    np.add.at(counts, (target, source), 1)
    assert np.array_equal(counts, example.counts)
    assert np.array_equal(graph.x.numpy(), example.x)
    assert np.array_equal(graph.y.numpy(), example.y)
    for part, name in enumerate(("train", "val", "test")):
        assert np.array_equal(graph.mask(name).numpy(), example.split == part)


@pytest.mark.parametrize("form", ["graphsaint", "ogb-tables", "ogb-arrays"])
def test_published_forms_are_read_under_any_name(published, tmp_path, form):
    example = published.example(30, 90)
    published.write(form, tmp_path / "mine", example)
    before = sorted(tmp_path.rglob("*"))
    graph = load(tmp_path / "mine")
    check(graph, example)
    assert graph.meta == {"source": "mine", "format": form}
    assert sorted(tmp_path.rglob("*")) == before


def test_files_of_graphsaint_need_no_folder_raw(published, tmp_path):
    example = published.example(multi_label=True)
    published.saint(tmp_path / "there", example)
    check(load(tmp_path / "there"), example)
    (tmp_path / "there" / "raw").rename(tmp_path / "direct")
    check(load(tmp_path / "direct"), example)


def test_features_labels_and_split_of_ogb_may_be_missing(published, tmp_path):
    published.tables(tmp_path / "g", published.example())
    shutil.rmtree(tmp_path / "g" / "split")
    assert not load(tmp_path / "g").train_mask.any()
    (tmp_path / "g" / "raw" / "node-label.csv.gz").unlink()
    (tmp_path / "g" / "raw" / "node-feat.csv.gz").unlink()
    graph = load(tmp_path / "g")
    assert (graph.num_nodes, graph.num_features, graph.num_classes) == (6, 0, 0)
    assert summarize(graph)["edges"] == 14
    (tmp_path / "g" / "raw" / "num-node-list.csv.gz").write_bytes(published.table([2_000_000_000]))
    with pytest.raises(InputError, match="nearly all would be isolated"):
        load(tmp_path / "g")


def test_tables_of_windows_are_read(published, tmp_path):
    example = published.example()
    published.tables(tmp_path / "g", example)
    for path in (tmp_path / "g").rglob("*.csv.gz"):
        path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(b"\n", b"\r\n")))
    check(load(tmp_path / "g"), example)


def test_what_ogb_has_beside_a_graph_is_named(published, tmp_path, caplog):
    published.tables(tmp_path / "g", published.example())
    load(tmp_path / "g")
    assert not caplog.text
    (tmp_path / "g" / "raw" / "edge-feat.csv.gz").write_bytes(published.table([1]))
    load(tmp_path / "g")
    assert "edge-feat.csv.gz is not used" in caplog.text
    published.write("ogb-arrays", tmp_path / "h", published.example())
    load(tmp_path / "h")
    assert "node_year is not used" in caplog.text


def test_several_splits_are_refused(published, tmp_path):
    published.tables(tmp_path / "g", published.example())
    (tmp_path / "g" / "split" / "other").mkdir()
    with pytest.raises(InputError, match=r"several splits \(other, time\); move all but one"):
        load(tmp_path / "g")


LAYOUTS = {"flat": (".", "."), "igb": ("processed/paper__cites__paper", "processed/paper")}


def write_arrays(folder, edges=".", nodes=".", **arrays):
    given = {
        "edge_index": np.array([[0, 1], [1, 2], [2, 0]]),  # a row per edge, as in IGB
        "node_feat": np.ones((3, 2), np.float16),
        "node_label_19": np.array([0, 1, np.nan]),
        "train_mask": np.array([True, False, False]),
        "val_mask": np.array([False, True, False]),
    } | arrays
    for name, array in given.items():
        place = folder / (edges if name == "edge_index" else nodes)
        place.mkdir(parents=True, exist_ok=True)
        if array is not None:
            np.save(place / f"{name}.npy", array)
    return folder


@pytest.mark.parametrize("layout", LAYOUTS)
def test_folders_of_npy_files_are_read(tmp_path, layout):
    graph = load(write_arrays(tmp_path / "g", *LAYOUTS[layout]))
    assert graph.edge_index.T.tolist() == [[2, 0], [0, 1], [1, 2]]
    assert graph.y.tolist() == [0, 1, -1]
    assert graph.train_mask.tolist() == [True, False, False]
    assert train(graph, hidden=2, epochs=1, device="cpu").model is not None


def test_edges_may_lie_in_two_rows(tmp_path):
    edges = np.array([[0, 1, 2], [1, 2, 0]])
    graph = load(write_arrays(tmp_path / "g", edge_index=edges))
    assert graph.edge_index.T.tolist() == [[2, 0], [0, 1], [1, 2]]


def test_without_features_other_files_tell_the_number_of_nodes(tmp_path):
    graph = load(write_arrays(tmp_path / "g", node_feat=None, node_label_19=[0, 1, 0]))
    assert (graph.num_nodes, graph.num_features) == (3, 0)
    bare = dict.fromkeys(("node_feat", "node_label_19", "train_mask", "val_mask"))
    assert load(write_arrays(tmp_path / "h", **bare)).num_nodes == 3


def test_other_arrays_are_named(tmp_path, caplog):
    load(write_arrays(tmp_path / "g", node_year=np.ones(3)))
    assert "node_year.npy is not used" in caplog.text


WRONG = {
    "two labels": ({"node_label_2K": np.zeros(3)}, "several files of labels"),
    "shape": ({"edge_index": np.zeros((3, 3), int)}, r"shape \[3, 3\]; expected \[2, num_edges\]"),
    "fractions": ({"edge_index": np.zeros((2, 3))}, "float64 values; expected whole numbers"),
    "id": ({"edge_index": np.array([[0, 7], [1, 1]])}, "node id 7; expected 0 to 2"),
    "labels": ({"node_label_19": np.zeros(4)}, r"y has shape \(4,\); expected \[3\]"),
    "endless": ({"node_label_19": np.array([0, 1, np.inf])}, "y holds infinite values"),
    "objects": ({"node_feat": np.array([[None]])}, "holds Python objects"),
    "far": (
        {"edge_index": np.array([[0, 2**30]]), "node_feat": None, "node_label_19": None,
         "train_mask": None, "val_mask": None}, "nearly all would be isolated",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("arrays", "message"), WRONG.values(), ids=WRONG)
def test_wrong_arrays_are_refused(tmp_path, arrays, message):
    folder = write_arrays(tmp_path / "g", **arrays)
    with pytest.raises(InputError, match=message) as error:
        load(folder)
    assert str(folder) in str(error.value)


def test_what_is_not_recognised_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "edges.csv").write_text("a,b\n")
    for name in ("folder", "edges.csv"):
        with pytest.raises(InputError, match="is not a graph that is recognised; expected an .npz"):
            load(tmp_path / name)


def test_a_run_remembers_where_its_graph_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_arrays(tmp_path / "g")
    assert path_of("g") == tmp_path / "g"
    assert path_of("there.mtx") == tmp_path / "there.mtx"
    for name in ("debian", "synthetic:small", "arxiv", ""):
        assert path_of(name) is None
