"""Graphs from and to sparse matrices of scipy, whose entry [u, v] is an edge from u to v."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphfm.errors import InputError, needs

if TYPE_CHECKING:
    from graphfm.data.graph import Graph


def arguments(matrix: Any) -> dict[str, Any]:
    """Return the arguments of `Graph.from_edges` that a matrix decides."""
    if not callable(getattr(matrix, "tocoo", None)):
        raise InputError(
            f"from_scipy got a {type(matrix).__name__}; expected a sparse matrix or array of scipy"
        )
    entries = matrix.tocoo()
    if len(entries.shape) != 2 or entries.shape[0] != entries.shape[1]:
        raise InputError(
            f"the matrix has shape {entries.shape}; expected [num_nodes, num_nodes]; a bipartite "
            "graph needs one numbering for both sides"
        )
    edges = np.stack([entries.row, entries.col]).astype(np.int64)
    return {
        "edge_index": edges,
        "num_nodes": entries.shape[0],
        "edge_weight": weights(entries.data),
    }


def weights(values: Any) -> Any:
    """Return the entries of a matrix as weights; None if all are 1, as in an adjacency matrix."""
    return None if bool((values == 1).all()) else values


def matrix_of(graph: Graph) -> Any:
    """Return a `csc_array` of float32, in which duplicate edges stay apart."""
    try:
        from scipy.sparse import csc_array
    except ImportError:
        raise needs("to_scipy", "scipy") from None
    indptr, indices = graph.indptr.cpu().numpy(), graph.indices.cpu().numpy()
    weight = graph.edge_weight
    data = np.ones(graph.num_edges, np.float32) if weight is None else weight.cpu().numpy()
    if graph.num_edges <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)  # scipy wants one type for both
    return csc_array((data, indices, indptr), shape=(graph.num_nodes,) * 2, copy=True)
