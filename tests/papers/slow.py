"""Small graphs, dense matrices and a plain network: what the slow references are made of.

A reference computes a step in float64, node by node, from its paper's formula. It shares nothing
with `src` but the graph, the first weights and the nodes and edges that a step has drawn.
"""

import torch
from torch.nn.functional import cross_entropy

from graphfm import Graph
from graphfm.backbones.gcn import GCN
from graphfm.backbones.sage import SAGE
from graphfm.training.settings import Training
from graphfm.training.trainer import Trainer

NUM_NODES, HUB, ALONE, LOOP, NOT_TAUGHT = 14, 1, 13, 0, 4
WIDTH, CLASSES, LR = 5, 3, 0.05
CLOSE = {"atol": 1e-5, "rtol": 2e-4}
BACKBONES = {"gcn": GCN, "sage": SAGE}
GRAPHS = [(False, False), (False, True), (True, True)]  # directed, weighted
NODES = range(NUM_NODES)


def small_graph(*, directed=False, weighted=False, taught=None):
    """The graph, and its edges as {(v, u): weight}: v reads u. It has a hub and a self-loop."""
    rng = torch.Generator().manual_seed(3)
    weight_of = {}
    for v in range(NUM_NODES - 1):
        others = torch.randperm(NUM_NODES - 1, generator=rng)[: 1 + v % 3].tolist()
        for u in others + [HUB] * (v % 4 > 0):
            weight = float(torch.rand(1, generator=rng)) + 0.2 if weighted else 1.0
            weight_of[v, u] = weight
            if u == HUB or not directed:
                weight_of[u, v] = weight
    for v in NODES:
        weight_of.pop((v, v), None)
    weight_of[LOOP, LOOP] = 0.7 if weighted else 1.0
    train = torch.arange(NUM_NODES) != NOT_TAUGHT if taught is None else taught
    graph = Graph.from_edges(
        torch.tensor([(u, v) for v, u in weight_of]).T,
        torch.randn(NUM_NODES, WIDTH, generator=rng),
        torch.randint(CLASSES, (NUM_NODES,), generator=rng),
        train_mask=train,
        val_mask=~train,
        edge_weight=torch.tensor(list(weight_of.values())) if weighted else None,
        num_classes=CLASSES,
    )
    return graph, weight_of


class Matrix:
    """A dense matrix: `edges` from the graph's edges, `own` the diagonal that GCN adds to them."""

    def __init__(self, kind, weight_of, *, ids=NODES, diagonal=0.0):
        self.ids = list(ids)
        inside = set(self.ids)
        edges = {(v, u): w for (v, u), w in weight_of.items() if {v, u} <= inside}
        own = {v: float(kind == "gcn" and (v, v) not in edges) for v in self.ids}
        degree = {v: own[v] + sum(w for (i, _), w in edges.items() if i == v) for v in self.ids}
        self.edges = torch.zeros(NUM_NODES, NUM_NODES, dtype=torch.float64)
        self.own = torch.zeros(NUM_NODES, dtype=torch.float64)
        for (v, u), weight in edges.items():
            norm = degree[v] if kind == "sage" else (degree[v] * degree[u]) ** 0.5
            self.edges[v, u] = weight / norm if norm > 0 else 0.0
        for v in self.ids:
            loop = edges.get((v, v), 0.0)
            if kind == "gcn":
                self.own[v] = (own[v] + diagonal * (own[v] + loop)) / degree[v]
        self.whole = self.edges + self.own.diag()

    def neighbors(self, v):
        return [u for u in NODES if self.edges[v, u] != 0]


class Network:
    """GCN, ReLU(Z W), or SAGE, ReLU(Z W_1 + H W_2), row by row; no ReLU at the end."""

    def __init__(self, kind, backbone):
        self.kind, self.num_layers = kind, len(backbone.layers)
        self.parameters = [p.detach().double().requires_grad_() for p in backbone.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, lr=LR)
        self.names = [name for name, _ in backbone.named_parameters()]

    def of(self, depth, name):
        (found,) = [
            p
            for p, full in zip(self.parameters, self.names, strict=True)
            if full.startswith(f"layers.{depth}.") and full.endswith(name)
        ]
        return found

    def update(self, depth, z, own):
        weight, bias = self.of(depth, "weight"), self.of(depth, "bias")
        rows = z if self.kind == "gcn" else torch.cat([z, own], dim=-1)
        out = rows @ weight.T + bias
        return out if depth == self.num_layers - 1 else out.relu()


def by_edges(block):
    """{v: {u: weight}} of a block's edges, by node ids."""
    edges, sources, targets = block.edges, block.src_ids.tolist(), block.dst_ids.tolist()
    found = {v: {} for v in targets}
    parts = (edges.row.tolist(), edges.col.tolist(), edges.weight.tolist())
    for row, col, weight in zip(*parts, strict=True):
        assert sources[col] not in found[targets[row]]
        found[targets[row]][sources[col]] = weight
    return found


class Fast:
    """The project's own training step, watched: what it draws, computes and learns."""

    def __init__(self, graph, backbone, method, **training):
        self.trainer = Trainer(graph, backbone, method, Training(lr=LR, **training))
        self.backbone, self.logits, self.batches = self.trainer.backbone, [], []
        self.backbone.register_forward_hook(
            # without a gradient it is a pass that writes histories
            lambda module, args, out: self.logits.append(out) if out.requires_grad else None
        )
        sampler = method.sampler
        sample = sampler.sample

        def watched(seeds, rng):
            self.batches.append(sample(seeds, rng))
            return self.batches[-1]

        sampler.sample = watched

    def step(self, seeds):
        loss = self.trainer.step(torch.tensor(seeds))
        return self.batches[-1], self.logits[-1].detach(), loss

    def history(self, depth):
        return self.trainer.method.estimator.histories[depth].pull(torch.arange(NUM_NODES))


def mean_loss(graph, nodes, rows):
    """The mean of the cross-entropies of the nodes that train."""
    losses = [
        cross_entropy(row, graph.y[v])
        for v, row in zip(nodes, rows, strict=True)
        if graph.train_mask[v]
    ]
    return sum(losses) / len(losses)


def learned(fast, network, rows, loss, got):
    """Outputs, loss, gradients and weights agree; the network then takes the fast one's weights."""
    _, logits, fast_loss = got
    torch.testing.assert_close(logits.double(), rows.detach(), **CLOSE)
    torch.testing.assert_close(fast_loss.double(), loss.detach(), **CLOSE)
    network.optimizer.zero_grad()
    loss.backward()
    network.optimizer.step()
    for ours, theirs in zip(fast.backbone.parameters(), network.parameters, strict=True):
        torch.testing.assert_close(ours.grad.double(), theirs.grad, **CLOSE)
        # Adam makes much of a gradient's last bit, so rounding must not add up over steps
        torch.testing.assert_close(ours.detach().double(), theirs.detach(), atol=0.02 * LR, rtol=0)
        theirs.data.copy_(ours.detach())


def networks(kind, graph, layers, **settings):
    """The project's network, with biases that show when an update is applied to nothing."""
    torch.manual_seed(6)
    kind_of = BACKBONES[kind]
    settings = {"dropout": 0.0, **settings}
    backbone = kind_of(WIDTH, CLASSES, kind_of.Settings(layers=layers, hidden=6, **settings))
    for name, parameter in backbone.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.3)
    return backbone


def within(found, want, error, margin=5.0):
    """True if the numbers are as near as `margin` standard errors."""
    return bool(((found - want).abs() <= margin * error + 1e-9).all())


def chi_square_bound(cells):
    """Five standard deviations above the mean of a chi-square variable."""
    freedom = cells - 1
    return freedom + 5 * (2 * freedom) ** 0.5
