"""graphfm import and export: from tables to predictions, as docs/your-graph.md says."""

import csv
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from graphfm import Graph, load
from graphfm.cli.import_tables import parse_size
from graphfm.data import datasets
from graphfm.errors import InputError
from tests.unit.cli.commands import graphfm, other_graph, refused, tree

pytestmark = pytest.mark.usefixtures("here")
ROOT = Path(__file__).parents[3]
PAGE, README = (ROOT / "docs/your-graph.md").read_text(), (ROOT / "README.md").read_text()


@pytest.fixture
def tables(here) -> list[list[str]]:
    """The tables of the page; the commands that it gives."""
    for name, content in re.findall(r"```csv (\S+)\n(.*?)```", PAGE, re.DOTALL):
        (here / name).write_text(content)
    (commands,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    assert commands in README
    return [shlex.split(line)[1:] for line in commands.replace("\\\n", " ").splitlines()]


def test_the_page_leads_from_tables_to_predictions_in_five_commands(tables, here):
    assert [words[0] for words in tables] == ["import", "info", "train", "evaluate", "predict"]
    for words in tables:
        ended = graphfm(*words)
        assert ended.code == 0, ended.err
    with open("predictions.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    with open("nodes.csv", newline="") as stream:
        accounts = [row["account"] for row in csv.DictReader(stream)]
    assert [row["name"] for row in rows] == accounts
    assert {row["class"] for row in rows} <= {"honest", "fraud"}
    graph = load("accounts")
    assert (graph.num_edges, graph.num_features, graph.class_names) == (16, 4, ("fraud", "honest"))
    assert graph.y.tolist() == [1, 1, 0, 0, 1, 0, 1, -1]


def test_the_new_nodes_of_the_page_are_scored(tables, here):
    for words in (tables[0], tables[2]):
        assert graphfm(*words).code == 0
    (command,) = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    ended = graphfm(*shlex.split(command)[1:])
    assert ended.code == 0, ended.err
    with open("new_predictions.csv", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert (row["node"], row["name"]) == ("8", "ines")
    assert row["class"] in ("honest", "fraud")


def test_the_toml_file_of_the_page_says_the_same(tables, here):
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (here / "graph.toml").write_text(text)
    first = graphfm(*tables[0], "--json")
    second = graphfm("import", "graph.toml", "--out", "again", "--json")
    assert first.json | {"out": ""} == second.json | {"out": ""}
    assert load("again").fingerprint == load("accounts").fingerprint
    refused(graphfm("import", "graph.toml", "--out", "x", "--weight", "w"), "leave --weight out")


def test_a_run_finds_its_folder_from_elsewhere(tables, here, monkeypatch):
    graphfm(*tables[0])
    graphfm(*tables[2])
    (here / "deeper").mkdir()
    monkeypatch.chdir(here / "deeper")
    ended = graphfm("evaluate", "../run")
    assert (ended.code, ended.err) == (0, "")


def test_the_report_says_what_was_found(tables, here):
    ended = graphfm(*tables[0])
    for line in (
        r"rows of edges read\s+8", r"class honest\s+4", r"nodes without a label\s+1",
        r"feature age\s+standard: 2, 1 missing", r"test nodes\s+1",
    ):  # fmt: skip
        assert re.search(line, ended.out), line
    assert "graphfm train --dataset accounts" in ended.err
    refused(graphfm(*tables[0]), "accounts exists already")


def test_a_list_of_texts_is_to_become_a_table(here):
    (here / "list.txt").write_text("anna bert\n")
    refused(graphfm("import", "list.txt", "--out", "g", "-q"), "a line of names, call it .csv")


def test_folders_above_the_new_one_are_made_and_unmade(tables, here):
    words = ["import", "edges.csv", "--source", "payer", "--out", "graphs/deep/mine", "-q"]
    refused(graphfm(*words), "no column 'target'")
    assert not (here / "graphs").exists()
    assert graphfm(*words, "--target", "payee").code == 0
    assert [path.name for path in (here / "graphs/deep").iterdir()] == ["mine"]
    refused(graphfm(*words[:-2], "edges.csv/mine", "-q"), "cannot make edges.csv")


def test_columns_that_are_not_used_are_named(tables, here):
    ended = graphfm("import", "edges.csv", "--source", "payer", "--target", "payee", "--nodes",
                    "nodes.csv", "--id", "account", "--out", "g")  # fmt: skip
    assert re.search(r"columns not used\s+country, age, kind, fold", ended.out)
    assert "log(1 + in-degree)" in ended.out


def test_export_and_import_give_the_same_graph(tables, here):
    graphfm(*tables[0])
    for kind in ("csv", "parquet"):
        assert graphfm("export", "accounts", "--out", kind, "--format", kind).code == 0
        assert graphfm("import", f"{kind}/graph.toml", "--out", f"from-{kind}").code == 0
        assert load(f"from-{kind}").fingerprint == load("accounts").fingerprint
    refused(graphfm("export", "accounts", "--out", "x", "--format", "xls"), "unknown format 'xls'")


def test_an_npz_file_is_converted_and_a_large_one_says_so(here, monkeypatch):
    other_graph(here / "g.npz")
    assert graphfm("import", "g.npz", "--out", "g").code == 0
    assert load("g").fingerprint == Graph.from_npz("g.npz").fingerprint
    infos = [graphfm("info", name, "--json").json | {"dataset": ""} for name in ("g", "g.npz")]
    assert infos[0] == infos[1]
    monkeypatch.setattr(datasets, "LARGE", 1)
    monkeypatch.setattr(datasets.log, "info", lambda text, *more: said.append(text % more))
    said: list[str] = []
    load("g.npz")
    assert "graphfm import g.npz --out FOLDER" in said[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.txt", "# from to weight\n0 1 2.5\n7 0 1.0\n"),
        ("g.edges", "0\t1\n1\t2\n"),
        ("g.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n"),
        ("g.graph", "3 2\n2\n1 3\n2\n"),
        ("g/edge_index.npy", [[0, 1], [1, 2]]),
    ],
)
def test_graphs_of_other_formats_are_converted(here, name, text):
    path = here / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text) if isinstance(text, str) else np.save(path, np.array(text))
    given = name.partition("/")[0]
    ended = graphfm("import", given, "--out", "folder")
    assert ended.code == 0, ended.err
    opened, read = load("folder"), load(given)
    assert opened.fingerprint == read.fingerprint
    assert opened.meta["format"] == read.meta["format"]
    assert list(opened.node_names or ()) == list(read.node_names or ())
    refused(graphfm("import", given, "--out", "x", "--undirected", "-q"), "leave --undirected out")
    refused(graphfm("import", "folder", "--out", "x", "-q"), "use it with --dataset folder")


def test_a_tsv_file_is_a_table(here):
    (here / "e.tsv").write_text("source\ttarget\na\tb\n")
    assert graphfm("import", "e.tsv", "--out", "g").code == 0
    assert list(load("g").node_names) == ["a", "b"]


def test_a_regression_from_tables_to_predictions(tables, here):
    rows = "".join(f"n{n},{n % 3},{n * 0.5},{'' if n == 4 else n % 5}\n" for n in range(40))
    (here / "n.csv").write_text("id,size,income,debt\n" + rows)
    (here / "e.csv").write_text(
        "source,target\n" + "".join(f"n{n},n{(n * 7 + 1) % 40}\n" for n in range(40))
    )
    ended = graphfm(
        "import", "e.csv", "--nodes", "n.csv", "--regress", "income", "--regress", "debt",
        "--shares", "0.6,0.2", "--feature", "size=standard", "--out", "g",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    wanted = r"target debt\s+min 0, mean 1.949, max 4, std 1.395; 1 missing"
    assert re.search(wanted, ended.out)
    assert re.search(wanted, graphfm("info", "g").out)
    assert graphfm("train", "--dataset", "g", "--epochs", "2", "--out", "run", "-q").code == 0
    assert graphfm("predict", "run", "--out", "p.csv").code == 0
    with open("p.csv", newline="") as stream:
        row = next(csv.DictReader(stream))
    assert row["name"] == "n0"
    assert np.isfinite([float(row["income"]), float(row["debt"])]).all()
    refused(
        graphfm("import", "e.csv", "--nodes", "n.csv", "--regress", "debt", "--shares", "0.6,0.2",
                "--stratified", "--out", "h", "-q"), "stratified split needs classes",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--regress", "age"], "a label is for classes and regress for numbers"),
        (["--feature", "age"], "expected COLUMN=ENCODING"),
        (["--feature", "age=standard", "--feature", "age=min-max"], "two encodings"),
        (["--split", "fold", "--shares", "0.5,0.2"], "both given"),
        (["--shares", "0.5"], "expected train,val"),
        (["--shares", "a,b"], "expected train,val"),
        (["--stratified"], "--stratified needs shares"),
        (["--split-seed", "3"], "--split-seed needs shares"),
        (["--memory", "lots"], "expected a size such as 2GB"),
        (["--memory", "1MB"], "expected 536,870,912 or more"),
        (["--allow", "anything"], "unknown loss to allow"),
        (["--delimiter", ";"], "have no column"),
        (["--source", "from"], "have no column 'from'.*--source"),
        (["--id", "Account"], r"did you mean account\?\); name the column with --id"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(tables, here, more, reason):
    before = tree(here)
    words = ["import", "edges.csv", "--source", "payer", "--target", "payee", "--nodes",
             "nodes.csv", "--id", "account", "--label", "kind", "--out", "g", *more]  # fmt: skip
    ended = graphfm(*words, "-q")
    refused(ended, reason)
    assert tree(here) == before


def test_without_duckdb_a_command_says_what_to_install(tables, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    refused(graphfm(*tables[0], "-q"), r"pip install 'graphfm\[import\]'")


def test_sizes():
    assert [parse_size(text) for text in ("2GB", "1.5 GiB", "800m", "7", "3kB")] == [
        2_000_000_000, 3 << 29, 800_000_000, 7, 3000,
    ]  # fmt: skip
    for text in ("", "GB", "-1GB", "2XB", "1e9", "7iB"):
        with pytest.raises(InputError):
            parse_size(text)
