"""Networks that some or all of our methods must refuse."""

import torch
import torch_geometric.nn as pyg
from torch import nn
from torch_geometric.utils import add_self_loops, degree, dropout_edge, scatter, to_undirected

from tests.pyg.zoo import HIDDEN, IN, OUT


class Normed(nn.Module):
    """A norm, or another layer over rows, between two convolutions."""

    def __init__(self, norm):
        super().__init__()
        self.first, self.norm = pyg.SAGEConv(IN, HIDDEN), norm
        self.second = pyg.SAGEConv(HIDDEN, OUT)

    def forward(self, x, edge_index):
        return self.second(self.norm(self.first(x, edge_index)).relu(), edge_index)


class Written(nn.Module):
    """Two convolutions, and a forward that is given."""

    def __init__(self, forward):
        super().__init__()
        self.first, self.second = pyg.SAGEConv(IN, HIDDEN), pyg.GCNConv(HIDDEN, OUT)
        self.table = nn.Parameter(torch.zeros(90, IN))
        self.written = forward

    def forward(self, x, edge_index):
        return self.written(self, x, edge_index)

    def both(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


def mean_of(x, edge_index):
    return scatter(x[edge_index[0]], edge_index[1], 0, x.size(0), "mean")


def scatter_between(net, x, edge_index):
    x = mean_of(net.first(x, edge_index).relu(), edge_index)
    return net.second(x, edge_index)


def scatter_first(net, x, edge_index):
    return net.both(x + mean_of(x, edge_index), edge_index)


def scatter_last(net, x, edge_index):
    return mean_of(net.both(x, edge_index), edge_index)


def counts_edges(net, x, edge_index):
    ones = torch.ones(edge_index.size(1))
    count = scatter(ones, edge_index[1], 0, x.size(0), "sum")
    return net.second(net.first(x, edge_index) * (1 + count).log().unsqueeze(1), edge_index)


def asks_degree(net, x, edge_index):
    count = degree(edge_index[1], x.size(0))
    return net.second(net.first(x, edge_index) * (1 + count).log().unsqueeze(1), edge_index)


def drops_edges(net, x, edge_index):
    return net.both(x, dropout_edge(edge_index, 0.3, training=net.training)[0])


def adds_loops(net, x, edge_index):
    return net.both(x, add_self_loops(edge_index, num_nodes=x.size(0))[0])


def makes_undirected(net, x, edge_index):
    return net.both(x, to_undirected(edge_index))


def turns_edges(net, x, edge_index):
    return net.second(net.first(x, edge_index.flip(0)), edge_index)


def subtracts_mean(net, x, edge_index):
    x = net.first(x, edge_index)
    return net.second(x - x.mean(0), edge_index)


def counts_nodes(net, x, edge_index):
    return net.both(x + 0.01 * torch.arange(x.size(0)).unsqueeze(1), edge_index)


def always_random(net, x, edge_index):
    return net.both(x + torch.randn_like(x), edge_index)


def embeds_nodes(net, x, edge_index):
    return net.both(x + net.table[: x.size(0)], edge_index)


def returns_pair(net, x, edge_index):
    return net.both(x, edge_index), x


def returns_graph(net, x, edge_index):
    return net.both(x, edge_index).mean(0, keepdim=True)


def returns_column(net, x, edge_index):
    return net.both(x, edge_index)[:, 0]


class Global(nn.Module):
    """GPSConv: attention between all nodes."""

    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(IN, HIDDEN), nn.Linear(HIDDEN, OUT)
        self.conv = pyg.GPSConv(HIDDEN, pyg.SAGEConv(HIDDEN, HIDDEN), heads=2)

    def forward(self, x, edge_index):
        return self.decode(self.conv(self.encode(x), edge_index))


class Needs(pyg.GCN):
    def forward(self, x, edge_index, batch, pos):
        return super().forward(x, edge_index)


class TakesNothing(nn.Module):
    def forward(self):
        return None
