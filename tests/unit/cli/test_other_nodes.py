"""Rows that belong to the nodes of a training are told of where other nodes are predicted."""

import pytest

from graphfm import synthetic
from tests.unit.cli.commands import graphfm

SMALL = [
    "--hidden",
    4,
    "--epochs",
    1,
    "--batch-size",
    64,
    "--method",
    "graphsage",
    "--device",
    "cpu",
]


@pytest.fixture
def graphs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed in (0, 1):
        synthetic("small", scale=0.02, seed=seed).save(f"{seed}.npz")


def ended(*arguments):
    found = graphfm(*arguments)
    assert found.code == 0, found.err
    return found.err


@pytest.mark.parametrize("kind", ["random", "learned"])
def test_another_graph_of_as_many_nodes_is_warned_of(graphs, kind):
    ended("train", "--dataset", "0.npz", *SMALL, "--node-features", kind, "--out", "run")
    said = ended("predict", "run", "--dataset", "1.npz", "--out", "p.csv")
    assert f"the model reads {kind} rows of the nodes that it was trained on" in said
    assert "warning" not in ended("predict", "run", "--dataset", "0.npz", "--out", "p.csv")


def test_a_graph_that_was_moved_is_named(graphs, tmp_path):
    ended("train", "--dataset", "0.npz", *SMALL, "--out", "run")
    (tmp_path / "0.npz").rename(tmp_path / "moved.npz")
    found = graphfm("predict", "run", "--out", "p.csv")
    assert found.code == 2
    assert "the graph of the run is missing" in found.err
    assert "or give --dataset" in found.err
    ended("predict", "run", "--dataset", "moved.npz", "--out", "p.csv")


def test_a_run_in_half_precision_knows_its_graph(graphs):
    ended("train", "--dataset", "0.npz", *SMALL, "--features", "fp16", "--out", "run")
    assert "warning" not in ended("evaluate", "run")


def test_rankings_look_for_the_rarer_class_and_say_so(tmp_path, monkeypatch):
    import torch

    from graphfm import Graph

    monkeypatch.chdir(tmp_path)
    rng = torch.Generator().manual_seed(0)
    y = (torch.arange(400) % 10 != 0).long()  # class 0, "fraud", has a tenth
    split = torch.randint(3, (400,), generator=rng)
    Graph.from_edges(
        torch.randint(400, (2, 1500), generator=rng), torch.randn(400, 4, generator=rng), y,
        train_mask=split == 0, val_mask=split == 1, test_mask=split == 2,
        class_names=["fraud", "ok"],
    ).save("rare.npz")  # fmt: skip
    warned = graphfm("info", "rare.npz")
    assert "--metric average-precision (of class fraud)" in warned.out
    chosen = ["--metric", "average-precision", "--class-weights", "balanced"]
    found = graphfm("train", "--dataset", "rare.npz", *SMALL, *chosen, "--out", "run")
    assert "(average precision of fraud)" in found.out
    assert "ROC-AUC of fraud" in graphfm("evaluate", "run").out
    found = graphfm(
        "train", "--dataset", "rare.npz", *SMALL, *chosen, "--positive", "ok", "--out", "ok"
    )
    assert "(average precision of ok)" in found.out
