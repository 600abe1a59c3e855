"""Rows of nodes that are trained with the network, and the optimizer that moves them."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from graphfm.backbones.base import Backbone
from graphfm.tables.base import TablePlan
from graphfm.tables.device import allocate
from graphfm.training.step_input import StepInput

MOMENTS = ("average", "square")  # of the gradient of each row


class LearnedRows:
    """Moves the learned rows that a step has read; all others stay, and so do their moments.

    That is the lazy Adam of `torch.optim.SparseAdam`, with the learning rate of the network's
    weights; its bias correction counts the steps of the training, not those of a row. With the
    optimizer sgd, rows take plain steps. Momentum, weight decay and clipping are for the weights.
    """

    def __init__(
        self,
        backbone: Backbone,
        x: Tensor,
        plan: Mapping[str, TablePlan],
        optimizer: torch.optim.Optimizer,
    ) -> None:
        assert backbone.node_rows is not None
        width = plan["rows"].spec.width
        # The network's state and the rows that steps read are the same memory from here on.
        self.rows = backbone.node_rows.rows = x[:, x.size(1) - width :]
        kept = {name: table for name, table in plan.items() if name in MOMENTS}
        self.moments = allocate(kept, x.size(0), x.device)
        self.optimizer = optimizer
        self.steps = torch.zeros((), dtype=torch.float64, device=x.device)

    @torch.no_grad()
    def step(self, given: StepInput) -> None:
        """Move the rows that a step has read, by their gradients."""
        assert isinstance(given.x, Tensor)
        assert given.x.grad is not None
        grads, group = given.x.grad[:, -self.rows.size(1) :], self.optimizer.param_groups[0]
        # A batch may hold a node several times: its gradients are added up.
        found = torch.sparse_coo_tensor(
            given.batch.input_ids.unsqueeze(0), grads, self.rows.shape, check_invariants=False
        ).coalesce()
        ids, change = found.indices()[0], found.values()
        self.steps += 1
        if self.moments:
            change = self._adam(ids, change, group["betas"], group["eps"])
        self.rows[ids] -= change * group["lr"]

    def _adam(self, ids: Tensor, grad: Tensor, betas: tuple[float, float], eps: float) -> Tensor:
        """The direction of Adam's step, from moments that it moves."""
        beta1, beta2 = betas
        average, square = (self.moments[name] for name in MOMENTS)
        mean = torch.lerp(average.pull(ids), grad, 1 - beta1)
        squared = torch.lerp(square.pull(ids), grad * grad, 1 - beta2)
        average.push(ids, mean)
        square.push(ids, squared)
        scale = (1 - beta2**self.steps).sqrt() / (1 - beta1**self.steps)
        return mean / (squared.sqrt() + eps) * scale

    def state_dict(self) -> dict[str, Tensor]:
        """The moments and the number of steps; the rows are part of the network's state."""
        return {name: table.rows for name, table in self.moments.items()} | {"steps": self.steps}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Continue from a saved state. Tensors are filled in place."""
        for name, rows in self.state_dict().items():
            rows.copy_(state[name])
