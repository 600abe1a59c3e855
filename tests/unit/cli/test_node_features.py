"""Graphs without features, and standardised ones, from the command line."""

import csv
import json

import pytest
import torch

from graphfm import Graph, load_model
from tests.unit.cli.commands import graphfm, refused, tree

pytestmark = pytest.mark.usefixtures("here")
FEW = ("--epochs", 3, "--hidden", 8, "--device", "cpu")


@pytest.fixture
def edges(here):
    """Two groups of nodes that are linked among themselves, and no features."""
    rng, n = torch.Generator().manual_seed(0), 120
    y = torch.arange(n) % 2
    pairs = torch.randint(n // 2, (2, 4 * n), generator=rng) * 2
    split = torch.randint(3, (n,), generator=rng)
    masks = {f"{name}_mask": split == k for k, name in enumerate(("train", "val", "test"))}
    Graph.from_edges(
        torch.cat([pairs, pairs + 1], dim=1), None, y, num_nodes=n, undirected=True,
        class_names=["even", "odd"], **masks,
    ).save(here / "edges.npz")  # fmt: skip
    return "edges.npz"


@pytest.mark.parametrize("kind", ["degree", "random", "learned"])
def test_a_graph_without_features_is_trained_evaluated_and_predicted(here, edges, kind):
    done = graphfm("train", "--dataset", edges, "--node-features", kind, *FEW, "--out", "run")
    assert done.code == 0, done.err
    assert f"0 features, {18 if kind == 'degree' else 64} {kind}, 2 classes" in done.err
    config = json.loads((here / "run/config.json").read_text())
    assert config["run"]["training"]["node_features"] == kind
    assert config["graph"]["fingerprint"] == Graph.from_npz(edges).fingerprint
    test = json.loads((here / "run/result.json").read_text())["test"]
    evaluated = graphfm("evaluate", "run", "--json")
    assert evaluated.json["test"] == pytest.approx(test)
    assert "changed" not in evaluated.err
    assert graphfm("predict", "run", "--out", "p.csv").code == 0
    with (here / "p.csv").open() as stream:
        assert len(list(csv.DictReader(stream))) == 120
    assert graphfm("train", "--resume", "run").code == 0


def test_learned_rows_find_groups_that_only_edges_tell(edges):
    few = ("--epochs", 40, "--hidden", 16, "--device", "cpu", "--lr", 0.05)
    done = graphfm("train", "--dataset", edges, "--node-features", "learned", *few, "--json")
    assert done.json["test"] > 0.9


def test_the_error_names_the_option_and_leaves_nothing(here, edges):
    before = tree(here)
    message = r"the graph has no features; .*--node-features\) to degree, random or learned"
    refused(graphfm("train", "--dataset", edges, "--out", "run"), message)
    refused(graphfm("compare", "--dataset", edges, "--methods", "full", "--out", "all"), message)
    assert tree(here) == before


def test_rows_of_other_nodes_are_refused(here, edges):
    learned = ("--node-features", "learned", *FEW, "--out", "run")
    assert graphfm("train", "--dataset", edges, *learned).code == 0
    Graph.from_edges([[0], [1]], None, num_nodes=2).save(here / "other.npz")
    refused(
        graphfm("predict", "run", "--dataset", "other.npz", "--out", "p.csv"),
        "a row for each of 120 nodes, and this graph has 2",
    )
    assert not (here / "p.csv").exists()


def test_fitted_values_are_kept_and_used_for_another_graph(here, make_graph):
    graph, other = make_graph(), make_graph(num_nodes=50, seed=3)
    shifted = graph.x * 50 + 900
    Graph.from_edges(
        graph.edge_index, shifted, graph.y, train_mask=graph.train_mask, val_mask=graph.val_mask
    ).save(here / "one.npz")
    other.save(here / "other.npz")
    assert graphfm("train", "--dataset", "one.npz", "--standardize", *FEW, "--out", "run").code == 0
    inputs = load_model("run").backbone.node_rows
    torch.testing.assert_close(inputs.center, shifted.double().mean(dim=0))
    torch.testing.assert_close(1 / inputs.scale, shifted.double().std(dim=0))
    assert graphfm("predict", "run", "--dataset", "other.npz", "--out", "p.csv").code == 0
