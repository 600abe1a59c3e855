"""Samplers: what a step sees of the graph. One file per sampler.

A sampler draws the batch of a step: seeds, neighbours, parts or subgraphs, as blocks of edges.
Imported by: `methods` and every later room.
May import: every earlier room; not estimators.
"""

from graphfm.samplers.base import Sampler
from graphfm.samplers.cluster import ClusterSampler
from graphfm.samplers.full import FullSampler
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.samplers.seeds import SeedSampler

__all__ = ["ClusterSampler", "FullSampler", "NeighborSampler", "Sampler", "SeedSampler"]
