"""The whole graph in one batch."""

from collections.abc import Iterable

import torch
from torch import Tensor

from graphfm.batch import Batch
from graphfm.data.graph.size import GraphSize, LayerFootprint
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.samplers.base import Sampler
from graphfm.step_plan import StepPlan


class FullSampler(Sampler):
    """Every node and every edge in each batch; an epoch is one step."""

    def reads_in_place(self, device: torch.device, sums: bool) -> bool:
        return True

    def static_shapes(self, size: GraphSize, plan: StepPlan) -> bool:
        return True

    def prepare(self, adjacency: Adjacency, plan: StepPlan) -> None:
        ids = torch.arange(adjacency.graph.num_nodes, device=adjacency.graph.device)
        blocks = (adjacency.full_block(),) * plan.num_layers if plan.num_layers else ()
        self.batch = Batch(ids, ids, blocks, whole=True)

    def footprint(self, size: GraphSize, num_layers: int) -> list[LayerFootprint]:
        return [LayerFootprint(size.num_nodes, size.num_nodes, size.num_edges)] * num_layers

    def epoch(self, rng: torch.Generator) -> Iterable[Tensor]:
        return [self.batch.target_ids]

    def sample(self, seeds: Tensor, rng: torch.Generator) -> Batch:
        return self.batch
