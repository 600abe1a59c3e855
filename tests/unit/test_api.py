import subprocess
import sys

import pytest
import torch

import graphfm
from graphfm import Graph, InputError


def test_from_a_graph_to_predictions(make_graph, tmp_path):
    graph = make_graph()
    result = graphfm.train(graph, backbone="gcn", hidden=8, epochs=3, out=tmp_path / "run")
    chances = result.model.predict(graph)
    assert chances.shape == (graph.num_nodes, graph.num_classes)
    assert torch.equal(graphfm.load_model(tmp_path / "run").predict(graph), chances)


def test_a_model_moves_to_a_graph_it_has_not_seen(make_graph):
    model = graphfm.train(make_graph(seed=1), backbone="pna", epochs=2).model
    other = make_graph(num_nodes=31, num_edges=90, seed=2)
    unlabelled = Graph.from_edges(other.edge_index, other.x)
    assert torch.equal(model.predict(other), model.predict(unlabelled))
    assert model.evaluate(other)["test"] is not None
    with pytest.raises(InputError, match="no labels to score by; use predict"):
        model.evaluate(unlabelled)


def test_a_graph_with_other_features_is_refused(make_graph):
    model = graphfm.train(make_graph(), epochs=1).model
    with pytest.raises(InputError, match="5 features per node, but the model was trained on 7"):
        model.predict(make_graph(num_features=5))


def test_by_name_and_by_file(make_graph, tmp_path):
    make_graph().save(tmp_path / "mine.npz")
    assert graphfm.train(tmp_path / "mine.npz", epochs=1).run.dataset.endswith("mine.npz")
    assert graphfm.train("synthetic:small:0.01", epochs=1).run.dataset == "synthetic:small:0.01"


def test_the_core_needs_only_torch_and_numpy():
    code = """
import sys
for name in ("typer", "rich", "matplotlib", "safetensors", "torch_geometric", "scipy"):
    sys.modules[name] = None  # importing it fails
import graphfm
graph = graphfm.synthetic(scale=0.01)
graphfm.train(graph, epochs=1).model.predict(graph)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_training_that_fails_leaves_no_folder(make_graph, tmp_path):
    graph = make_graph()
    wild = Graph.from_edges(
        graph.edge_index,
        graph.x.sign() * 3e38,
        graph.y,
        train_mask=graph.train_mask,
        val_mask=graph.val_mask,
    )
    with pytest.raises(InputError, match="the loss is"):
        graphfm.train(wild, epochs=2, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
