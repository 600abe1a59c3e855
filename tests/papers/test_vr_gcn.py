"""VR-GCN (Chen, Zhu & Song, 2018): Z = P^(H - H~) + P H~, with P^ from D of n(v) neighbours."""

import pytest
import torch

from graphfm import methods
from tests.papers.slow import (
    CLOSE,
    GRAPHS,
    NODES,
    NUM_NODES,
    WIDTH,
    Fast,
    Matrix,
    Network,
    by_edges,
    learned,
    mean_loss,
    networks,
    small_graph,
    within,
)

STEPS = [[0, 5, 2], [1, 3, 13], [6, 7, 8, 9], [0, 1], [10, 11, 12, 2], [5, 1, 3], [1, 0, 13, 6]]


class Slow:
    """The control-variate estimator with its histories H~, which begin at zero."""

    def __init__(self, graph, network, matrix, *, exact_first_hop):
        self.graph, self.network, self.P = graph, network, matrix
        self.first = int(exact_first_hop)  # their preprocessing "PP": P X is computed once
        widths = [network.of(d, "weight").size(1) for d in range(network.num_layers)]
        widths = [w if network.kind == "gcn" else w // 2 for w in widths]
        assert widths[0] == WIDTH
        self.history = [{v: torch.zeros(w).double() for v in NODES} for w in widths]

    def estimate(self, depth, v, picked, h):
        """Line 5 of their Algorithm 1 for one node; its own row is never sampled."""
        old, row = self.history[depth], self.P.edges[v]
        factor = len(self.P.neighbors(v)) / max(len(picked), 1)  # n(v) / D
        changed = [factor * row[u] * (h[u] - old[u]) for u in picked]
        changed.append(self.P.own[v] * (h[v] - old[v]))
        return sum(changed) + sum(self.P.whole[v, u] * old[u] for u in NODES)

    def step(self, batch):
        x = self.graph.x.double()
        h = {v: x[v] for v in batch.blocks[0].src_ids.tolist()}
        fresh = []
        for depth, block in enumerate(batch.blocks):
            picked = by_edges(block)
            assert set(block.src_ids.tolist()) <= set(h)
            fresh.append({v: h[v].detach() for v in block.src_ids.tolist()})
            if depth < self.first:
                z = {v: self.P.whole[v] @ x for v in picked}
            else:
                z = {v: self.estimate(depth, v, picked[v], h) for v in picked}
            h = {v: self.network.update(depth, z[v], h[v]) for v in picked}
        nodes = batch.target_ids.tolist()
        rows = torch.stack([h[v] for v in nodes])
        for old, new in zip(self.history[self.first :], fresh[self.first :], strict=True):
            old.update(new)  # after the loss: the step has read the old rows
        return rows, mean_loss(self.graph, nodes, rows)


def both(kind, layers, *, directed, weighted, exact_first_hop, fanout=2):
    graph, weight_of = small_graph(directed=directed, weighted=weighted)
    backbone, matrix = networks(kind, graph, layers), Matrix(kind, weight_of)
    slow = Slow(graph, Network(kind, backbone), matrix, exact_first_hop=exact_first_hop)
    method = methods.vr_gcn(fanout=(fanout,), batch_size=4, exact_first_hop=exact_first_hop)
    return Fast(graph, backbone, method), slow


@pytest.mark.parametrize("exact_first_hop", [False, True])
@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize("kind", ["gcn", "sage"])
@pytest.mark.parametrize(("directed", "weighted"), GRAPHS)
def test_step_by_step(kind, layers, directed, weighted, exact_first_hop):
    options = {"directed": directed, "weighted": weighted, "exact_first_hop": exact_first_hop}
    fast, slow = both(kind, layers, **options)
    sampled = 0
    for seeds in STEPS:
        got = fast.step(seeds)
        for block in got[0].blocks[slow.first :]:
            for v, picked in by_edges(block).items():
                n = len(slow.P.neighbors(v))
                assert len(picked) == min(n, 2)
                sampled += n > 2
        rows, loss = slow.step(got[0])
        learned(fast, slow.network, rows, loss, got)
        for depth in range(slow.first, layers):
            want = torch.stack([slow.history[depth][v] for v in NODES])
            torch.testing.assert_close(fast.history(depth).double(), want, **CLOSE)
    assert sampled > 10


def test_each_neighbour_is_picked_with_probability_d_over_n():
    """1,500 draws of two neighbours, within five standard errors."""
    fast, slow = both("gcn", 1, directed=True, weighted=True, exact_first_hop=False)
    sampler, rng, rounds = fast.trainer.method.sampler, torch.Generator().manual_seed(1), 1500
    count = torch.zeros(NUM_NODES, NUM_NODES).double()
    for _ in range(rounds):
        (block,) = sampler.sample(torch.arange(NUM_NODES), rng).blocks
        ids, edges = block.src_ids, block.edges
        count[ids[edges.row.long()], ids[edges.col.long()]] += 1
    for v in NODES:
        n = len(slow.P.neighbors(v))
        want = (slow.P.edges[v] != 0) * min(1.0, 2 / max(n, 1))
        assert within(count[v] / rounds, want, (want * (1 - want) / rounds).sqrt()), v
