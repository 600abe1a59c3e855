"""Graphs from tables of any library, with ids and classes of any kind."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from graphfm import Graph, InputError

EDGES = {"payer": ["b", "a", "c"], "payee": ["a", "c", "b"], "amount": [3.0, 1.0, 2.0]}
NODES = {
    "iban": ["c", "a", "b"],
    "age": [30, 10, 20],
    "active": [True, False, True],
    "fraud": ["no", "yes", None],
    "fold": ["train", "valid", None],
}
COLUMNS = {
    "source": "payer", "target": "payee", "weight": "amount", "id": "iban", "label": "fraud",
    "split": "fold",
}  # fmt: skip


class ArrowTable:
    """What a table of pyarrow offers: its `columns` are values, not names."""

    def __init__(self, columns):
        self.values, self.column_names = columns, list(columns)
        self.columns = list(columns.values())

    def __getitem__(self, name):
        return pl.Series(self.values[name])


KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": ArrowTable, "dict": dict}


def make(edges=EDGES, nodes=NODES, kind="dict", **columns):
    table = KINDS[kind]
    return Graph.from_dataframe(
        table(edges), None if nodes is None else table(nodes), **{**COLUMNS, **columns}
    )


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_every_kind_give_the_same_graph(kind, caplog):
    graph = make(kind=kind)
    assert caplog.records == []
    assert graph.node_names == ("c", "a", "b")
    assert graph.class_names == ("no", "yes")
    assert graph.y.tolist() == [0, 1, -1]
    assert graph.x.tolist() == [[30, 1], [10, 0], [20, 1]]
    assert graph.train_mask.tolist() == [True, False, False]
    assert graph.val_mask.tolist() == [False, True, False]
    found = {
        (graph.node_names[u], graph.node_names[v], w)
        for (u, v), w in zip(graph.edge_index.T.tolist(), graph.edge_weight.tolist(), strict=True)
    }
    assert found == {("b", "a", 3.0), ("a", "c", 1.0), ("c", "b", 2.0)}


def test_columns_without_a_use_are_named(caplog):
    make({**EDGES, "note": ["x", "y", "z"]}, {**NODES, "country": ["DE", "FR", "DE"]})
    told = [record.getMessage() for record in caplog.records]
    assert any("the table of edges: not used: note; name them in edge_features" in t for t in told)
    assert any("the table of nodes: not used: country; encode them" in text for text in told)


def test_whole_numbers_from_zero_need_no_names():
    graph = Graph.from_dataframe(
        {"source": [0, 1], "target": [1, 2]}, {"id": [0, 1, 2], "y": [0, 1, 1]}, label="y"
    )
    assert graph.node_names is None
    assert graph.class_names is None
    assert graph.num_features == 0


def test_other_numbers_are_kept_as_names():
    nodes = pd.DataFrame({"id": [7, 3], "y": [100, 300], "x": [[1, 2], [3, 4]]})
    graph = Graph.from_dataframe({"source": [3], "target": [7]}, nodes, label="y")
    assert graph.node_names == ("7", "3")
    assert (graph.class_names, graph.num_classes) == (("100", "300"), 2)
    assert graph.edge_index.tolist() == [[1], [0]]
    assert graph.x.tolist() == [[1, 2], [3, 4]]  # a column of lists


def test_without_nodes_they_are_those_of_the_edges():
    graph = make(nodes=None, undirected=True)
    assert graph.node_names == ("a", "b", "c")
    assert graph.num_edges == 6
    assert graph.num_features == 0


def test_types_and_attributes_of_edges_are_kept(caplog):
    edges = {**EDGES, "kind": ["x", "y", "x"], "year": [1, 2, 3]}
    graph = make(edges, weight=None, edge_type="kind", edge_features=["amount", "year"])
    assert sorted(graph.edge_attr.tolist()) == [[1, 2], [2, 3], [3, 1]]
    assert sorted(graph.edge_type.tolist()) == [0, 0, 1]
    assert "edge types are numbered: 0 x, 1 y" in caplog.text


def test_columns_of_masks_are_a_split_and_never_features(caplog):
    nodes = {"iban": ["a", "b", "c"], "fraud": [0, 1, 0], "train_mask": [True, False, False]}
    graph = make(nodes={**nodes, "test_mask": [False] * 3}, split=None)
    assert graph.train_mask.tolist() == [True, False, False]
    assert graph.num_features == 0
    make(nodes={**NODES, "train_mask": [True, False, False]})
    assert "the table of nodes: not used: train_mask" in caplog.text


@pytest.mark.parametrize("kind", KINDS)
def test_amounts_may_have_gaps(kind):
    graph = make(nodes=NODES | {"fraud": [0.5, None, -2.0]}, kind=kind, split=None)
    assert graph.task == "regression"
    assert graph.y[[0, 2]].tolist() == [0.5, -2]
    assert bool(graph.y[1].isnan())


def test_whole_numbers_are_amounts_if_one_says_so():
    nodes = NODES | {"fraud": [34, None, 70]}
    assert make(nodes=nodes).class_names == ("34", "70")
    graph = make(nodes=nodes, task="regression")
    assert (graph.task, graph.class_names, graph.y[2].item()) == ("regression", None, 70)
    with pytest.raises(InputError, match=r"nodes\['fraud'\] holds 'no'; expected the numbers of a"):
        make(task="regression")


def test_a_list_of_labels_may_be_missing():
    graph = make(nodes=NODES | {"fraud": [[0, 1], None, [1, 1]]}, split=None)
    assert graph.y.tolist() == [[0, 1], [-1, -1], [1, 1]]


def test_arrays_of_polars_are_features():
    rows = pl.Series([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=pl.Array(pl.Float64, 2))
    nodes = pl.DataFrame({"id": [0, 1, 2], "rows": rows})
    graph = Graph.from_dataframe(pl.DataFrame({"source": [0], "target": [1]}), nodes)
    assert graph.x.tolist() == rows.to_list()


def test_missing_values_of_pandas_are_seen():
    nodes = pd.DataFrame(NODES).assign(fraud=pd.array([1, 0, None], dtype="Int64"))
    graph = Graph.from_dataframe(pd.DataFrame(EDGES), nodes, **COLUMNS, features=[])
    assert graph.y.tolist() == [1, 0, -1]
    nodes["age"] = pd.array([1, None, 3], dtype="Int64")
    with pytest.raises(InputError, match="holds missing values|holds NaN"):
        Graph.from_dataframe(pd.DataFrame(EDGES), nodes, **COLUMNS)


WRONG = {
    "unknown id": ({"edges": {**EDGES, "payee": ["a", "z", "b"]}}, "1 ids that no node has, .*'z'"),
    "twice": ({"nodes": {**NODES, "iban": ["a", "a", "b"]}}, "two nodes have the id 'a'"),
    "other type": ({"edges": {**EDGES, "payee": [1, 2, 3]}}, "whole numbers, but the ids .* text"),
    "missing id": ({"edges": {**EDGES, "payee": ["a", None, "b"]}}, "payee'. holds missing values"),
    "mixed ids": ({"nodes": {**NODES, "iban": ["a", 1, "b"]}}, "all whole numbers or all text"),
    "fractions": ({"edges": {**EDGES, "payer": [0.5, 1, 2]}}, "all whole numbers or all text"),
    "no column": ({"source": "payr"}, "has no column 'payr'; .*did you mean payer"),
    "split": ({"nodes": {**NODES, "fold": ["a", "b", None]}}, "holds a, b; expected train, val"),
    "split lists": ({"nodes": {**NODES, "fold": [["a"], ["b"], None]}}, "holds .'a'., .'b'.; exp"),
    "text feature": ({"features": ["fold"], "split": None}, "fold'. holds missing"),
    "text features": ({"features": ["iban"]}, "iban'. holds str values; expected numbers"),
    "labels": ({"nodes": {**NODES, "fraud": ["a", 1, None]}}, "values of several types"),
    "ragged": ({"nodes": {**NODES, "age": [[1], [1, 2], [3]]}}, "lists of different lengths"),
    "lengths": ({"nodes": {**NODES, "age": [1, 2]}}, "has 2 rows; expected 3"),
    "empty": ({"nodes": {name: [] for name in NODES}}, "the table of nodes is empty"),
    "huge": ({"edges": {**EDGES, "payer": np.array([1 << 63] * 3, "u8")}}, "expected at most"),
    "weights": ({"edges": {**EDGES, "amount": ["x", "y", "z"]}}, "amount'. holds str values"),
}


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_wrong_tables_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        make(**wrong)


@pytest.mark.parametrize("table", [None, 3, "edges.csv", [[0, 1]], pl.LazyFrame(EDGES)])
def test_what_is_no_table_is_refused(table):
    with pytest.raises(InputError, match=r"expected a table of pandas, polars \(collect a lazy"):
        Graph.from_dataframe(table)


def test_two_columns_of_one_name_are_refused():
    edges = pd.DataFrame([["a", "b", "c"]], columns=["payer", "payee", "payee"])
    with pytest.raises(InputError, match="two columns 'payee'"):
        Graph.from_dataframe(edges, source="payer", target="payee")


def test_an_empty_list_of_edges_needs_nodes():
    with pytest.raises(InputError, match="give a table of nodes too"):
        Graph.from_dataframe({"source": np.zeros(0, int), "target": np.zeros(0, int)})
