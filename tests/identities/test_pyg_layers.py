"""Every layer is PyG's own convolution on the same weights."""

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GCN2Conv, GCNConv, SAGEConv
from torch_geometric.nn.aggr import DegreeScalerAggregation

from graphfm import Graph
from graphfm.backbones.gcn import GCN, GCNLayer
from graphfm.backbones.gcnii import GCNII, GCNIILayer
from graphfm.backbones.pna import AGGREGATORS, PNA, SCALERS, PNALayer, PNASettings
from graphfm.backbones.sage import SAGE, SAGELayer
from graphfm.estimators.exact import Exact

BARE = {"dropout": 0.0, "batch_norm": False, "residual": False, "activation": False}
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def apply(layer, backbone, graph, h0: Tensor | None = None) -> Tensor:
    block = backbone.adjacency(graph).full_block()
    return Exact()(0, layer, block, graph.x, graph.x if h0 is None else h0)


@pytest.fixture(params=[False, True], ids=["directed", "undirected"])
def graph(request, make_graph):
    return make_graph(undirected=request.param)


def test_sage_is_sageconv(graph):
    ours, theirs = SAGELayer(7, 5, **BARE), SAGEConv(7, 5)
    of_neighbors, of_self = ours.weight.split(ours.in_width, dim=1)
    theirs.lin_l.load_state_dict({"weight": of_neighbors, "bias": ours.bias})
    theirs.lin_r.load_state_dict({"weight": of_self})
    want = theirs(graph.x, graph.edge_index)
    torch.testing.assert_close(apply(ours, SAGE(7, 5), graph), want, **CLOSE)


@pytest.mark.parametrize("weighted", [False, True])
def test_gcn_is_gcnconv(make_graph, weighted):
    graph = _single_loops(make_graph(weighted=weighted))
    ours, theirs = GCNLayer(7, 5, **BARE), GCNConv(7, 5)
    theirs.lin.weight.data = ours.linear.weight.data
    theirs.bias.data = ours.linear.bias.data
    want = theirs(graph.x, graph.edge_index, graph.edge_weight)
    torch.testing.assert_close(apply(ours, GCN(7, 5), graph), want, **CLOSE)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("depth", [1, 3])
def test_gcnii_is_gcn2conv(make_graph, shared, depth):
    graph = _single_loops(make_graph())
    theirs = GCN2Conv(7, alpha=0.2, theta=0.5, layer=depth, shared_weights=shared)
    ours = GCNIILayer(7, alpha=0.2, mapping=theirs.beta, shared_weights=shared, **BARE)
    theirs.weight1.data = ours.linear.weight.data.T
    if not shared:
        theirs.weight2.data = ours.initial.weight.data.T
    h0 = torch.randn_like(graph.x)
    want = theirs(graph.x, h0, graph.edge_index)
    torch.testing.assert_close(apply(ours, GCNII(7, 7), graph, h0), want, **CLOSE)


def test_gcnii_mixes_layers_as_gcn2conv():
    ours = [layer.mapping for layer in GCNII(7, 5).layers]
    theirs = [GCN2Conv(7, alpha=0.1, theta=0.5, layer=k + 1).beta for k in range(len(ours))]
    assert ours == theirs


def test_pna_is_pyg_aggregation(graph):
    backbone = PNA(7, 5, PNASettings(layers=1, aggregators=AGGREGATORS, scalers=SCALERS))
    backbone.calibrate(graph)
    ours = backbone.layers[0]
    assert isinstance(ours, PNALayer)
    aggregate = DegreeScalerAggregation(
        list(AGGREGATORS), list(SCALERS), deg=torch.bincount(graph.degree)
    )
    source, target = graph.edge_index
    gathered = aggregate(graph.x[source], target, dim_size=graph.num_nodes)
    want = ours.neighbors(gathered) + ours.root(graph.x)
    torch.testing.assert_close(apply(ours, backbone, graph), want, **CLOSE)


def _single_loops(graph):
    """PyG keeps the last of several loops on a node, we add them up: leave one at most."""
    keep, looped = [], set()
    for position, (source, target) in enumerate(graph.edge_index.T.tolist()):
        if source != target or target not in looped:
            keep.append(position)
        if source == target:
            looped.add(target)
    assert looped, "the loops are what makes this graph worth testing"
    weight = None if graph.edge_weight is None else graph.edge_weight[keep]
    return Graph.from_edges(graph.edge_index[:, keep], graph.x, edge_weight=weight)
