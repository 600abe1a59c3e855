"""Adam, by one kernel for all parameters where there are kernels."""

import math
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn

from graphfm.ops import compiled
from graphfm.training.settings import Training

NUMBERS_PER_PROGRAM = 1024


class Adam(torch.optim.Adam):
    """`torch.optim.Adam` with the same state; its fused kernel leaves most of a GPU idle."""

    @classmethod
    def of(cls, backbone: nn.Module, training: Training, device: torch.device) -> "Adam":
        """On a GPU one that a CUDA graph can hold: its state and learning rate live there."""
        settings: dict[str, Any] = {"lr": training.lr, "weight_decay": training.weight_decay}
        if device.type == "cuda":
            settings |= {"lr": torch.tensor(training.lr, device=device), "fused": True}
            settings["capturable"] = True
        return cls(backbone.parameters(), **settings)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        group = self.param_groups[0]
        first = next(iter(self.state), None)
        if first is None or not isinstance(group["lr"], Tensor):  # there is no state yet
            super().step(closure)
        elif compiled.available(first.device):
            self._launch(group)
        else:
            super().step(closure)

    def _launch(self, group: dict[str, Any]) -> None:
        from graphfm.ops import kernels

        beta1, beta2 = group["betas"]
        changed = [p for p in group["params"] if p.grad is not None]
        torch._foreach_add_([self.state[p]["step"] for p in changed], 1)
        weights, grads, means, squares = zip(*map(self._tensors, changed), strict=True)
        sizes = tuple(parameter.numel() for parameter in changed)
        programs = [-(-size // NUMBERS_PER_PROGRAM) for size in sizes]
        kernels.adam[(sum(programs),)](
            weights, grads, means, squares, sizes, tuple(accumulate(programs, initial=0))[:-1],
            self.state[changed[0]]["step"], group["lr"], 1 - beta1, beta2, 1 - beta2,
            math.log(beta1), math.log(beta2), group["eps"], group["weight_decay"],
            BLOCK=NUMBERS_PER_PROGRAM,
        )  # fmt: skip

    def _tensors(self, parameter: nn.Parameter) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        state, grad = self.state[parameter], parameter.grad
        assert grad is not None
        return parameter, grad.contiguous(), state["exp_avg"], state["exp_avg_sq"]
