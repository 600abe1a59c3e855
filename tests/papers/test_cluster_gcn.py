"""Cluster-GCN (Chiang et al., 2019) and GNNAutoScale (Fey et al., 2021) on the same parts.

Cluster-GCN keeps the edges within a batch's parts, also those between two of them, and normalises
that subgraph anew; equation 11 adds lambda diag(A) to its matrix A. GNNAutoScale keeps all edges,
and reads the rows of nodes outside the batch from histories.
"""

import pytest
import torch

from graphfm import Graph, methods
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.kernels import weighted_sum
from tests.papers.slow import (
    CLOSE,
    GRAPHS,
    NODES,
    NUM_NODES,
    Fast,
    Matrix,
    Network,
    learned,
    mean_loss,
    networks,
    small_graph,
)

STEPS = [[0], [1, 2], [3], [0, 2], [1, 3], [3, 2]]  # the parts of each batch
PARTS = 4


def nodes_of(fast, parts):
    """The nodes of a batch; each is in one part."""
    sampler = fast.trainer.method.sampler
    part_of = {}
    for part in range(PARTS):
        for v in sampler.members[sampler.bounds[part] : sampler.bounds[part + 1]].tolist():
            assert part_of.setdefault(v, part) == part
    assert set(part_of) == set(NODES)
    return {v for v, part in part_of.items() if part in parts}


@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize(("kind", "diagonal"), [("gcn", 0.0), ("gcn", 0.8), ("sage", 0.0)])
@pytest.mark.parametrize(("directed", "weighted"), GRAPHS)
def test_cluster_gcn_step_by_step(kind, diagonal, layers, directed, weighted):
    graph, weight_of = small_graph(directed=directed, weighted=weighted)
    backbone = networks(kind, graph, layers, **({"diagonal": diagonal} if diagonal else {}))
    fast = Fast(graph, backbone, methods.cluster_gcn(parts=PARTS, parts_per_batch=1))
    network, lost = Network(kind, backbone), 0
    for parts in STEPS:
        got = fast.step(parts)
        nodes = got[0].target_ids.tolist()
        assert set(nodes) == nodes_of(fast, parts)
        matrix = Matrix(kind, weight_of, ids=nodes, diagonal=diagonal).whole
        lost += sum((v in nodes) != (u in nodes) for v, u in weight_of)
        rows = graph.x.double()
        for depth in range(layers):
            rows = network.update(depth, matrix @ rows, rows)
        learned(fast, network, rows[nodes], mean_loss(graph, nodes, rows[nodes]), got)
    assert lost > 20


def test_the_enhanced_diagonal_by_hand():
    """Two nodes that read each other have A = 1/2, one alone has 1; then diag(A) again."""
    graph = Graph.from_edges(torch.tensor([[0, 1], [1, 0]]), torch.eye(3))
    block = Adjacency.symmetric(graph, diagonal=1.0).full_block()
    want = torch.tensor([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 2.0]])
    torch.testing.assert_close(weighted_sum(graph.x, block), want)


@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize("kind", ["gcn", "sage"])
@pytest.mark.parametrize(("directed", "weighted"), GRAPHS)
def test_gnnautoscale_step_by_step(kind, layers, directed, weighted):
    """h_v = update(sum over N_v of A_vu h_u), with the history of h_u if u is not in the batch."""
    graph, weight_of = small_graph(directed=directed, weighted=weighted)
    backbone, matrix = networks(kind, graph, layers), Matrix(kind, weight_of).whole
    fast = Fast(graph, backbone, methods.gas(parts=PARTS, parts_per_batch=1, exact_first_hop=False))
    network, read = Network(kind, backbone), 0
    history = [torch.zeros(NUM_NODES, 6).double() for _ in range(layers - 1)]
    for parts in STEPS:
        got = fast.step(parts)
        nodes = got[0].target_ids.tolist()
        assert set(nodes) == nodes_of(fast, parts)
        h = {v: graph.x[v].double() for v in NODES}  # features of the halo do not age
        for depth in range(layers):
            out = {}
            for v in nodes:
                z = sum((matrix[v, u] * h[u] for u in NODES if matrix[v, u] != 0), start=0 * h[v])
                out[v] = network.update(depth, z, h[v])
                read += depth > 0 and any(matrix[v, u] != 0 for u in NODES if u not in nodes)
            if depth < layers - 1:  # push, then pull
                for v in nodes:
                    history[depth][v] = out[v].detach()
                h = {v: out[v] if v in out else history[depth][v].clone() for v in NODES}
        rows = torch.stack([out[v] for v in nodes])
        learned(fast, network, rows, mean_loss(graph, nodes, rows), got)
        for depth, want in enumerate(history):
            torch.testing.assert_close(fast.history(depth).double(), want, **CLOSE)
    assert read > 20


def test_an_epoch_takes_every_part_once_in_a_random_order():
    """300 epochs of four parts: each is first 75 times, within five standard errors."""
    graph, _ = small_graph()
    fast = Fast(graph, networks("gcn", graph, 2), methods.gas(parts=PARTS, parts_per_batch=2))
    rng, first, epochs = torch.Generator().manual_seed(3), torch.zeros(PARTS), 300
    for _ in range(epochs):
        steps = [parts.tolist() for parts in fast.trainer.method.sampler.epoch(rng)]
        assert sorted(part for parts in steps for part in parts) == list(range(PARTS))
        assert [len(parts) for parts in steps] == [2, 2]
        first[steps[0][0]] += 1
    error = (epochs * 0.25 * 0.75) ** 0.5
    assert float((first - epochs / PARTS).abs().max()) < 5 * error
