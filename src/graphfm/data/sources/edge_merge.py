"""Adds edges to the sorted edges of a graph; only the neighbours of their targets are sorted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphfm.data.graph import Graph
from graphfm.data.sources.edge_sort import SortedEdges, sort_keys
from graphfm.errors import InputError

Array = np.ndarray[Any, Any]


class Merged(NamedTuple):
    """Edges sorted by target, source and weight, and what was found among those sorted again."""

    indptr: Array
    indices: Array
    weight: Array | None
    found: SortedEdges


def merge_edges(
    graph: Graph, sources: Array, targets: Array, weight: Array | None, num_nodes: int, rule: str
) -> Merged:
    """Add edges to those of a graph with further nodes; `rule` keeps, drops or sums duplicates."""
    degree = np.zeros(num_nodes, np.int64)
    degree[: graph.num_nodes] = graph.degree.numpy()
    indices = graph.indices.numpy()
    known = len(indices) == 0 or 0 <= indices.min() <= indices.max() < graph.num_nodes
    if degree.min() < 0 or not known:
        raise InputError("the edges of the graph are damaged; import it again")
    changed = np.zeros(num_nodes, bool)
    changed[targets] = True
    old = np.repeat(changed, degree)  # edges of the graph that are sorted again
    ends = np.repeat(np.flatnonzero(changed), degree[changed])
    keys = np.concatenate([ends, targets.astype(np.int64)]) * num_nodes
    keys += np.concatenate([indices[old], sources])
    given = None if graph.edge_weight is None else graph.edge_weight.numpy()
    both = None if given is None else np.concatenate([given[old], weight])
    found = SortedEdges()
    keys, both = sort_keys(keys, both, rule, found)
    degree[changed] = np.bincount(keys // num_nodes, minlength=num_nodes)[changed]
    new = np.repeat(changed, degree)
    indptr = np.zeros(num_nodes + 1, np.int64)
    np.cumsum(degree, out=indptr[1:])
    found.num_edges = int(indptr[-1])
    return Merged(
        indptr,
        _put(indices, old, keys % num_nodes, new),
        None if given is None else _put(given, old, both, new),
        found,
    )


def _put(values: Array, old: Array, sorted_again: Any, new: Array) -> Array:
    """The values of all edges: those that were not sorted again stay in their order."""
    result = np.empty(len(new), values.dtype)
    result[new] = sorted_again
    result[~new] = values[~old]
    return result
