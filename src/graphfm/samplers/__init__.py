"""Samplers: what a step sees of the graph. One file per sampler.

A sampler draws the batch of a step: seeds, neighbours, parts or subgraphs, as blocks of edges.
Imported by: `methods` and every later room.
May import: every earlier room; not estimators.
"""
