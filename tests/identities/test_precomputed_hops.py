"""SIGN and SGC are what their papers, and PyG, say they are."""

import pytest
import torch
from torch.nn.functional import dropout, relu

from graphfm import Graph, methods
from graphfm.backbones import make_backbone
from graphfm.backbones.base import Settings
from graphfm.backbones.gcn import GCNLayer
from graphfm.batch import Batch
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.data.matrix.hops import hops
from graphfm.estimators.exact import Exact
from graphfm.samplers.rows import RowSampler
from graphfm.training.inference import LayerwiseInference
from graphfm.training.loop import fit
from graphfm.training.settings import Training
from graphfm.training.trainer import Trainer

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
BARE = {"dropout": 0.0, "batch_norm": False, "residual": False, "activation": False}


def without_edges(backbone, x):
    ids = torch.arange(x.size(0))
    return backbone(x, Batch(ids, ids, ()), Exact())


@pytest.mark.filterwarnings("ignore:Sparse")  # PyG's, about torch's sparse tensors
@pytest.mark.parametrize(
    "options",
    [{}, {"weighted": True}, {"undirected": True}, {"num_nodes": 9, "num_edges": 200}],
    ids=["directed", "weighted", "undirected", "duplicates"],
)
def test_the_hops_of_sign_are_those_of_pyg(make_graph, options):
    pytest.importorskip("torch_geometric")
    from torch_geometric.data import Data
    from torch_geometric.transforms import SIGN

    graph = make_graph(**options)
    data = Data(x=graph.x, edge_index=graph.edge_index, edge_weight=graph.edge_weight)
    data = SIGN(3)(data)
    found = hops(Adjacency.symmetric_without_loops(graph), 3)
    for hop in (1, 2, 3):
        torch.testing.assert_close(found[hop], data[f"x{hop}"], **CLOSE)
    wide = make_backbone("sign", 7, 4, layers=3).features(graph)
    assert torch.equal(wide, torch.cat(found, dim=1))


@pytest.mark.parametrize("layers", [1, 3])
def test_sign_is_the_formula_of_its_paper(make_graph, layers):
    graph = make_graph(weighted=True)
    backbone = make_backbone("sign", 7, 4, layers=layers, hidden=5).eval()
    state = dict(backbone.state_dict())
    found = hops(Adjacency.symmetric_without_loops(graph), layers)
    hidden = [
        rows @ state[f"decode.1.hops.{hop}.weight"].T + state[f"decode.1.hops.{hop}.bias"]
        for hop, rows in enumerate(found)
    ]
    want = relu(torch.cat(hidden, 1)) @ state["decode.5.weight"].T + state["decode.5.bias"]
    torch.testing.assert_close(LayerwiseInference(backbone.adjacency(graph))(backbone), want)
    assert sum(value.numel() for value in state.values()) == (layers + 1) * (7 * 5 + 5) + (
        (layers + 1) * 5 * 4 + 4
    )


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_sgc_is_a_gcn_with_nothing_between_its_layers(make_graph, layers):
    graph = make_graph(weighted=True)
    sgc = make_backbone("sgc", 7, 4, layers=layers)
    block, h = Adjacency.symmetric(graph).full_block(), graph.x
    for depth in range(layers):
        layer = GCNLayer(7, 4 if depth == layers - 1 else 7, **BARE)
        if depth == layers - 1:
            layer.linear.load_state_dict(sgc.decode.state_dict())
        else:
            torch.nn.init.eye_(layer.linear.weight)
            torch.nn.init.zeros_(layer.linear.bias)
        h = Exact()(depth, layer, block, h, h)
    got = LayerwiseInference(sgc.adjacency(graph))(sgc)
    torch.testing.assert_close(got, h, **CLOSE)


def test_one_hop_of_sgc_is_a_gcn_of_one_layer(make_graph):
    graph = make_graph()
    sgc = make_backbone("sgc", 7, 4, layers=1)
    gcn = make_backbone("gcn", 7, 4, layers=1)
    gcn.layers[0].linear.load_state_dict(sgc.decode.state_dict())
    outputs = [LayerwiseInference(net.adjacency(graph))(net) for net in (sgc, gcn)]
    torch.testing.assert_close(*outputs, **CLOSE)


@pytest.mark.parametrize("name", ["sign", "sgc"])
def test_without_edges_sign_reads_features_and_sgc_is_linear_in_them(make_graph, name):
    graph = make_graph(num_edges=0)
    backbone = make_backbone(name, 7, 4)
    x, nothing = graph.x, torch.zeros_like(graph.x)
    want = torch.cat([x, nothing, nothing], dim=1) if name == "sign" else x
    assert torch.equal(backbone.features(graph), want)


@pytest.mark.parametrize("name", ["sign", "sgc"])
def test_all_training_rows_at_once_are_full_batch(make_graph, name):
    graph, losses = make_graph(), []
    for method in (methods.METHODS[name](batch_size=60), methods.full()):
        torch.manual_seed(1)
        options = {} if name == "sgc" else {"dropout": 0.0}
        backbone = make_backbone(name, 7, 4, **options)
        trainer = Trainer(graph, backbone, method, Training(lr=0.02))
        losses.append([trainer.epoch() for _ in range(5)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert losses[0][0] > losses[0][-1]


def test_rows_are_what_neighbours_are_to_a_network_without_layers(make_graph):
    """Bit for bit: the same nodes in the same order."""
    graph, states = make_graph(), []
    for sampler in (RowSampler(batch_size=8), methods.graphsage(batch_size=8).sampler):
        torch.manual_seed(1)
        backbone = make_backbone("sign", 7, 4)
        trainer = Trainer(graph, backbone, methods.Method(sampler), Training(seed=3))
        fit(trainer)
        states.append(backbone.state_dict())
    torch.testing.assert_close(*states, rtol=0, atol=0)


def test_dropout_and_norm_are_where_they_are_said_to_be(make_graph):
    graph = make_graph()
    options = {"dropout": 0.4, "dropout_input": True, "batch_norm": True, "hidden": 5}
    backbone = make_backbone("sign", 7, 4, **options).train()
    x, parts = backbone.features(graph), backbone.decode
    torch.manual_seed(5)
    got = without_edges(backbone, x)
    torch.manual_seed(5)
    hidden = parts[1](dropout(x, 0.4))
    hidden = (hidden - hidden.mean(0)) / (hidden.var(0, unbiased=False) + 1e-5).sqrt()
    want = parts[5](dropout(relu(hidden), 0.4))
    torch.testing.assert_close(got, want, **CLOSE)


def test_an_isolated_node_keeps_its_own_row():
    graph = Graph.from_edges(torch.empty(2, 0, dtype=torch.long), torch.randn(2, 3))
    assert torch.equal(make_backbone("sgc", 3, 2, layers=5).features(graph), graph.x)


def test_the_networks_share_the_settings_that_mean_something():
    fields = {
        name: set(type(make_backbone(name, 3, 2)).Settings.__dataclass_fields__)
        for name in ("sage", "sign", "sgc")
    }
    common = set(Settings.__dataclass_fields__)
    assert fields["sage"] == common | {"average_self", "unit_rows"}
    assert fields["sign"] == common - {"residual"}
    assert fields["sgc"] == {"layers"}
