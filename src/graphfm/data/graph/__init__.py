"""The graph itself: `Graph`, the checks on the way in, its fingerprint, size and summary."""

from graphfm.data.graph.graph import SPLITS, ArrayLike, Graph

__all__ = ["SPLITS", "ArrayLike", "Graph"]
