"""Skewed classes, regression and gaps from the command line: train, evaluate, predict, compare."""

import csv
import json
import re

import pytest
import torch

from graphfm import Graph, load_model
from tests.unit.cli.commands import graphfm, refused, tree

pytestmark = pytest.mark.usefixtures("here")
FEW = ("--epochs", 30, "--hidden", 32, "--lr", 0.01, "--device", "cpu")


def masks(num_nodes, rng):
    split = torch.randint(3, (num_nodes,), generator=rng)
    return {f"{name}_mask": split == n for n, name in enumerate(("train", "val", "test"))}


@pytest.fixture
def skewed(here):
    """3 % of the nodes are positive, which two features tell only in part."""
    rng, n = torch.Generator().manual_seed(0), 3000
    y = (torch.rand(n, generator=rng) < 0.03).long()
    x = torch.randn(n, 8, generator=rng)
    x[:, :2] += y.unsqueeze(1)
    edges = torch.randint(n, (2, 2 * n), generator=rng)
    names = ["good", "fraud"]
    Graph.from_edges(
        edges, x, y, undirected=True, class_names=names, **masks(n, rng)
    ).save(here / "skewed.npz")  # fmt: skip
    return "skewed.npz"


@pytest.fixture
def numbers(here):
    rng, n = torch.Generator().manual_seed(0), 300
    x = torch.randn(n, 4, generator=rng)
    y = 100 + 10 * x[:, :2]
    y[::7, 1] = float("nan")
    edges = torch.randint(n, (2, n), generator=rng)
    graph = Graph.from_edges(edges, x, y, class_names=["height", "weight"], **masks(n, rng))
    graph.save(here / "numbers.npz")
    return "numbers.npz"


def found(run):
    """Positives among the test nodes that the model finds, and how many there are."""
    report = graphfm("evaluate", run, "--device", "cpu", "--json").json
    row = next(row for row in report["classes"] if row["name"] == "fraud")
    return row["recall"], report


def test_rare_positives_are_found_if_asked_for_and_else_warned_of(skewed, caplog):
    graphfm("train", "--dataset", skewed, *FEW, "--out", "plain")
    assert len(re.findall("--class-weights balanced --metric average-precision", caplog.text)) == 1
    caplog.clear()
    weighted = graphfm(
        "train", "--dataset", skewed, *FEW, "--out", "weighted", "--class-weights", "balanced",
        "--metric", "average-precision", "--json",
    )  # fmt: skip
    assert "class good" not in caplog.text
    assert weighted.json["metric"] == "average-precision"
    assert weighted.json["test"] == weighted.json["metrics"]["test"]["average-precision"]
    recall, report = found("weighted")
    assert recall > 0.5
    assert found("plain")[0] < 0.2
    assert report["test"] == weighted.json["test"]
    assert report["metrics"]["test"] == weighted.json["metrics"]["test"]


def test_the_positive_class_can_be_chosen(skewed):
    runs = [
        graphfm(
            "train", "--dataset", skewed, "--epochs", 2, "--out", name, "--positive", name,
            "--metric", "average-precision", "--device", "cpu", "--json",
        ).json
        for name in ("good", "fraud")
    ]  # fmt: skip
    assert runs[0]["val"] > 0.9 > runs[1]["val"]
    assert (load_model("good").positive, load_model("fraud").positive) == (0, 1)
    ended = graphfm("train", "--dataset", skewed, "--positive", "god", "--epochs", 1)
    refused(ended, "unknown class 'god'; choose one of good, fraud")


def test_single_class_labels_are_warned_of_at_training(here, caplog):
    ids = torch.arange(10)
    Graph.from_edges(
        [[0], [1]], torch.ones(10, 1), [0] * 10, train_mask=ids < 5, val_mask=ids >= 5
    ).save(here / "one.npz")
    ended = graphfm("train", "--dataset", "one.npz", "--epochs", 1, "--device", "cpu")
    assert ended.code == 0
    assert "all labelled nodes have class 0" in caplog.text


def test_evaluate_shows_and_draws_every_part(skewed, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    graphfm("train", "--dataset", skewed, "--epochs", 2, "--out", "run", "--device", "cpu")
    ended = graphfm("evaluate", "run", "--device", "cpu", "--picture", "report.png")
    for word in (
        "macro-F1", "balanced accuracy", "ROC-AUC", "average precision", "precision", "as fraud",
        "calibration", "neighbours",
    ):  # fmt: skip
        assert word in ended.out
    assert max(map(len, ended.out.splitlines())) <= 80
    assert (here / "report.png").read_bytes().startswith(b"\x89PNG")
    report = graphfm("evaluate", "run", "--split", "all", "--device", "cpu", "--json").json
    assert sum(map(sum, report["confusion"])) == 3000
    assert sum(row["nodes"] for row in report["degrees"]) == 3000
    assert sum(row["nodes"] for row in report["calibration"]["bins"]) == 3000
    before = tree(here)
    refused(
        graphfm("evaluate", "run", "--picture", "report.pdf"), "expected a file that ends in .png"
    )
    refused(graphfm("evaluate", "run", "--picture", "none/r.png"), "cannot write none/r.png")
    refused(graphfm("evaluate", "run", "--split", "tests"), "unknown split 'tests'")
    assert tree(here) == before


def test_a_regression_from_a_file_to_values(numbers, here):
    ended = graphfm(
        "train", "--dataset", numbers, *FEW, "--metric", "mae", "--loss", "mae", "--out", "run",
        "--json",
    )  # fmt: skip
    assert "2 targets" in ended.err
    report = graphfm("evaluate", "run", "--device", "cpu", "--json", "--picture", "r.png").json
    assert report["test"] == ended.json["test"] == report["metrics"]["test"]["mae"]
    assert [row["name"] for row in report["targets"]] == ["height", "weight"]
    shown = graphfm("evaluate", "run", "--device", "cpu").out
    assert "weight" in shown
    assert "R²" in shown
    assert graphfm("predict", "run", "--out", "p.csv", "--device", "cpu").code == 0
    with (here / "p.csv").open(newline="") as stream:
        header, *rows = csv.reader(stream)
    assert header[:4] == ["node", "name", "height", "weight"]
    assert header[4:] == ["truth_height", "truth_weight", "split"]
    graph = Graph.from_npz(numbers)
    truth = torch.tensor([[float(cell or "nan") for cell in row[4:6]] for row in rows])
    assert torch.equal(truth.nan_to_num(), graph.y.nan_to_num())
    values = torch.tensor([[float(cell) for cell in row[2:4]] for row in rows])
    errors = (values - graph.y)[graph.test_mask]
    mae = torch.stack([column[~column.isnan()].abs().mean() for column in errors.T]).mean()
    assert float(mae) == pytest.approx(report["test"], rel=1e-5)


def test_a_regression_resumes_to_the_same_end(numbers, here):
    options = ("--dataset", numbers, "--epochs", 6, "--metric", "rmse", "--device", "cpu", "--json")
    whole = graphfm("train", *options, "--out", "whole", "--checkpoint-every", "1steps")
    (here / "whole" / "result.json").unlink()
    again = graphfm("train", "--resume", "whole", "--json")
    for name in ("val", "test", "best_epoch", "metrics"):
        assert again.json[name] == whole.json[name]


def test_a_damaged_question_is_refused(numbers, here):
    graphfm("train", "--dataset", numbers, "--epochs", 1, "--out", "run", "--device", "cpu")
    path = here / "run" / "config.json"
    config = json.loads(path.read_text())
    for damage in (
        {"center": [1.0]}, {"scale": None}, {"scale": ["x", 1]}, {"metric": "accuracy"},
        {"metric": []}, {"positive": 7}, {"center": "ab"},
    ):  # fmt: skip
        changed = {**config, "question": {**config["question"], **damage}}
        path.write_text(json.dumps(changed))
        refused(graphfm("evaluate", "run"), "config.json is not the config of a run")
    path.write_text(json.dumps({**config, "question": [1]}))
    refused(graphfm("evaluate", "run"), "config.json is not the config of a run")
