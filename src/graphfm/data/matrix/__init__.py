"""Matrices made from a graph: adjacency with its normalisation, out-neighbours, hops, partitions.

Imported by: every later room that samples, aggregates or plans.
May import: `errors`, `files`, `batch`, `kernels`, `data.formats`, `data.graph`.
"""
