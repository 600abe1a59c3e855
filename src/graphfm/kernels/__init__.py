"""Kernels. The only place that picks one; everything else names what it wants."""

from graphfm.kernels.sparse_sum import (
    reproducible,
    segment_max,
    segment_min,
    sum_of_rest,
    table_sum,
    weighted_sum,
)

__all__ = [
    "reproducible",
    "segment_max",
    "segment_min",
    "sum_of_rest",
    "table_sum",
    "weighted_sum",
]
