"""The paper's Algorithm 2, written out node by node, beside the project's own step."""

import copy

import torch
from torch.nn.functional import cross_entropy

from graphfm import Graph
from graphfm.backbones.gcn import GCN
from graphfm.backbones.sage import SAGE
from graphfm.batch import Targets
from graphfm.training.settings import Training
from graphfm.training.trainer import Trainer

NUM_NODES, PARTS, LR = 12, 4, 0.05
CLOSE = {"atol": 2e-6, "rtol": 2e-5}
STEPS = [[0], [1, 2], [3], [0, 2], [1], [0], [3, 1]]  # the parts of each batch
BACKBONES = {"gcn": GCN, "sage": SAGE}
NOT_TAUGHT = 4  # in batches, but not in the loss


def twelve_nodes(*, directed, weighted):
    """The graph, and its edges as {(v, u): weight}: v reads u. Node 11 has none, node 0 a loop."""
    rng = torch.Generator().manual_seed(3)
    weight_of = {}
    for v in range(NUM_NODES - 1):
        for u in torch.randperm(NUM_NODES - 1, generator=rng)[: 1 + v % 3].tolist():
            weight = float(torch.rand(1, generator=rng)) + 0.2 if weighted else 1.0
            weight_of[v, u] = weight
            if not directed:
                weight_of[u, v] = weight
    weight_of[0, 0] = 1.0
    train = torch.arange(NUM_NODES) != NOT_TAUGHT
    graph = Graph.from_edges(
        torch.tensor([(u, v) for v, u in weight_of]).T,
        torch.randn(NUM_NODES, 5, generator=rng),
        torch.randint(3, (NUM_NODES,), generator=rng),
        train_mask=train,
        val_mask=~train,
        edge_weight=torch.tensor(list(weight_of.values())) if weighted else None,
        num_classes=3,
    )
    return graph, weight_of


def dense_matrix(kind, weight_of):
    """A, entry by entry: D^-1/2 (A + I) D^-1/2 for GCN, the mean of the neighbours for SAGE."""
    entries = dict(weight_of)
    if kind == "gcn":
        for v in range(NUM_NODES):
            entries.setdefault((v, v), 1.0)
    degree = [sum(w for (v, _), w in entries.items() if v == i) for i in range(NUM_NODES)]
    matrix = [[0.0] * NUM_NODES for _ in range(NUM_NODES)]
    for (v, u), weight in entries.items():
        norm = (degree[v] * degree[u]) ** 0.5 if kind == "gcn" else degree[v]
        matrix[v][u] = weight / norm
    return matrix


class Fast:
    """The project's own training step, watched."""

    def __init__(self, graph, backbone, method):
        self.trainer = Trainer(graph, copy.deepcopy(backbone), method, Training(lr=LR))
        self.backbone, self.rows = self.trainer.backbone, []
        self.backbone.register_forward_hook(lambda module, args, out: self.rows.append(out))

    def nodes(self, parts):
        batch = self.trainer.method.sampler.sample(torch.tensor(parts), self.trainer.rng)
        return batch.target_ids.tolist()

    def step(self, parts):
        loss = self.trainer.step(torch.tensor(parts))
        return self.rows[-1].detach(), loss

    def history(self, k):
        return self.trainer.method.estimator.histories[k - 1].pull(torch.arange(NUM_NODES))


class Slow:
    """Algorithm 2 with the paper's indices: k counts layers from 1."""

    def __init__(
        self, graph, backbone, matrix, *, beta, partial="rescaled", threshold=0, start="zero",
        reach="read",
    ):  # fmt: skip
        self.graph, self.backbone, self.A = graph, copy.deepcopy(backbone), matrix
        self.beta, self.partial, self.c, self.reach = beta, partial, threshold, reach
        self.K = len(backbone.layers)
        self.optimizer = torch.optim.Adam(self.backbone.parameters(), lr=LR)
        self.h_tilde = [{v: graph.x[v] for v in range(NUM_NODES)}]  # features do not age
        for layer in backbone.layers[:-1]:  # h~^{k,0}_v = 0
            self.h_tilde.append({v: torch.zeros(layer.out_width) for v in range(NUM_NODES)})
        self.blended, self.spared, self.unread = 0, 0, 0
        self.start, self.written = start, set()

    def neighbors(self, v):
        """N_v, and v where its own row counts."""
        return [u for u in range(NUM_NODES) if self.A[v][u] != 0]

    def aggregate(self, v, rows):
        return sum((self.A[v][u] * row for u, row in rows.items()), start=0 * self.zero)

    def update(self, k, v, aggregate, own):
        """sigma(W_k aggregate)"""
        targets = Targets(own[None], None, self.graph.degree[v][None])
        return self.backbone.layers[k - 1].update(aggregate[None], targets)[0]

    def in_batch(self, k, v, h, batch):
        """Equation 10: fresh rows of S_v, and those of O_v from the history."""
        rows = {u: h[u] if u in batch else self.h_tilde[k - 1][u] for u in self.neighbors(v)}
        return self.update(k, v, self.aggregate(v, rows), h[v])

    @torch.no_grad()
    def out_of_batch(self, k, v, h, batch):
        """Equation 9, for nodes with more than c neighbours in the batch.

        Where v is also to be read by the batch (`reach`), that is ours.
        """
        inside = [u for u in self.neighbors(v) if u in batch]  # S_v
        unread = self.reach == "read" and not any(self.A[w][v] != 0 for w in batch)
        self.unread += unread and len(inside) > self.c
        if len(inside) <= self.c or unread:
            self.spared += len(inside) > 0
            return
        aggregate = self.aggregate(v, {u: h[u] for u in inside})
        if self.partial == "rescaled":
            seen = sum(self.A[v][u] for u in inside)
            aggregate = aggregate / (seen / sum(self.A[v]))
        fresh = self.update(k, v, aggregate, self.h_tilde[k - 1][v])
        first = self.start == "fresh" and (k, v) not in self.written  # ours
        beta = 1.0 if first else self.beta[k - 1]
        self.written.add((k, v))
        self.h_tilde[k][v] = (1 - beta) * self.h_tilde[k][v] + beta * fresh
        self.blended += 1

    def step(self, nodes):
        batch, everyone = set(nodes), range(NUM_NODES)
        h = {v: self.graph.x[v] for v in nodes}  # h^{0,t}_v = x_v
        for k in range(1, self.K + 1):
            self.zero = torch.zeros(self.backbone.layers[k - 1].agg_width)
            h_k = {v: self.in_batch(k, v, h, batch) for v in nodes}
            if k < self.K:  # the last layer's output is read by none
                for v in everyone:
                    if v not in batch:
                        self.out_of_batch(k, v, h, batch)
                for v in nodes:
                    self.h_tilde[k][v] = h_k[v].detach()
                    self.written.add((k, v))
            h = h_k
        losses = [cross_entropy(h[v], self.graph.y[v]) for v in nodes if v != NOT_TAUGHT]
        loss = sum(losses) / len(losses)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return torch.stack([h[v] for v in nodes]).detach(), loss.detach()

    def history(self, k):
        return torch.stack([self.h_tilde[k][v] for v in range(NUM_NODES)])


def both(kind, method, *, directed=False, weighted=False, residual=False, **paper):
    torch.manual_seed(6)
    graph, weight_of = twelve_nodes(directed=directed, weighted=weighted)
    kind_of = BACKBONES[kind]
    settings = kind_of.Settings(layers=3, hidden=6, dropout=0.0, residual=residual)
    backbone = kind_of(5, 3, settings)
    for layer in backbone.layers:  # a bias that shows when an update is applied to nothing
        torch.nn.init.normal_((layer.linear if kind == "gcn" else layer).bias, std=0.3)
    fast = Fast(graph, backbone, method)
    return fast, Slow(graph, backbone, dense_matrix(kind, weight_of), **paper)


def agree(fast, slow):
    """Outputs, loss, gradients and histories of every step, with an update of Adam in between."""
    before = [parameter.detach().clone() for parameter in slow.backbone.parameters()]
    visited = set()
    for parts in STEPS:
        nodes = fast.nodes(parts)
        want, want_loss = slow.step(nodes)
        got, loss = fast.step(parts)
        torch.testing.assert_close(got, want, **CLOSE)
        torch.testing.assert_close(loss, want_loss, **CLOSE)
        for ours, theirs in zip(
            fast.backbone.parameters(), slow.backbone.parameters(), strict=True
        ):
            torch.testing.assert_close(ours.grad, theirs.grad, **CLOSE)
        for k in (1, 2):
            torch.testing.assert_close(fast.history(k), slow.history(k), **CLOSE)
        copy_weights(fast.backbone, slow.backbone)  # Adam makes much of a gradient's last bit
        visited |= set(nodes)
    assert visited == set(range(NUM_NODES))
    after = list(fast.backbone.parameters())
    assert all(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


def copy_weights(source, target):
    """Check that the weights agree to what Adam leaves of rounding, then make them the same."""
    for ours, theirs in zip(source.parameters(), target.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-3 * LR, rtol=1e-4)
    target.load_state_dict(source.state_dict())
