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

WEIGHT = {"gcn": "linear.weight", "sage": "weight"}
STEPS = [[0, 5, 2], [1, 3, 13], [6, 7, 8, 9], [0, 1], [10, 11, 12, 2], [5, 1, 3], [1, 0, 13, 6]]


class Slow:
    """The control-variate estimator with its histories H~, which begin at zero."""

    def __init__(self, graph, network, matrix, *, exact_first_hop, split_dropout=False):
        self.graph, self.network, self.P = graph, network, matrix
        self.first = int(exact_first_hop)  # their preprocessing "PP": P X is computed once
        self.split_dropout = split_dropout
        widths = [network.of(d, "weight").size(1) for d in range(network.num_layers)]
        widths = [w if network.kind == "gcn" else w // 2 for w in widths]
        assert widths[0] == WIDTH
        self.history = [{v: torch.zeros(w).double() for v in NODES} for w in widths]

    def sampled(self, v, picked, h, *, power=1.0):
        """P^ h: (n(v) / D)^power P_vu h_u of those picked. v's own row is never sampled."""
        factor = (len(self.P.neighbors(v)) / max(len(picked), 1)) ** power
        return sum((factor * self.P.edges[v, u] * h[u] for u in picked), self.P.own[v] * h[v])

    def estimate(self, depth, v, picked, change):
        """P^(H - H~) + P H~ for one node."""
        known = sum(self.P.whole[v, u] * self.history[depth][u] for u in NODES)
        return self.sampled(v, picked, change) + known

    def layer(self, depth, picked, h, mean, masks):
        """Outputs with dropout, and those of the same step without."""
        old, dropped = self.history[depth], {u: h[u] * masks[u] for u in h}
        z, clean = {}, {}
        for v in picked:
            if depth < self.first:
                z[v] = clean[v] = self.P.whole[v] @ self.graph.x.double()
                continue
            clean[v] = self.estimate(depth, v, picked[v], {u: mean[u] - old[u] for u in mean})
            if self.split_dropout:  # CVD: their sqrt(n(v) / D), where P^ alone has n(v) / D
                noise = {u: dropped[u] - mean[u] for u in mean}
                z[v] = clean[v] + self.sampled(v, picked[v], noise, power=0.5)
            else:  # ours: the mask falls on the change
                change = {u: (h[u] - old[u]) * masks[u] for u in mean}
                z[v] = self.estimate(depth, v, picked[v], change)
        out = {v: self.network.update(depth, z[v], dropped[v]) for v in picked}
        return out, {v: self.network.update(depth, clean[v], mean[v]).detach() for v in picked}

    def step(self, batch, masks=None):
        h = {v: self.graph.x[v].double() for v in batch.blocks[0].src_ids.tolist()}
        mean, fresh = dict(h), []
        for depth, block in enumerate(batch.blocks):
            sources = block.src_ids.tolist()
            assert set(sources) <= set(h)
            fresh.append({v: mean[v] for v in sources})
            noisy = masks is not None and depth >= self.first
            rows = masks[depth] if noisy else torch.ones(len(sources), 1)
            mask_of = dict(zip(sources, rows.double(), strict=True))
            h, mean = self.layer(depth, by_edges(block), h, mean, mask_of)
        nodes = batch.target_ids.tolist()
        rows = torch.stack([h[v] for v in nodes])
        for old, new in zip(self.history[self.first :], fresh[self.first :], strict=True):
            old.update(new)  # after the loss: the step has read the old rows
        return rows, mean_loss(self.graph, nodes, rows)

    def check_histories(self, fast):
        for depth in range(self.first, self.network.num_layers):
            want = torch.stack([self.history[depth][v] for v in NODES])
            torch.testing.assert_close(fast.history(depth).double(), want, **CLOSE)


def both(kind, layers, *, directed, weighted, dropout=0.0, **settings):
    graph, weight_of = small_graph(directed=directed, weighted=weighted)
    backbone = networks(kind, graph, layers, dropout=dropout)
    slow = Slow(graph, Network(kind, backbone), Matrix(kind, weight_of), **settings)
    method = methods.vr_gcn(fanout=(2,), batch_size=4, **settings)
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
        slow.check_histories(fast)
    assert sampled > 10


@pytest.mark.parametrize("split_dropout", [False, True])
@pytest.mark.parametrize(("kind", "layers"), [("gcn", 2), ("gcn", 3), ("sage", 3)])
@pytest.mark.parametrize("exact_first_hop", [False, True])
def test_step_by_step_with_dropout(kind, layers, exact_first_hop, split_dropout):
    """CVD, and our own way. The masks are those that the step drew; histories hold no noise."""
    settings = {"exact_first_hop": exact_first_hop, "split_dropout": split_dropout}
    fast, slow = both(kind, layers, directed=True, weighted=True, dropout=0.4, **settings)
    masks = {}
    for depth, layer in enumerate(fast.backbone.layers):
        layer.dropout.register_forward_hook(
            lambda module, args, out, depth=depth: (
                masks.update({depth: out}) if module.training else None
            )
        )
    torch.manual_seed(8)
    dropped = 0
    for seeds in STEPS:
        got = fast.step(seeds)
        rows, loss = slow.step(got[0], masks)
        learned(fast, slow.network, rows, loss, got)
        slow.check_histories(fast)
        dropped += sum(int((mask == 0).sum()) for mask in masks.values())
    assert dropped > 50


@pytest.mark.parametrize("split_dropout", [False, True])
@pytest.mark.parametrize("kind", ["gcn", "sage"])
def test_only_split_dropout_is_dropout_where_all_neighbours_are_sampled(kind, split_dropout):
    """Then CVD is GraphSAGE with all neighbours, noise and gradients included, whatever is past."""
    graph, _ = small_graph(weighted=True)
    found = {}
    everyone = {"fanout": (NUM_NODES,), "batch_size": 4}
    for name, options in (("vr-gcn", {"split_dropout": split_dropout}), ("graphsage", {})):
        method = methods.METHODS[name](**everyone, **options)
        fast = Fast(graph, networks(kind, graph, 3, dropout=0.4), method)
        torch.manual_seed(9)
        losses = [fast.step(seeds)[2] for seeds in STEPS[:3]]
        found[name] = torch.stack(
            [*losses, fast.backbone.layers[0].get_parameter(WEIGHT[kind]).grad.norm()]
        )
    same = torch.allclose(found["vr-gcn"], found["graphsage"], rtol=1e-3, atol=1e-4)
    assert same == split_dropout


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
