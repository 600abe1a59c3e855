"""Options of the networks that the paper or its released code has: weights, averages, lengths."""

import math

import pytest
import torch
from torch.nn.functional import normalize

from graphfm import InputError, train
from graphfm.backbones import make_backbone
from graphfm.training.inference import LayerwiseInference


def outputs(backbone, graph):
    return LayerwiseInference(backbone.adjacency(graph))(backbone)


def glorot(weight):
    """The largest weight that Glorot's uniform distribution allows."""
    return math.sqrt(6 / (weight.size(0) + weight.size(1)))


@pytest.mark.parametrize("name", ["gcn", "gcnii"])
def test_first_weights_are_glorots(name):
    layers = make_backbone(name, 40, 7, hidden=60, layers=3, init="glorot").layers
    for layer in layers:
        weight = layer.linear.weight
        assert 0.98 * glorot(weight) < weight.abs().max() <= glorot(weight)
        assert layer.linear.bias is None or not layer.linear.bias.any()
    torch_s = make_backbone(name, 40, 7, hidden=60, layers=3).layers[0].linear.weight
    assert torch_s.abs().max() <= 1 / math.sqrt(torch_s.size(1))  # its bound is another


def test_gcnii_has_glorots_second_matrix_too():
    layer = make_backbone("gcnii", 4, 3, hidden=60, init="glorot", shared_weights=False).layers[0]
    assert layer.initial.weight.abs().max() > 1.2 / math.sqrt(60)  # torch's bound is 1 / sqrt(60)


def test_pna_begins_as_one_layer_per_aggregator_and_scaler():
    layer = make_backbone("pna", 40, 7, hidden=50, transform=True, separate=True).layers[0]
    bound = 1 / math.sqrt(50)
    assert layer.biases.shape == (4, 50)
    for rows in (layer.neighbors.weight, layer.biases):
        assert 0.9 * bound < rows.abs().max() <= bound
    assert layer.root.bias is not None
    joint = make_backbone("pna", 40, 7, hidden=50, transform=True).layers[0]
    assert joint.neighbors.weight.abs().max() <= 1 / math.sqrt(4 * 50)


def test_separate_needs_transform():
    with pytest.raises(InputError, match="separate is on, but transform is off; turn transform on"):
        make_backbone("pna", 4, 3, separate=True)


@pytest.mark.parametrize("weighted", [False, True])
def test_sage_averages_a_node_with_its_neighbors(make_graph, weighted):
    """W (h_v + sum of w_vu h_u) / (1 + sum of w_vu): the paper's mean aggregator."""
    graph = make_graph(weighted=weighted)
    backbone = make_backbone("sage", graph.num_features, 4, layers=1, average_self=True)
    (layer,) = backbone.layers
    rows = graph.x.clone()
    weight = torch.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight
    total = torch.ones(graph.num_nodes)
    for (u, v), w in zip(graph.edge_index.T.tolist(), weight.tolist(), strict=True):
        rows[v] += w * graph.x[u]
        total[v] += w
    want = (rows / total.unsqueeze(1)) @ layer.weight.t() + layer.bias
    torch.testing.assert_close(outputs(backbone, graph), want, atol=1e-5, rtol=1e-5)
    assert layer.weight.shape == (4, graph.num_features)


@pytest.mark.parametrize("average_self", [False, True])
def test_hidden_rows_have_length_one(make_graph, average_self):
    graph = make_graph()
    options = {"layers": 2, "hidden": 8, "average_self": average_self}
    plain, scaled = (
        make_backbone("sage", graph.num_features, 4, unit_rows=unit_rows, **options)
        for unit_rows in ("none", "outputs")
    )
    scaled.load_state_dict(plain.state_dict())
    seen = []
    for backbone in (plain, scaled):
        last = backbone.layers[-1]
        last.register_forward_hook(lambda *given: None)
        update = last.update
        last.update = lambda agg, targets, update=update: (
            seen.append(targets.h) or update(agg, targets)
        )
        outputs(backbone, graph)
    torch.testing.assert_close(seen[1], normalize(seen[0]))
    assert ((seen[1].norm(dim=1) - 1).abs() < 1e-5).float().mean() > 0.9  # the others are zero


def test_aggregates_have_length_one(make_graph):
    """As the released code's --norm: the mean is scaled before it is multiplied."""
    graph = make_graph()
    backbone = make_backbone("sage", graph.num_features, 4, layers=1, unit_rows="aggregates")
    (layer,), block = backbone.layers, backbone.adjacency(graph).full_block()
    mean = normalize(layer.aggregate(graph.x, block))
    want = torch.cat([mean, graph.x], dim=1) @ layer.weight.t() + layer.bias
    torch.testing.assert_close(outputs(backbone, graph), want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("method", ["full", "graphsage", "graphfm-ib", "gas", "graphfm-ob"])
@pytest.mark.parametrize("options", [{"average_self": True}, {"unit_rows": "outputs"}], ids=str)
def test_they_train_by_any_method(make_graph, method, options):
    result = train(make_graph(), backbone="sage", method=method, hidden=8, epochs=2, **options)
    assert 0 <= result.score.val <= 1
