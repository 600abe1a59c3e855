"""What a layer does around aggregate and update, against a forward pass written by hand."""

import pytest
import torch
from torch import nn

from graphfm.backbones import make_backbone
from graphfm.backbones.gcn import GCNLayer
from graphfm.batch import Batch, Targets
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.estimators.exact import Exact
from graphfm.norm import frozen_statistics


def forward(backbone, graph):
    block = backbone.adjacency(graph).full_block()
    batch = Batch(block.src_ids, block.src_ids, (block,) * len(backbone.layers))
    return backbone(graph.x, batch, Exact())


def mean_matrix(graph):
    block = Adjacency.mean(graph).full_block()
    matrix = torch.zeros(graph.num_nodes, graph.num_nodes)
    place = (block.edges.row.long(), block.edges.col.long())
    return matrix.index_put_(place, block.edges.weight, accumulate=True)


def test_norm_then_residual_then_activation(make_graph):
    graph = make_graph(num_features=6)
    sage = make_backbone(
        "sage", 6, 4, layers=3, hidden=6, dropout=0.0, batch_norm=True, residual=True
    )
    a, h = mean_matrix(graph), graph.x
    for depth, layer in enumerate(sage.layers):
        out = torch.cat([a @ h, h], dim=1) @ layer.weight.T + layer.bias
        if depth < 2:
            norm = nn.BatchNorm1d(6)
            out = (norm(out) + h).relu()
        h = out
    torch.testing.assert_close(forward(sage, graph), h, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["sage", "gcn", "gcnii", "pna", "mlp"])
def test_dropout_is_noise_in_training_only(make_graph, name):
    graph = make_graph()
    backbone = make_backbone(name, 7, 4, layers=2, dropout=0.5)
    assert not torch.equal(forward(backbone, graph), forward(backbone, graph))
    backbone.eval()
    assert torch.equal(forward(backbone, graph), forward(backbone, graph))


@pytest.mark.parametrize("name", ["sage", "gcn", "pna", "mlp"])
def test_features_are_dropped_only_when_asked(make_graph, name):
    """With one layer there are no hidden rows, so the input is all that could be dropped."""
    graph = make_graph()
    plain = make_backbone(name, 7, 4, layers=1, dropout=0.5)
    assert torch.equal(forward(plain, graph), forward(plain, graph))
    asked = make_backbone(name, 7, 4, layers=1, dropout=0.5, dropout_input=True)
    assert not torch.equal(forward(asked, graph), forward(asked, graph))


def test_gcnii_drops_features_hidden_rows_and_what_it_decodes():
    backbone = make_backbone("gcnii", 7, 4, layers=2, dropout=0.3, dropout_input=True)
    rates = [m.p for m in backbone.modules() if isinstance(m, nn.Dropout)]
    assert rates == [0.3] * 4  # encode, two layers, decode
    plain = make_backbone("gcnii", 7, 4, layers=2, dropout=0.3)
    assert [m.p for m in plain.encode.modules() if isinstance(m, nn.Dropout)] == [0.0]


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("activation", [False, True])
def test_an_affine_layer_does_what_update_does_in_evaluation(batch_norm, activation):
    options = {"dropout": 0.0, "batch_norm": batch_norm, "activation": activation}
    layer = GCNLayer(5, 4, residual=False, **options).train()
    if layer.norm is not None:
        for tensor in (layer.norm.running_mean, layer.norm.weight.data, layer.norm.bias.data):
            torch.nn.init.normal_(tensor)
        torch.nn.init.uniform_(layer.norm.running_var, 0.5, 2.0)
    rows = torch.randn(7, 5)
    with torch.no_grad(), frozen_statistics(layer):
        want = layer.update(rows, Targets(rows, rows, rows[:, 0]))
    affine = layer.affine()
    torch.testing.assert_close(affine(rows), want)
    torch.testing.assert_close(affine.end(affine.product(rows)), want)


def test_a_layer_that_reads_its_own_row_is_not_affine():
    options = {"dropout": 0.0, "batch_norm": False, "activation": True}
    assert GCNLayer(5, 5, residual=True, **options).affine() is None


def test_a_subclass_with_an_update_of_its_own_is_not_affine():
    class Bounded(GCNLayer):
        def update(self, agg, targets):
            return super().update(agg, targets).tanh()

    options = {"dropout": 0.0, "batch_norm": False, "activation": False}
    assert Bounded(5, 5, residual=False, **options).affine() is None
