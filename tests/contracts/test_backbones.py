"""What every backbone promises."""

import pytest
import torch

from graphfm import Graph, synthetic, train
from graphfm.backbones import BACKBONES, make_backbone
from graphfm.data.synthetic import Shape
from graphfm.training.inference import LayerwiseInference

pytestmark = pytest.mark.parametrize("name", BACKBONES)


def outputs(backbone, graph):
    return LayerwiseInference(backbone.adjacency(graph))(backbone)


def split_graph(edges, num_nodes, num_classes=2, **options):
    node = torch.arange(num_nodes)
    return Graph.from_edges(
        torch.tensor(edges, dtype=torch.long).reshape(2, -1),
        torch.randn(num_nodes, 5),
        node % num_classes,
        train_mask=node % 2 == 0,
        val_mask=node % 2 == 1,
        num_classes=num_classes,
        **options,
    )


def test_gradient_reaches_every_weight(make_graph, taken, name):
    options = taken(name, batch_norm=True, residual=True, layers=3)
    result = train(make_graph(), backbone=name, epochs=1, **options)
    for key, parameter in result.model.backbone.named_parameters():
        assert parameter.grad is not None, key
        assert bool((parameter.grad != 0).any()), key


@pytest.mark.parametrize(
    "edges",
    [[[0, 1], [1, 0]], [[0], [1]], [[], []], [[0, 0, 1], [0, 0, 1]]],
    ids=["pair", "directed", "no edges", "loops"],
)
def test_two_nodes_train(taken, name, edges):
    options = taken(name, batch_norm=True)
    result = train(split_graph(edges, 2), backbone=name, epochs=3, **options)
    assert bool(torch.isfinite(result.model.predict(split_graph(edges, 2))).all())


def test_a_class_without_training_nodes_is_no_trouble(name):
    graph = split_graph([[0, 1, 2, 3], [1, 2, 3, 4]], 6, num_classes=2)
    graph = Graph.from_edges(
        graph.edge_index, graph.x, graph.y, train_mask=graph.train_mask, val_mask=graph.val_mask,
        num_classes=9,
    )  # fmt: skip
    result = train(graph, backbone=name, epochs=2)
    assert result.model.predict(graph).shape == (6, 9)
    assert result.score.test is None


def test_names_of_nodes_do_not_matter(make_graph, name):
    graph = make_graph(weighted=True)
    shuffle = torch.randperm(graph.num_nodes)
    place = torch.argsort(shuffle)
    same = Graph.from_edges(
        place[graph.edge_index], graph.x[shuffle], edge_weight=graph.edge_weight
    )
    backbone = make_backbone(name, graph.num_features, graph.num_classes)
    torch.testing.assert_close(outputs(backbone, same), outputs(backbone, graph)[shuffle])


def test_same_seed_same_numbers(make_graph, name):
    graph = make_graph()
    first, second, other = (
        train(graph, backbone=name, epochs=3, seed=seed).model.backbone.state_dict()
        for seed in (5, 5, 6)
    )
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    assert any(not torch.equal(first[key], other[key]) for key in first)


def test_training_leaves_the_callers_random_state_alone(make_graph, name):
    before = torch.random.get_rng_state()
    train(make_graph(), backbone=name, epochs=1)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_an_easy_task_is_learned(taken, name):
    shape = Shape(
        num_nodes=600, num_edges=3000, num_features=8, num_classes=3, split=(0.5, 0.2, 0.3)
    )
    easy = synthetic(shape, signal=6.0, homophily=1.0)
    score = train(easy, backbone=name, epochs=60, lr=0.01, **taken(name, hidden=32)).score
    assert score.test > 0.9  # chance is a third


def test_many_labels_train(make_graph, name):
    graph = make_graph(multi_label=True)
    result = train(graph, backbone=name, epochs=2)
    chances = result.model.predict(graph)
    assert chances.shape == graph.y.shape
    assert bool(((chances >= 0) & (chances <= 1)).all())


def test_half_precision_features_train(make_graph, name):
    graph = make_graph()
    half = Graph.from_edges(
        graph.edge_index, graph.x.half(), graph.y, train_mask=graph.train_mask,
        val_mask=graph.val_mask,
    )  # fmt: skip
    assert half.x.dtype == torch.float16
    assert train(half, backbone=name, epochs=2).score.val >= 0
