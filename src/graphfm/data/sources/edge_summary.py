"""What `graphfm info` says of the edges of a stored graph, found once and in pieces."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphfm.data.graph import Graph
from graphfm.data.matrix.chunks import CHUNK_EDGES, ranges
from graphfm.metrics.names import CLASSES

STEP, FIRST, SECOND = (
    np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB),
)  # fmt: skip


def edge_summary(graph: Graph) -> dict[str, Any]:
    """Count self-loops, duplicates and isolated nodes; tell direction and homophily.

    A graph is undirected if the distinct edges and their reverses have the same sum of hashes.
    """
    n, y = graph.num_nodes, graph.y.numpy() if graph.task == CLASSES else None
    loops = duplicates = alike = known = 0
    forward = backward = 0
    touched = graph.degree.numpy() > 0
    indptr = graph.indptr.numpy()
    for start, end in ranges(graph.indptr, n, CHUNK_EDGES):
        source = graph.indices[int(indptr[start]) : int(indptr[end])].numpy().astype(np.int64)
        target = np.repeat(np.arange(start, end), np.diff(indptr[start : end + 1]))
        touched[source] = True
        loops += int((source == target).sum())
        new = np.ones(len(source), bool)
        new[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
        duplicates += int(len(new) - new.sum())
        forward += _hashed(source[new] * n + target[new])
        backward += _hashed(target[new] * n + source[new])
        if y is not None:
            one, other = y[source], y[target]
            both = (one >= 0) & (other >= 0)
            known += int(both.sum())
            alike += int((both & (one == other)).sum())
    return {
        "undirected": (forward - backward) % (1 << 64) == 0,
        "self_loops": loops,
        "duplicate_edges": duplicates,
        "isolated_nodes": int((~touched).sum()),
        "homophily": alike / known if known else None,
    }


def _hashed(keys: Any) -> int:
    """The sum of the hashes of some numbers (splitmix64), which no order changes."""
    mixed = keys.astype(np.uint64) + STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * SECOND
    return int(np.add.reduce(mixed ^ (mixed >> np.uint64(31)), dtype=np.uint64))
