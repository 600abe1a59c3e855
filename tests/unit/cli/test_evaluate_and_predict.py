"""graphfm evaluate and graphfm predict read a run and say what its model finds."""

import csv
from pathlib import Path

import pytest
import torch

from graphfm import Graph, load
from tests.unit.cli.commands import (
    SMALL,
    graphfm,
    other_graph,
    refused,
    tree,
)

pytestmark = pytest.mark.usefixtures("here")


def read_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="", encoding="utf-8") as stream:
        header, *rows = csv.reader(stream)
    return header, rows


def test_evaluate_reproduces_the_scores_of_the_run(trained):
    out, ended = trained
    scores = graphfm("evaluate", out, "--device", "cpu", "--json")
    assert scores.err == ""
    assert {"run", "dataset", "train", "val", "test", "metric"} <= scores.json.keys()
    for split in ("val", "test"):
        assert scores.json[split] == ended.json[split]
    text = graphfm("evaluate", out, "--device", "cpu").out
    assert f"{ended.json['test']:.4f}" in text


def test_evaluate_on_a_graph_with_other_classes_is_refused(run, here):
    other_graph(here / "g.npz", y=[0, 1, 2, 0, 1])
    refused(graphfm("evaluate", run, "--dataset", "g.npz"), "3 classes.*trained on 10 classes")


def test_evaluate_warns_of_a_graph_that_changed(here):
    masks = {"train_mask": [1, 1, 0, 0, 0], "val_mask": [0, 0, 1, 0, 0]}
    other_graph(here / "g.npz", y=[0, 1, 0, 1, -1], **masks)
    graphfm("train", "--dataset", "g.npz", "--epochs", 1, "--out", "run")
    assert graphfm("evaluate", "run").err == ""
    other_graph(here / "g.npz", y=[0, 1, 1, 1, -1], **masks)
    ended = graphfm("evaluate", "run")
    assert ended.code == 0
    assert "warning: g.npz has changed" in ended.err


def test_predict_writes_a_row_for_every_node(trained, here):
    ended = graphfm("predict", trained[0], "--out", "p.csv", "--json")
    assert ended.json == {"run": str(trained[0]), "dataset": SMALL, "nodes": 200, "out": "p.csv"}
    header, rows = read_csv(here / "p.csv")
    assert header == ["node", "name", "class", "probability", "truth", "split"]
    assert [row[0] for row in rows] == [str(node) for node in range(200)]
    assert {row[1] for row in rows} == {""}
    assert {int(row[2]) for row in rows} <= set(range(10))
    assert all(0.1 <= float(row[3]) <= 1 for row in rows)


def test_predictions_agree_with_the_scores(trained, here):
    graphfm("predict", trained[0], "--out", "p.csv")
    graph = load(SMALL)
    predicted = torch.tensor([int(row[2]) for row in read_csv(here / "p.csv")[1]])
    right = (predicted == graph.y)[graph.test_mask].float().mean()
    assert float(right) == trained[1].json["test"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"node_names": ["a", "ß", "c,d", 'e"f', "g\nh"]},
        {"y": [0, 1, 2, 3, -1], "num_classes": 10},
        {"y": [0, 1, 2, 3, 4], "train_mask": [1, 0, 0, 0, 0]},
    ],
)
def test_predict_on_a_graph_the_model_has_never_seen(run, here, options):
    graph = other_graph(here / "g.npz", **options)
    ended = graphfm("predict", run, "--dataset", "g.npz", "--out", "p.csv")
    assert (ended.code, ended.out, ended.err) == (0, "", "5 predictions in p.csv\n")
    rows = read_csv(here / "p.csv")[1]
    assert [row[1] for row in rows] == list(graph.node_names or [""] * 5)


def test_predict_names_classes_and_joins_many(here):
    y = [[1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0], [-1, -1, -1]]
    masks = {"train_mask": [1, 1, 0, 0, 0], "val_mask": [0, 0, 1, 1, 0]}
    other_graph(here / "g.npz", y=y, class_names=["red", "green", "blue"], **masks)
    graphfm("train", "--dataset", "g.npz", "--epochs", 3, "--out", "run")
    assert graphfm("predict", "run", "--out", "p.csv").code == 0
    header, rows = read_csv(here / "p.csv")
    assert header == ["node", "name", "class", "probability", "truth", "split"]
    assert [row[4] for row in rows] == ["red|blue", "green", "red|green|blue", "", ""]
    assert [row[5] for row in rows] == ["train", "train", "val", "val", ""]
    for _, _, names, chances, *_ in rows:
        chosen = names.split("|") if names else []
        assert set(chosen) <= {"red", "green", "blue"}
        assert len(chosen) == (chances.count("|") + 1 if chances else 0)
        assert all(float(chance) > 0.5 for chance in chances.split("|") if chance)


def test_predict_with_other_features_is_refused_and_writes_nothing(run, here):
    Graph.from_edges([[0], [1]], torch.ones(2, 3)).save(here / "g.npz")
    before = tree(here)
    ended = graphfm("predict", run, "--dataset", "g.npz", "--out", "p.csv")
    refused(ended, "3 features per node, but the model was trained on 64")
    assert tree(here) == before


@pytest.mark.parametrize("out", ["missing/p.csv", "g.npz/p.csv", ".", "/", "folder", "n" * 300])
def test_predict_to_an_impossible_place_is_refused(run, here, out):
    other_graph(here / "g.npz")
    (here / "folder").mkdir()
    before = tree(here)
    refused(graphfm("predict", run, "--dataset", "g.npz", "--out", out), f"cannot write {out}")
    assert tree(here) == before


def test_predict_writes_through_a_link(run, here):
    (here / "link.csv").symlink_to("target.csv")
    assert graphfm("predict", run, "--out", "link.csv").code == 0
    assert (here / "link.csv").is_symlink()
    assert (here / "target.csv").read_text().startswith("node,name,class,probability")
