"""Columns of numbers to predict: as they are in the tables, with gaps, in and out again."""

import logging

import numpy as np
import pytest
import torch

from graphfm import Graph, InputError, load
from graphfm.data.graph.summary import summarize
from graphfm.data.sources.folder_writer import import_graph
from graphfm.data.sources.tables.export import export_tables
from graphfm.data.sources.tables.importer import import_tables
from graphfm.data.sources.tables.request import NodeTable, Split, read_request
from tests.unit.data.sources.tables.writing import MEMORY, RING, imported, pairs, people

ROWS = [
    {**row, "income": None if n == 4 else n * 1.5, "debt": ["", "NA", 7, "nan"][n % 4]}
    for n, row in enumerate(people())
]
EDGES = pairs(ROWS, RING)
NAN = float("nan")


def same(one, other) -> bool:
    return torch.equal(torch.nan_to_num(one, -9), torch.nan_to_num(torch.tensor(other), -9))


def test_a_column_of_numbers_is_one_target_with_gaps(tmp_path):
    graph, report = imported(tmp_path, ROWS, EDGES, node_regress=("income",))
    assert (graph.task, graph.num_classes, graph.class_names) == ("regression", 1, ("income",))
    assert same(graph.y, [NAN if n == 4 else n * 1.5 for n in range(12)])
    (target,) = report["targets"]
    assert (target["name"], target["missing"], target["min"], target["max"]) == (
        "income", 1, 0.0, 16.5,
    )  # fmt: skip
    assert (report["unlabelled"], report["classes"]) == (1, {})
    assert summarize(graph)["targets"] == [target]
    assert summarize(graph)["homophily"] is None


def test_several_columns_are_several_targets(tmp_path):
    split = Split(train=0.5, val=0.3)
    more = {"node_missing": ("NA",), "node_split": split}
    graph, report = imported(tmp_path, ROWS, EDGES, node_regress=("debt", "income"), **more)
    assert graph.class_names == ("debt", "income")
    assert graph.y.dtype == torch.float32
    assert same(graph.y[:3], [[NAN, 0.0], [NAN, 1.5], [7.0, 3.0]])
    assert report["unlabelled"] == 1  # of node 4 neither is known
    assert not bool((graph.train_mask | graph.val_mask | graph.test_mask)[4])
    assert int(graph.train_mask.sum()) == 6  # half of 11


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("names", [None, ["a", 'q"'], ["id", "ID"]])
def test_out_and_in_again_gives_the_same_graph(tmp_path, kind, names):
    dice = torch.Generator().manual_seed(0)
    y = torch.randn(9, 2, generator=dice)
    y[3], y[5, 1] = NAN, NAN
    graph = Graph.from_edges(
        torch.randint(9, (2, 30), generator=dice), torch.randn(9, 3, generator=dice), y,
        train_mask=torch.arange(9) < 3, val_mask=torch.arange(9) > 6, class_names=names,
    )  # fmt: skip
    import_graph(graph, tmp_path / "one")
    opened = load(tmp_path / "one")
    assert (opened.fingerprint, opened.class_names) == (graph.fingerprint, graph.class_names)
    export_tables(opened, tmp_path / "tables", kind)
    import_tables(read_request(tmp_path / "tables/graph.toml"), tmp_path / "two", memory=MEMORY)
    again = load(tmp_path / "two")
    assert again.fingerprint == graph.fingerprint
    assert again.class_names == (graph.class_names or ("y0", "y1"))


def test_whole_numbers_of_one_target_stay_a_regression(tmp_path):
    graph = Graph.from_edges([[0], [1]], np.ones((2, 1)), [1.0, 2.0], task="regression")
    import_graph(graph, tmp_path / "one")
    export_tables(load(tmp_path / "one"), tmp_path / "tables")
    import_tables(read_request(tmp_path / "tables/graph.toml"), tmp_path / "two", memory=MEMORY)
    for folder in ("one", "two"):
        again = load(tmp_path / folder)
        assert (again.task, again.fingerprint) == ("regression", graph.fingerprint)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["x"] * 12, "'v' holds 'x'; regress expects finite numbers"),
        (["inf"] * 12, "'v' holds 'inf'"),
        (["1e39"] * 12, "above 3e38"),
        ([None] * 12, "'v' has no values"),
        ([[1.0]] * 12, "'v' holds lists"),
    ],
)
def test_values_that_are_no_targets(tmp_path, values, reason):
    rows = [{**row, "v": value} for row, value in zip(ROWS, values, strict=True)]
    with pytest.raises(InputError, match=reason):
        imported(tmp_path, rows, EDGES, node_regress=("v",), form="jsonl")
    assert not (tmp_path / "graph").exists()


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"label": "kind"}, "give one of them"),
        ({"split": Split(train=0.5, val=0.2, stratified=True)}, "stratified split needs classes"),
        ({"classes": ("a", "b")}, "must name each column"),
        ({"label_separator": "|"}, "without a label"),
    ],
)
def test_what_does_not_go_with_a_regression(more, reason):
    with pytest.raises(InputError, match=reason):
        NodeTable(files=("n.csv",), regress=("age",), **more)


@pytest.mark.parametrize(
    ("values", "suspicious"),
    [
        ([n + 0.5 for n in range(20)], True),
        ([n + 0.5 for n in range(10)] * 2, False),
        (range(20), False),
        (range(300), True),
        ([f"{n} kg" for n in range(300)], False),
    ],
)
def test_a_label_of_many_numbers_is_suspected_to_be_amounts(tmp_path, caplog, values, suspicious):
    rows = [{"id": f"n{n}", "v": value} for n, value in enumerate(values)]
    edges = [{"source": "n0", "target": "n1"}]
    with caplog.at_level(logging.WARNING, "graphfm"):
        graph, _ = imported(tmp_path, rows, edges, node_label="v")
    assert graph.task == "classes"
    assert ("give --regress v in place of --label" in caplog.text) == suspicious


def test_too_many_classes_suggest_a_regression(tmp_path, monkeypatch):
    monkeypatch.setattr("graphfm.data.sources.tables.labels.MOST_CLASSES", 5)
    with pytest.raises(InputError, match="over 5 values.*--regress year in place of --label"):
        imported(tmp_path, ROWS, EDGES, node_label="year")
