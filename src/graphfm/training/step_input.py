"""The input of a step: a batch, the features that the first layer reads, and the objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from graphfm.backbones.base import Backbone
from graphfm.batch import Batch, Rows
from graphfm.data.graph import Graph
from graphfm.estimators.base import Estimator
from graphfm.estimators.layer_step import ForwardPass
from graphfm.kernels.fused_aggregate import Combined
from graphfm.step_plan import GATHERED, UNREAD, StepPlan
from graphfm.training.losses import Loss
from graphfm.training.objective import PLAIN, Objective

Input = Tensor | Rows | Combined  # feature rows, their ids, or the first layer's aggregates


@dataclass(frozen=True, slots=True)
class StepInput:
    """Everything a step needs that no other step changes."""

    batch: Batch
    x: Input
    objective: Objective


class StepInputs:
    """Makes the input of a step from its batch, reading features as the plan says."""

    def __init__(
        self,
        graph: Graph,
        x: Tensor,
        backbone: Backbone,
        estimator: Estimator,
        plan: StepPlan,
        autocast: Callable[[], torch.autocast],
        loss: Loss = PLAIN,
    ) -> None:
        self.graph, self.x, self.backbone, self.estimator = graph, x, backbone, estimator
        self.plan, self.autocast, self.loss = plan, autocast, loss

    def __call__(self, batch: Batch) -> StepInput:
        graph, x = self.graph, self.features(batch)
        ids, weight = batch.target_ids, batch.loss_weight
        objective = Objective(graph.y, graph.train_mask, ids, weight, self.loss)
        return StepInput(batch, x, objective)

    def features(self, batch: Batch) -> Input:
        """The features of a batch, in the form that the first layer reads."""
        plan, ids = self.plan, batch.input_ids
        if plan.features == GATHERED and (plan.exact_first_hop or batch.blocks[0].edges.fanout):
            return self._gathered(batch)
        if plan.features == UNREAD:
            return torch.empty(ids.numel(), 0, device=self.x.device)
        x = (self.x if batch.whole else self.x.index_select(0, ids)).float()
        return x.detach().requires_grad_() if plan.learned else x  # the gradient moves its rows

    def _gathered(self, batch: Batch) -> Rows | Combined:
        """Rows that the first layer's kernel gathers: now, if that needs no other step's work."""
        rows, first = Rows(self.x, batch.input_ids), self.backbone.layers[0]
        if not self.plan.first_layer_ahead:
            return rows
        with self.autocast():
            return self.estimator.combine(0, first, batch.blocks[0], rows, ForwardPass())
