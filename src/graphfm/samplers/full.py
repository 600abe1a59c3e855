"""The whole graph in one batch."""

from collections.abc import Iterable

import torch
from torch import Tensor

from graphfm.batch import Batch
from graphfm.data.adjacency import Adjacency
from graphfm.samplers.base import Sampler


class FullSampler(Sampler):
    """Every node, every edge, one step an epoch."""

    def prepare(self, adjacency: Adjacency, num_layers: int) -> None:
        block = adjacency.full_block()
        self.batch = Batch(block.src_ids, block.src_ids, (block,) * num_layers)

    def epoch(self, rng: torch.Generator) -> Iterable[Tensor]:
        return [self.batch.target_ids]

    def sample(self, seeds: Tensor, rng: torch.Generator) -> Batch:
        return self.batch
