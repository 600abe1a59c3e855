"""MVS-GCN (Cong et al., 2020): batches by gradient norm, and layers as a change of a snapshot.

p_i is proportional to the norm of node i's gradient and at most 1; its loss counts 1 / (N p_i).
Z = P^(H - H~) + P H~, where H~ is renewed for all nodes at each snapshot and for a step's nodes
behind the step.
"""

import pytest
import torch
from torch.nn.functional import cross_entropy

from graphfm import methods
from tests.papers.slow import (
    CLOSE,
    GRAPHS,
    NODES,
    NUM_NODES,
    Fast,
    Matrix,
    Network,
    learned,
    networks,
    small_graph,
    within,
)
from tests.papers.slow_draws import drawn, probabilities

DRAWS, BATCH, LEAST = 4, 5, 0.5  # LEAST is ours: the smallest norm, as a share of their mean


def inclusion(norms, number):
    """min(1, norm / t), with t by bisection such that they add up to `number`."""
    low, high = 1e-12, float(norms.sum())
    for _ in range(200):
        t = (low + high) / 2
        low, high = (t, high) if float((norms / t).clamp(max=1).sum()) > number else (low, t)
    return (norms / t).clamp(max=1)


class Slow:
    def __init__(self, graph, network, matrix, *, exact_first_hop):
        self.graph, self.network, self.P = graph, network, matrix
        self.first = int(exact_first_hop)
        self.train = graph.train_mask.nonzero().flatten().tolist()

    def snapshot(self):
        """The large batch is all nodes here: exact rows, and the gradients of the outputs."""
        rows, self.history = self.graph.x.double(), []
        for depth in range(self.network.num_layers):
            self.history.append({v: rows[v].detach() for v in NODES})
            rows = self.network.update(depth, self.P.whole @ rows, rows)
        logits = rows[self.train].detach().requires_grad_()
        loss = cross_entropy(logits, self.graph.y[self.train], reduction="sum")
        (gradient,) = torch.autograd.grad(loss, logits)
        norms = gradient.norm(dim=1)
        p = inclusion(norms.clamp(min=LEAST * norms.mean()), BATCH)
        self.p = dict(zip(self.train, p.tolist(), strict=True))

    def estimate(self, depth, v, q, count, h):
        old = self.history[depth]
        terms = [
            times * self.P.edges[v, u] / (DRAWS * q[u]) * (h[u] - old[u])
            for u, times in count.items()
        ]
        terms.append(self.P.own[v] * (h[v] - old[v]))
        return sum(terms) + sum(self.P.whole[v, u] * old[u] for u in NODES)

    def step(self, batch):
        h = {v: self.graph.x[v].double() for v in batch.blocks[0].src_ids.tolist()}
        fresh = []
        for depth, block in enumerate(batch.blocks):
            targets = block.dst_ids.tolist()
            fresh.append({v: h[v].detach() for v in block.src_ids.tolist()})
            if depth < self.first:
                z = {v: self.P.whole[v] @ self.graph.x.double() for v in targets}
            else:
                q = probabilities(self.P, targets)
                if int((q > 0).sum()) <= DRAWS:  # all are taken once
                    count = {u: DRAWS * float(q[u]) for u in NODES if q[u] > 0}
                else:
                    count = drawn(block, self.P, q, DRAWS)
                    assert sum(count.values()) == DRAWS
                z = {v: self.estimate(depth, v, q, count, h) for v in targets}
            h = {v: self.network.update(depth, z[v], h[v]) for v in targets}
        for old, new in zip(self.history[self.first :], fresh[self.first :], strict=True):
            old.update(new)
        nodes = batch.target_ids.tolist()
        losses = [cross_entropy(h[v], self.graph.y[v]) / self.p[v] for v in nodes]
        return torch.stack([h[v] for v in nodes]), sum(losses) / len(self.train)


def both(kind, layers, *, directed, weighted, exact_first_hop):
    graph, weight_of = small_graph(directed=directed, weighted=weighted)
    backbone, matrix = networks(kind, graph, layers), Matrix(kind, weight_of)
    slow = Slow(graph, Network(kind, backbone), matrix, exact_first_hop=exact_first_hop)
    options = {"batch_size": BATCH, "exact_first_hop": exact_first_hop}
    return Fast(graph, backbone, methods.mvs_gcn(nodes_per_layer=(DRAWS,), **options)), slow


@pytest.mark.parametrize("exact_first_hop", [False, True])
@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize("kind", ["gcn", "sage"])
@pytest.mark.parametrize(("directed", "weighted"), GRAPHS)
def test_epoch_by_epoch(kind, layers, directed, weighted, exact_first_hop):
    options = {"directed": directed, "weighted": weighted, "exact_first_hop": exact_first_hop}
    fast, slow = both(kind, layers, **options)
    trainer, losses, steps = fast.trainer, [], []
    learn = trainer.learn
    trainer.learn = lambda given: losses.append(learn(given)) or losses[-1]

    def follow():
        if not steps or steps[-1] == "end":
            slow.snapshot()
        batch = fast.batches[-1]
        rows, loss = slow.step(batch)
        learned(fast, slow.network, rows, loss, (batch, fast.logits[-1].detach(), losses[-1]))
        for depth in range(slow.first, layers):
            want = torch.stack([slow.history[depth][v] for v in NODES])
            torch.testing.assert_close(fast.history(depth).double(), want, **CLOSE)
        steps.append("step")

    for _ in range(2):
        trainer.epoch(follow)
        steps.append("end")
        found = trainer.method.sampler.probability[slow.train].double()
        want = torch.tensor(list(slow.p.values())).double()
        torch.testing.assert_close(found, want, **CLOSE)
        assert float(found.max()) > 1.02 * float(found.min())
    assert steps.count("step") == 2 * -(-len(slow.train) // BATCH)


def test_nodes_are_drawn_by_their_probability():
    """3,000 batches, within five standard errors."""
    fast, slow = both("gcn", 2, directed=False, weighted=True, exact_first_hop=False)
    norms = torch.linspace(0.3, 4.0, len(slow.train))
    sampler, rng = fast.trainer.method.sampler, torch.Generator().manual_seed(4)
    sampler.snapshot(norms)
    want = torch.zeros(NUM_NODES).double()
    want[slow.train] = inclusion(norms.double().clamp(min=LEAST * float(norms.mean())), BATCH)
    count, rounds = torch.zeros(NUM_NODES).double(), 0
    while rounds < 3000:
        for seeds in sampler.epoch(rng):
            count[seeds] += 1
            rounds += 1
    assert within(count / rounds, want, (want * (1 - want) / rounds).sqrt())
