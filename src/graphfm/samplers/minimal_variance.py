"""MVS-GCN: training nodes drawn by the norm of their gradients."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from graphfm.batch import Batch
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.samplers.drawing.importance import Inclusion, inclusion
from graphfm.samplers.layerwise import LayerSampler
from graphfm.step_plan import StepPlan

LEAST = 0.5  # smallest norm, as a share of the mean: losses are divided by these stale norms


@dataclass(kw_only=True)
class MinimalVarianceSampler(LayerSampler):
    """Draws each training node with a probability proportional to the norm of its gradient.

    MVS-GCN (Cong et al., 2020): with each loss divided by its probability, this choice has the
    least variance. The norms are those of the last `snapshot`, which the trainer takes at the start
    of an epoch, and at least half their mean; before the first snapshot they are all equal. The
    layers below are sampled as in LADIES.
    """

    wants_gradients: ClassVar[bool] = True
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {"probability": (0, 1)}

    def prepare(self, adjacency: Adjacency, plan: StepPlan) -> None:
        super().prepare(adjacency, plan)
        self.snapshot(torch.ones(self.train_ids.numel(), device=self.train_ids.device))

    def snapshot(self, norms: Tensor) -> None:
        """Take the training nodes' gradient norms, in the order of their ids."""
        floor = (norms.mean() * LEAST).clamp(min=torch.finfo(norms.dtype).tiny)
        probability = inclusion(norms.clamp(min=floor).double(), self.batch_size)
        self.probability = torch.ones(self.adjacency.graph.num_nodes, device=norms.device)
        self.probability[self.train_ids] = probability.float()

    def state_dict(self) -> dict[str, Tensor]:
        return {"probability": self.probability}

    def epoch(self, rng: torch.Generator) -> Iterable[Tensor]:
        steps = -(-self.train_ids.numel() // self.batch_size)
        chosen = Inclusion(self.probability[self.train_ids], rng)
        return (self.train_ids[chosen.draw(rng)] for _ in range(steps))

    def sample(self, seeds: Tensor, rng: torch.Generator) -> Batch:
        weight = 1 / (self.probability[seeds] * self.train_ids.numel())
        return replace(super().sample(seeds, rng), loss_weight=weight)
