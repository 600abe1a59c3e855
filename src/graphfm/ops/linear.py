"""A row-wise layer: matrix, bias, ReLU."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from graphfm.ops import compiled, product

ROWS, COLUMNS = 32, 128  # of a tile
MANY_PARTS = 512  # to add up by one program for a few columns
MOST_ROWS = 1 << 18  # above it the time goes into the products, and memory matters more


def linear(x: Tensor, weight: Tensor, bias: Tensor, *, relu: bool) -> Tensor:
    """`x @ weight.T + bias`, and its positive part if wanted."""
    kernels = compiled.available(x.device) and x.dtype == torch.float32
    if kernels and x.size(0) <= MOST_ROWS and not torch.is_autocast_enabled(x.device.type):
        out: Tensor = _Linear.apply(x, weight, bias, relu)  # type: ignore[no-untyped-call]
        return out
    out = functional.linear(x, weight, bias)
    return out.relu() if relu else out


class _Linear(torch.autograd.Function):
    """ReLU's gradient and the bias's sums in one kernel between the products."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
        if product.fits(x, weight):
            out = product.multiply(x, weight, bias, relu=relu)
        elif relu and x.is_cuda:  # one kernel, where `addmm` and `relu` would be two
            out = torch._addmm_activation(bias, x, weight.t())
        else:
            out = torch.addmm(bias, x, weight.t())
            out = out.relu_() if relu else out
        ctx.relu = relu
        ctx.save_for_backward(x, weight, out if relu else x)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor, Tensor, None]:
        x, weight, out = ctx.saved_tensors
        grad, sums = _mask_and_sum(grad.contiguous(), out, relu=ctx.relu)
        rows = _times(grad, weight) if ctx.needs_input_grad[0] else None
        return rows, grad.t() @ x, sums, None


def _times(grad: Tensor, weight: Tensor) -> Tensor:
    if product.fits(grad, weight.t()):
        return product.multiply(grad, weight.t(), relu=False)
    return grad @ weight


def _mask_and_sum(grad: Tensor, out: Tensor, *, relu: bool) -> tuple[Tensor, Tensor]:
    """The gradient before the ReLU, and its sum over the rows."""
    from graphfm.ops import kernels_step as kernels

    num_rows, width = grad.shape
    parts = -(-num_rows // ROWS)
    sums = grad.new_empty(parts, width)
    masked = torch.empty_like(grad) if relu else grad
    kernels.mask_and_sum[(parts, -(-width // COLUMNS))](
        grad, out, masked, sums, num_rows, width, RELU=relu, ROWS=ROWS, BLOCK=COLUMNS
    )
    if parts == 1:
        return masked, sums[0]
    if parts > MANY_PARTS:
        return masked, sums.sum(0)
    total = grad.new_empty(width)
    kernels.sum_parts[(-(-width // 32),)](sums, total, parts, width, ROWS=64, BLOCK=32)
    return masked, total
