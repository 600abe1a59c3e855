"""graphfm predict and graphfm embed write files of several kinds, for all nodes or some."""

import csv
import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest
import torch

from graphfm import Graph, load, load_model
from tests.unit.cli.commands import SMALL, graphfm, other_graph, refused, tree

pytestmark = pytest.mark.usefixtures("here")


def cells(path: Path) -> dict[str, tuple[str, ...]]:
    """The columns of a CSV file by name."""
    with path.open(newline="", encoding="utf-8") as stream:
        header, *rows = csv.reader(stream)
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def ended(*arguments) -> None:
    end = graphfm(*arguments, "--device", "cpu")
    assert end.code == 0, end.err


def test_all_probabilities_are_the_same_in_every_file(run, here):
    chances = load_model(run).predict(load(SMALL))
    ended("predict", run, "--out", "p.npy")
    assert np.array_equal(np.load("p.npy"), chances.numpy())
    ended("predict", run, "--out", "p.parquet", "--probabilities")
    table = duckdb.sql("SELECT * FROM 'p.parquet' ORDER BY node")
    assert table.columns == [
        "node", "name", "class", "probability", *map(str, range(10)), "truth", "split",
    ]  # fmt: skip
    rows = list(zip(*table.fetchall(), strict=True))
    assert torch.equal(torch.tensor(rows[4:14]).t(), chances)
    ended("predict", run, "--out", "p.csv", "--probabilities")
    columns = cells(here / "p.csv")
    assert list(columns) == table.columns
    assert tuple(map(str, rows[2])) == columns["class"]
    shown = torch.tensor([[float(cell) for cell in columns[str(n)]] for n in range(10)]).t()
    torch.testing.assert_close(shown, chances, atol=1e-6, rtol=0)


def test_the_best_classes_are_in_order(run, here):
    ended("predict", run, "--out", "p.csv", "--top", 3)
    columns, chances = cells(here / "p.csv"), load_model(run).predict(load(SMALL))
    best = chances.topk(3)
    for place, after in enumerate(("", "_2", "_3")):
        assert list(map(int, columns[f"class{after}"])) == best.indices[:, place].tolist()
        shown = torch.tensor(list(map(float, columns[f"probability{after}"])))
        torch.testing.assert_close(shown, best.values[:, place], atol=1e-6, rtol=0)


def test_truth_and_split_are_those_of_the_graph(run, here):
    ended("predict", run, "--out", "p.csv")
    columns, graph = cells(here / "p.csv"), load(SMALL)
    assert list(map(int, columns["truth"])) == graph.y.tolist()
    for split in ("train", "val", "test"):
        assert [text == split for text in columns["split"]] == graph.mask(split).tolist()
    other_graph(here / "g.npz")  # without labels or splits
    ended("predict", run, "--dataset", "g.npz", "--out", "p.csv")
    assert list(cells(here / "p.csv")) == ["node", "name", "class", "probability"]


def test_unknown_labels_are_empty(run, here):
    names = [f"kind {number}" for number in range(10)]
    other_graph(here / "g.npz", y=[3, -1, 0, 9, -1], class_names=names, train_mask=[1, 0, 0, 0, 0])
    ended("predict", run, "--dataset", "g.npz", "--out", "p.parquet")
    found = duckdb.sql("SELECT truth, split FROM 'p.parquet' ORDER BY node").fetchall()
    assert found == [
        ("kind 3", "train"), (None, None), ("kind 0", None), ("kind 9", None), (None, None),
    ]  # fmt: skip


@pytest.mark.parametrize("command", ["predict", "embed"])
def test_some_nodes_are_the_rows_of_all(run, here, command):
    other_graph(here / "g.npz", node_names=["a", "b", "c", "d", "e"])
    (here / "ids.txt").write_text("d\na\n")
    ended(command, run, "--dataset", "g.npz", "--out", "all.csv")
    end = graphfm(command, run, "--dataset", "g.npz", "--out", "some.csv", "--nodes", "ids.txt",
                  "--json")  # fmt: skip
    assert end.json["nodes"] == 2
    whole, some = cells(here / "all.csv"), cells(here / "some.csv")
    assert some["name"] == ("d", "a")
    assert some == {name: (column[3], column[0]) for name, column in whole.items()}
    ended(
        command, run, "--dataset", "g.npz", "--out", "t.csv", "--nodes", "all.csv", "--id", "name"
    )
    assert cells(here / "t.csv") == whole


def test_labels_and_their_probabilities_of_a_node_with_many(here):
    y = [[1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0], [-1, -1, -1]]
    masks = {"train_mask": [1, 1, 0, 0, 0], "val_mask": [0, 0, 1, 1, 0]}
    other_graph(here / "g.npz", y=y, class_names=["red", "Red", "split"], **masks)
    ended("train", "--dataset", "g.npz", "--epochs", 2, "--out", "run")
    ended("predict", "run", "--out", "p.parquet", "--probabilities", "--top", 2)
    table = duckdb.sql("SELECT * FROM 'p.parquet' ORDER BY node")
    assert table.columns == [
        "node", "name", "class", "probability", "class_2", "probability_2", "red", "Red_2",
        "split_2", "truth", "split",
    ]  # fmt: skip
    rows = table.fetchall()
    for row in rows:
        assert [row[3], row[5]] == sorted(row[6:9], reverse=True)[:2]
    assert [row[9] for row in rows] == ["red|split", "Red", "red|Red|split", "", None]


def test_embeddings_are_those_of_the_model(run, here):
    graph, model = load(SMALL), load_model(run)
    for layer in (None, 0, 1, 2, -1):
        options = [] if layer is None else ["--layer", layer]
        ended("embed", run, "--out", "e.npy", *options)
        want = model.embed(graph, layer)
        assert np.array_equal(np.load("e.npy"), want.numpy())
    ended("embed", run, "--out", "e.parquet")
    table = duckdb.sql("SELECT * EXCLUDE (name) FROM 'e.parquet' ORDER BY node")
    rows = torch.tensor(table.fetchall())
    assert table.columns[1:] == [f"e{number}" for number in range(256)]
    assert torch.equal(rows[:, 1:], model.embed(graph))
    ended("embed", run, "--out", "e.csv", "--nodes", "3")
    (row,) = zip(*cells(here / "e.csv").values(), strict=True)
    assert torch.equal(torch.tensor([*map(float, row[2:])]), model.embed(graph)[3])


@pytest.mark.parametrize("method", ["sign", "sgc"])
def test_precomputed_hops_have_rows_too(here, method):
    ended("train", "--dataset", SMALL, "--epochs", 1, "--method", method, "--out", "run")
    ended("embed", "run", "--out", "e.npy")
    assert len(np.load("e.npy")) == 200
    refused(
        graphfm("embed", "run", "--out", "f.npy", "--layer", 1), "the layer is 1; expected 0 to 0"
    )


def test_names_of_a_mapped_folder_are_read_where_they_are_used(run, here):
    other_graph(here / "g.npz", node_names=["a", "ß", "c,d", 'e"f', "g"])
    assert graphfm("import", "g.npz", "--out", "g").code == 0
    ended("predict", run, "--dataset", "g", "--out", "p.csv")
    assert cells(here / "p.csv")["name"] == ("a", "ß", "c,d", 'e"f', "g")
    ended("embed", run, "--dataset", "g", "--out", "e.csv", "--nodes", "g,ß")
    assert cells(here / "e.csv")["name"] == ("g", "ß")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["predict", "--out", "p.txt"], "cannot write p.txt: expected a file that ends in"),
        (["embed", "--out", "p"], "cannot write p: expected a file that ends in"),
        (["predict", "--out", "p.csv", "--top", "11"], "top is 11; expected 1 to 10"),
        (["predict", "--out", "p.csv", "--top", "0"], "top is 0; expected 1 to 10"),
        (["predict", "--out", "p.npy", "--top", "2"], "holds all probabilities; leave out --top"),
        (["predict", "--out", "p.csv", "--nodes", "200"], "no node '200'"),
        (["predict", "--out", "p.csv", "--id", "x"], "give --nodes too"),
        (["embed", "--out", "p.csv", "--layer", "3"], "the layer is 3; expected 0 to 2"),
        (["embed", "--out", "none/p.npy"], "cannot write none/p.npy"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(run, here, words, reason):
    before = tree(here)
    refused(graphfm(words[0], run, *words[1:], "--device", "cpu"), reason)
    assert tree(here) == before


def test_a_regression_has_no_classes_to_choose(here):
    ids = torch.arange(5)
    y = torch.arange(5.0) / 2
    Graph.from_edges(
        [[0], [1]], torch.ones(5, 2), y, train_mask=ids < 3, val_mask=ids >= 3
    ).save(here / "g.npz")  # fmt: skip
    ended("train", "--dataset", "g.npz", "--epochs", 1, "--out", "run")
    refused(graphfm("predict", "run", "--out", "p.csv", "--top", 1), "values, not classes")
    ended("predict", "run", "--out", "p.parquet")
    table = duckdb.sql("SELECT * FROM 'p.parquet' ORDER BY node")
    assert table.columns == ["node", "name", "value", "truth", "split"]
    assert [row[3] for row in table.fetchall()] == y.tolist()


def test_without_duckdb_only_parquet_is_refused(run, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    before = tree(here)
    end = graphfm("predict", run, "--out", "p.parquet", "--device", "cpu")
    refused(end, r"pip install 'graphfm\[import\]'")
    assert tree(here) == before
    for name in ("p.csv", "p.csv.gz", "p.npy"):
        ended("predict", run, "--out", name, "--nodes", "1,2")
