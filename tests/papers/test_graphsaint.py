"""GraphSAINT (Zeng et al., 2020): subgraphs, with aggregates over alpha and losses over lambda.

alpha_vu = C_vu / C_v and lambda_v = C_v / N: of N subgraphs, C_v hold node v and C_vu edge (u, v).
On graphs this small the probabilities behind the counts are known: a subgraph is the union of
`budget` independent draws of a node, an edge or a walk.
"""

import itertools

import pytest
import torch
from torch.nn.functional import cross_entropy

from graphfm import methods
from tests.papers.slow import (
    ALONE,
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

BUDGET = {"node": 5, "edge": 3, "walk": 2}
WALK = 2


def draws(subgraph, matrix, weight_of):
    """[(probability, the nodes that it touches)] of one draw."""
    reads = {v: [u for w, u in weight_of if w == v] for v in NODES}
    read_by = {u: [v for v, w in weight_of if w == u] for u in NODES}
    if subgraph == "node":  # by ||A(:, u)||^2, and who is read by nobody as the least of the others
        square = matrix.edges.square().sum(dim=0)
        square = torch.where(square > 0, square, square[square > 0].min())
        return [(float(s / square.sum()), {u}) for u, s in enumerate(square)]
    if subgraph == "edge":  # by 1 / deg u + 1 / deg v; who has no edge as the least of them
        chance = [(1 / len(reads[v]) + 1 / len(read_by[u]), {u, v}) for v, u in weight_of]
        least = min(p for p, _ in chance)
        chance += [(least, {v}) for v in NODES if not reads[v] and not read_by[v]]
        total = sum(p for p, _ in chance)
        return [(p / total, nodes) for p, nodes in chance]
    walks = [(1 / NUM_NODES, (v,)) for v in NODES]
    for _ in range(WALK):  # who reads nobody stays
        walks = [
            (p / max(len(reads[walk[-1]]), 1), (*walk, there))
            for p, walk in walks
            for there in reads[walk[-1]] or [walk[-1]]
        ]
    return [(p, set(walk)) for p, walk in walks]


def presence(subgraph, matrix, weight_of):
    """The probabilities that a subgraph holds v, and that it holds both u and v."""
    chance = draws(subgraph, matrix, weight_of)
    assert sum(p for p, _ in chance) == pytest.approx(1)

    def missed(*nodes):
        return sum(p for p, touched in chance if not touched & set(nodes)) ** BUDGET[subgraph]

    node = torch.tensor([1 - missed(v) for v in NODES]).double()
    pair = torch.zeros(NUM_NODES, NUM_NODES).double()
    for v, u in itertools.product(NODES, NODES):
        pair[v, u] = 1 - missed(v) - missed(u) + missed(v, u) if u != v else node[v]
    return node, pair


def both(subgraph, kind, layers, *, directed, weighted, coverage=30):
    graph, weight_of = small_graph(directed=directed, weighted=weighted)
    backbone, matrix = networks(kind, graph, layers), Matrix(kind, weight_of)
    options = {"budget": BUDGET[subgraph], "walk_length": WALK, "coverage": coverage}
    method = methods.graphsaint(subgraph=subgraph, **options)
    return Fast(graph, backbone, method), Network(kind, backbone), matrix, weight_of


def counts(sampler, weight_of, coverage):
    """N, C_v and C_vu, over the subgraphs that the sampler draws beforehand."""
    rng = torch.Generator().manual_seed(sampler.seed)
    node, edge, number, size = dict.fromkeys(NODES, 0), dict.fromkeys(weight_of, 0), 0, 0
    while size < coverage * NUM_NODES:
        held = set(sampler._draw(rng).tolist())
        for v in held:
            node[v] += 1
        for v, u in weight_of:
            edge[v, u] += v in held and u in held
        number, size = number + 1, size + len(held)
    return number, node, edge


@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize("kind", ["gcn", "sage"])
@pytest.mark.parametrize(("directed", "weighted"), GRAPHS)
@pytest.mark.parametrize("subgraph", BUDGET)
def test_step_by_step(subgraph, kind, layers, directed, weighted):
    options = {"directed": directed, "weighted": weighted}
    fast, network, matrix, weight_of = both(subgraph, kind, layers, **options)
    graph, sampler = fast.trainer.graph, fast.trainer.method.sampler
    number, node, edge = counts(sampler, weight_of, 30)
    for seeds in (sampler._draw(fast.trainer.rng).tolist() for _ in range(3)):
        got = fast.step(seeds)
        h = {v: graph.x[v].double() for v in seeds}
        for depth in range(layers):
            z = {v: matrix.own[v] * h[v] for v in seeds}
            for v, u in itertools.product(seeds, seeds):
                if (v, u) in weight_of:  # A_vu / alpha_vu; what was never counted counts once
                    alpha = max(edge[v, u], 1) / max(node[v], 1)
                    z[v] = z[v] + matrix.edges[v, u] / alpha * h[u]
            h = {v: network.update(depth, z[v], h[v]) for v in seeds}
        assert got[0].target_ids.tolist() == seeds
        share = [number / max(node[v], 1) / int(graph.train_mask.sum()) for v in seeds]  # 1/lambda
        losses = [
            weight * cross_entropy(h[v], graph.y[v])
            for v, weight in zip(seeds, share, strict=True)
            if graph.train_mask[v]
        ]
        learned(fast, network, torch.stack([h[v] for v in seeds]), sum(losses), got)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("subgraph", BUDGET)
def test_counts_are_those_of_the_papers_probabilities(subgraph, directed):
    """About 5,000 subgraphs; alpha and lambda within five standard errors."""
    coverage = {"node": 1200, "edge": 1500, "walk": 1200}[subgraph]
    options = {"directed": directed, "weighted": True, "coverage": coverage}
    fast, _, matrix, weight_of = both(subgraph, "gcn", 2, **options)
    graph, sampler = fast.trainer.graph, fast.trainer.method.sampler
    node, pair = presence(subgraph, matrix, weight_of)
    assert float(node[ALONE]) > 0
    number = coverage * NUM_NODES / float(node.sum())
    assert number > 2500
    found = 1 / (sampler.loss_weight.double() * int(graph.train_mask.sum()))  # lambda
    assert within(found, node, (node * (1 - node) / number).sqrt())
    source, target = graph.edge_index
    alpha = pair[target, source] / node[target]
    error = (alpha * (1 - alpha) / (number * node[target])).sqrt()
    assert within(1 / sampler.edge_factor.double(), alpha, error)
