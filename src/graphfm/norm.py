"""All that is odd about batch norm and dropout: what must not count, and when."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm


class MaskedBatchNorm(nn.Module):
    """`nn.BatchNorm1d` whose statistics ignore padded rows, with static shapes."""

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, width: int, *, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_var", torch.ones(width))

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        if not self.training or (valid is None and x.size(0) > 1):
            mean, var = self.running_mean, self.running_var
            settings = (self.training, self.momentum, self.eps)
            return batch_norm(x, mean, var, self.weight, self.bias, *settings)
        mean, var = self._batch_statistics(x, valid)
        return (x - mean) * torch.rsqrt(var + self.eps) * self.weight + self.bias

    def folded(self, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """A matrix and bias that do at once what they and this do one after the other."""
        scale = self.weight * torch.rsqrt(self.running_var + self.eps)
        return weight * scale.unsqueeze(1), (bias - self.running_mean) * scale + self.bias

    def _batch_statistics(self, x: Tensor, valid: Tensor | None) -> tuple[Tensor, Tensor]:
        keep = x.new_ones(x.size(0), 1) if valid is None else valid.unsqueeze(1)
        keep = keep.bool()
        real = keep.sum()
        count = real.clamp(min=1)
        mean = torch.where(keep, x, 0).sum(0) / count
        var = torch.where(keep, x - mean, 0).square().sum(0) / count
        with torch.no_grad():
            unbiased = var * count / (count - 1).clamp(min=1)  # one row has no variance, not NaN
            step = self.momentum * (real > 0)  # nothing is learned of a batch of padding
            self.running_mean.lerp_(mean, step)
            self.running_var.lerp_(unbiased, step)
        return mean, var


@contextmanager
def without_noise(module: nn.Module) -> Iterator[None]:
    """No dropout, and batch norms that use the batch's statistics but do not learn from it."""
    dropouts = [m for m in module.modules() if isinstance(m, nn.Dropout) and m.training]
    norms = [(m, m.momentum) for m in module.modules() if isinstance(m, MaskedBatchNorm)]
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
    """Batch norms use their running statistics, and leave them as they are."""
    norms = [m for m in module.modules() if isinstance(m, MaskedBatchNorm) and m.training]
    for norm in norms:
        norm.eval()
    try:
        yield
    finally:
        for norm in norms:
            norm.train()


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode; afterwards every part of the module is in the mode it was in."""
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in before:
            part.training = training
