import pytest
import torch

from graphfm.data.matrix.adjacency import Adjacency
from graphfm.kernels import weighted_sum


def dense(block, num_nodes):
    """A block as a matrix over global node ids."""
    matrix = torch.zeros(num_nodes, num_nodes)
    rows, cols = block.dst_ids[block.edges.row], block.src_ids[block.edges.col]
    matrix.index_put_((rows, cols), block.edges.weight, accumulate=True)
    if block.self_weight is not None:
        matrix[block.dst_ids, block.dst_ids] += block.self_weight
    return matrix


def counts(graph):
    """A[v, u]: the total weight of edges from u to v."""
    matrix = torch.zeros(graph.num_nodes, graph.num_nodes)
    source, target = graph.edge_index
    weight = graph.edge_weight if graph.edge_weight is not None else torch.ones(graph.num_edges)
    return matrix.index_put_((target, source), weight, accumulate=True)


@pytest.fixture(params=[False, True], ids=["plain", "weighted"])
def graph(request, make_graph):
    return make_graph(weighted=request.param)


def test_mean_rows_sum_to_one_or_are_empty(graph):
    matrix = counts(graph)
    total = matrix.sum(1, keepdim=True)
    want = torch.where(total > 0, matrix / total, matrix)
    torch.testing.assert_close(dense(Adjacency.mean(graph).full_block(), graph.num_nodes), want)
    assert int((total == 0).sum()) >= 3


def test_symmetric_is_kipf_and_wellings(graph):
    matrix = counts(graph)
    loops = matrix.diagonal()
    matrix.diagonal().copy_(torch.where(loops > 0, loops, 1.0))
    scale = matrix.sum(1).rsqrt()
    want = scale[:, None] * matrix * scale
    torch.testing.assert_close(
        dense(Adjacency.symmetric(graph).full_block(), graph.num_nodes), want
    )


@pytest.mark.parametrize("kind", [Adjacency.mean, Adjacency.symmetric])
def test_a_block_holds_exactly_the_rows_of_its_targets(graph, kind):
    adjacency, ids = kind(graph), torch.tensor([41, 3, 17, 59, 0])
    block = adjacency.block(ids)
    whole = dense(adjacency.full_block(), graph.num_nodes)
    want = torch.zeros_like(whole)
    want[ids] = whole[ids]
    torch.testing.assert_close(dense(block, graph.num_nodes), want)
    assert torch.equal(block.dst_ids, ids)
    assert block.src_ids.unique().numel() == block.num_src
    assert torch.equal(block.degree, graph.degree[ids].float())


def test_a_block_of_isolated_nodes_has_no_halo(graph):
    ids = torch.tensor([graph.num_nodes - 1, graph.num_nodes - 2])
    block = Adjacency.mean(graph).block(ids)
    assert block.edges.num_edges == 0
    assert torch.equal(block.src_ids, ids)


def test_a_sum_has_the_weights_of_the_graph(make_graph):
    graph = make_graph(weighted=True)
    edges = Adjacency.sum(graph).full_block().edges
    torch.testing.assert_close(edges.weight, graph.edge_weight)
    plain = make_graph()
    assert bool((Adjacency.sum(plain).full_block().edges.weight == 1).all())


@pytest.mark.parametrize("kind", [Adjacency.mean, Adjacency.symmetric, Adjacency.mean_with_self])
def test_rows_of_a_product_are_those_of_a_gathered_block_to_the_last_bit(graph, kind):
    adjacency, n = kind(graph), graph.num_nodes
    for start, end in [(0, n), (0, 7), (7, 8), (n - 20, n)]:
        block = adjacency.block(torch.arange(start, end))
        want = weighted_sum(graph.x[block.src_ids], block)
        assert torch.equal(adjacency.product(start, end, graph.x), want)
        half = graph.x.half()
        rounded = adjacency.product(start, end, half.float())
        torch.testing.assert_close(adjacency.product(start, end, half), rounded)
