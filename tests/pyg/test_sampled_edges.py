"""Sums of sampled edges are unbiased, degrees the graph's, and attributes the edges' own."""

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn

from graphfm.training.settings import Training
from tests.pyg.graphs import make_graph
from tests.pyg.harness import TOLERANCE, batch_outputs, by_pyg, trainer_of, wrapped
from tests.pyg.zoo import ATTRIBUTES, DEGREES, IN, OUT, TYPES, rows

DRAWS, DEVIATIONS = 120, 6  # seeded; a mean of unbiased draws is off by 6 deviations never
SUMS = {
    "GIN": (lambda: pyg.GINConv(rows(IN, OUT)), ()),
    "GINE": (lambda: pyg.GINEConv(rows(IN, OUT), edge_dim=ATTRIBUTES), ("edge_attr",)),
    "GCN": (lambda: pyg.GCNConv(IN, OUT), ()),
    "GCN weighted": (lambda: pyg.GCNConv(IN, OUT), ("edge_weight",)),
    "ClusterGCN": (lambda: pyg.ClusterGCNConv(IN, OUT), ()),
    "RGCN": (lambda: pyg.RGCNConv(IN, OUT, TYPES, aggr="sum"), ("edge_type",)),
    "GraphConv weighted": (lambda: pyg.GraphConv(IN, OUT), ("edge_weight",)),
    "ResGated": (lambda: pyg.ResGatedGraphConv(IN, OUT), ()),
    "MF": (lambda: pyg.MFConv(IN, OUT, max_degree=20), ()),
}
METHODS = {
    "graphsage": {"fanout": (2,), "batch_size": 90},
    "graphsage, independent": {"fanout": (2,), "batch_size": 90, "picks": "independent"},
    "ladies": {"nodes_per_layer": (30,), "batch_size": 90, "normalize_rows": False},
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("method", METHODS)
def test_sums_of_sampled_neighbours_are_unbiased(name, method):
    make, data = SUMS[name]
    graph = make_graph(*data, num_edges=400)
    model, found = wrapped(make().eval(), graph), []
    with torch.no_grad():
        handle = model.net.register_aggregate_forward_hook(lambda *given: found.append(given[2]))
        by_pyg(model, graph)
        exact = torch.stack(found).sum(0)  # RGCN has one for each type
        trainer = trainer_of(model, graph, method.partition(",")[0], **METHODS[method])
        draws = []
        for _ in range(DRAWS):
            found.clear()
            batch_outputs(trainer, torch.arange(graph.num_nodes))
            draws.append(torch.stack(found).sum(0)[: graph.num_nodes])
        handle.remove()
    mean, error = torch.stack(draws).mean(0), torch.stack(draws).std(0) / DRAWS**0.5
    assert ((mean - exact).abs() <= DEVIATIONS * error + 1e-4).all()
    assert error.max() > 0.01  # it was sampled


def picked_edges(trainer, graph):
    """A batch of all nodes with one neighbour each, its outputs, and its edges by node id."""
    with torch.no_grad():
        batch, out = batch_outputs(trainer, torch.arange(graph.num_nodes))
    edges = batch.blocks[0].edges
    assert edges.num_edges < graph.num_edges
    return out, batch.blocks[0].src_ids[edges.col.long()], edges.row.long()


def test_gcn_uses_the_degrees_of_the_whole_graph():
    graph = make_graph(plain=True)
    model = wrapped(pyg.GCNConv(IN, OUT), graph)
    out, source, target = picked_edges(
        trainer_of(model, graph, "graphsage", fanout=(1,), batch_size=90), graph
    )
    degree = graph.degree.float()
    root = (degree + 1).rsqrt()
    x = model.net.lin(graph.x)
    factor = (root[source] * root[target] * degree[target]).unsqueeze(1)  # degree by one pick
    expected = (root**2).unsqueeze(1) * x + model.net.bias
    expected = expected.index_add(0, target, factor * x[source])
    assert torch.allclose(out, expected, atol=TOLERANCE)


def test_degree_scalers_use_the_degrees_of_the_whole_graph():
    graph = make_graph(plain=True)
    scaler = pyg.aggr.DegreeScalerAggregation("mean", "linear", DEGREES)
    model = wrapped(pyg.SAGEConv(IN, OUT, aggr=scaler), graph)
    out, source, target = picked_edges(
        trainer_of(model, graph, "graphsage", fanout=(1,), batch_size=90), graph
    )
    scale = graph.degree.float() / scaler.avg_deg_lin
    mean = torch.zeros_like(graph.x).index_add(0, target, graph.x[source])
    expected = model.net.lin_l(mean * scale.unsqueeze(1)) + model.net.lin_r(graph.x)
    assert torch.allclose(out, expected, atol=TOLERANCE)


class Checks(pyg.MessagePassing):
    """Compares the attributes of each edge with the rows at its ends."""

    def __init__(self, aggr):
        super().__init__(aggr=aggr)
        self.messages, self.live = 0, False

    def forward(self, x, edge_index, edge_attr, edge_weight, edge_type):
        marks = {"edge_attr": edge_attr, "edge_weight": edge_weight, "edge_type": edge_type}
        return self.propagate(edge_index, x=x, **marks)

    def message(self, x_i, x_j, edge_attr, edge_weight, edge_type):
        if self.live:
            ends = torch.stack([x_j[:, 0], x_i[:, 0]], 1)
            assert torch.equal(edge_attr, ends)
            assert torch.equal(edge_weight, ends[:, 0] * 100 + ends[:, 1] + 1)
            assert torch.equal(edge_type, (ends[:, 0] % 3).long())
            self.messages += ends.size(0)
        return x_j * edge_weight.unsqueeze(1)


class ChecksTwice(nn.Module):
    def __init__(self, aggr):
        super().__init__()
        self.first, self.second = Checks(aggr), Checks(aggr)
        self.lin = nn.Linear(IN, OUT)

    def forward(self, x, edge_index, edge_weight, edge_attr, edge_type):
        given = edge_index, edge_attr, edge_weight, edge_type
        y = self.first(x, *given)
        y = self.second(torch.cat([x[:, :1], y[:, 1:]], 1), *given)
        return self.lin(y)


PARTS = {"parts": 6, "parts_per_batch": 2}
EVERY_SAMPLER = {
    "full": {}, "graphsage": {"fanout": (2,), "batch_size": 24}, "cluster-gcn": PARTS,
    "graphfm-ib": {"fanout": (1,), "batch_size": 24, "exact_first_hop": False}, "gas": PARTS,
    "graphfm-ob": PARTS, "graphsaint": {"budget": 30, "coverage": 5}, "shadow": {"batch_size": 24},
    "ladies": {"nodes_per_layer": (40,), "batch_size": 24},
    "fastgcn": {"nodes_per_layer": (40,), "batch_size": 24},
}  # fmt: skip


@pytest.mark.parametrize("aggr", ["sum", "max"])
@pytest.mark.parametrize("method", EVERY_SAMPLER)
@pytest.mark.parametrize("shape", [{}, {"plain": True, "undirected": True}])
def test_data_of_edges_reach_their_edges(method, aggr, shape):
    graph = make_graph(**shape)
    source, target = graph.edge_index
    x = graph.x.clone()
    x[:, 0] = torch.arange(graph.num_nodes)
    graph = type(graph).from_edges(
        graph.edge_index, x, graph.y, train_mask=graph.train_mask, val_mask=graph.val_mask,
        test_mask=graph.test_mask, edge_attr=torch.stack([source, target], 1).float(),
        edge_weight=source * 100.0 + target + 1, edge_type=source % 3,
    )  # fmt: skip
    net = ChecksTwice(aggr)
    settings = Training(fill_histories=True)  # numbers of nodes are in them, too
    trainer = trainer_of(wrapped(net, graph), graph, method, settings, **EVERY_SAMPLER[method])
    net.first.live = net.second.live = True
    trainer.epoch()
    trainer.evaluate()
    assert min(net.first.messages, net.second.messages) > graph.num_edges


def test_parallel_edges_have_attributes_of_their_own():
    edges = torch.tensor([[0, 0, 0, 1, 2, 2], [1, 1, 1, 2, 0, 0]])
    attr = torch.tensor([1.0, 10.0, 100.0, 1000.0, 3.0, 30.0]).unsqueeze(1)
    first, second, third = torch.eye(3, dtype=torch.bool)
    graph = type(make_graph()).from_edges(
        edges, torch.ones(3, 1), torch.tensor([0, 1, 1]), edge_attr=attr, train_mask=first,
        val_mask=second, test_mask=third,
    )  # fmt: skip

    class Adds(pyg.MessagePassing):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(2))

        def forward(self, x, edge_index, edge_attr):
            return self.propagate(edge_index, x=x, edge_attr=edge_attr)

        def message(self, x_j, edge_attr):
            return x_j * edge_attr * self.scale

    trainer = trainer_of(wrapped(Adds(), graph), graph, "graphsage", fanout=(9,), batch_size=2)
    for seeds in ([0], [1], [2, 1], [1, 0]):
        _, out = batch_outputs(trainer, torch.tensor(seeds))
        assert torch.equal(out[:, 0], torch.tensor([33.0, 111.0, 1000.0])[torch.tensor(seeds)])
