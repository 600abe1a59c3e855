"""Training nodes by the size of their gradients."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from graphfm.batch import Batch
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.samplers.drawing.importance import Inclusion, inclusion
from graphfm.samplers.layerwise import LayerSampler
from graphfm.step_plan import StepPlan

LEAST = 0.5  # of the mean norm: gradients grow with dropout and with time, and divide the loss


@dataclass(kw_only=True)
class MinimalVarianceSampler(LayerSampler):
    """Batches in which a node is in with a probability in proportion to its gradient's norm.

    MVS-GCN (Cong et al., 2020): that is the choice of least variance, once a node's loss is divided
    by its probability. Norms are those of the last `snapshot`, which a trainer takes at the start
    of an epoch, and count as half their mean at least; before the first all are alike. Below the
    batch, layers are sampled as in LADIES.
    """

    wants_gradients: ClassVar[bool] = True

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
