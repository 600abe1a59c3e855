"""Batch norm, and contexts that set how batch norm and dropout act in a forward pass."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm


class BatchNorm(nn.Module):
    """`nn.BatchNorm1d` that also trains on a batch of one row or of no rows."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, width: int, *, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_var", torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        if self.training and x.size(0) <= 1:
            return self._few_rows(x)
        settings = (self.training, self.momentum, self.eps)
        return batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, *settings)

    def folded(self, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Fold the norm of evaluation into the matrix and bias of the layer before it."""
        scale = self.weight * torch.rsqrt(self.running_var + self.eps)
        return weight * scale.unsqueeze(1), (bias - self.running_mean) * scale + self.bias

    def _few_rows(self, x: Tensor) -> Tensor:
        """Normalise at most one row: its variance is zero, where torch would raise an error."""
        mean: Tensor = x.sum(0)
        with torch.no_grad():
            step = self.momentum * x.size(0)  # 0 without rows: the statistics stay
            self.running_mean.lerp_(mean, step)
            self.running_var.lerp_(torch.zeros_like(mean), step)
        out: Tensor = (x - mean) * self.eps**-0.5 * self.weight + self.bias
        return out


@contextmanager
def without_noise(module: nn.Module) -> Iterator[None]:
    """Switch dropout off; batch norms use the batch's statistics without learning from them."""
    dropouts = [m for m in module.modules() if isinstance(m, nn.Dropout) and m.training]
    norms = [(m, m.momentum) for m in module.modules() if isinstance(m, BatchNorm)]
    for dropout in dropouts:
        dropout.eval()
    for norm, _ in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for dropout in dropouts:
            dropout.train()
        for norm, momentum in norms:
            norm.momentum = momentum


@contextmanager
def frozen_statistics(module: nn.Module) -> Iterator[None]:
    """Let batch norms use their running statistics, and leave these as they are."""
    norms = [m for m in module.modules() if isinstance(m, BatchNorm) and m.training]
    for norm in norms:
        norm.eval()
    try:
        yield
    finally:
        for norm in norms:
            norm.train()


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Set evaluation mode; afterwards every part of the module is in the mode it was in."""
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in before:
            part.training = training
