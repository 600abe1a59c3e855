"""Batches of training nodes without edges, for networks that read no neighbours."""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphfm.batch import Batch
from graphfm.data.graph.size import GraphSize, LayerFootprint
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.errors import InputError
from graphfm.samplers.seeds import SeedSampler
from graphfm.step_plan import StepPlan


@dataclass(kw_only=True)
class RowSampler(SeedSampler):
    """Batches of `batch_size` training nodes in random order, without edges (SIGN, SGC, MLP)."""

    def static_shapes(self, size: GraphSize, plan: StepPlan) -> bool:
        return True

    def prepare(self, adjacency: Adjacency, plan: StepPlan) -> None:
        if plan.num_layers > 0:
            raise InputError(
                f"the network has {plan.num_layers} graph layers, but this method gives it no "
                "edges; use backbone sign, sgc or mlp, or another method"
            )
        super().prepare(adjacency, plan)

    def footprint(self, size: GraphSize, num_layers: int) -> list[LayerFootprint]:
        return []

    def sample(self, seeds: Tensor, rng: torch.Generator) -> Batch:
        return Batch(seeds, seeds, ())
