"""The step of the code that the paper released (GraphFM-OB, GNNAutoScale), node by node.

Networks are written out too, from the parameters alone: nothing of the project's layers is called.
"""

import copy
import math

import torch
from torch.nn.functional import cross_entropy

from graphfm import Graph

NUM_NODES, LR, EPS = 14, 0.01, 1e-5
TAUGHT = range(11)  # training nodes


def small_graph():
    """An undirected graph of 14 nodes with a hub, and the neighbours of each node."""
    rng = torch.Generator().manual_seed(5)
    pairs = {(0, v) for v in range(1, 9)} | {(v, v + 1) for v in range(1, 12)}
    pairs |= {tuple(sorted(p)) for p in torch.randint(13, (8, 2), generator=rng).tolist()}
    pairs = sorted((u, v) for u, v in pairs if u != v)  # node 13 has no neighbours
    taught = torch.tensor([v in TAUGHT for v in range(NUM_NODES)])
    graph = Graph.from_edges(
        torch.tensor(pairs).T,
        torch.randn(NUM_NODES, 5, generator=rng),
        torch.randint(3, (NUM_NODES,), generator=rng),
        train_mask=taught, val_mask=~taught, undirected=True, num_classes=3,
    )  # fmt: skip
    neighbors = [[] for _ in range(NUM_NODES)]
    for u, v in pairs:
        neighbors[u].append(v)
        neighbors[v].append(u)
    return graph, neighbors


class Norm:
    """Batch norm with running statistics, by its formula."""

    def __init__(self, module):
        self.weight, self.bias = module.weight, module.bias
        self.mean, self.var = module.running_mean.clone(), module.running_var.clone()

    def in_batch(self, rows):
        """The statistics of these rows, which also move the running ones."""
        mean, var = rows.mean(0), rows.var(0, unbiased=False)
        with torch.no_grad():
            unbiased = var * len(rows) / (len(rows) - 1)
            self.mean = 0.9 * self.mean + 0.1 * mean
            self.var = 0.9 * self.var + 0.1 * unbiased
        return (rows - mean) / (var + EPS).sqrt() * self.weight + self.bias

    def running(self, row):
        return (row - self.mean) / (self.var + EPS).sqrt() * self.weight + self.bias


class GCNRule:
    """W (sum of D^-1/2 (A + I) D^-1/2 entries times rows) + b; a halo row has the batch's part."""

    def __init__(self, backbone, neighbors):
        self.backbone, self.neighbors, self.scale = backbone, neighbors, 1.0

    def entry(self, v, u):
        degree = [len(self.neighbors[w]) + 1 for w in (v, u)]
        return self.scale / math.sqrt(degree[0] * degree[1])

    def start(self, x):
        return x

    def finish(self, row):
        return row

    def total(self, v, rows):
        """The entries of v's matrix row times `rows`; v's own row is among them if given."""
        return sum((self.entry(v, u) * rows[u] for u in rows), start=torch.zeros(()))

    def conv(self, k, v, rows, own, first):
        layer = self.backbone.layers[k]
        total = self.total(v, rows) + torch.zeros(layer.in_width)  # also of no rows
        return layer.linear.weight @ total + layer.linear.bias

    def reads(self, v):
        return [*self.neighbors[v], v]


class GCNIIRule(GCNRule):
    """((1 - a) P + a h0) mixed with its product, with a second matrix for h0 if not shared."""

    def start(self, x):
        linear = self.backbone.encode[1]
        return (linear.weight @ x + linear.bias).relu()

    def finish(self, row):
        linear = self.backbone.decode[1]
        return linear.weight @ row + linear.bias

    def conv(self, k, v, rows, own, first):
        layer = self.backbone.layers[k]
        beta = math.log(0.5 / (k + 1) + 1)
        total = self.total(v, rows) + torch.zeros(layer.in_width)
        p, x0 = (1 - layer.alpha) * total, layer.alpha * first
        second = layer.linear if layer.initial is None else layer.initial
        return (1 - beta) * (p + x0) + beta * (layer.linear.weight @ p + second.weight @ x0)


class PNARule(GCNRule):
    """sum of s(d) (W' a(relu(W h_u)) + b') over aggregators a and scalers s, + W_2 h_v + b_2.

    d and the aggregates are those of the rows that are given: for a halo row, of the batch's.
    """

    def __init__(self, backbone, neighbors):
        super().__init__(backbone, neighbors)
        logs = [math.log(len(around) + 1) for around in neighbors]
        self.mean_log = sum(logs) / len(logs)

    def conv(self, k, v, rows, own, first):
        layer = self.backbone.layers[k]
        out = layer.root.weight @ own + layer.root.bias
        width, number = layer.out_width, 0
        for aggregator in layer.aggregators:
            for scaler in layer.scalers:
                part = slice(number * width, (number + 1) * width)
                before = layer.before.weight[part], layer.before.bias[part]
                messages = [(before[0] @ row + before[1]).relu() for row in rows.values()]
                agg = torch.zeros(width)
                if messages:
                    stacked = torch.stack(messages)
                    agg = stacked.mean(0) if aggregator == "mean" else stacked.amax(0)
                scale = math.log(len(rows) + 1) / self.mean_log
                scale = 1.0 if scaler == "identity" else scale
                after = layer.neighbors.weight[:, part] @ agg + layer.biases[number]
                out, number = out + scale * after, number + 1
        return out

    def reads(self, v):
        return self.neighbors[v]


RULES = {"gcn": GCNRule, "gcnii": GCNIIRule, "pna": PNARule}


class Released:
    """Histories are filled exactly; then each step moves the halo by gamma."""

    def __init__(self, graph, neighbors, backbone, kind, gamma):
        self.graph, self.neighbors, self.gamma = graph, neighbors, gamma
        self.backbone = copy.deepcopy(backbone)
        self.rule = RULES[kind](self.backbone, neighbors)
        self.norms = [None if la.norm is None else Norm(la.norm) for la in self.backbone.layers]
        self.last = len(self.backbone.layers) - 1
        self.decodes = kind == "gcnii"
        self.optimizer = torch.optim.Adam(self.backbone.parameters(), lr=LR)
        self.fill()

    def activated(self, k):
        return k < self.last or self.decodes

    def plus_own(self, k, row, own):
        """The residual connection, which rows of the halo do not get."""
        return row + own if self.backbone.layers[k].residual else row

    @torch.no_grad()
    def fill(self):
        """Every layer for all nodes, in evaluation mode."""
        first = h = [self.rule.start(x) for x in self.graph.x]
        self.history = []
        for k in range(self.last):
            rows = [
                self.rule.conv(k, v, {u: h[u] for u in self.rule.reads(v)}, h[v], first[v])
                for v in range(NUM_NODES)
            ]
            norm = self.norms[k]
            rows = rows if norm is None else [norm.running(row) for row in rows]
            h = [self.plus_own(k, row, own).relu() for row, own in zip(rows, h, strict=True)]
            self.history.append(list(h))

    def step(self, nodes, kept=None, drop=0.0):
        """A step on a batch. `kept` has the entries (target, source) that are not dropped."""
        batch, self.rule.scale = set(nodes), 1 / (1 - drop)
        left = {v: [u for u in self.rule.reads(v) if kept is None or (v, u) in kept] for v in nodes}
        halo = sorted({u for v in nodes for u in self.neighbors[v]} - batch)
        first = {v: self.rule.start(self.graph.x[v]) for v in [*nodes, *halo]}
        x = dict(first)
        for k in range(self.last + 1):
            rows = torch.stack([
                self.rule.conv(k, v, {u: x[u] for u in left[v]}, x[v], first[v]) for v in nodes
            ])  # fmt: skip
            norm = self.norms[k]
            rows = rows if norm is None else norm.in_batch(rows)
            rows = self.plus_own(k, rows, torch.stack([x[v] for v in nodes]))
            rows = rows.relu() if self.activated(k) else rows
            if k < self.last:
                self.move(k, halo, left, x, first)
                for v, row in zip(nodes, rows, strict=True):
                    self.history[k][v] = row.detach()
                x = dict(zip(nodes, rows, strict=True))
                x |= {u: self.history[k][u] for u in halo}
            else:
                x = dict(zip(nodes, rows, strict=True))
        logits = torch.stack([self.rule.finish(x[v]) for v in nodes])
        taught = [i for i, v in enumerate(nodes) if v in TAUGHT]
        loss = cross_entropy(logits[taught], self.graph.y[[nodes[i] for i in taught]])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return logits.detach()

    @torch.no_grad()
    def move(self, k, halo, left, x, first):
        """What the layer makes of in-batch neighbours alone, with running statistics.

        Every node of the halo moves, also one whose edges were all dropped.
        """
        for u in halo:
            rows = {v: x[v] for v in left if u in left[v]}
            out = self.rule.conv(k, u, rows, x[u], first[u])
            out = out if self.norms[k] is None else self.norms[k].running(out)
            moved = self.gamma * out.relu() + (1 - self.gamma) * self.history[k][u]
            self.history[k][u] = moved
