"""New rows of tables are scored in the graph that they join."""

import csv

import pytest
import torch

from graphfm import join, load, load_model
from tests.unit.cli.commands import graphfm, refused, tree

COUNT = 30


@pytest.fixture
def trained(here):
    """A path of 30 nodes with a cross-road at its end, imported and trained on."""
    kinds = ["fish", "bird"]
    rows = [f"p{n},{n % 7},{'ab'[n % 2]},{kinds[n // 15]},{['train', 'val', 'test'][n % 3]}\n"
            for n in range(COUNT)]  # fmt: skip
    (here / "nodes.csv").write_text("who,size,colour,kind,fold\n" + "".join(rows))
    edges = "".join(f"p{n};p{n + 1}\n" for n in range(COUNT - 1))
    (here / "edges.csv").write_text("from;to\n" + edges)
    (here / "graph.toml").write_text(
        'edges = { files = "edges.csv", source = "from", target = "to", undirected = true, '
        'delimiter = ";" }\n[nodes]\nfiles = "nodes.csv"\nid = "who"\nlabel = "kind"\n'
        'split = "fold"\n[nodes.features]\nsize = "standard"\ncolour = "one-hot"\n'
    )
    assert graphfm("import", "graph.toml", "--out", "graph").code == 0
    words = ["train", "--dataset", "graph", "--epochs", "2", "--layers", "2", "--out", "run"]
    assert graphfm(*words, "--device", "cpu", "-q").code == 0
    (here / "new.csv").write_text("colour,who,size\na,n0,3\nb,n1,\nb,p29b,1\n")
    (here / "new_edges.csv").write_text("from;to\nn0;p0\nn1;n0\np28;p29b\n")
    return here


def read(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


JOIN = ("--add-nodes", "new.csv", "--add-edges", "new_edges.csv", "--device", "cpu")


def test_the_new_nodes_are_written_with_their_ids(trained):
    ended = graphfm("predict", "run", "--out", "p.csv", *JOIN)
    assert ended.code == 0, ended.err
    rows = read("p.csv")
    assert [(row["node"], row["name"]) for row in rows] == [
        ("30", "n0"), ("31", "n1"), ("32", "p29b"),
    ]  # fmt: skip
    graph = join("graph", "new.csv", "new_edges.csv")
    expected = load_model("run").predict(graph)
    best = expected.max(dim=1)
    names = load("graph").class_names
    assert [row["class"] for row in rows] == [names[n] for n in best.indices[30:].tolist()]
    shown = torch.tensor([float(row["probability"]) for row in rows])
    torch.testing.assert_close(shown, best.values[30:], atol=1e-6, rtol=0)


def test_nodes_that_are_far_away_keep_their_predictions(trained):
    before = load_model("run").predict(load("graph"))
    after = load_model("run").predict(join("graph", "new.csv", "new_edges.csv"))
    far = slice(2, 26)  # two layers reach two edges from p0 and p28
    torch.testing.assert_close(after[far], before[far], atol=1e-6, rtol=0)
    assert not torch.allclose(after[0], before[0])


def test_a_twin_of_an_imported_node_is_predicted_alike(trained):
    """p29b has the features and the edge of p29, so nothing tells them apart."""
    graph = join("graph", "new.csv", "new_edges.csv")
    assert torch.equal(graph.x[32], graph.x[29])
    chances = load_model("run").predict(graph)
    torch.testing.assert_close(chances[32], chances[29], atol=1e-6, rtol=0)


def test_nodes_chooses_among_old_and_new_ones(trained):
    assert graphfm("predict", "run", "--out", "p.csv", "--nodes", "p3,n1", *JOIN).code == 0
    assert [row["name"] for row in read("p.csv")] == ["p3", "n1"]
    assert graphfm("embed", "run", "--out", "e.csv", *JOIN).code == 0
    assert [row["name"] for row in read("e.csv")] == ["n0", "n1", "p29b"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--add-edges", "new_edges.csv"], "give --add-nodes too"),
        (["--add-nodes", "none.csv"], "there is no file 'none.csv'"),
        (["--add-nodes", "nodes.csv"], "an id that the graph has already, such as 'p0'"),
        (["--add-nodes", "new.csv", "--add-edges", "new.csv"], "the edges have no column 'from'"),
        (["--add-nodes", "edges.csv"], "the nodes have no column 'who'"),
        (["--add-nodes", "new.csv", "--dataset", "debian"], "keeps no encodings"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(trained, words, reason):
    before = tree(trained)
    refused(graphfm("predict", "run", "--out", "p.csv", "--device", "cpu", *words, "-q"), reason)
    assert tree(trained) == before
