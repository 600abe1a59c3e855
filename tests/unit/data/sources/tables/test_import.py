"""Tables become the graph that `Graph.from_edges` makes of the same rows."""

import gzip
import shutil

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphfm import Graph, InputError, load
from graphfm.data.graph.summary import _edges, _known_edges
from graphfm.data.sources.folder_writer import import_graph
from graphfm.data.sources.tables.export import export_tables
from graphfm.data.sources.tables.importer import import_tables
from graphfm.data.sources.tables.request import EdgeTable, NodeTable, Request, read_request
from tests.unit.data.sources.tables.writing import (
    MEMORY,
    RING,
    csv_of,
    imported,
    lines_of,
    pairs,
    people,
)  # fmt: skip

IDS = st.lists(
    st.one_of(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6),
        st.integers(-(10**18), 10**18).map(str),
    ),
    min_size=1, max_size=8, unique=True,
)  # fmt: skip
SETTINGS = settings(
    max_examples=40, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip


def reference(n, edges, weights, undirected, duplicates) -> Graph:
    """The same by dictionaries."""
    found: dict[tuple[int, int], list[float]] = {}
    for (a, b), w in zip(edges, weights, strict=True):
        found.setdefault((a, b), []).append(w)
        if undirected and a != b:
            found.setdefault((b, a), []).append(w)
    treat = {"keep": lambda w: w, "drop": lambda w: [max(w)], "sum": lambda w: [sum(w)]}
    rows = [(a, b, w) for (a, b), ws in found.items() for w in treat[duplicates](ws)]
    ends = torch.tensor([row[:2] for row in rows], dtype=torch.int64).view(-1, 2).T
    weight = torch.tensor([row[2] for row in rows], dtype=torch.float32)
    return Graph.from_edges(ends, torch.ones(n, 1), edge_weight=weight)


@SETTINGS
@given(st.data(), IDS, st.booleans(), st.sampled_from(["keep", "drop", "sum"]),
       st.sampled_from(["csv", "jsonl"]))  # fmt: skip
def test_tables_are_what_dictionaries_make_of_them(
    tmp_path, data, ids, undirected, duplicates, form
):
    shutil.rmtree(tmp_path / "graph", ignore_errors=True)
    number = st.integers(0, len(ids) - 1)
    edges = data.draw(st.lists(st.tuples(number, number), min_size=1, max_size=12))
    weights = data.draw(
        st.lists(st.sampled_from([0.5, 1, 2, 4]), min_size=len(edges), max_size=len(edges))
    )
    graph, report = imported(
        tmp_path,
        [{"id": name, "one": 1} for name in ids],
        [
            {"source": ids[a], "target": ids[b], "w": w}
            for (a, b), w in zip(edges, weights, strict=True)
        ],
        form=form, edge_weight="w", edge_undirected=undirected, edge_duplicates=duplicates,
        node_features={"one": "as-is"},
    )  # fmt: skip
    expected = reference(len(ids), edges, weights, undirected, duplicates)
    assert graph.fingerprint == expected.fingerprint
    assert list(graph.node_names) == ids
    assert [graph.node_names[n] for n in range(len(ids))] == ids
    assert _known_edges(graph) == _edges(expected)
    assert report["isolated_nodes"] == _edges(expected)["isolated_nodes"]


def test_edges_alone_make_nodes_in_the_order_of_their_ids(tmp_path):
    edges = [{"source": a, "target": b} for a, b in [("10", "9"), ("b", "10"), ("9", "a")]]
    graph, report = imported(tmp_path, [], edges)
    assert list(graph.node_names) == ["9", "10", "a", "b"]
    assert graph.edge_index.tolist() == [[1, 3, 0], [0, 1, 2]]
    assert torch.allclose(graph.x[:, 0], torch.tensor([1.0, 1, 1, 0]).log1p())
    assert report["nodes_added"] == 4


def test_ids_in_many_parts_are_the_same(tmp_path, monkeypatch):
    edges = [{"source": f"u{a * 7 % 50}", "target": f"u{a}"} for a in range(50)]
    (tmp_path / "one").mkdir()
    (tmp_path / "many").mkdir()
    whole, _ = imported(tmp_path / "one", [], edges)
    monkeypatch.setattr("graphfm.data.sources.tables.nodes.BYTES_PER_ID", 1 << 27)
    parts, _ = imported(tmp_path / "many", [], edges)
    assert parts.fingerprint == whole.fingerprint
    assert list(parts.node_names) == list(whole.node_names)


def test_globs_of_compressed_files_are_read(tmp_path):
    rows = people()
    for part in range(2):
        path = csv_of(tmp_path / "e.csv", pairs(rows, RING[part * 6 : part * 6 + 6]))
        with open(path, "rb") as stream:
            (tmp_path / f"e{part}.csv.gz").write_bytes(gzip.compress(stream.read()))
    nodes = lines_of(
        tmp_path / "nodes.jsonl", [{**row, "v": [n, 0.5]} for n, row in enumerate(rows)]
    )
    request = Request(
        edges=EdgeTable(files=(str(tmp_path / "e?.csv.gz"),)),
        nodes=NodeTable(files=(nodes,), features={"v": "as-is"}),
    )
    report = import_tables(request, tmp_path / "graph", memory=MEMORY)
    graph = load(tmp_path / "graph")
    assert (report["edge_rows"], graph.num_edges) == (12, 12)
    assert graph.x.tolist() == [[n, 0.5] for n in range(12)]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("many", [False, True])
def test_export_and_import_give_the_same_graph(tmp_path, kind, many):
    dice = torch.Generator().manual_seed(0)
    part = torch.arange(9) % 3
    y = torch.randint(4, (9,), generator=dice)
    if many:
        y = torch.randint(2, (9, 4), generator=dice)
        y[0], y[4] = 0, -1
        part[4] = 3
    graph = Graph.from_edges(
        torch.randint(9, (2, 30), generator=dice), torch.randn(9, 3, generator=dice), y,
        train_mask=part == 0, val_mask=part == 1, test_mask=part == 2,
        edge_weight=torch.rand(30, generator=dice) + 0.1,
        class_names=["z|", 'q"', "é\n", "never"], node_names=[f"n,{n}" for n in range(9)],
    )  # fmt: skip
    export_tables(graph, tmp_path / "tables", kind)
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == [
        f"edges.{kind}", "graph.toml", f"nodes.{kind}",
    ]  # fmt: skip
    import_tables(read_request(tmp_path / "tables/graph.toml"), tmp_path / "graph", memory=MEMORY)
    again = load(tmp_path / "graph")
    assert again.fingerprint == graph.fingerprint
    assert (list(again.node_names), again.class_names) == (
        list(graph.node_names),
        graph.class_names,
    )


def test_whole_numbers_stay_numbers(tmp_path):
    graph = Graph.from_edges([[0, 1], [1, 2]], np.ones((3, 1), "float32"))
    export_tables(graph, tmp_path / "tables")
    import_tables(read_request(tmp_path / "tables/graph.toml"), tmp_path / "graph", memory=MEMORY)
    assert (tmp_path / "graph/ids.npy").is_file()
    again = load(tmp_path / "graph")
    assert again.fingerprint == graph.fingerprint
    assert (list(again.node_names), again.node_names[-1], again.node_names[:2]) == (
        ["0", "1", "2"], "2", ("0", "1"),
    )  # fmt: skip


def test_a_graph_in_memory_becomes_a_folder(tmp_path):
    graph = Graph.from_edges(
        [[0, 1, 1], [1, 2, 2]], np.eye(3), [0, 1, -1], train_mask=[1, 0, 0], val_mask=[0, 1, 0],
        node_names=["é", "", "x y"],
    )  # fmt: skip
    import_graph(graph, tmp_path / "graph")
    opened = load(tmp_path / "graph")
    assert opened.fingerprint == graph.fingerprint
    assert list(opened.node_names) == ["é", "", "x y"]
    assert _known_edges(opened) == _edges(graph)
    with pytest.raises(InputError, match="exists already"):
        import_graph(graph, tmp_path / "graph")
