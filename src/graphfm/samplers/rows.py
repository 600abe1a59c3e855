"""Training nodes alone, for networks that need no neighbours."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from graphfm.batch import Batch
from graphfm.data.adjacency import Adjacency
from graphfm.errors import InputError
from graphfm.samplers.base import Sampler


@dataclass(kw_only=True)
class RowSampler(Sampler):
    """`batch_size` training nodes in random order, and no edges: what the network reads is rows."""

    batch_size: int

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise InputError(f"batch_size is {self.batch_size}; expected 1 or more")

    def prepare(self, adjacency: Adjacency, num_layers: int) -> None:
        if num_layers > 0:
            raise InputError(
                f"the network has {num_layers} graph layers, and this method gives it no edges; "
                "use backbone sign, sgc or mlp, or another method"
            )
        self.train_ids = adjacency.graph.train_mask.nonzero().squeeze(1)

    def epoch(self, rng: torch.Generator) -> Iterable[Tensor]:
        order = torch.randperm(self.train_ids.numel(), generator=rng, device=rng.device)
        return torch.split(self.train_ids[order], self.batch_size)

    def sample(self, seeds: Tensor, rng: torch.Generator) -> Batch:
        return Batch(seeds, seeds, ())
