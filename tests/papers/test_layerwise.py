"""FastGCN (Chen, Ma & Xiao, 2018) and LADIES (Zou et al., 2019): s nodes drawn for each layer.

FastGCN: h(v) = sigma(1/s sum_j A(v, u_j) / q(u_j) h(u_j) W), q(u) proportional to ||A(:, u)||^2.
LADIES: the same with q from the rows of the layer's targets alone; then every row of the sampled
matrix is divided by its sum.
"""

import pytest
import torch

from graphfm import methods
from tests.papers.slow import (
    GRAPHS,
    NODES,
    NUM_NODES,
    Fast,
    Matrix,
    Network,
    chi_square_bound,
    learned,
    mean_loss,
    networks,
    small_graph,
)
from tests.papers.slow_draws import drawn, probabilities

DRAWS = 5
METHODS = {  # method, settings
    "fastgcn": (methods.fastgcn, {}),
    "ladies": (methods.ladies, {"normalize_rows": False}),
    "ladies, rows normalised": (methods.ladies, {"normalize_rows": True}),
}


def estimate(matrix, q, count, v, h, *, normalise):
    """The sum over the draws of A(v, u) h(u) / (s q(u)); v's own row is exact."""
    share = {u: times * matrix.edges[v, u] / (DRAWS * q[u]) for u, times in count.items()}
    factor = 1.0
    if normalise and sum(share.values()) > 0:
        factor = matrix.edges[v].sum() / sum(share.values())  # the true total: 1 for a mean
    return sum((factor * w * h[u] for u, w in share.items()), start=matrix.own[v] * h[v])


def both(name, kind, layers, *, directed, weighted):
    graph, weight_of = small_graph(directed=directed, weighted=weighted)
    backbone, matrix = networks(kind, graph, layers), Matrix(kind, weight_of)
    make, settings = METHODS[name]
    method = make(nodes_per_layer=(DRAWS,), batch_size=4, **settings)
    fast = Fast(graph, backbone, method)
    # the same draws, with their weights before rows are normalised
    plain = make(nodes_per_layer=(DRAWS,), batch_size=4, **dict.fromkeys(settings, False)).sampler
    plain.prepare(fast.trainer.infer.adjacency, fast.trainer.plan)
    return fast, Network(kind, backbone), matrix, plain


def forward(name, graph, network, matrix, batch, plain):
    h = {v: graph.x[v].double() for v in batch.blocks[0].src_ids.tolist()}
    repeated = 0
    for depth, block in enumerate(batch.blocks):
        targets = block.dst_ids.tolist()
        q = probabilities(matrix, list(NODES) if name == "fastgcn" else targets)
        count = drawn(plain.blocks[depth], matrix, q, DRAWS)
        assert set(block.src_ids.tolist()) == set(targets) | set(count)
        if name == "fastgcn":  # who is drawn and read by no target leaves no trace
            assert sum(count.values()) <= DRAWS
        elif int((q > 0).sum()) > DRAWS:
            assert sum(count.values()) == DRAWS
        repeated += sum(count.values()) > len(count)
        normalise = "normalised" in name
        z = {v: estimate(matrix, q, count, v, h, normalise=normalise) for v in targets}
        h = {v: network.update(depth, z[v], h[v]) for v in targets}
    nodes = batch.target_ids.tolist()
    rows = torch.stack([h[v] for v in nodes])
    return rows, mean_loss(graph, nodes, rows), repeated


@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize("kind", ["gcn", "sage"])
@pytest.mark.parametrize(("directed", "weighted"), GRAPHS)
@pytest.mark.parametrize("name", METHODS)
def test_step_by_step(name, kind, layers, directed, weighted):
    fast, network, matrix, plain = both(name, kind, layers, directed=directed, weighted=weighted)
    graph, repeated = fast.trainer.graph, 0
    for seeds in ([1, 5, 2, 9], [1, 3, 13, 6], [0, 1, 7, 11]):
        rng = torch.Generator()
        rng.set_state(fast.trainer.rng.get_state())
        same = plain.sample(torch.tensor(seeds), rng)
        got = fast.step(seeds)
        rows, loss, again = forward(name, graph, network, matrix, got[0], same)
        learned(fast, network, rows, loss, got)
        repeated += again
    assert repeated > 0  # draws are with replacement, and some node came twice


@pytest.mark.parametrize("name", ["fastgcn", "ladies"])
def test_draws_have_the_papers_distribution(name):
    """Chi-square of 10,000 draws, at most five standard deviations above its mean."""
    _, _, matrix, sampler = both(name, "gcn", 1, directed=True, weighted=True)
    targets = list(NODES) if name == "fastgcn" else [1, 2, 5]
    q = probabilities(matrix, targets)
    assert int((q > 0).sum()) > DRAWS
    rng, rounds = torch.Generator().manual_seed(2), 2000
    seen = torch.zeros(NUM_NODES).double()
    for _ in range(rounds):
        (block,) = sampler.sample(torch.tensor(targets), rng).blocks
        source = block.src_ids[block.edges.col.long()]
        entry = matrix.edges[block.dst_ids[block.edges.row.long()], source]
        times = torch.zeros(NUM_NODES).double()
        times[source] = (block.edges.weight * DRAWS * q[source] / entry).round()
        seen += times
    assert int(seen.sum()) == rounds * DRAWS
    possible = q > 0
    want = q[possible] * rounds * DRAWS
    assert float(want.min()) > 5
    assert int(seen[~possible].sum()) == 0
    assert float(((seen[possible] - want).square() / want).sum()) < chi_square_bound(len(want))
