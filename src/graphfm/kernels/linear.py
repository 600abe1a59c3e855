"""A row-wise layer: matrix, bias, ReLU."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from graphfm.kernels import backend, matmul, side_stream

ROWS, COLUMNS = 32, 128  # of a tile
MANY_PARTS = 512  # to add up by one program for a few columns
MOST_ROWS = 1 << 18  # above it the time goes into the products, and memory matters more


def linear(x: Tensor, weight: Tensor, bias: Tensor, *, relu: bool) -> Tensor:
    """`x @ weight.T + bias`, and its positive part if `relu`."""
    fits = x.dtype == torch.float32 and 0 < x.size(0) <= MOST_ROWS
    fits = fits and not torch.is_autocast_enabled(x.device.type)
    if not (fits and backend.available(x.device)):
        return linear_plain(x, weight, bias, relu=relu)
    out: Tensor = _Linear.apply(x, weight, bias, relu)  # type: ignore[no-untyped-call]
    if out.requires_grad and matmul.by_three_passes():
        matmul.expect_gradients(x, weight, out, relu=relu)
    return out


def linear_plain(x: Tensor, weight: Tensor, bias: Tensor, *, relu: bool) -> Tensor:
    """`linear` in plain PyTorch."""
    out = functional.linear(x, weight, bias)
    return out.relu() if relu else out


class _Linear(torch.autograd.Function):
    """A few kernels around the products; gradients of the weights go to a side stream."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
        ctx.three_pass = matmul.by_three_passes()  # the backward pass has a thread of its own
        if ctx.three_pass and matmul.fits(x, weight):
            out = matmul.multiply(x, weight, bias, relu=relu)
        elif relu and x.is_cuda:  # one kernel, where `addmm` and `relu` would be two
            out = torch._addmm_activation(bias, x, weight.t())
        else:
            out = torch.addmm(bias, x, weight.t())
            out = out.relu_() if relu else out
        ctx.relu, ctx.parameters, ctx.side_stream = relu, (weight, bias), side_stream.current()
        ctx.save_for_backward(x, weight, out if relu else x)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, out = ctx.saved_tensors
        goes_on, *wanted = ctx.needs_input_grad[:3]
        parameters = [p for p, want in zip(ctx.parameters, wanted, strict=True) if want]
        may_wait = goes_on and all(side_stream.may_wait(p) for p in parameters)
        aside = ctx.side_stream if may_wait else None
        grad, out = grad.contiguous(), out if ctx.relu else None
        if ctx.three_pass:
            grad, turned = matmul.turn(grad, out)
            with side_stream.beside(aside, turned, x):
                found = matmul.gradients(x, turned)
        else:
            grad, sums = _mask_and_sum(grad, out)
            with side_stream.beside(aside, grad, sums, x):
                found = grad.t() @ x, _added_up(sums)
        if aside is not None:
            aside.hand_out(parameters, [g for g, want in zip(found, wanted, strict=True) if want])
        if not goes_on:
            return None, *found, None
        if ctx.three_pass and matmul.fits(grad, weight.t()):
            return matmul.multiply_back(grad, weight), *found, None
        return grad @ weight, *found, None


def _mask_and_sum(grad: Tensor, out: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the gradient before a ReLU that made `out`, and its sums over some rows each."""
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
