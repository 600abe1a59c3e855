"""Samplers whose batch is a subgraph: GraphSAINT, Cluster-GCN, SHADOW."""

from itertools import pairwise

import pytest
import torch

from graphfm import Graph, InputError
from graphfm.backbones import make_backbone
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.samplers.cluster import ClusterSampler
from graphfm.samplers.drawing.induced_edges import InducedEdges
from graphfm.samplers.saint import SaintSampler, _edge_chances
from graphfm.samplers.shadow import RESTART, ShadowSampler
from graphfm.step_plan import StepPlan

KINDS = ["mean", "symmetric"]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def matrix(block):
    dense = torch.zeros(block.num_dst, block.num_src)
    index = (block.edges.row.long(), block.edges.col.long())
    dense.index_put_(index, block.edges.weight, accumulate=True)
    if block.self_weight is not None:
        dense.diagonal()[: block.num_dst] += block.self_weight
    return dense


def part_of(graph, ids):
    """The subgraph of some nodes, as a graph of its own."""
    place = torch.full((graph.num_nodes,), -1)
    place[ids] = torch.arange(ids.numel())
    ends = place[graph.edge_index]
    inside = (ends >= 0).all(dim=0)
    weight = None if graph.edge_weight is None else graph.edge_weight[inside]
    return Graph.from_edges(ends[:, inside], graph.x[ids], edge_weight=weight)


def test_induced_edges_are_those_with_both_ends_inside(make_graph):
    graph = make_graph(weighted=True)
    induced, ids = InducedEdges(graph), torch.tensor([5, 3, 40, 17, 8, 59, 22])
    for _ in range(2):  # nothing is left of the first call
        row, col, position = induced(ids)
        source, target = graph.edge_index[:, position]
        assert torch.equal(ids[row], target)
        assert torch.equal(ids[col], source)
        inside = torch.isin(graph.edge_index, ids).all(dim=0)
        assert sorted(position.tolist()) == inside.nonzero().flatten().tolist()


# ---- GraphSAINT


@pytest.mark.parametrize("subgraph", ["node", "edge", "walk"])
def test_normalisation_is_that_of_pyg(make_graph, subgraph):
    """PyG's GraphSAINTSampler._compute_norm, written out, on the same subgraphs.

    Its adjacency has targets as rows once an edge index is stored the way messages are aggregated,
    and divides by all nodes where we divide by those that train.
    """
    graph = make_graph()
    sampler = SaintSampler(subgraph=subgraph, budget=15, coverage=30)
    sampler.prepare(Adjacency.mean(graph), StepPlan(num_layers=2))
    rng, n = generator(sampler.seed), graph.num_nodes
    node_count, edge_count = torch.zeros(n), torch.zeros(graph.num_edges)
    num_samples = total_sampled_nodes = 0
    while total_sampled_nodes < n * 30:
        node_idx = sampler._draw(rng)
        node_count[node_idx] += 1
        edge_count[torch.isin(graph.edge_index, node_idx).all(dim=0)] += 1
        total_sampled_nodes += node_idx.numel()
        num_samples += 1
    edge_norm = node_count[graph.edge_index[1]] / edge_count
    node_norm = num_samples / node_count / n
    seen = edge_count > 0
    torch.testing.assert_close(sampler.edge_factor[seen], edge_norm[seen])
    visited = node_count > 0
    scale = n / int(graph.train_mask.sum())
    torch.testing.assert_close(sampler.loss_weight[visited], node_norm[visited] * scale)
    assert sampler.steps == round(n * num_samples / total_sampled_nodes)
    batch = sampler.sample(node_idx, rng)
    edges = batch.blocks[0].edges
    _, _, position = InducedEdges(graph)(node_idx)
    weights = Adjacency.mean(graph).full_block().edges.weight
    torch.testing.assert_close(edges.weight, (weights * sampler.edge_factor)[position])


def test_walks_go_along_edges(make_graph):
    graph = make_graph(num_nodes=300, num_edges=900)
    sampler = SaintSampler(subgraph="walk", budget=20, walk_length=4, coverage=1)
    sampler.prepare(Adjacency.mean(graph), StepPlan(num_layers=1))
    steps = sampler._walks(generator()).view(5, 20)
    known = {tuple(edge) for edge in graph.edge_index.T.tolist()}
    for here, there in pairwise(steps):
        for reader, read in zip(here.tolist(), there.tolist(), strict=True):
            assert (read, reader) in known or (read == reader and graph.degree[reader] == 0)


def test_edges_are_drawn_by_the_degrees_of_their_ends():
    """A star of four leaves and a pair: 1/deg u + 1/deg v is 1.25 for the star's edges, 2 else."""
    pairs = torch.tensor([[0, 1], [0, 2], [0, 3], [0, 4], [5, 6]]).T
    graph = Graph.from_edges(pairs, torch.randn(7, 2), undirected=True)
    sampler = SaintSampler(subgraph="edge", budget=1, coverage=1)
    sampler.prepare(Adjacency.mean(graph), StepPlan(num_layers=1))
    rng, rounds = generator(), 3000
    pair = sum(sampler._draw(rng).tolist() == [5, 6] for _ in range(rounds))
    want = 2 * 2 / (2 * 2 + 8 * 1.25)
    assert abs(pair / rounds - want) < 5 * (want * (1 - want) / rounds) ** 0.5


def test_one_way_edges_are_drawn_by_both_of_their_ends():
    """0 -> 1, 0 -> 2, 1 -> 2: in-degrees 0, 1, 2, out-degrees 2, 1, 0."""
    edges = torch.tensor([[0, 0, 1], [1, 2, 2]])
    graph = Graph.from_edges(edges, torch.randn(3, 2))
    chances = _edge_chances(Adjacency.mean(graph)).double()
    want = torch.tensor([1 + 1 / 2, 1 / 2 + 1 / 2, 1 / 2 + 1]).double()
    torch.testing.assert_close(chances / chances.sum(), want / want.sum())


@pytest.mark.parametrize("subgraph", ["node", "edge", "walk"])
def test_nodes_that_nobody_reads_are_drawn_too(subgraph):
    """Losses add up to an unbiased mean though half of the nodes are alone, or are only readers."""
    ids = torch.arange(40)
    for edges in (
        torch.randint(20, (2, 60), generator=generator()),  # 20 to 39 are alone
        torch.stack([ids[:20], ids[20:]]),  # 20 to 39 read, and are not read
        torch.empty(2, 0, dtype=torch.long),
    ):
        graph = Graph.from_edges(
            edges, torch.randn(40, 2), ids % 2, train_mask=ids >= 20, val_mask=ids < 20
        )
        sampler, rng = SaintSampler(subgraph=subgraph, budget=10, coverage=300), generator()
        sampler.prepare(Adjacency.mean(graph), StepPlan(num_layers=1))
        totals = []
        for _ in range(300):
            batch = sampler.sample(sampler._draw(rng), rng)
            totals.append(batch.loss_weight[graph.train_mask[batch.target_ids]].sum())
        totals = torch.stack(totals).double()
        error = totals.std() / len(totals) ** 0.5
        assert abs(totals.mean() - 1) <= 6 * error + 1e-6, edges


@pytest.mark.parametrize(
    "options", [{"subgraph": "star"}, {"budget": 0}, {"walk_length": 0}, {"coverage": 0}]
)
def test_bad_settings_of_graphsaint_are_refused(options):
    with pytest.raises(InputError, match=rf"{next(iter(options))} is .*; expected"):
        SaintSampler(**{"budget": 5, **options})


# ---- Cluster-GCN


@pytest.mark.parametrize("kind", KINDS)
def test_a_cluster_is_a_graph_of_its_own(make_graph, kind):
    graph = make_graph(weighted=True)
    sampler = ClusterSampler(parts=4, parts_per_batch=2, how="random", halo=False)
    sampler.prepare(getattr(Adjacency, kind)(graph), StepPlan(num_layers=2))
    batch = sampler.sample(torch.tensor([3, 1]), generator())
    alone = part_of(graph, batch.target_ids)
    want = getattr(Adjacency, kind)(alone).full_block()
    for block in batch.blocks:
        torch.testing.assert_close(matrix(block), matrix(want))
        assert torch.equal(block.degree, graph.degree[batch.target_ids].float())
    assert 0 < alone.num_edges < graph.num_edges


def test_the_diagonal_can_be_enhanced(make_graph):
    """A + l diag(A), for training and inference alike."""
    graph = make_graph(weighted=True)
    assert bool((graph.loop_weight > 0).any())
    plain, enhanced = (
        matrix(make_backbone("gcn", 7, 4, diagonal=d).adjacency(graph).full_block())
        for d in (0.0, 2.0)
    )
    torch.testing.assert_close(enhanced, plain + 2.0 * plain.diag().diag())
    with pytest.raises(InputError, match="diagonal is -1.0; expected 0 or more"):
        make_backbone("gcn", 7, 4, diagonal=-1.0)


# ---- SHADOW


def shadow(graph, kind="mean", num_layers=3, **options):
    sampler = ShadowSampler(batch_size=8, **options)
    sampler.prepare(getattr(Adjacency, kind)(graph), StepPlan(num_layers=num_layers))
    return sampler


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {"depth": 2, "fanout": (3,)},
        {"depth": 2, "fanout": (4, 1)},
        {"subgraph": "pagerank", "budget": 7},
    ],
)
def test_subgraphs_are_induced_and_do_not_touch(make_graph, kind, options):
    """Hubs are looked up another way than others; duplicate edges and loops are there."""
    graph = make_graph(num_nodes=60, num_edges=900, weighted=True)
    assert int(graph.degree.max()) > 20  # more than a subgraph has nodes
    seeds = torch.tensor([0, 3, 57, 12])
    batch = shadow(graph, kind, **options).sample(seeds, generator())
    first, _, last = batch.blocks
    assert torch.equal(first.src_ids[:4], seeds)
    assert torch.equal(last.dst_ids, seeds)
    found = matrix(first)
    ends = (found != 0).nonzero()
    group = torch.full((first.num_src,), -1)
    group[:4] = torch.arange(4)
    for _ in range(10):  # who reads whom is in one subgraph
        for row, col in ends.tolist():
            if group[row] >= 0 and group[col] < 0:
                group[col] = group[row]
            if group[col] >= 0 and group[row] < 0:
                group[row] = group[col]
    assert bool((group >= 0).all())
    for root in range(4):
        own = (group == root).nonzero().flatten()
        ids = first.src_ids[own]
        assert ids.unique().numel() == ids.numel()
        want = matrix(getattr(Adjacency, kind)(part_of(graph, ids)).full_block())
        torch.testing.assert_close(found[own][:, own], want)
    torch.testing.assert_close(matrix(last), found[:4])
    assert torch.equal(last.degree, graph.degree[seeds].float())


def test_hops_and_neighbours_are_bounded(make_graph):
    graph = make_graph(num_nodes=300, num_edges=3000)
    sampler = shadow(graph, depth=2, fanout=(3, 2))
    batch = sampler.sample(torch.arange(8), generator())
    assert batch.input_ids.numel() <= 8 * (1 + 3 + 6)
    one = shadow(graph, depth=1, fanout=(3,)).sample(torch.tensor([0]), generator())
    near = set(graph.indices[graph.indptr[0] : graph.indptr[1]].tolist()) | {0}
    assert set(one.input_ids.tolist()) <= near


def test_walks_find_who_has_most_pagerank():
    """A path read one way: from node 0 a walk comes to node k with chance 0.85^k."""
    ids = torch.arange(12)
    graph = Graph.from_edges(torch.stack([ids[1:], ids[:-1]]), torch.randn(12, 2))
    sampler = shadow(graph, subgraph="pagerank", budget=4, walks=200)
    batch = sampler.sample(torch.tensor([0, 5]), generator())
    assert sorted(batch.input_ids.tolist()) == [0, 1, 2, 3, 5, 6, 7, 8]
    assert pytest.approx(0.15) == RESTART


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subgraph": "star"}, "subgraph is star; expected khop or pagerank"),
        ({"depth": 0}, "depth is 0; expected 1 or more"),
        ({"fanout": ()}, "fanout is empty and depth 2"),
        ({"fanout": (1, 2, 3)}, "fanout is 1,2,3 and depth 2"),
        ({"budget": 0}, "budget is 0; expected 1 or more"),
    ],
)
def test_bad_settings_of_shadow_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        ShadowSampler(batch_size=8, **options)
