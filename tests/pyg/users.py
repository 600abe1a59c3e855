"""Networks that users bring: of tutorials, and put together in many ways."""

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import nn
from torch_geometric.utils import add_self_loops, degree


class Rows(nn.Module):
    """No convolution at all."""

    def __init__(self, wide, hidden, out):
        super().__init__()
        self.net = pyg.MLP([wide, hidden, out], norm=None)

    def forward(self, x, edge_index):
        return self.net(x)


class TutorialGCN(pyg.MessagePassing):
    """The graph convolution of Kipf and Welling, by add_self_loops and degree."""

    def __init__(self, wide, out):
        super().__init__(aggr="add")
        self.lin = nn.Linear(wide, out, bias=False)
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x, edge_index):
        edge_index, _ = add_self_loops(edge_index, num_nodes=x.size(0))
        x = self.lin(x)
        row, col = edge_index
        root = degree(col, x.size(0), dtype=x.dtype).pow(-0.5)
        root[root == float("inf")] = 0
        return self.propagate(edge_index, x=x, norm=root[row] * root[col]) + self.bias

    def message(self, x_j, norm):
        return norm.view(-1, 1) * x_j


class TutorialNetwork(nn.Module):
    def __init__(self, wide, hidden, out):
        super().__init__()
        self.first, self.second = TutorialGCN(wide, hidden), TutorialGCN(hidden, out)

    def forward(self, x, edge_index):
        x = F.dropout(F.relu(self.first(x, edge_index)), training=self.training)
        return self.second(x, edge_index)


class EdgeMax(pyg.MessagePassing):
    """Maxima over networks of a node and its difference to a neighbour."""

    def __init__(self, wide, out):
        super().__init__(aggr="max")
        self.net = nn.Sequential(nn.Linear(2 * wide, out), nn.ReLU(), nn.Linear(out, out))

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def message(self, x_i, x_j):
        return self.net(torch.cat([x_i, x_j - x_i], dim=1))


class TutorialEdges(nn.Module):
    def __init__(self, wide, hidden, out):
        super().__init__()
        self.first, self.second = EdgeMax(wide, hidden), EdgeMax(hidden, out)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


class Thrice(nn.Module):
    """One convolution and one batch norm, called three times with a residual connection."""

    def __init__(self, wide, hidden, out):
        super().__init__()
        self.encode, self.decode = nn.Linear(wide, hidden), nn.Linear(hidden, out)
        self.conv, self.norm = pyg.SAGEConv(hidden, hidden), nn.BatchNorm1d(hidden)

    def forward(self, x, edge_index):
        x = self.encode(x)
        for _ in range(3):
            x = x + self.norm(self.conv(x, edge_index)).relu()
        return self.decode(x)


class Branches(nn.Module):
    """A shallow branch is called after a deep one."""

    def __init__(self, wide, hidden, out):
        super().__init__()
        self.one, self.two = pyg.SAGEConv(wide, hidden), pyg.GATConv(hidden, hidden)
        self.shallow, self.last = pyg.GraphConv(wide, hidden), pyg.GCNConv(2 * hidden, out)

    def forward(self, x, edge_index):
        deep = self.two(self.one(x, edge_index).relu(), edge_index)
        return self.last(torch.cat([deep, self.shallow(x, edge_index)], 1).relu(), edge_index)


class Parallel(nn.Module):
    """Several convolutions of the same rows in each layer."""

    def __init__(self, wide, hidden, out):
        super().__init__()
        kinds = pyg.SAGEConv, pyg.GCNConv, pyg.GATv2Conv
        self.first = nn.ModuleList([kind(wide, hidden) for kind in kinds])
        self.second = nn.ModuleDict({str(n): kind(hidden, out) for n, kind in enumerate(kinds)})

    def forward(self, x, edge_index):
        x = torch.stack([conv(x, edge_index) for conv in self.first]).mean(0).relu()
        return sum(conv(x, edge_index) for conv in self.second.values())


class Deeper(nn.Module):
    """PyG's DeepGCNLayer around GENConv (Li et al., 2020)."""

    def __init__(self, wide, hidden, out, block="res+"):
        super().__init__()
        self.encode, self.decode = nn.Linear(wide, hidden), nn.Linear(hidden, out)
        self.layers = nn.ModuleList()
        for _ in range(3):
            conv = pyg.GENConv(hidden, hidden, aggr="softmax", learn_t=True, num_layers=2)
            norm = nn.LayerNorm(hidden)
            self.layers.append(pyg.DeepGCNLayer(conv, norm, nn.ReLU(), block, dropout=0.1))

    def forward(self, x, edge_index):
        x = self.layers[0].conv(self.encode(x), edge_index)
        for layer in self.layers[1:]:
            x = layer(x, edge_index)
        return self.decode(self.layers[0].act(self.layers[0].norm(x)))


def sequence(wide, hidden, out):
    return pyg.Sequential(
        "x, edge_index",
        [
            (nn.Dropout(0.2), "x -> x"),
            (pyg.GCNConv(wide, hidden), "x, edge_index -> x1"),
            nn.ReLU(),
            (pyg.GATConv(hidden, hidden), "x1, edge_index -> x2"),
            (lambda one, two: [one, two], "x1, x2 -> both"),
            (pyg.JumpingKnowledge("cat"), "both -> x"),
            (pyg.SAGEConv(2 * hidden, out, aggr="max"), "x, edge_index -> x"),
        ],
    )


def lazy(hidden, out):
    """Widths are found out when it first runs."""
    return pyg.Sequential(
        "x, edge_index",
        [
            (pyg.SAGEConv(-1, hidden), "x, edge_index -> x"),
            nn.ReLU(),
            (pyg.GATConv(-1, hidden), "x, edge_index -> x"),
            nn.LazyLinear(out),
        ],
    )


class TakesData(nn.Module):
    def __init__(self, wide, hidden, out):
        super().__init__()
        self.first, self.second = pyg.GCNConv(wide, hidden), pyg.GCNConv(hidden, out)

    def forward(self, data):
        x, edge_index = data.x, data.edge_index
        x = F.dropout(self.first(x, edge_index).relu(), p=0.3, training=self.training)
        return self.second(x, edge_index)


class _Block(nn.Module):
    def __init__(self, wide, out):
        super().__init__()
        self.conv, self.skip = pyg.GATConv(wide, out), nn.Linear(wide, out)

    def forward(self, edges, *, rows):
        return self.conv(rows, edge_index=edges) + self.skip(rows)


class Nested(nn.Module):
    """Convolutions inside modules that name their arguments in other ways."""

    def __init__(self, wide, hidden, out):
        super().__init__()
        self.first, self.second = _Block(wide, hidden), _Block(hidden, out)

    def forward(self, x, edge_index):
        return self.second(edge_index, rows=self.first(edge_index, rows=x).relu())


class MixHop(nn.Module):
    """Powers of the matrix side by side (Abu-El-Haija et al., 2019)."""

    def __init__(self, wide, hidden, out):
        super().__init__()
        self.first = pyg.MixHopConv(wide, hidden, powers=[0, 1, 2])
        self.second = pyg.MixHopConv(3 * hidden, out, powers=[1, 3])
        self.decode = nn.Linear(2 * out, out)

    def forward(self, x, edge_index):
        return self.decode(self.second(self.first(x, edge_index).relu(), edge_index))
