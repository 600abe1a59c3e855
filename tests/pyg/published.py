"""Networks of papers whose examples PyG has, written anew from the papers."""

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import nn


class GCNII(nn.Module):
    """Chen et al., 2020: initial residual and identity mapping."""

    def __init__(self, wide, hidden, out, layers=4):
        super().__init__()
        self.encode, self.decode = nn.Linear(wide, hidden), nn.Linear(hidden, out)
        self.convs = nn.ModuleList(
            pyg.GCN2Conv(hidden, 0.1, 0.5, layer + 1, shared_weights=layer % 2 == 0)
            for layer in range(layers)
        )

    def forward(self, x, edge_index):
        x = first = self.encode(F.dropout(x, 0.6, self.training)).relu()
        for conv in self.convs:
            x = x + conv(F.dropout(x, 0.6, self.training), first, edge_index).relu()
        return self.decode(x)


class JKNet(nn.Module):
    """Xu et al., 2018: the decoder sees every layer."""

    def __init__(self, wide, hidden, out, layers=4):
        super().__init__()
        self.convs = nn.ModuleList(
            pyg.GCNConv(hidden if n else wide, hidden) for n in range(layers)
        )
        self.jump, self.decode = pyg.JumpingKnowledge("max"), nn.Linear(hidden, out)

    def forward(self, x, edge_index):
        rows = []
        for conv in self.convs:
            x = conv(x, edge_index).relu()
            rows.append(x)
        return self.decode(self.jump(rows))


class PersonalizedPages(nn.Module):
    """Gasteiger et al., 2019: a network over rows, then personalised PageRank."""

    def __init__(self, wide, hidden, out):
        super().__init__()
        self.rows = pyg.MLP([wide, hidden, out], dropout=0.5, norm=None)
        self.spread = pyg.APPNP(K=5, alpha=0.1)

    def forward(self, x, edge_index):
        return self.spread(self.rows(x), edge_index)


class ProductsSAGE(nn.Module):
    """The entry for ogbn-products: SAGE with batch norm and dropout, log-probabilities."""

    def __init__(self, wide, hidden, out):
        super().__init__()
        self.convs = nn.ModuleList(
            [pyg.SAGEConv(wide, hidden), pyg.SAGEConv(hidden, hidden), pyg.SAGEConv(hidden, out)]
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(2))

    def forward(self, x, edge_index):
        for conv, norm in zip(self.convs[:-1], self.norms, strict=True):
            x = F.dropout(F.relu(norm(conv(x, edge_index))), p=0.5, training=self.training)
        return self.convs[-1](x, edge_index).log_softmax(dim=-1)


class SkippingGAT(nn.Module):
    """Brody et al., 2022: dynamic attention, with linear skip connections."""

    def __init__(self, wide, hidden, out, heads=2):
        super().__init__()
        self.convs = nn.ModuleList(
            [
                pyg.GATv2Conv(wide, hidden, heads),
                pyg.GATv2Conv(heads * hidden, out, heads, concat=False),
            ]
        )
        self.skips = nn.ModuleList(
            [nn.Linear(wide, heads * hidden), nn.Linear(heads * hidden, out)]
        )

    def forward(self, x, edge_index):
        x = F.elu(self.convs[0](x, edge_index) + self.skips[0](x))
        return self.convs[1](x, edge_index) + self.skips[1](x)


class UniMP(nn.Module):
    """Shi et al., 2021: graph transformer with gated residuals and layer norms."""

    def __init__(self, wide, hidden, out, heads=2):
        super().__init__()
        widths = [wide, hidden, hidden]
        self.convs = nn.ModuleList(
            pyg.TransformerConv(w, hidden // heads, heads, beta=True, dropout=0.1)
            for w in widths[:-1]
        )
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in self.convs)
        self.last = pyg.TransformerConv(hidden, out, heads, concat=False, beta=True)

    def forward(self, x, edge_index):
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = norm(conv(x, edge_index)).relu()
        return self.last(x, edge_index)


class DNA(nn.Module):
    """Fey, 2019: each layer attends to the rows of all earlier ones."""

    def __init__(self, wide, hidden, out, layers=3):
        super().__init__()
        self.encode, self.decode = nn.Linear(wide, hidden), nn.Linear(hidden, out)
        self.convs = nn.ModuleList(pyg.DNAConv(hidden, heads=2, groups=1) for _ in range(layers))

    def forward(self, x, edge_index):
        past = self.encode(x).relu().view(-1, 1, self.decode.in_features)
        for conv in self.convs:
            now = conv(past, edge_index).relu()
            past = torch.cat([past, now.view(-1, 1, now.size(-1))], dim=1)
        return self.decode(past[:, -1])


class ARMA(nn.Module):
    """Bianchi et al., 2021: recursive filters with skip connections."""

    def __init__(self, wide, hidden, out):
        super().__init__()
        shared = {"num_stacks": 3, "num_layers": 2, "shared_weights": True, "dropout": 0.25}
        self.first = pyg.ARMAConv(wide, hidden, **shared)
        self.second = pyg.ARMAConv(hidden, out, act=lambda x: x, **shared)

    def forward(self, x, edge_index):
        x = F.dropout(self.first(x, edge_index).relu(), training=self.training)
        return self.second(x, edge_index)


class DAGNN(nn.Module):
    """Liu et al., 2020: hops by a convolution without weights, gated by their own rows."""

    def __init__(self, wide, hidden, out, hops=4):
        super().__init__()
        self.rows, self.hop = pyg.MLP([wide, hidden, out], norm=None), pyg.LGConv()
        self.gate, self.hops = nn.Linear(out, 1), hops

    def forward(self, x, edge_index):
        found = [self.rows(x)]
        for _ in range(self.hops):
            found.append(self.hop(found[-1], edge_index))
        stacked = torch.stack(found, dim=1)
        return (self.gate(stacked).sigmoid() * stacked).sum(1)


class Propagation(pyg.MessagePassing):
    """Chien et al., 2021: learned weights of the hops, in one call with several propagations."""

    def __init__(self, hops):
        super().__init__(aggr="add")
        self.hops, self.weight = hops, nn.Parameter(0.5 ** torch.arange(hops + 1.0))

    def forward(self, x, edge_index, edge_weight=None):
        edge_index, norm = pyg.conv.gcn_conv.gcn_norm(
            edge_index, edge_weight, x.size(0), dtype=x.dtype
        )
        total = self.weight[0] * x
        for hop in range(self.hops):
            x = self.propagate(edge_index, x=x, norm=norm)
            total = total + self.weight[hop + 1] * x
        return total

    def message(self, x_j, norm):
        return norm.view(-1, 1) * x_j


class GPR(nn.Module):
    def __init__(self, wide, hidden, out, hops=4):
        super().__init__()
        self.one, self.two = nn.Linear(wide, hidden), nn.Linear(hidden, out)
        self.spread = Propagation(hops)

    def forward(self, x, edge_index):
        x = F.dropout(x, 0.5, self.training)
        x = F.dropout(self.one(x).relu(), 0.5, self.training)
        return self.spread(self.two(x), edge_index)


class ArxivGCN(nn.Module):
    """Luo et al., 2024: classic GCN with residuals, batch norm and input dropout."""

    def __init__(self, wide, hidden, out):
        super().__init__()
        self.convs = nn.ModuleList([pyg.GCNConv(wide, hidden), pyg.GCNConv(hidden, hidden)])
        self.skips = nn.ModuleList([nn.Linear(wide, hidden), nn.Linear(hidden, hidden)])
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(2))
        self.decode = nn.Linear(hidden, out)

    def forward(self, x, edge_index):
        x = F.dropout(x, 0.2, self.training)
        for conv, skip, norm in zip(self.convs, self.skips, self.norms, strict=True):
            x = F.dropout(norm(conv(x, edge_index) + skip(x)).relu(), 0.5, self.training)
        return self.decode(x)


class RelationalGCN(nn.Module):
    """Schlichtkrull et al., 2018, with features; both forms of its convolution."""

    def __init__(self, wide, hidden, out, types):
        super().__init__()
        self.first = pyg.RGCNConv(wide, hidden, types, num_bases=2)
        self.second = pyg.FastRGCNConv(hidden, out, types, num_bases=2)

    def forward(self, x, edge_index, edge_type):
        x = self.first(x, edge_index, edge_type).relu()
        return self.second(x, edge_index, edge_type)


class ProteinGAT(nn.Module):
    """Velickovic et al., 2018, for proteins: several heads, and linear maps beside them."""

    def __init__(self, wide, hidden, out):
        super().__init__()
        self.convs = nn.ModuleList(
            [
                pyg.GATConv(wide, hidden, heads=4),
                pyg.GATConv(4 * hidden, out, heads=6, concat=False),
            ]
        )
        self.skips = nn.ModuleList([nn.Linear(wide, 4 * hidden), nn.Linear(4 * hidden, out)])

    def forward(self, x, edge_index):
        x = F.elu(self.convs[0](x, edge_index) + self.skips[0](x))
        return self.convs[1](x, edge_index) + self.skips[1](x)
