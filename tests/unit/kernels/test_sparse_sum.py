from dataclasses import replace

import pytest
import torch

from graphfm.batch import RUN, Block, Edges, offsets
from graphfm.kernels import segment_max, segment_min, sum_of_rest, table_sum, weighted_sum
from graphfm.kernels.sparse_sum import _sum_runs


@pytest.fixture
def block() -> Block:
    """Five targets of nine sources; the fourth has no edge here, the third a duplicate one."""
    lists = [[5, 1], [0, 2, 8], [4, 4], [], [7]]
    indptr = offsets(torch.tensor([len(row) for row in lists])).int()
    col = torch.tensor([source for row in lists for source in row]).int()
    edges = Edges(indptr, col, torch.randn(col.numel()).double(), 9)
    return Block(torch.arange(9), edges, torch.full((5,), 6.0), torch.randn(5).double())


def dense(block: Block) -> torch.Tensor:
    matrix = torch.zeros(block.num_dst, block.num_src, dtype=torch.float64)
    for row, col, weight in zip(block.edges.row, block.edges.col, block.edges.weight, strict=True):
        matrix[row, col] += weight
    matrix.diagonal()[: block.num_dst] += block.self_weight
    return matrix


def rows(block: Block) -> torch.Tensor:
    return torch.randn(block.num_src, 3, dtype=torch.float64, requires_grad=True)


def test_weighted_sum_is_a_matrix_product(block):
    h = rows(block)
    torch.testing.assert_close(weighted_sum(h, block), dense(block) @ h)


def test_weighted_sum_has_the_gradient_of_a_matrix_product(block):
    torch.autograd.gradcheck(lambda h: weighted_sum(h, block), rows(block))


def test_table_sum_reads_a_table_and_gives_gradients_to_the_targets(block):
    """The targets' own rows come from the batch, all others from the table."""
    table = torch.randn(9, 3, dtype=torch.float64)
    h = table[:5].clone().requires_grad_()
    out = table_sum(h, replace(block, by_id=block.edges), table)
    torch.testing.assert_close(out, dense(block) @ table)
    change = torch.randn(5, 3, dtype=torch.float64)
    out.backward(change)
    torch.testing.assert_close(h.grad, dense(block)[:, :5].t() @ change)


def test_sum_of_rest_takes_the_rows_behind_the_targets(block):
    edges = Edges(block.edges.indptr, 5 + block.edges.col % 4, block.edges.weight, 9)
    halo = Block(block.src_ids, edges, block.degree, torch.zeros(5).double())
    h = rows(block).detach()
    torch.testing.assert_close(sum_of_rest(h[5:], halo), dense(halo) @ h)


@pytest.mark.parametrize(("reduce", "slow"), [(segment_max, "amax"), (segment_min, "amin")])
def test_extremes_are_those_of_each_neighbourhood(block, reduce, slow):
    h, out = rows(block), []
    for row in range(block.num_dst):
        col = block.edges.col[block.edges.row == row]
        out.append(getattr(h[col], slow)(0) if col.numel() else torch.zeros(3))
    torch.testing.assert_close(reduce(h, block), torch.stack(out).double())


@pytest.mark.parametrize("reduce", [segment_max, segment_min])
def test_extremes_have_a_gradient(block, reduce):
    lone = Edges(block.edges.indptr[:3], block.edges.col[:5], block.edges.weight[:5], 9)
    distinct = Block(block.src_ids, lone, block.degree[:2])  # ties have no gradient to check
    torch.autograd.gradcheck(lambda h: reduce(h, distinct), rows(block))


def test_the_transpose_is_the_transpose(block):
    plain = Block(block.src_ids, block.edges, block.degree, torch.zeros(5).double())
    back = block.edges.transposed
    matrix = torch.zeros(9, 5, dtype=torch.float64)
    matrix.index_put_((back.row.long(), back.col.long()), back.weight, accumulate=True)
    torch.testing.assert_close(matrix, dense(plain).T)


def test_sums_in_runs_are_the_same_sums(block):
    degrees = torch.tensor([0, 3, 2 * RUN + 5, RUN])
    col = torch.randint(9, (int(degrees.sum()),)).int()
    edges = Edges(offsets(degrees).int(), col, torch.randn(col.numel()).double(), 9)
    wide = Block(block.src_ids, edges, degrees.float(), torch.zeros(4).double())
    h = rows(block)
    torch.testing.assert_close(_sum_runs(edges, edges.weight, h), dense(wide) @ h)


def test_a_block_without_edges_sums_to_its_own_rows():
    empty = Edges(
        torch.zeros(4, dtype=torch.int32), torch.empty(0, dtype=torch.int32), torch.empty(0), 3
    )
    block = Block(torch.arange(3), empty, torch.zeros(3), torch.tensor([1.0, 2.0, 3.0]))
    h = torch.ones(3, 2, requires_grad=True)
    out = weighted_sum(h, block)
    out.sum().backward()
    assert torch.equal(out[:, 0], torch.tensor([1.0, 2.0, 3.0]))
    assert torch.equal(h.grad[:, 0], torch.tensor([1.0, 2.0, 3.0]))


def test_a_hub_loses_no_digits():
    degree = 300_000
    indptr = torch.tensor([0, degree], dtype=torch.int32)
    weight = torch.full((degree,), 1 / degree)
    edges = Edges(indptr, torch.zeros(degree, dtype=torch.int32), weight, 1)
    hub = Block(torch.zeros(1, dtype=torch.long), edges, torch.tensor([float(degree)]))
    assert weighted_sum(torch.ones(1, 2), hub)[0, 0].item() == pytest.approx(1, abs=5e-5)
