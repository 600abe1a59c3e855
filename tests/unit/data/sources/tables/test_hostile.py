"""Tables that want to do harm, imports that are killed, and what DuckDB may open."""

import re
import sys

import pytest

from graphfm import InputError, load
from graphfm.data.sources.folder_writer import building
from graphfm.data.sources.tables.database import Database
from graphfm.data.sources.tables.importer import import_tables
from graphfm.data.sources.tables.request import EdgeTable, NodeTable, Request
from tests.unit.data.sources.tables.writing import (
    MEMORY,
    RING,
    csv_of,
    imported,
    lines_of,
    pairs,
    people,
)

ROWS = people()
EDGES = pairs(ROWS, RING)


def test_names_with_sql_in_them_are_names(tmp_path):
    evil = "\"; DROP TABLE node; COPY (SELECT 1) TO 'evil.csv'; --"
    rows = [{"id": f"{evil}{n}", 'a"b': n, "it's": "x'y", "fold": "train"} for n in range(3)]
    edges = [{"source": rows[0]["id"], "target": rows[2]["id"]}]
    nodes = lines_of(tmp_path / "no'des.jsonl", rows)
    table = csv_of(tmp_path / "e d'.csv", edges)
    request = Request(
        edges=EdgeTable(files=(table,)),
        nodes=NodeTable(files=(nodes,), features={'a"b': "as-is", "it's": "one-hot"}),
    )
    import_tables(request, tmp_path / "graph", memory=MEMORY)
    graph = load(tmp_path / "graph")
    assert graph.x.tolist() == [[0, 1], [1, 1], [2, 1]]
    assert graph.node_names[2] == f"{evil}2"
    assert not list(tmp_path.rglob("evil*"))


def test_duckdb_opens_nothing_but_the_tables(tmp_path):
    (tmp_path / "secret.csv").write_text("a\n1\n")
    (tmp_path / "scratch").mkdir()
    db = Database(tmp_path / "scratch", [], MEMORY)
    for sql in (
        f"SELECT * FROM read_csv('{tmp_path}/secret.csv')",
        f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
        "INSTALL httpfs",
        "LOAD httpfs",
        f"ATTACH '{tmp_path}/other.db'",
        "SET enable_external_access = true",
    ):
        with pytest.raises(InputError):
            db.run(sql)
    db.close()
    assert {path.name for path in tmp_path.iterdir()} == {"secret.csv", "scratch"}


def test_without_duckdb_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InputError, match=re.escape("pip install 'graphfm[import]'")):
        imported(tmp_path, ROWS, EDGES)
    assert {path.name for path in tmp_path.iterdir()} == {"nodes.csv", "edges.csv"}


def test_too_little_memory_is_refused(tmp_path):
    csv_of(tmp_path / "edges.csv", EDGES)
    request = Request(edges=EdgeTable(files=(str(tmp_path / "edges.csv"),)))
    with pytest.raises(InputError, match="expected 536,870,912 or more"):
        import_tables(request, tmp_path / "graph", memory=1 << 20)
    assert not (tmp_path / "graph").exists()


# Killed


def test_what_a_killed_import_left_is_removed_by_the_next(tmp_path):
    left = tmp_path / ".graph.unfinished"
    (left / "scratch" / "spilled").mkdir(parents=True)
    (left / "x.npy").write_text("half")
    imported(tmp_path, ROWS, EDGES)
    assert not left.exists()
    with (
        building(tmp_path / "other"),
        pytest.raises(InputError, match="another process uses"),
        building(tmp_path / "other"),
    ):
        pass
