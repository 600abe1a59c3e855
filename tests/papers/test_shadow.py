"""SHADOW (Zeng et al., 2021): a network of any depth runs on a small subgraph around each target.

The subgraph is induced by the nodes that a target reaches in k hops, or by those of largest
personalised PageRank; it is normalised as a graph of its own, and the output is the target's row.
"""

import pytest
import torch

from graphfm import methods
from graphfm.samplers.shadow import ShadowSampler
from tests.papers.slow import (
    GRAPHS,
    HUB,
    NODES,
    NUM_NODES,
    Fast,
    Matrix,
    Network,
    learned,
    mean_loss,
    networks,
    small_graph,
    within,
)

STEPS = [[1, 5, 2], [0, 13, 3], [6, 7, 8, 9]]
RESTART = 0.15


def reached(weight_of, root, hops):
    """The nodes within `hops` steps against the edges: all that the root could read."""
    found = {root}
    for _ in range(hops):
        found |= {u for v, u in weight_of if v in found}
    return found


def on_its_own(graph, network, weight_of, kind, root, nodes):
    """The root's output of the whole network on the subgraph of `nodes`."""
    rows, matrix = graph.x.double(), Matrix(kind, weight_of, ids=sorted(nodes)).whole
    for depth in range(network.num_layers):
        rows = network.update(depth, matrix @ rows, rows)
    return rows[root]


@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize("kind", ["gcn", "sage"])
@pytest.mark.parametrize(("directed", "weighted"), GRAPHS)
def test_all_nodes_within_k_hops(kind, layers, directed, weighted, hops):
    graph, weight_of = small_graph(directed=directed, weighted=weighted)
    backbone = networks(kind, graph, layers)
    network = Network(kind, backbone)
    options = {"depth": hops, "fanout": (NUM_NODES,), "batch_size": 4}
    fast = Fast(graph, backbone, methods.shadow(**options))
    for seeds in STEPS:
        got = fast.step(seeds)
        near = [reached(weight_of, v, hops) for v in seeds]
        assert got[0].input_ids.numel() == sum(map(len, near))
        rows = torch.stack(
            [
                on_its_own(graph, network, weight_of, kind, v, nodes)
                for v, nodes in zip(seeds, near, strict=True)
            ]
        )
        learned(fast, network, rows, mean_loss(graph, seeds, rows), got)


@pytest.mark.parametrize(
    "options",
    [{"depth": 2, "fanout": (2,)}, {"subgraph": "pagerank", "budget": 5}],
    ids=["some of k hops", "pagerank"],
)
@pytest.mark.parametrize("kind", ["gcn", "sage"])
@pytest.mark.parametrize(("directed", "weighted"), GRAPHS)
def test_a_drawn_subgraph(kind, directed, weighted, options):
    """Whichever nodes were drawn. One target at a time, so the batch's nodes are the subgraph's."""
    graph, weight_of = small_graph(directed=directed, weighted=weighted)
    backbone = networks(kind, graph, 3)
    network = Network(kind, backbone)
    fast, sizes = Fast(graph, backbone, methods.shadow(batch_size=1, **options)), set()
    for root in (1, 0, 13, 7, 1):
        got = fast.step([root])
        nodes = set(got[0].input_ids.tolist())
        assert nodes <= reached(weight_of, root, 2 if "depth" in options else NUM_NODES)
        assert len(nodes) <= (1 + 2 + 4 if "depth" in options else 5)
        rows = on_its_own(graph, network, weight_of, kind, root, nodes)[None]
        learned(fast, network, rows, mean_loss(graph, [root], rows), got)
        sizes.add(len(nodes))
    assert len(sizes) > 1


def pagerank(weight_of, root):
    """pi = 0.15 sum_k 0.85^k M^k e_root; M goes to a random neighbour, whatever the weights are."""
    reads = {v: [u for w, u in weight_of if w == v] for v in NODES}
    move = torch.zeros(NUM_NODES, NUM_NODES).double()
    for v in NODES:
        for u in reads[v]:
            move[u, v] = 1 / len(reads[v])
    start = torch.eye(NUM_NODES).double()[root]
    whole = torch.eye(NUM_NODES).double() - (1 - RESTART) * move
    return RESTART * torch.linalg.solve(whole, start)


@pytest.mark.parametrize(("directed", "weighted"), GRAPHS)
@pytest.mark.parametrize("budget", [3, 5, 8])
def test_many_walks_find_the_largest_pageranks(directed, weighted, budget):
    """20,000 walks order all nodes whose PageRanks differ by more than 0.01."""
    graph, weight_of = small_graph(directed=directed, weighted=weighted)
    fast = Fast(graph, networks("gcn", graph, 2), methods.shadow(batch_size=4))
    sampler = ShadowSampler(subgraph="pagerank", budget=budget, walks=20000, batch_size=4)
    sampler.prepare(fast.trainer.infer.adjacency, fast.trainer.plan)
    rng, checked = torch.Generator().manual_seed(5), 0
    for root in (1, 2, 6, 13):
        nodes = sampler.sample(torch.tensor([root]), rng).input_ids
        pi = pagerank(weight_of, root)
        assert root in nodes.tolist()
        if root == 13:  # alone
            assert nodes.tolist() == [13]
            continue
        least = pi.sort(descending=True).values[budget - 1]
        sure, never = pi > least + 0.01, pi < least - 0.01
        assert set(sure.nonzero().flatten().tolist()) <= set(nodes.tolist())
        assert not set(never.nonzero().flatten().tolist()) & set(nodes.tolist())
        checked += int(sure.sum()) + int(never.sum())
    assert checked > 10


def test_neighbours_of_the_hub_are_picked_alike():
    """2,000 subgraphs of one hop; each neighbour is in fanout / degree of them, five errors."""
    graph, weight_of = small_graph()
    options = {"depth": 1, "fanout": (3,), "batch_size": 1}
    fast = Fast(graph, networks("gcn", graph, 2), methods.shadow(**options))
    rng, rounds = torch.Generator().manual_seed(6), 2000
    near, count = sorted(reached(weight_of, HUB, 1) - {HUB}), torch.zeros(NUM_NODES).double()
    sampler = fast.trainer.method.sampler
    for _ in range(rounds):
        count[sampler.sample(torch.tensor([HUB]), rng).input_ids] += 1
    want = torch.tensor(3 / len(near)).double()
    assert within(count[near] / rounds, want, (want * (1 - want) / rounds).sqrt())
    assert int(count[HUB]) == rounds
    assert int(count.sum()) == 4 * rounds
