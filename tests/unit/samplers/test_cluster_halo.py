"""The halo of a cluster's batch: who is in it, what it reads, and its shares."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfm.data.matrix.adjacency import Adjacency
from graphfm.data.matrix.out_neighbors import OutNeighbors
from graphfm.kernels import weighted_sum
from tests.unit.samplers.cluster_batches import batches, graph_of, prepared

ADJACENCIES = {"mean": Adjacency.mean, "symmetric": Adjacency.symmetric}


def slow_matrix(graph, name):
    """A in float64, edge by edge: A[v, u] for each edge (u, v)."""
    n, edges = graph.num_nodes, graph.edge_index.T.tolist()
    weight = [1.0] * len(edges) if graph.edge_weight is None else graph.edge_weight.tolist()
    dense = torch.zeros(n, n, dtype=torch.float64)
    for (u, v), w in zip(edges, weight, strict=True):
        dense[v, u] += w
    if name == "symmetric":
        for v in range(n):
            if dense[v, v] == 0:
                dense[v, v] = 1.0
        scale = dense.sum(1).rsqrt()
        return scale[:, None] * dense * scale
    degree = dense.sum(1, keepdim=True)
    return dense / torch.where(degree > 0, degree, 1.0)


def reads_of(graph, nodes):
    """In-neighbours of some nodes that are not among them."""
    return {u for u, v in graph.edge_index.T.tolist() if v in nodes and u not in nodes}


def check_block(graph, block, matrix):
    """Halo, edges both ways and shares, against loops over the dense matrix."""
    nodes, halo = block.dst_ids.tolist(), block.halo_ids.tolist()
    assert len(set(nodes)) == len(nodes)
    assert len(set(halo)) == len(halo)
    assert set(halo) == reads_of(graph, set(nodes))
    torch.testing.assert_close(block.degree, graph.degree[block.dst_ids].float())
    identity = torch.eye(block.num_src)
    want = matrix[block.dst_ids][:, block.src_ids].float()
    torch.testing.assert_close(weighted_sum(identity, block), want)
    if not halo:
        assert block.from_halo is None
        return
    view = block.from_halo
    assert view.dst_ids.tolist() == halo
    assert view.src_ids.tolist() == halo + nodes
    torch.testing.assert_close(view.degree, graph.degree[block.halo_ids].float())
    want = matrix[block.halo_ids][:, view.src_ids]
    want[:, : len(halo)] = 0  # the halo reads the batch here, and not itself
    torch.testing.assert_close(weighted_sum(identity, view), want.float())
    share = want.sum(1) / matrix[block.halo_ids].sum(1)
    known = matrix[block.halo_ids].sum(1) > 0  # of a row of nothing, nobody asks for the share
    torch.testing.assert_close(view.share[known], share[known].float())


@pytest.mark.parametrize("name", ADJACENCIES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("undirected", [False, True])
def test_the_halo_is_what_the_batch_reads(make_graph, name, weighted, undirected):
    graph = make_graph(weighted=weighted, undirected=undirected)
    matrix = slow_matrix(graph, name)
    sampler = prepared(graph, 5, parts_per_batch=2, adjacency=ADJACENCIES[name])
    sizes = []
    for batch in batches(sampler):
        check_block(graph, batch.blocks[0], matrix)
        sizes.append(batch.blocks[0].halo_ids.numel())
    assert max(sizes) > 5


@st.composite
def small_graphs(draw):
    n = draw(st.integers(2, 9))
    node = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=24))
    weight = None
    if draw(st.booleans()):
        weight = torch.tensor([draw(st.floats(0.25, 4.0, width=32)) for _ in pairs])
    if draw(st.booleans()):  # every edge in both directions, with one weight
        pairs = [*pairs, *((v, u) for u, v in pairs)]
        weight = None if weight is None else torch.cat([weight, weight])
    return graph_of(pairs, n, weight)


@settings(max_examples=60, deadline=None)
@given(graph=small_graphs(), data=st.data(), name=st.sampled_from(sorted(ADJACENCIES)))
def test_any_graph_in_any_number_of_parts(graph, data, name):
    """Loops, duplicates, one-way edges, nodes without any."""
    parts = data.draw(st.integers(1, graph.num_nodes))
    each = data.draw(st.integers(1, parts))
    options = {"how": "random", "adjacency": ADJACENCIES[name], "parts_per_batch": each}
    seen = batches(prepared(graph, parts, **options))
    assert sum(batch.target_ids.numel() for batch in seen) == graph.num_nodes
    for batch in seen:
        check_block(graph, batch.blocks[0], slow_matrix(graph, name))


def test_one_way_edges():
    """1 reads 0 and 2 reads 1: node 0 reads none, so it has no halo though 1 reads it."""
    graph = graph_of([(0, 1), (1, 2)], 3)
    sampler = prepared(graph, 3, adjacency=Adjacency.mean)
    blocks = {int(b.target_ids): b.blocks[0] for b in batches(sampler)}
    assert {v: block.halo_ids.tolist() for v, block in blocks.items()} == {0: [], 1: [0], 2: [1]}
    assert blocks[0].from_halo is None
    for v in (1, 2):  # nobody in the halo reads the batch
        view = blocks[v].from_halo
        assert view.edges.num_edges == 0
        assert weighted_sum(torch.ones(2, 1), view).tolist() == [[0.0]]


def test_two_nodes():
    graph = graph_of([(0, 1), (1, 0)], 2)
    for batch in batches(prepared(graph, 2)):
        block = batch.blocks[0]
        assert block.halo_ids.tolist() == [1 - int(batch.target_ids)]
        assert block.from_halo.share.tolist() == [pytest.approx(0.5)]  # the other half is its own


@settings(max_examples=60, deadline=None)
@given(graph=small_graphs(), data=st.data())
def test_out_edges(graph, data):
    """Each edge that leaves a node, as often as the node is asked for."""
    ids = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=6))
    edges = list(enumerate(graph.edge_index.T.tolist()))
    want = [(i, v, p) for i, node in enumerate(ids) for p, (u, v) in edges if u == node]
    readers = OutNeighbors(graph)
    source, reader, position = readers.of(torch.tensor(ids, dtype=torch.int64))
    got = list(zip(source.tolist(), reader.tolist(), position.tolist(), strict=True))
    if readers.mirrored:  # positions are then those of edges back, of the same weight
        weight = [1.0] * len(edges) if graph.edge_weight is None else graph.edge_weight.tolist()
        got, want = ([(i, v, weight[p]) for i, v, p in rows] for rows in (got, want))
    assert sorted(got) == sorted(want)
    assert source.tolist() == sorted(source.tolist())


@settings(max_examples=60, deadline=None)
@given(graph=small_graphs(), name=st.sampled_from(sorted(ADJACENCIES)))
def test_row_sums(graph, name):
    sums = ADJACENCIES[name](graph).row_sums
    torch.testing.assert_close(sums, slow_matrix(graph, name).sum(1).float())
