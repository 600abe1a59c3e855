"""PyG's GraphSAGE and GCN train as our own sage and gcn do, by every method that both allow."""

import pytest
import torch
import torch_geometric.nn as pyg

from graphfm.backbones import BACKBONES
from graphfm.methods import METHODS
from graphfm.training.settings import Training
from graphfm.training.staleness import staleness
from graphfm.training.trainer import Trainer
from tests.pyg.graphs import make_graph
from tests.pyg.harness import wrapped
from tests.pyg.zoo import HIDDEN, IN, OUT

LAYERS, EPOCHS, MARGIN = 3, 3, 1e-4
PICKED, PARTS = {"fanout": (1,), "batch_size": 24}, {"parts": 6, "parts_per_batch": 2}
NODES = {"nodes_per_layer": (40,), "batch_size": 24}
NO_HOP = {"exact_first_hop": False}
BOTH = {
    "full": ("full", {}),
    "graphsage": ("graphsage", {"fanout": (2,), "batch_size": 24}),
    "cluster-gcn": ("cluster-gcn", PARTS),
    "gas": ("gas", PARTS | NO_HOP),
    "vr-gcn": ("vr-gcn", PICKED | NO_HOP),
    "graphsaint": ("graphsaint", {"budget": 30, "coverage": 5}),
    "shadow": ("shadow", {"batch_size": 24}),
}
# Our gcn keeps other histories: of rows before their weights, and with self-loops apart.
SAGE_ONLY = {
    "graphfm-ib": ("graphfm-ib", PICKED | NO_HOP),
    "graphfm-ib, exact first hop": ("graphfm-ib", PICKED),
    "graphfm-ib, whole form": ("graphfm-ib", PICKED | {"whole_gradient": False, "start": "zero"}),
    "vr-gcn, exact first hop": ("vr-gcn", PICKED),
    "gas, exact first hop": ("gas", PARTS),
    "graphfm-ob, exact first hop": ("graphfm-ob", PARTS | {"beta": (0.4,)}),
    "gas, dropped edges": ("gas", PARTS | NO_HOP | {"edge_drop": 0.3}),
    "graphfm-ob": ("graphfm-ob", PARTS | NO_HOP | {"beta": (0.4,)}),
    "graphfm-ob, plain sums": ("graphfm-ob", PARTS | NO_HOP | {"partial": "sum"}),
    "graphfm-ob, threshold": ("graphfm-ob", PARTS | NO_HOP | {"threshold": 1, "start": "zero"}),
    "graphfm-delta": ("graphfm-delta", PARTS | NO_HOP),
    "graphfm-delta, exact first hop": ("graphfm-delta", PARTS),
    "fastgcn": ("fastgcn", NODES),
    "ladies": ("ladies", NODES),
    "mvs-gcn": ("mvs-gcn", NODES | NO_HOP),
    "mvs-gcn, exact first hop": ("mvs-gcn", NODES),
}


def pair(kind, graph):
    """Our network and PyG's, with the same weights."""
    torch.manual_seed(1)
    make = BACKBONES[kind]
    ours = make(IN, OUT, make.Settings(layers=LAYERS, hidden=HIDDEN, dropout=0.0))
    theirs = (pyg.GraphSAGE if kind == "sage" else pyg.GCN)(IN, HIDDEN, LAYERS, OUT)
    with torch.no_grad():
        for conv, layer in zip(theirs.convs, ours.layers, strict=True):
            if kind == "sage":
                neighbors, own = layer.weight.chunk(2, 1)
                conv.lin_l.weight.copy_(neighbors)
                conv.lin_r.weight.copy_(own)
                conv.lin_l.bias.copy_(layer.bias)
            else:
                conv.lin.weight.copy_(layer.linear.weight)
                conv.bias.copy_(layer.linear.bias)
    return ours, wrapped(theirs, graph)


def assert_same_losses(kind, method, options, **training):
    graph = make_graph(plain=True, undirected=True, num_nodes=120)
    settings = Training(epochs=EPOCHS, lr=0.02, **training)
    one, two = (
        Trainer(graph, net, METHODS[method](**options), settings) for net in pair(kind, graph)
    )
    for _ in range(EPOCHS):
        assert one.epoch() == pytest.approx(two.epoch(), abs=MARGIN)
    assert torch.allclose(one.infer(one.backbone), two.infer(two.backbone), atol=1e-3)


@pytest.mark.parametrize("name", BOTH | SAGE_ONLY)
def test_graphsage_is_our_sage(name):
    assert_same_losses("sage", *(BOTH | SAGE_ONLY)[name])


@pytest.mark.parametrize("name", BOTH)
def test_gcn_is_our_gcn(name):
    assert_same_losses("gcn", *BOTH[name])


HISTORIES = ["graphfm-ib", "gas", "graphfm-ob", "graphfm-delta", "vr-gcn"]


@pytest.mark.parametrize("name", HISTORIES)
def test_histories_may_be_filled_and_refreshed(name):
    method, options = (BOTH | SAGE_ONLY)[name]
    assert_same_losses("sage", method, options, fill_histories=True, refresh_histories=True)


@pytest.mark.parametrize("name", ["graphfm-ib", "gas", "graphfm-ob", "vr-gcn"])
def test_histories_are_measured_alike(name):
    method, options = (BOTH | SAGE_ONLY)[name]
    graph = make_graph(plain=True, undirected=True, num_nodes=120)
    settings, found = Training(lr=0.02, staleness_every=1), []
    for net in pair("sage", graph):
        trainer = Trainer(graph, net, METHODS[method](**options), settings)
        trainer.epoch()
        found.append([(one.depth, one.score, one.relative) for one in staleness(trainer)])
    assert found[0] == [pytest.approx(two, abs=1e-4) for two in found[1]]
