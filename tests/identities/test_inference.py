"""Layer-wise inference in chunks is the full-batch forward pass."""

import dataclasses

import pytest
import torch

from graphfm import train
from graphfm.backbones import BACKBONES, make_backbone
from graphfm.backbones.ending import embedding
from graphfm.batch import Batch
from graphfm.estimators.exact import Exact
from graphfm.training.inference import LayerwiseInference

VARIANTS = {
    "plain": {},
    "deep": {"layers": 4, "hidden": 9, "batch_norm": True, "residual": True, "dropout_input": True},
}
WIDE = {
    "gcnii": {"shared_weights": False, "alpha": 0.3},
    "pna": {
        "aggregators": ("std", "min", "mean", "max"),
        "scalers": ("attenuation", "identity", "amplification"),
        "jump": True,
    },
}


def full_forward(backbone, graph):
    block = backbone.adjacency(graph).full_block()
    batch = Batch(block.src_ids, block.src_ids, (block,) * len(backbone.layers))
    return backbone(backbone.features(graph), batch, Exact())


@pytest.mark.parametrize("chunk", [(1, 1 << 20), (7, 1 << 20), (1 << 16, 1), (25, 60)])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", BACKBONES)
def test_chunks_are_invisible(make_graph, taken, name, variant, chunk):
    graph = make_graph(weighted=variant == "deep")
    options = VARIANTS[variant] | (WIDE.get(name, {}) if variant == "deep" else {})
    backbone = make_backbone(name, graph.num_features, graph.num_classes, **taken(name, **options))
    backbone.calibrate(graph)
    for _ in range(3):
        full_forward(backbone, graph)  # moves the running statistics
    backbone.eval()
    infer = LayerwiseInference(
        backbone.adjacency(graph), chunk_nodes=chunk[0], chunk_edges=chunk[1]
    )
    assert len(infer.ranges) > 1
    with torch.no_grad():
        want = full_forward(backbone, graph)
    torch.testing.assert_close(infer(backbone), want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", BACKBONES)
def test_one_chunk_is_the_whole_graph(make_graph, name):
    graph = make_graph()
    backbone = make_backbone(name, graph.num_features, graph.num_classes).eval()
    infer = LayerwiseInference(backbone.adjacency(graph))
    assert len(infer.ranges) == 1
    with torch.no_grad():
        torch.testing.assert_close(infer(backbone), full_forward(backbone, graph))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", BACKBONES)
def test_the_rows_of_every_layer_are_the_same_in_chunks(make_graph, taken, name, variant):
    graph = make_graph(weighted=variant == "deep")
    options = VARIANTS[variant] | (WIDE.get(name, {}) if variant == "deep" else {})
    backbone = make_backbone(name, graph.num_features, graph.num_classes, **taken(name, **options))
    whole = LayerwiseInference(backbone.adjacency(graph))
    parts = LayerwiseInference(backbone.adjacency(graph), chunk_nodes=9, chunk_edges=60)
    ids = torch.tensor([5, 3, 40, 3])
    for layer in (None, *range(len(backbone.layers) + 1)):
        ending = embedding(backbone, layer)
        (want,) = whole.parts(backbone, ending)
        found = [*parts.parts(backbone, ending)]
        assert len(found) == len(parts.ranges) > 1
        torch.testing.assert_close(torch.cat(found), want, atol=1e-5, rtol=1e-5)
        some = torch.cat([*parts.parts(backbone, ending, ids=ids)])
        torch.testing.assert_close(some, want[ids], atol=1e-5, rtol=1e-5)


def test_chunks_obey_both_bounds_and_cover_every_node_once(make_graph):
    graph = make_graph(num_nodes=200, num_edges=2000)
    backbone = make_backbone("sage", graph.num_features, graph.num_classes)
    infer = LayerwiseInference(backbone.adjacency(graph), chunk_nodes=13, chunk_edges=90)
    nodes = [node for start, end in infer.ranges for node in range(start, end)]
    assert nodes == list(range(graph.num_nodes))
    for start, end in infer.ranges:
        assert end - start <= 13
        assert end - start == 1 or int(graph.degree[start:end].sum()) <= 90


def test_inference_leaves_the_mode_and_the_weights_alone(make_graph):
    graph = make_graph()
    backbone = make_backbone("gcn", graph.num_features, graph.num_classes, batch_norm=True)
    before = {key: value.clone() for key, value in backbone.state_dict().items()}
    LayerwiseInference(backbone.adjacency(graph))(backbone.train())
    assert backbone.training
    torch.testing.assert_close(backbone.state_dict(), before, rtol=0, atol=0)


def test_a_split_without_nodes_has_no_score(make_graph, monkeypatch):
    """On a graph in chunks too."""
    graph = make_graph()
    nobody = torch.zeros_like(graph.test_mask)
    without = dataclasses.replace(graph, test_mask=nobody)
    monkeypatch.setattr("graphfm.training.inference.ranges", lambda *_: [(0, 30), (30, 60)])
    assert train(without, epochs=1).score.test is None
