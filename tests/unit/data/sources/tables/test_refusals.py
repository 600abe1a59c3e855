"""What is refused, by which words, and what allows it; nothing is left over."""

import pytest

from graphfm import InputError
from graphfm.data.sources.tables.importer import import_tables
from graphfm.data.sources.tables.request import EdgeTable, NodeTable, Request, Split, read_request
from tests.unit.data.sources.tables.writing import (
    MEMORY,
    RING,
    imported,
    pairs,
    people,
)  # fmt: skip

ROWS = people()
EDGES = pairs(ROWS, RING)
STRANGE = {"source": "nobody", "target": ROWS[0]["id"]}


def refused(tmp_path, reason, rows=ROWS, edges=EDGES, **more):
    with pytest.raises(InputError, match=reason):
        imported(tmp_path, rows, edges, **more)
    left = {path.name for path in tmp_path.iterdir()}
    assert left <= {"nodes.csv", "edges.csv"}, left


def test_unknown_ids_are_refused_left_out_or_added(tmp_path):
    edges = [*EDGES, STRANGE]
    refused(tmp_path, "1 of 13 edges .* such as 'nobody'.*--allow unknown-ids", edges=edges)
    graph, report = imported(tmp_path, ROWS, edges, allow=("unknown-ids",))
    assert (graph.num_nodes, graph.num_edges, report["edges_with_unknown_id"]) == (12, 12, 1)
    (tmp_path / "graph").rename(tmp_path / "other")
    more = {"node_features": {"age": "standard"}, "node_label": "kind"}
    graph, report = imported(tmp_path, ROWS, edges, add_unknown=True, **more)
    assert (graph.num_nodes, graph.num_edges, report["nodes_added"]) == (13, 13, 1)
    assert (graph.node_names[12], int(graph.y[12]), graph.x[12].tolist()) == ("nobody", -1, [0, 1])


def test_missing_ids_are_refused_or_left_out(tmp_path):
    rows, edges = [*ROWS, {**ROWS[0], "id": None}], [*EDGES, {"source": None, "target": "x"}]
    refused(tmp_path, "1 of 13 rows of the nodes have no id.*--allow missing-ids", rows=rows)
    refused(tmp_path, "1 of 13 edges have no source or no target", edges=edges)
    graph, report = imported(tmp_path, rows, edges, allow=("missing-ids",))
    assert (graph.num_nodes, graph.num_edges) == (12, 12)
    assert (report["rows_without_id"], report["edges_without_id"]) == (1, 1)


def test_repeated_ids_are_refused_or_the_first_counts(tmp_path):
    rows = [*ROWS, {**ROWS[5], "age": 99}]
    refused(tmp_path, "1 row repeats an id.*--allow duplicate-ids", rows=rows)
    more = {"node_features": {"age": "min-max"}}
    graph, _ = imported(tmp_path, rows, EDGES, allow=("duplicate-ids",), **more)
    assert list(graph.node_names) == [row["id"] for row in ROWS]
    assert float(graph.x[:, 0].max()) == 1.0
    assert float(graph.x[11, 0]) == 1.0  # 31 is the highest age, not 99


@pytest.mark.parametrize("weight", ["0", "-1", "x", None, "nan", "inf", "1e31"])
def test_bad_weights_are_refused_or_left_out(tmp_path, weight):
    edges = [{**edge, "w": 1.5} for edge in EDGES] + [{**EDGES[0], "w": weight}]
    refused(tmp_path, "1 of 13 edges have a weight", edges=edges, edge_weight="w")
    graph, report = imported(tmp_path, ROWS, edges, edge_weight="w", allow=("bad-weights",))
    assert (graph.num_edges, report["edges_with_bad_weight"]) == (12, 1)


def test_an_undirected_edge_with_two_weights_is_a_question(tmp_path):
    back = {"source": EDGES[0]["target"], "target": EDGES[0]["source"], "w": 2}
    edges = [*({**edge, "w": 1} for edge in EDGES), back]
    refused(tmp_path, "with another weight.*--duplicates", edges=edges, edge_weight="w",
            edge_undirected=True)  # fmt: skip
    graph, report = imported(
        tmp_path, ROWS, edges, edge_weight="w", edge_undirected=True, edge_duplicates="sum"
    )
    assert (graph.num_edges, float(graph.edge_weight.max())) == (24, 3.0)
    assert (report["duplicate_edges"], report["duplicates"]) == (1, "sum")


def test_a_split_without_labels_is_refused_or_left(tmp_path):
    rows = [{**row, "kind": None if n == 0 else row["kind"]} for n, row in enumerate(ROWS)]
    more = {"node_label": "kind", "node_split": "fold"}
    refused(tmp_path, "1 node of the split has no label", rows=rows, **more)
    graph, report = imported(tmp_path, rows, EDGES, allow=("unlabelled",), **more)
    assert (int(graph.train_mask.sum()), report["left_the_split"]) == (3, 1)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"node_split": "town", "node_label": "kind"}, "the split 'town' holds '(rome|oslo)'"),
        ({"node_label": "knd"}, "no column 'knd'.*did you mean kind"),
        ({"edge_source": "src"}, "the edges have no column 'src'; they have source, target"),
        ({"node_id": "name"}, "the nodes have no column 'name'"),
        ({"node_label": "kind", "node_classes": ("cat",)}, "'dog' is not among the classes"),
        ({"edge_delimiter": ";;"}, "expected one character"),
        ({"edge_delimiter": '"'}, "expected one character"),
        ({"allow": ("everything",)}, "unknown loss to allow"),
        ({"edge_duplicates": "sum"}, "there is no weight"),
        ({"edge_duplicates": "merge"}, "unknown way with duplicates"),
    ],
)
def test_mistakes_are_one_clear_line(tmp_path, more, reason):
    refused(tmp_path, reason, **more)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ("https://example.org/e.csv", "is an address"),
        ("s3://bucket/*.parquet", "is an address"),
        ("**/e.csv", r"holds \*\*"),
        ("nothing-*.csv", "there is no file"),
        (".", "is not a file"),
        ("edges.xlsx", "expected .csv, .tsv, .jsonl or .parquet"),
        ("edges.parquet.gz", "expected .csv, .tsv, .jsonl or .parquet"),
    ],
)
def test_files_that_are_no_tables(tmp_path, monkeypatch, files, reason):
    monkeypatch.chdir(tmp_path)
    for name in ("edges.xlsx", "edges.parquet.gz"):
        (tmp_path / name).write_text("a,b\n")
    with pytest.raises(InputError, match=reason):
        import_tables(Request(edges=EdgeTable(files=(files,))), tmp_path / "graph", memory=MEMORY)
    assert {path.name for path in tmp_path.iterdir()} == {"edges.xlsx", "edges.parquet.gz"}


TOML = """
edges = {{ files = "edges.csv"{} }}
{}
[nodes]
files = "nodes.csv"
{}
"""


@pytest.mark.parametrize(
    ("edges", "top", "nodes", "reason"),
    [
        (", sorce = 'a'", "", "", "unknown key edges.sorce; .*did you mean source"),
        (", undirected = 1", "", "", "edges.undirected is 1; expected true or false"),
        ("", "add_unknown = 'yes'", "", "add_unknown is 'yes'; expected true or false"),
        ("", "alow = []", "", "unknown key alow"),
        ("", "", "split = { train = 0.6 }", "no train or no val"),
        ("", "", "split = { train = 0.9, val = 0.9 }", "add up to 1"),
        ("", "", "label = 5", "nodes.label is 5; expected a text"),
        ("", "", "features = { age = 1 }", "the name of an encoding"),
        ("", "", "id = [", "is not TOML"),
    ],
)
def test_a_toml_file_is_read_strictly(tmp_path, edges, top, nodes, reason):
    path = tmp_path / "graph.toml"
    path.write_text(TOML.format(edges, top, nodes))
    with pytest.raises(InputError, match=reason) as error:
        read_request(path)
    assert str(path) in str(error.value)


def test_a_toml_file_says_what_options_say(tmp_path):
    path = tmp_path / "graph.toml"
    path.write_text(TOML.format(
        ", undirected = true", 'allow = ["unlabelled"]',
        'label = "kind"\nsplit = { train = 0.5, val = 0.2, seed = 3 }\n'
        '[nodes.features]\nage = "standard"',
    ))  # fmt: skip
    request = read_request(path)
    assert request.edges == EdgeTable(files=(str(tmp_path / "edges.csv"),), undirected=True)
    assert isinstance(request.nodes, NodeTable)
    assert (request.nodes.split.seed, request.nodes.features) == (3, {"age": "standard"})


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"node_id": "ID"}, r"no column 'ID'; .*did you mean id\?\); name the column with --id$"),
        ({"node_label": "knd"}, "name the column with --label$"),
        ({"node_features": {"ages": "standard"}}, "name the column with --feature$"),
        ({"edge_source": "src"}, "name the column with --source$"),
        ({"edge_target": "dst"}, "name the column with --target$"),
        ({"edge_weight": "w"}, "name the column with --weight$"),
        ({"node_split": Split(train=0.5, val=0.2)}, "no label was given; .*--label.*--regress"),
        ({"node_regress": ("town",)}, "expects finite numbers; name it with --missing if it means "
         "a missing value$"),
        ({"node_features": {"none": "standard"}}, "'none' has no values; leave it out"),
        ({"node_features": {"none": "one-hot"}}, "'none' has no values; leave it out"),
        ({"node_features": {"nan": "min-max"}}, "'nan' has no values; leave it out"),
    ],
)  # fmt: skip
def test_a_mistake_says_what_to_do(tmp_path, more, reason):
    rows = [{**row, "none": None, "nan": "nan"} for row in ROWS]
    if "node_split" in more:
        with pytest.raises(InputError, match=reason):
            NodeTable(files=("nodes.csv",), split=more["node_split"])
    else:
        refused(tmp_path, reason, rows=rows, **more)


@pytest.mark.parametrize(
    ("values", "more", "reason"),
    [
        (["a", ["b"]], {"node_label": "v"}, "'v' holds objects, or lists beside other values"),
        ([{"a": 1}, {"a": 2}], {"node_label": "v"}, "'v' holds objects, or lists"),
        ([[["a"]], [["b"]]], {"node_label": "v"}, "'v' holds objects, or lists"),
        (["a", "b\0"], {"node_label": "v"}, "the label 'v' holds a text with a NUL byte"),
        ([{"a": 1}, {"a": 2}], {"node_id": "v"}, "an id column holds objects or lists"),
        (["a", ["b"]], {"node_id": "v"}, "an id column holds objects or lists"),
        (["a", "b\0"], {"node_id": "v"}, "v holds a text with a NUL byte"),
    ],
)
def test_values_of_json_that_are_no_ids_or_labels(tmp_path, values, more, reason):
    rows = [{"id": name, "v": value} for name, value in zip("ab", values, strict=True)]
    with pytest.raises(InputError, match=reason):
        imported(tmp_path, rows, [{"source": "a", "target": "b"}], form="jsonl", **more)


def test_numbers_beside_texts_in_json_are_classes(tmp_path):
    rows = [
        {"id": name, "v": value, "o": {"x": 1}} for name, value in zip("ab", [1, "c"], strict=True)
    ]
    graph, _ = imported(
        tmp_path, rows, [{"source": "a", "target": "b"}], form="jsonl", node_label="v"
    )
    assert graph.class_names == ("1", "c")  # and an object that is not used is no matter


def test_tables_without_edges_are_told(tmp_path, caplog):
    (tmp_path / "edges.csv").write_text("source,target\n")
    (tmp_path / "nodes.csv").write_text("id\na\n")
    files = {name: (str(tmp_path / f"{name}.csv"),) for name in ("edges", "nodes")}
    request = Request(edges=EdgeTable(files=files["edges"]), nodes=NodeTable(files=files["nodes"]))
    import_tables(request, tmp_path / "graph", memory=MEMORY)
    assert "the tables of edges have no rows" in caplog.text
