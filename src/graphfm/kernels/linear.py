"""A row-wise layer: matrix, bias, ReLU."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from graphfm.kernels import backend as compiled
from graphfm.kernels import matmul as product
from graphfm.kernels import side_stream as branch

ROWS, COLUMNS = 32, 128  # of a tile
MANY_PARTS = 512  # to add up by one program for a few columns
MOST_ROWS = 1 << 18  # above it the time goes into the products, and memory matters more


def linear(x: Tensor, weight: Tensor, bias: Tensor, *, relu: bool) -> Tensor:
    """`x @ weight.T + bias`, and its positive part if wanted."""
    kernels = compiled.available(x.device) and x.dtype == torch.float32
    if kernels and 0 < x.size(0) <= MOST_ROWS and not torch.is_autocast_enabled(x.device.type):
        out: Tensor = _Linear.apply(x, weight, bias, relu)  # type: ignore[no-untyped-call]
        if out.requires_grad and product.exact():
            product.expect_gradients(x, weight, out, relu=relu)
        return out
    out = functional.linear(x, weight, bias)
    return out.relu() if relu else out


class _Linear(torch.autograd.Function):
    """A few kernels around the products; gradients of the weights go on a branch."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
        if product.fits(x, weight):
            out = product.multiply(x, weight, bias, relu=relu)
        elif relu and x.is_cuda:  # one kernel, where `addmm` and `relu` would be two
            out = torch._addmm_activation(bias, x, weight.t())
        else:
            out = torch.addmm(bias, x, weight.t())
            out = out.relu_() if relu else out
        ctx.relu, ctx.parameters, ctx.branch = relu, (weight, bias), branch.current()
        ctx.save_for_backward(x, weight, out if relu else x)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, out = ctx.saved_tensors
        goes_on, *wanted = ctx.needs_input_grad[:3]
        parameters = [p for p, want in zip(ctx.parameters, wanted, strict=True) if want]
        may_wait = goes_on and all(branch.may_wait(p) for p in parameters)
        aside = ctx.branch if may_wait else None
        grad, out = grad.contiguous(), out if ctx.relu else None
        if product.exact():
            grad, turned = product.turn(grad, out)
            with branch.beside(aside, turned, x):
                found = product.gradients(x, turned)
        else:
            grad, sums = _mask_and_sum(grad, out)
            with branch.beside(aside, grad, sums, x):
                found = grad.t() @ x, _added_up(sums)
        if aside is not None:
            aside.hand_out(parameters, [g for g, want in zip(found, wanted, strict=True) if want])
        return _back(grad, weight) if goes_on else None, *found, None


def _back(grad: Tensor, weight: Tensor) -> Tensor:
    """The gradient of the rows that were multiplied."""
    if product.fits(grad, weight.t()):
        return product.multiply_back(grad, weight)
    return grad @ weight


def _mask_and_sum(grad: Tensor, out: Tensor | None) -> tuple[Tensor, Tensor]:
    """A gradient, before the ReLU if that made `out`; and its sums over some rows each."""
    from graphfm.kernels.triton_kernels import step as kernels

    num_rows, width = grad.shape
    sums = grad.new_empty(-(-num_rows // ROWS), width)
    masked = grad if out is None else torch.empty_like(grad)
    kernels.mask_and_sum[(sums.size(0), -(-width // COLUMNS))](
        grad, grad if out is None else out, masked, sums, num_rows, width,
        RELU=out is not None, ROWS=ROWS, BLOCK=COLUMNS,
    )  # fmt: skip
    return masked, sums


def _added_up(sums: Tensor) -> Tensor:
    from graphfm.kernels.triton_kernels import step as kernels

    parts, width = sums.shape
    if parts > MANY_PARTS:
        return sums.sum(0)
    total = sums.new_empty(width)
    kernels.sum_parts[(-(-width // 32),)](sums, total, parts, width, ROWS=64, BLOCK=32)
    return total
