"""Columns of every type, and files that a reader might misunderstand."""

import duckdb
import pytest

from graphfm import InputError, load
from graphfm.data.sources.tables.importer import import_tables
from graphfm.data.sources.tables.request import EdgeTable, NodeTable, Request, Split
from tests.unit.data.sources.tables.writing import MEMORY, imported


def table(path, sql: str) -> str:
    duckdb.sql(f"COPY ({sql}) TO '{path}'")
    return str(path)


def graph_of(tmp_path, nodes: str, edges: str, **more):
    """A graph of files, of which `more` are the settings of the nodes."""
    request = Request(edges=EdgeTable(files=(edges,)), nodes=NodeTable(files=(nodes,), **more))
    import_tables(request, tmp_path / "graph", memory=MEMORY)
    return load(tmp_path / "graph")


def edges_csv(tmp_path, *pairs) -> str:
    path = tmp_path / "edges.csv"
    path.write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in pairs))
    return str(path)


@pytest.mark.parametrize("kind", ["BIGINT", "DOUBLE", "VARCHAR", "UBIGINT", "HUGEINT"])
def test_ids_are_the_same_in_every_type(tmp_path, kind):
    nodes = table(tmp_path / "n.parquet", f"SELECT (i * 5)::{kind} AS id FROM range(3) t(i)")
    graph = graph_of(tmp_path, nodes, edges_csv(tmp_path, (0, 10), (5, 0)))
    assert list(graph.node_names) == ["0", "5", "10"]
    assert graph.edge_index.tolist() == [[1, 0], [0, 2]]


def test_ids_keep_zeros_spaces_and_all_digits(tmp_path):
    names = ["007", "7", " 7", "123456789012345678901234567890", "1e3", "NULL", "nan"]
    rows = [{"id": name, "v": 1} for name in names]
    edges = [{"source": name, "target": "007"} for name in names]
    graph, _ = imported(tmp_path, rows, edges, node_features={"v": "as-is"})
    assert list(graph.node_names) == names
    assert graph.edge_index.tolist() == [list(range(7)), [0] * 7]


def test_ids_in_floating_point_are_refused_where_they_are_rounded(tmp_path):
    nodes = table(tmp_path / "n.parquet", "SELECT 9007199254740993.0::DOUBLE AS id")
    with pytest.raises(InputError, match="id holds ids in floating point that are rounded"):
        graph_of(tmp_path, nodes, edges_csv(tmp_path, ("1", "2")))
    nodes = table(tmp_path / "n.parquet", "SELECT 'nan'::DOUBLE AS id")
    with pytest.raises(InputError, match="1 of 1 rows of the nodes have no id"):
        graph_of(tmp_path, nodes, edges_csv(tmp_path, ("1", "2")))


@pytest.mark.parametrize(
    ("values", "names", "y"),
    [
        ("[true, false, NULL]", ("false", "true"), [1, 0, -1]),
        ("[3.0::DOUBLE, 1, 'nan']", ("1", "3"), [1, 0, -1]),
        ("[DATE '2021-01-02', DATE '2020-01-02', NULL]", ("2020-01-02", "2021-01-02"), [1, 0, -1]),
        ("[1.50::DECIMAL(4,2), 2, NULL]", ("1.50", "2.00"), [0, 1, -1]),
        ("[TIMESTAMPTZ '2020-01-01 00:00:00+02', NULL, NULL]", ("2019-12-31 22:00:00+00",),
         [0, -1, -1]),
        ("[[2.0::DOUBLE, 1], [1], NULL]", ("1", "2"), [[1, 1], [1, 0], [-1, -1]]),
        ("[['b', 'a'], [], NULL]", ("a", "b"), [[1, 1], [0, 0], [-1, -1]]),
    ],
)  # fmt: skip
def test_labels_of_every_type(tmp_path, values, names, y, monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    sql = f"SELECT i AS id, ({values})[i + 1] AS y FROM range(3) t(i)"
    nodes = table(tmp_path / "n.parquet", sql)
    graph = graph_of(tmp_path, nodes, edges_csv(tmp_path, (0, 1)), label="y")
    assert (graph.class_names, graph.y.tolist()) == (names, y)


def test_whole_numbers_in_floating_point_are_one_category(tmp_path):
    sql = "SELECT i AS id, [3.0::DOUBLE, NULL, 10][i + 1] AS v FROM range(3) t(i)"
    nodes = table(tmp_path / "n.parquet", sql)
    graph = graph_of(tmp_path, nodes, edges_csv(tmp_path, (0, 1)), features={"v": "one-hot"})
    assert graph.meta["encodings"][0]["fitted"]["values"] == ["3", "10"]
    assert graph.x.tolist() == [[1, 0], [0, 0], [0, 1]]


@pytest.mark.parametrize(
    "times",
    [
        "[TIMESTAMPTZ '2020-01-01 00:30:00+02', TIMESTAMPTZ '2020-01-01 00:00:00+00', "
        "TIMESTAMPTZ '2019-12-31 23:00:00+00']",
        "['2020-01-01T00:30:00+02:00', '2020-01-01T00:00:00Z', '2019-12-31T23:00:00']",
        "[DATE '2020-01-01', DATE '2020-01-03', DATE '2020-01-02']",
        "[TIMESTAMP '2020-01-01 00:00:00', '2020-01-01 02:00:00', '2020-01-01 01:00:00']",
    ],
)
def test_times_have_time_zones(tmp_path, times):
    sql = f"SELECT i AS id, 'x' AS y, ({times})[i + 1] AS t FROM range(3) t(i)"
    nodes = table(tmp_path / "n.parquet", sql)
    split = Split(train=0.34, val=0.33, time="t")
    edges = edges_csv(tmp_path, (0, 1))
    graph = graph_of(tmp_path, nodes, edges, label="y", split=split)
    masks = (graph.train_mask, graph.val_mask, graph.test_mask)
    assert [mask.tolist().index(True) for mask in masks] == [0, 2, 1]


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbfsource,target\na,b\n", b"source,target\r\na,b\r\n", b"source,target\ra,b\r",
        b"source,target,\na,b,\n", b'"source","target"\n"a","b"\n', b"source,target\n\na,b\n\n",
    ],
)  # fmt: skip
def test_csv_of_every_habit(tmp_path, text):
    path = tmp_path / "edges.csv"
    path.write_bytes(text)
    request = Request(edges=EdgeTable(files=(str(path),)))
    report = import_tables(request, tmp_path / "graph", memory=MEMORY)
    assert (report["edge_rows"], list(load(tmp_path / "graph").node_names)) == (1, ["a", "b"])


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("e.csv", "a title\nsource,target\na,b\n", "cannot be read"),
        ("e.csv", "# a remark\nsource,target\na,b\n", "cannot be read"),
        ("e.csv", "source,target\na,b\nc\n", "cannot be read"),
        ("e.csv", "", "is empty"),
        ("e.tsv", "0\t1\n1\t2\n", "they have 0, 1; .* call a plain list of edges .txt"),
        ("e.json", '[{"source": 1, "target": 2}]', "one JSON array; expected JSON lines"),
        ("e.jsonl", "[1, 2]\n", "have no column 'source'"),
        ("e.csv", "source target\na b\n", "have no column 'source'"),
    ],
)
def test_files_that_are_no_tables_are_refused(tmp_path, name, text, reason):
    (tmp_path / name).write_text(text)
    request = Request(edges=EdgeTable(files=(str(tmp_path / name),)))
    with pytest.raises(InputError, match=reason):
        import_tables(request, tmp_path / "graph", memory=MEMORY)
    assert {path.name for path in tmp_path.iterdir()} == {name}


def test_parquet_files_of_several_types_are_not_rounded(tmp_path):
    table(tmp_path / "e1.parquet", "SELECT 1 AS source, 2 AS target")
    table(tmp_path / "e2.parquet", "SELECT 5.5 AS target, 1 AS source")
    request = Request(edges=EdgeTable(files=(str(tmp_path / "e*.parquet"),)))
    import_tables(request, tmp_path / "graph", memory=MEMORY)
    names = list(load(tmp_path / "graph").node_names)
    assert [float(name) for name in names] == [1, 2, 5.5]


def test_lists_in_json_keep_fractions_and_late_keys(tmp_path):
    rows = [{"id": n, "v": [1, 2]} for n in range(3)]
    rows += [{"id": 3, "v": [1.75, 2], "late": "x"}]
    graph, report = imported(
        tmp_path, rows, [{"source": 0, "target": 1, "why": 3}], form="jsonl",
        node_features={"v": "as-is"},
    )  # fmt: skip
    assert graph.x[3].tolist() == [1.75, 2]
    assert (report["unused_columns"], report["unused_edge_columns"]) == (["late"], ["why"])


def test_many_keys_in_json_are_columns(tmp_path):
    rows = [{"id": n, **{f"k{k}": 1.5 for k in range(250)}} for n in range(3)]
    graph, _ = imported(
        tmp_path, rows, [{"source": 0, "target": 1}], form="jsonl", node_features={"k7": "as-is"}
    )
    assert graph.x.tolist() == [[1.5]] * 3
