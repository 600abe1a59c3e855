"""A graph in memory becomes a folder, and nothing of it is lost without a word."""

import json
import logging

import numpy as np
import pytest
import torch

from graphfm import Graph, InputError, load
from graphfm.data.sources.folder_writer import import_graph
from graphfm.data.sources.tables.export import export_tables
from graphfm.data.sources.tables.importer import import_tables
from graphfm.data.sources.tables.request import read_request

EDGES = [[2, 0, 1], [0, 1, 2]]


def stored(tmp_path, graph) -> Graph:
    import_graph(graph, tmp_path / "graph")
    return load(tmp_path / "graph")


@pytest.mark.parametrize(
    "kind", [torch.float32, torch.float64, torch.float16, torch.int64, torch.uint8, torch.bool]
)
def test_attributes_and_types_of_edges_are_kept(tmp_path, kind):
    attr = torch.tensor([[1, 0], [0, 1], [1, 1]]).to(kind)
    graph = Graph.from_edges(EDGES, np.eye(3), edge_attr=attr, edge_type=[5, 6, 7])
    opened = stored(tmp_path, graph)
    assert opened.edge_attr.dtype == kind
    assert torch.equal(opened.edge_attr, graph.edge_attr)
    assert torch.equal(opened.edge_type, graph.edge_type)
    assert opened.fingerprint == graph.fingerprint


def test_half_precision_is_kept(tmp_path):
    graph = Graph.from_edges(EDGES, torch.eye(3).half())
    assert stored(tmp_path, graph).fingerprint == graph.fingerprint
    (tmp_path / "b").mkdir()
    opened = stored(tmp_path / "b", Graph.from_edges(EDGES, torch.eye(3).bfloat16()))
    assert torch.equal(opened.x, torch.eye(3))  # numpy has no bfloat16, and float32 holds all


def test_gaps_and_meta_are_kept(tmp_path):
    y = [[1, -1], [0, 1], [-1, -1]]
    graph = Graph.from_edges(EDGES, np.eye(3), y, meta={"name": "mine", "pyg": {"columns": ["y"]}})
    opened = stored(tmp_path, graph)
    assert opened.y.tolist() == y
    assert (opened.meta["name"], opened.meta["pyg"]) == ("mine", {"columns": ["y"]})
    with pytest.raises(InputError, match="which tables cannot say"):
        export_tables(opened, tmp_path / "tables")
    assert not (tmp_path / "tables").exists()


def test_a_graph_without_features_stays_one(tmp_path):
    graph = Graph.from_edges(EDGES, num_nodes=3)
    opened = stored(tmp_path, graph)
    assert (opened.num_features, opened.fingerprint) == (0, graph.fingerprint)


@pytest.mark.parametrize(
    "damage",
    [
        {"arrays": {"edge_attr": {"shape": [2, 2]}}}, {"arrays": {"edge_type": {"dtype": "<f4"}}},
        {"arrays": {"edge_attr": {"dtype": "|O"}}}, {"meta": []},
    ],
)  # fmt: skip
def test_a_damaged_record_is_refused(tmp_path, damage):
    graph = Graph.from_edges(EDGES, np.eye(3), edge_attr=np.ones((3, 2)), edge_type=[5, 6, 7])
    import_graph(graph, tmp_path / "graph")
    path = tmp_path / "graph" / "graph.json"
    record = json.loads(path.read_text())
    for name, change in damage.get("arrays", {}).items():
        record["arrays"][name] |= change
    record |= {key: value for key, value in damage.items() if key != "arrays"}
    path.write_text(json.dumps(record))
    with pytest.raises(InputError, match="cannot be used"):
        load(tmp_path / "graph")


def test_an_export_names_what_tables_cannot_hold(tmp_path, caplog):
    graph = Graph.from_edges(
        EDGES, torch.eye(3).half(), edge_attr=np.ones(3), edge_type=[5, 6, 7], meta={"mine": 1}
    )
    with caplog.at_level(logging.WARNING, "graphfm"):
        export_tables(graph, tmp_path / "tables")
    assert len(caplog.records) == 1
    assert "edge_attr; edge_type; half precision" in caplog.text
    assert "meta (mine)" in caplog.text


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_labels_with_every_separator_in_their_names_are_exported(tmp_path, kind):
    names = ["a|", "b;", "c\t", "d"]
    graph = Graph.from_edges(EDGES, np.eye(3), [[1, 1, 0, 0], [0, 0, 1, 1], [0] * 4])
    graph = Graph.from_edges(EDGES, np.eye(3), graph.y, class_names=names)
    export_tables(graph, tmp_path / "tables", kind)
    import_tables(read_request(tmp_path / "tables/graph.toml"), tmp_path / "graph")
    again = load(tmp_path / "graph")
    assert (again.fingerprint, again.class_names) == (graph.fingerprint, tuple(names))
    nameless = Graph.from_edges(EDGES, np.eye(3), [0, 1, 0], class_names=["", "b"])
    with pytest.raises(InputError, match="empty name"):
        export_tables(nameless, tmp_path / "more", "csv")
