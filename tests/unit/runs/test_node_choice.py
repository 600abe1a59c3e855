"""Nodes are found by the ids that a user knows."""

import dataclasses

import duckdb
import pytest
import torch

from graphfm import Graph
from graphfm.data.formats.text_column import NumberColumn, TextColumn, as_text_arrays
from graphfm.errors import InputError
from graphfm.runs.node_choice import by_id

NAMES = ["a", "ß", "c,d", "7", " e"]


def graph(names=None) -> Graph:
    made = Graph.from_edges([[0], [1]], torch.ones(5, 1))
    return dataclasses.replace(made, node_names=names)


@pytest.mark.parametrize("names", [tuple(NAMES), TextColumn(*as_text_arrays(NAMES))])
def test_ids_are_names_in_the_given_order(names):
    assert by_id(graph(names), "7, e,a,7").tolist() == [3, 4, 0, 3]


def test_ids_are_numbers_where_nodes_have_no_names():
    assert by_id(graph(), "4,0").tolist() == [4, 0]
    for wrong in ("5", "-1", "a", "1.0", "٣", "9" * 5000, "", "1,,2"):
        with pytest.raises(InputError, match="expected numbers from 0 to 4"):
            by_id(graph(), wrong)


def test_whole_numbers_that_are_ids_are_not_numbers_of_nodes():
    ids = NumberColumn(torch.tensor([40, 30, 20, 10, 0]).numpy())
    assert by_id(graph(ids), "10,40").tolist() == [3, 0]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ids.txt").write_bytes("\ufeffc,d\r\n\nß\n".encode())
    (tmp_path / "ids.csv").write_text('id,other\n"c,d",a\nß,7\n')
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "a").write_text("ß")
    (tmp_path / "latin.txt").write_bytes(b"\xdf")
    duckdb.sql("SELECT 7 AS number, 'a' AS text").write_parquet("ids.parquet")


@pytest.mark.parametrize(
    ("given", "column", "found"),
    [
        ("ids.txt", None, [2, 1]), ("ids.csv", None, [2, 1]), ("ids.csv", "other", [0, 3]),
        ("ids.parquet", None, [3]), ("ids.parquet", "text", [0]),
    ],
)  # fmt: skip
def test_ids_are_read_from_files(files, given, column, found):
    assert by_id(graph(NAMES), given, column).tolist() == found


@pytest.mark.parametrize(
    ("given", "column", "reason"),
    [
        ("none.txt", None, "no node 'none.txt'; expected ids of nodes, or a file of them"),
        ("x,y,a", None, r"no node 'x' \(and 1 more of those given\)"),
        ("empty.txt", None, "lists no nodes"),
        ("a", None, "ends with 'nothing'"),
        ("latin.txt", None, "cannot read latin.txt"),
        ("ids.csv", "none", "have no column 'none'; they have id, other"),
        ("ids.txt", "id", "is not a table"),
        ("a,7", "id", "is not a table"),
    ],
)
def test_mistakes_are_named(files, given, column, reason):
    with pytest.raises(InputError, match=reason):
        by_id(graph(NAMES), given, column)
