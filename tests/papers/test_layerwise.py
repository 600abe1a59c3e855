"""FastGCN (Chen, Ma & Xiao, 2018) and LADIES (Zou et al., 2019): s nodes drawn for each layer.

FastGCN, equation 10 and proposition 3: h(v) = sigma(1/s sum_j A(v, u_j) h(u_j) W / q(u_j)), with q(u)
proportional to ||A(:, u)||^2. LADIES, equation 6 and Algorithm 1: the same with the rows of this layer's
targets only, and then each row of the sampled matrix is divided by its sum.
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
    by_edges,
    chi_square_bound,
    learned,
    mean_loss,
    networks,
    small_graph,
)

DRAWS = 5
EVERYONE = list(NODES)


def probabilities(matrix, targets):
    """q over all nodes, from the rows of `targets`; a node's own row is not drawn."""
    square = matrix.edges[targets].square().sum(dim=0)
    return square / square.sum()


def drawn(block, matrix, q):
    """How often each node was drawn: the whole number by which its edges were multiplied."""
    count = {}
    for v, edges in by_edges(block).items():
        for u, weight in edges.items():
            times = weight * DRAWS * float(q[u]) / float(matrix.edges[v, u])
            assert abs(times - round(times)) < 1e-3
            assert round(times) >= 1
            assert count.setdefault(u, round(times)) == round(times)
        for u in matrix.neighbors(v):
            assert u not in count or u in edges  # who is drawn is read by all that read it
    return count


def estimate(matrix, q, count, v, h):
    """The sum over the draws of A(v, u) h(u) / (s q(u)); v's own row is exact."""
    terms = [k * matrix.edges[v, u] / (DRAWS * q[u]) * h[u] for u, k in count.items()]
    return sum(terms, start=matrix.own[v] * h[v])


def row_normalised(matrix, edges, v, h):
    """The drawn edges' shares of their row, times the true row's total: 1 for a mean."""
    if not edges:
        return matrix.own[v] * h[v]
    total, seen = matrix.edges[v].sum(), sum(edges.values())
    terms = [total * weight / seen * h[u] for u, weight in edges.items()]
    return sum(terms, start=matrix.own[v] * h[v])


def forward(graph, network, matrix, batch, *, dependent, normalise, complete):
    h = {v: graph.x[v].double() for v in batch.blocks[0].src_ids.tolist()}
    for depth, block in enumerate(batch.blocks):
        targets, edges = block.dst_ids.tolist(), by_edges(block)
        q = probabilities(matrix, targets if dependent else EVERYONE)
        if normalise:
            shares = {v: {u: float(matrix.edges[v, u] / q[u]) for u in edges[v]} for v in targets}
            for v in targets:  # the number of times that u was drawn is common to all rows
                for u, weight in edges[v].items():
                    shares[v][u] *= common(edges, matrix, q, u) or weight
            z = {v: row_normalised(matrix, edges[v], v, h) for v in targets}
        else:
            count = drawn(block, matrix, q)
            assert sum(count.values()) == DRAWS if complete(depth) else sum(count.values()) <= DRAWS
            z = {v: estimate(matrix, q, count, v, h) for v in targets}
        h = {v: network.update(depth, z[v], h[v]) for v in targets}
    nodes = batch.target_ids.tolist()
    rows = torch.stack([h[v] for v in nodes])
    return rows, mean_loss(graph, nodes, rows)
