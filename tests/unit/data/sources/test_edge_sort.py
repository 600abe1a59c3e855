"""Edges sorted on the disk are what a matrix says they are."""

import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfm import InputError
from graphfm.data.sources.edge_sort import sort_edges


def in_pieces(pairs: np.ndarray, size: int, dtype=np.int64):
    """A reader of the pairs, so many at a time."""

    def read():
        for start in range(0, len(pairs), size):
            piece = pairs[start : start + size].astype(dtype)
            yield piece[:, 0], piece[:, 1]

    return read


def sorted_edges(pairs, num_nodes, edges, size=3, range_edges=4, dtype=np.int64):
    """What is written, as [(sources into node 0), (sources into node 1), ...]."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reader = in_pieces(np.array(pairs).reshape(-1, 2), size, dtype)
        count = sort_edges(reader, num_nodes, edges, folder, range_edges=range_edges).num_edges
        indptr, indices = (np.load(folder / f"{name}.npy") for name in ("indptr", "indices"))
        assert {path.name for path in folder.iterdir()} == {"indptr.npy", "indices.npy"}
    assert (indptr.dtype, indices.dtype) == (np.int64, np.int32)
    assert (indptr[0], indptr[-1], len(indices)) == (0, count, count)
    return [indices[start:end].tolist() for start, end in pairwise(indptr)]


def expected(pairs, num_nodes, edges):
    counts = np.zeros((num_nodes, num_nodes), dtype=int)
    for source, target in pairs:
        counts[target, source] += 1
    if edges != "given":
        counts = counts + counts.T
    if edges == "symmetric":
        counts = np.minimum(counts, 1)
    return [np.repeat(np.arange(num_nodes), row).tolist() for row in counts]


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 9))
    node = st.integers(0, n - 1)
    return n, draw(st.lists(st.tuples(node, node), max_size=40))


@settings(max_examples=150, deadline=None)
@given(
    graphs(),
    st.sampled_from(["given", "both", "symmetric"]),
    st.integers(1, 50),
    st.integers(1, 50),
)
def test_any_graph_in_any_pieces_is_its_matrix(graph, edges, size, range_edges):
    n, pairs = graph
    assert sorted_edges(pairs, n, edges, size, range_edges) == expected(pairs, n, edges)


@pytest.mark.parametrize("dtype", ["<i4", ">i8", "<u2"])
def test_ids_of_any_integer_type(dtype):
    pairs = [(0, 1), (2, 1), (1, 0)]
    assert sorted_edges(pairs, 3, "given", dtype=dtype) == [[1], [0, 2], []]


@pytest.mark.parametrize("pairs", [[(0, 3)], [(0, 1), (3, 0)], [(-1, 0)], [(0, 1 << 40)]])
def test_an_id_that_there_is_not_is_refused(pairs, tmp_path):
    wrong = next(i for pair in pairs for i in pair if not 0 <= i < 3)
    with pytest.raises(InputError, match=f"an edge holds node id {wrong}; expected 0 to 2"):
        sort_edges(in_pieces(np.array(pairs), 2), 3, "given", tmp_path)


def test_more_ranges_than_a_short_number_can_name(tmp_path):
    n = (1 << 16) + 10
    pairs = np.stack([np.arange(n), np.arange(n)[::-1]], axis=1)
    sort_edges(in_pieces(pairs, 1 << 14), n, "given", tmp_path, range_edges=1)
    assert (np.load(tmp_path / "indices.npy") == np.arange(n)[::-1]).all()
