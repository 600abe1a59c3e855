"""New rows join a graph as if they had been imported with it, but for what was fitted."""

import json
import logging
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphfm import Graph, InputError, load
from graphfm.data.sources.folder_writer import import_graph
from graphfm.data.sources.tables.joining import join_tables
from tests.unit.data.sources.tables.writing import RING, csv_of, imported, lines_of, pairs, people

ROWS = people()
FEATURES = {
    "age": "standard", "town": "one-hot", "vip": "boolean", "year": "rank-gauss", "kind": "one-hot",
}  # fmt: skip
SETTINGS = settings(
    max_examples=40, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip


def joined(folder, graph, rows, edges=(), form="csv") -> Graph:
    write = csv_of if form == "csv" else lines_of
    nodes = write(folder / f"new.{form}", rows)
    more = [write(folder / f"new_edges.{form}", edges)] if edges else []
    return join_tables(graph, [nodes], more, memory=1 << 30)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_row_like_an_imported_one_is_encoded_bit_for_bit(tmp_path, form):
    graph, _ = imported(tmp_path, ROWS, pairs(ROWS, RING), node_features=FEATURES)
    rows = [{**row, "id": f"new {n}"} for n, row in enumerate(ROWS)]
    edges = [{"source": rows[0]["id"], "target": ROWS[5]["id"]}]
    found = joined(tmp_path, graph, rows, edges, form)
    assert torch.equal(found.x[12:], graph.x)
    assert torch.equal(found.x[:12], graph.x)
    assert list(found.node_names)[12:] == [row["id"] for row in rows]
    assert found.node_names[5:14] == (*graph.node_names[5:], "new 0", "new 1")
    assert (found.node_names[-1], found.node_names[3]) == ("new 11", graph.node_names[3])
    assert found.edge_index[:, found.edge_index[0] == 12].tolist() == [[12], [5]]
    assert found.y[12:].tolist() == [-1] * 12
    assert not bool(found.train_mask[12:].any())
    assert "edge_summary" not in found.meta


@SETTINGS
@given(
    st.data(), st.booleans(), st.booleans(), st.sampled_from(["keep", "drop", "sum"]),
    st.integers(1, 5), st.integers(1, 4),
)  # fmt: skip
def test_joining_is_importing_all_at_once(
    tmp_path, data, undirected, weighted, duplicates, old, new
):
    """Also without features: the in-degree is the one of the joined graph."""
    for name in ("one", "all"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
        (tmp_path / name).mkdir()
    if duplicates == "sum" and not weighted:
        duplicates = "keep"

    def some_edges(count):
        ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
        weight = st.sampled_from([0.5, 1.0, 2.0])
        drawn = data.draw(st.lists(st.tuples(ends, weight), min_size=1, max_size=8))
        return [{"source": f"n{a}", "target": f"n{b}", "w": w} for (a, b), w in drawn]

    rows = [{"id": f"n{n}", "v": n} for n in range(old + new)]
    before, after = some_edges(old), some_edges(old + new)
    more = {"edge_undirected": undirected, "edge_duplicates": duplicates}
    more |= {"edge_weight": "w"} if weighted else {}
    more |= {"node_features": {"v": "as-is"}} if data.draw(st.booleans()) else {}
    graph, _ = imported(tmp_path / "one", rows[:old], before, **more)
    whole, _ = imported(tmp_path / "all", rows, before + after, **more)
    found = joined(tmp_path / "one", graph, rows[old:], after)
    assert found.fingerprint == whole.fingerprint
    assert list(found.node_names) == list(whole.node_names)


def test_ids_that_are_numbers_join_numbers_and_texts(tmp_path):
    graph, _ = imported(
        tmp_path, [{"id": n, "v": 1} for n in range(3)], [{"source": 0, "target": 2}],
        node_features={"v": "as-is"}, form="jsonl",
    )  # fmt: skip
    for form, ids in (("csv", [7, 8]), ("jsonl", [7, "x8"])):
        edges = [{"source": ids[0], "target": 2}, {"source": 1, "target": ids[1]}]
        found = joined(tmp_path, graph, [{"id": i, "v": 3} for i in ids], edges, form)
        assert list(found.node_names) == ["0", "1", "2", *map(str, ids)]
        assert found.edge_index.tolist() == [[0, 3, 1], [2, 2, 4]]


def test_unseen_and_missing_values_are_zeros_with_a_warning(tmp_path, caplog):
    graph, _ = imported(tmp_path, ROWS, pairs(ROWS, RING), node_features=FEATURES)
    row = {**ROWS[1], "id": "new", "town": "Bari", "year": None}
    with caplog.at_level(logging.WARNING, "graphfm"):
        found = joined(tmp_path, graph, [row])
    widths = [encoding["width"] for encoding in graph.meta["encodings"]]
    age, town, vip, year, kind = torch.split(found.x[12], widths)
    old = torch.split(graph.x[1], widths)
    assert torch.equal(age, old[0])
    assert (town.tolist(), year.tolist()) == ([0, 0], [0])
    assert torch.equal(torch.cat([vip, kind]), torch.cat([old[2], old[4]]))
    assert "1 new row has a value of 'town' that the import has not seen, such as 'Bari'" in (
        caplog.text
    )
    assert "1 new row has no 'year', which no row of the import lacked" in caplog.text


def test_targets_of_a_regression_are_unknown_for_new_nodes(tmp_path):
    graph, _ = imported(
        tmp_path, ROWS, pairs(ROWS, RING), node_regress=("age", "year"),
        node_features={"vip": "boolean"},
    )  # fmt: skip
    found = joined(tmp_path, graph, [{"id": "new", "vip": "true"}])
    assert found.y.shape == (13, 2)
    assert bool(found.y[12].isnan().all())


NEW = {**ROWS[0], "id": "new"}


@pytest.mark.parametrize(
    ("rows", "edges", "reason"),
    [
        ([{**NEW, "id": ROWS[2]["id"]}], [], "1 new node has an id that the graph has already"),
        ([NEW, NEW], [], "1 row repeats an id, such as 'new'; mend the tables$"),
        ([{**NEW, "id": None}], [], "1 of 1 rows of the nodes have no id; mend the tables$"),
        ([NEW], [{"source": "new", "target": "who"}],
         "1 of 1 edges have an id that neither the graph nor the new nodes have, such as 'who'"),
        ([NEW], [{"source": "new", "target": None}], "no source or no target; mend the tables$"),
        ([NEW], [{"from": "new", "target": "new"}], "the edges have no column 'source'"),
        ([{"id": "new", "age": 3}], [], "the nodes have no column 'town'"),
        ([{"ID": "new", "age": 3}], [], "the nodes have no column 'id'"),
        ([{**NEW, "age": "old"}], [], "'age' holds 'old'; standard expects finite numbers"),
    ],
)  # fmt: skip
def test_what_cannot_join_is_refused(tmp_path, rows, edges, reason):
    graph, _ = imported(tmp_path, ROWS, pairs(ROWS, RING), node_features=FEATURES)
    with pytest.raises(InputError, match=reason) as error:
        joined(tmp_path, graph, rows, edges)
    assert "--" not in str(error.value)  # options of the import are of no use here


@pytest.mark.parametrize(
    ("value", "reason"),
    [([1.0], "1 new row has no list of 2 numbers"), (3, "'v' holds single values")],
)
def test_lists_must_be_as_long_as_those_of_the_import(tmp_path, value, reason):
    rows = [{"id": f"n{n}", "v": [n, 0.5]} for n in range(3)]
    edges = [{"source": "n0", "target": "n1"}]
    graph, _ = imported(tmp_path, rows, edges, node_features={"v": "as-is"}, form="jsonl")
    assert joined(tmp_path, graph, [{"id": "a", "v": [7, 8]}], form="jsonl").x[3].tolist() == [7, 8]
    with pytest.raises(InputError, match=reason):
        joined(tmp_path, graph, [{"id": "a", "v": value}], form="jsonl")


def test_another_weight_of_an_undirected_edge_is_refused(tmp_path):
    rows = [{"id": name, "v": 1} for name in "ab"]
    edges = [{"source": "a", "target": "b", "w": 1}]
    more = {"edge_weight": "w", "edge_undirected": True, "node_features": {"v": "as-is"}}
    graph, _ = imported(tmp_path, rows, edges, **more)
    edges = [{"source": "b", "target": "a", "w": 2}]
    with pytest.raises(InputError, match="2 edges occur again with another weight"):
        joined(tmp_path, graph, [{"id": "c", "v": 1}], edges)


def test_a_graph_that_keeps_no_encodings_is_refused(tmp_path):
    import_graph(Graph.from_edges([[0], [1]], np.ones((2, 1))), tmp_path / "g")
    with pytest.raises(InputError, match="keeps no encodings"):
        joined(tmp_path, load(tmp_path / "g"), [NEW])


def test_a_folder_that_does_not_know_its_tables_is_refused(tmp_path):
    """What an edge means would be a guess: one direction or both, kept or dropped."""
    imported(tmp_path, ROWS, pairs(ROWS, RING), node_features=FEATURES, edge_undirected=True)
    path = tmp_path / "graph" / "graph.json"
    record = json.loads(path.read_text())
    del record["tables"]
    path.write_text(json.dumps(record))
    edges = [{"source": "new", "target": ROWS[3]["id"]}]
    with pytest.raises(InputError, match="does not say which tables .* import it again"):
        joined(tmp_path, load(tmp_path / "graph"), [NEW], edges)


@pytest.mark.parametrize(
    "damage",
    [
        {"width": 7}, {"encoding": "magic"}, {"fitted": {}}, {"column": 3}, {"more": 1},
        {"fitted": {"mean": "x", "deviation": 1}}, {"fitted": None},
    ],
)  # fmt: skip
def test_damaged_encodings_are_one_error(tmp_path, damage):
    imported(tmp_path, ROWS, pairs(ROWS, RING), node_features=FEATURES)
    path = tmp_path / "graph" / "graph.json"
    record = json.loads(path.read_text())
    record["encodings"][0] |= damage
    path.write_text(json.dumps(record))
    with pytest.raises(InputError, match="encodings in graph.json are damaged"):
        joined(tmp_path, load(tmp_path / "graph"), [NEW])


@pytest.mark.parametrize("kept", [{"edges": 3}, {"nodes": {"id": 7}}, {"edges": {"evil": "x"}}])
def test_damaged_names_of_columns_are_one_error(tmp_path, kept):
    graph, _ = imported(tmp_path, ROWS, pairs(ROWS, RING), node_features=FEATURES)
    with pytest.raises(InputError, match="expected"):
        joined(tmp_path, replace(graph, meta={**graph.meta, "tables": kept}), [NEW])
