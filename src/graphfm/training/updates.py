"""How the weights move: gradients, clipping, accumulation and the optimizer's step."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from graphfm.backbones.base import Backbone
from graphfm.kernels.cross_entropy import backward
from graphfm.training.learned_rows import LearnedRows
from graphfm.training.settings import Training
from graphfm.training.step_input import StepInput


class Updates:
    """Moves weights and learned rows by the gradient of a step's loss.

    With `accumulate` the gradients of so many steps are averaged before the weights move; what is
    left at the end of an epoch is averaged over as many steps as there were.
    """

    def __init__(
        self,
        backbone: Backbone,
        optimizer: torch.optim.Optimizer,
        training: Training,
        rows: LearnedRows | None,
    ) -> None:
        self.parameters = [one for one in backbone.parameters() if one.requires_grad]
        self.optimizer, self.rows = optimizer, rows
        self.clip, self.every = training.clip, training.accumulate
        self.count = torch.zeros((), dtype=torch.int64)  # steps whose gradients are gathered
        # For each parameter, 1 if it had a gradient; one that had none does not move.
        self.moves = torch.zeros(len(self.parameters), dtype=torch.int8)
        self.gathered = list[Tensor]()
        if self.every > 1:
            self.gathered = [torch.zeros_like(one) for one in self.parameters]

    def __call__(self, loss: Tensor, given: StepInput) -> None:
        """Take the gradient of a loss, and move the weights if enough are gathered."""
        self.optimizer.zero_grad()
        backward(loss)
        if self.every > 1:
            self._gather()
            return
        self._move()
        if self.rows is not None:
            self.rows.step(given)

    def finish(self) -> None:
        """Move the weights by what is gathered, at the end of an epoch."""
        if (count := int(self.count)) > 0:
            parts = zip(self.parameters, self.gathered, self.moves.tolist(), strict=True)
            for parameter, sum_of, moves in parts:
                parameter.grad = sum_of / count if moves else None
            self._move()
            self.optimizer.zero_grad()
            for tensor in (*self.gathered, self.count, self.moves):
                tensor.zero_()

    @torch.no_grad()
    def _gather(self) -> None:
        for number, parameter in enumerate(self.parameters):
            if parameter.grad is not None:
                self.gathered[number] += parameter.grad
                self.moves[number] = 1
        self.count += 1
        if int(self.count) == self.every:
            self.finish()

    def _move(self) -> None:
        if self.clip > 0:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.clip)
        self.optimizer.step()

    def state_dict(self) -> dict[str, Tensor]:
        """The gradients that are gathered, and of how many steps they are."""
        gathered = {str(number): sum_of for number, sum_of in enumerate(self.gathered)}
        return {"count": self.count, "moves": self.moves, **gathered}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Continue from a saved state. Tensors are filled in place."""
        for name, tensor in self.state_dict().items():
            tensor.copy_(state[name])
