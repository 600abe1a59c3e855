"""Graphs of a few nodes, and lists of edges to make more of."""

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from graphfm import Graph

TRIANGLE = [[0, 1, 2], [1, 2, 0]]


def make(edge_index=TRIANGLE, num_nodes=4, **options) -> Graph:
    return Graph.from_edges(edge_index, np.eye(num_nodes, dtype=np.float32), **options)


def neighbours(graph: Graph) -> list[list[int]]:
    """The in-neighbours of each node, by Python slices."""
    indptr, indices = graph.indptr.tolist(), graph.indices.tolist()
    return [indices[start:end] for start, end in pairwise(indptr)]


def edge_list(pairs: list[tuple[int, ...]]) -> np.ndarray:
    return np.array([pair[:2] for pair in pairs], dtype=np.int64).reshape(-1, 2).T


@st.composite
def edges_of(draw, weighted: bool = False):
    """A number of nodes, and a list of edges (with loops and duplicates) between them."""
    n = draw(st.integers(1, 8))
    node = st.integers(0, n - 1)
    parts = [node, node] + ([st.sampled_from([0.5, 1.0, 2.0, 3.0])] if weighted else [])
    return n, draw(st.lists(st.tuples(*parts), max_size=30))
