"""The graph: `Graph`, the checks of what users pass in, its `.npz` form, its size and summary.

Imported by: every room that handles graphs, from `data.matrix` upwards.
May import: `errors`, `files`, `memory`, `batch`, `metrics`, `data.formats`.
"""

from graphfm.data.graph.graph import CARRIED, SPLITS, ArrayLike, Graph

__all__ = ["CARRIED", "SPLITS", "ArrayLike", "Graph"]
