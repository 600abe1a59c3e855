"""Networks with the habits of users: data of edges, norms and dropout in many places."""

from itertools import pairwise

import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import nn


class EdgeEncoder(nn.Module):
    """Attributes of edges go through a network before the convolutions read them."""

    def __init__(self, wide, hidden, out, edge_width):
        super().__init__()
        self.nodes, self.edges = nn.Linear(wide, hidden), nn.Linear(edge_width, hidden)
        nets = [nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU()) for _ in range(2)]
        self.convs = nn.ModuleList([pyg.GINEConv(net) for net in nets])
        self.last = pyg.TransformerConv(hidden, out, edge_dim=hidden)

    def forward(self, x, edge_index, edge_attr):
        x, edge_attr = self.nodes(x), self.edges(edge_attr).relu()
        for conv in self.convs:
            x = x + conv(x, edge_index, edge_attr)
        return self.last(x, edge_index, edge_attr)


class EdgeGate(nn.Module):
    """Weights of edges that are made of their attributes, for convolutions that sum."""

    def __init__(self, wide, hidden, out, edge_width):
        super().__init__()
        self.gate = nn.Sequential(nn.Linear(edge_width, 1), nn.Sigmoid())
        self.first, self.second = pyg.GraphConv(wide, hidden), pyg.GraphConv(hidden, out)

    def forward(self, x, edge_index, edge_attr):
        weight = self.gate(edge_attr).squeeze(-1)
        x = self.first(x, edge_index, weight).relu()
        return self.second(x, edge_index, weight)


class TypesAndAttributes(nn.Module):
    def __init__(self, wide, hidden, out, types, edge_width):
        super().__init__()
        self.first = pyg.RGATConv(wide, hidden, types, edge_dim=edge_width)
        self.kinds = nn.Embedding(types, edge_width)
        self.second = pyg.TransformerConv(hidden, out, edge_dim=edge_width)

    def forward(self, x, edge_index, edge_type, edge_attr):
        x = self.first(x, edge_index, edge_type, edge_attr).relu()
        return self.second(x, edge_index, edge_attr + self.kinds(edge_type))


class WeightedLoop(nn.Module):
    """The usual loop over convolutions and norms, with weights of edges."""

    def __init__(self, wide, hidden, out, layers=3):
        super().__init__()
        widths = [wide] + [hidden] * (layers - 1) + [out]
        self.convs = nn.ModuleList(pyg.GCNConv(i, o) for i, o in pairwise(widths))
        self.norms = nn.ModuleList(pyg.BatchNorm(hidden) for _ in range(layers - 1))

    def forward(self, x, edge_index, edge_weight=None):
        for conv, norm in zip(self.convs, self.norms, strict=False):
            x = F.dropout(norm(conv(x, edge_index, edge_weight)).relu(), 0.5, self.training)
        return self.convs[-1](x, edge_index, edge_weight)


class InputNorm(nn.Module):
    """A batch norm on the features, and one on what a linear layer makes of them."""

    def __init__(self, wide, hidden, out):
        super().__init__()
        self.norm, self.encode = nn.BatchNorm1d(wide), pyg.MLP([wide, hidden, hidden])
        self.first, self.second = pyg.SAGEConv(hidden, hidden), pyg.SAGEConv(hidden, out)

    def forward(self, x, edge_index):
        x = self.encode(self.norm(x))
        return self.second(self.first(x, edge_index).relu(), edge_index)


class FunctionalDropout(nn.Module):
    """Dropout that no module shows, on the features too."""

    def __init__(self, wide, hidden, out, p=0.5):
        super().__init__()
        self.p = p
        self.convs = nn.ModuleList(
            [pyg.SAGEConv(wide, hidden), pyg.SAGEConv(hidden, hidden), pyg.SAGEConv(hidden, out)]
        )

    def forward(self, x, edge_index):
        for conv in self.convs[:-1]:
            x = F.dropout(x, p=self.p, training=self.training)
            x = conv(x, edge_index).relu()
        return self.convs[-1](x, edge_index)


class SharedNorm(nn.Module):
    """A norm module that two layers share, and an activation with weights."""

    def __init__(self, wide, hidden, out):
        super().__init__()
        self.norm, self.act = pyg.BatchNorm(hidden), nn.PReLU()
        self.convs = nn.ModuleList([pyg.GraphConv(wide, hidden), pyg.GraphConv(hidden, hidden)])
        self.last = pyg.GraphConv(hidden, out)

    def forward(self, x, edge_index):
        for conv in self.convs:
            x = self.act(self.norm(conv(x, edge_index)))
        return self.last(x, edge_index)


class Normed(nn.Module):
    def __init__(self, wide, hidden, out, norm):
        super().__init__()
        self.first, self.norm = pyg.SAGEConv(wide, hidden), norm(hidden)
        self.second = pyg.SAGEConv(hidden, out)

    def forward(self, x, edge_index):
        return self.second(self.norm(self.first(x, edge_index)).relu(), edge_index)


class MessageNormed(nn.Module):
    """Rows that are scaled by the lengths of others, as GENConv does."""

    def __init__(self, wide, hidden, out):
        super().__init__()
        self.encode, self.norm = nn.Linear(wide, hidden), pyg.MessageNorm(learn_scale=True)
        self.first, self.second = pyg.SimpleConv("mean"), pyg.SAGEConv(hidden, out)

    def forward(self, x, edge_index):
        x = self.encode(x)
        return self.second(x + self.norm(x, self.first(x, edge_index)), edge_index)
