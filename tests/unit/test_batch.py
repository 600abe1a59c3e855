from itertools import pairwise

import torch

from graphfm.batch import RUN, Edges, offsets


def make_edges(*degrees: int, num_src: int = 11) -> Edges:
    indptr = offsets(torch.tensor(degrees)).int()
    col = torch.randint(num_src, (int(indptr[-1]),)).int()
    return Edges(indptr, col, torch.randn(col.numel()), num_src)


def test_rows_name_the_target_of_each_edge():
    assert make_edges(2, 0, 3).row.tolist() == [0, 0, 2, 2, 2]


def test_runs_cover_each_row_in_order_and_never_cross_it():
    edges = make_edges(0, 5, RUN, 3 * RUN + 1, 0)
    start, first = edges.runs
    bounds = [*start.tolist(), edges.num_edges]
    assert first.tolist() == [0, 1, 2, 3, 7]
    assert all(0 <= end - begin <= RUN for begin, end in pairwise(bounds))
    for row, run in enumerate(first.tolist()):
        assert bounds[run] == edges.indptr[row]


def test_transposing_twice_is_the_same_matrix():
    edges = make_edges(3, 0, 4, 2)
    again = edges.transposed.transposed
    matrices = []
    for e in (edges, again):
        matrix = torch.zeros(e.num_dst, e.num_src)
        matrix.index_put_((e.row.long(), e.col.long()), e.weight, accumulate=True)
        matrices.append(matrix)
    torch.testing.assert_close(*matrices)
