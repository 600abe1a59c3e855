"""Adam and AdamW, with one kernel for all parameters."""

import math
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn

from graphfm.kernels import backend, side_stream

NUMBERS_PER_PROGRAM = 1024
MOST_PARAMETERS = 32  # of a launch: a kernel's arguments must fit into 4 KiB


class Adam(torch.optim.Adam):
    """`torch.optim.Adam` with the same state, whose fused kernel leaves most of a GPU idle.

    With `decoupled_weight_decay` it is AdamW. The plain twin of `step` is torch's own.
    """

    kept = ("step", "exp_avg", "exp_avg_sq")  # the state of a parameter, for checkpoints

    _in_step: bool | None = None  # all parameters have taken the same steps; None: not known yet

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        if closure is not None or not self._by_kernel():
            self._in_step = None
            super().step(closure)
            return
        for group in self.param_groups:
            changed = [p for p in group["params"] if p.grad is not None]
            for start in range(0, len(changed), MOST_PARAMETERS):
                self._launch(group, changed[start : start + MOST_PARAMETERS])
            if changed:
                steps = [self.state[p]["step"] for p in changed]
                with side_stream.beside(side_stream.current(), *steps):
                    torch._foreach_add_(steps, 1)

    def _by_kernel(self) -> bool:
        """True if the kernel can take this step; torch takes the first, and makes the state."""
        changed = [p for g in self.param_groups for p in g["params"] if p.grad is not None]
        if not changed or not all(isinstance(g["lr"], Tensor) for g in self.param_groups):
            return False
        if not backend.available(changed[0].device):
            return False
        if self._in_step is None:  # found out once, because this waits for the device
            steps = {float(state["step"]) for state in self.state.values()}
            self._in_step = len(steps) == 1 and all(p.is_contiguous() for p in changed)
        return self._in_step and len(self.state) == len(changed)

    @torch.no_grad()
    def overflowed(self) -> bool:
        """True if squares of finite gradients are infinite: such weights no longer move.

        Waits for the device. Gradients that are NaN or infinite break the weights, and that shows.
        """
        kept = list(self.state.values())
        if not kept:
            return False
        means, squares = (
            torch.stack(list(torch._foreach_norm([state[key] for state in kept], math.inf)))
            for key in ("exp_avg", "exp_avg_sq")
        )
        return bool(squares.isinf().any() & means.isfinite().all())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._in_step = None
        super().load_state_dict(state_dict)

    def _launch(self, group: dict[str, Any], changed: list[nn.Parameter]) -> None:
        from graphfm.kernels.triton_kernels import step as kernels

        beta1, beta2 = group["betas"]
        weights, grads, means, squares = zip(*map(self._tensors, changed), strict=True)
        sizes = tuple(parameter.numel() for parameter in changed)
        programs = [-(-size // NUMBERS_PER_PROGRAM) for size in sizes]
        kernels.adam[(sum(programs),)](
            weights, grads, means, squares, sizes, tuple(accumulate(programs, initial=0))[:-1],
            self.state[changed[0]]["step"], group["lr"], 1 - beta1, beta2, 1 - beta2,
            math.log(beta1), math.log(beta2), group["eps"], group["weight_decay"],
            DECOUPLED=group["decoupled_weight_decay"], BLOCK=NUMBERS_PER_PROGRAM,
        )  # fmt: skip

    def _tensors(self, parameter: nn.Parameter) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        state, grad = self.state[parameter], parameter.grad
        assert grad is not None
        return parameter, grad.contiguous(), state["exp_avg"], state["exp_avg_sq"]
