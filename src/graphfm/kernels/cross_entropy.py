"""The mean loss of a batch and its gradient."""

import warnings
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from graphfm.kernels import backend, side_stream

ROWS_AT_ONCE = 1024
MANY_ROWS = 1 << 15  # too many for one program to count


def mean_cross_entropy(
    logits: Tensor, ids: Tensor, labels: Tensor, mask: Tensor, number: Tensor, totals: Tensor
) -> Tensor:
    """Mean loss of the nodes in `ids` that `mask` marks, of which there are `number`.

    Adds the loss times the number, and the number, to the two `totals`. A label of -1 counts 0.
    """
    if not backend.available(logits.device):
        return mean_cross_entropy_plain(logits, ids, labels, mask, number, totals)
    loss: Tensor = _CrossEntropy.apply(logits, ids, labels, mask, number, totals)  # type: ignore[no-untyped-call]
    return loss


def mean_cross_entropy_plain(
    logits: Tensor, ids: Tensor, labels: Tensor, mask: Tensor, number: Tensor, totals: Tensor
) -> Tensor:
    """`mean_cross_entropy` in plain PyTorch."""
    counts = mask[ids].float()
    weight = counts / counts.sum().clamp(min=torch.finfo(counts.dtype).tiny)
    losses = functional.cross_entropy(
        logits.float(), labels[ids], ignore_index=-1, reduction="none"
    )
    loss = (losses * weight).sum()
    totals[0].addcmul_(loss.detach(), number)
    totals[1].add_(number)
    return loss


def number_marked(ids: Tensor, mask: Tensor) -> Tensor:
    """Count the nodes in `ids` that `mask` marks, as float32."""
    if ids.numel() > MANY_ROWS or not backend.available(ids.device):
        return number_marked_plain(ids, mask)
    from graphfm.kernels.triton_kernels import step as kernels

    number = torch.empty((), device=ids.device)
    kernels.count_marked[(1,)](ids, mask, number, ids.numel(), BLOCK=ROWS_AT_ONCE)
    return number


def number_marked_plain(ids: Tensor, mask: Tensor) -> Tensor:
    """`number_marked` in plain PyTorch."""
    return mask.index_select(0, ids).sum(dtype=torch.float32)


def backward(loss: Tensor) -> None:
    """`loss.backward()`, from a 1 that exists already; then wait for the side stream."""
    loss.backward(_one(loss.device))  # type: ignore[no-untyped-call]
    if (stream := backend.CURRENT.get().side_stream) is not None:
        stream.join()


@cache
def _one(device: torch.device) -> Tensor:
    """Make a 1, and the cuBLAS context that products in the thread of `backward` need."""
    if device.type == "cuda":
        rows = torch.ones(1, 1, device=device, requires_grad=True)
        with warnings.catch_warnings():  # torch makes the context itself, and warns
            warnings.filterwarnings("ignore", message="Attempting to run cuBLAS")
            (rows @ rows).sum().backward()  # type: ignore[no-untyped-call]
    return torch.ones((), device=device)


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        ids: Tensor,
        labels: Tensor,
        mask: Tensor,
        number: Tensor,
        totals: Tensor,
    ) -> Tensor:
        from graphfm.kernels.triton_kernels import step as kernels

        logits, (num_rows, num_classes) = logits.contiguous(), logits.shape
        loss = torch.empty((), device=ids.device)
        losses = torch.empty(num_rows, device=ids.device)
        ctx.grad = torch.empty_like(logits)
        kernels.cross_entropy[(num_rows,)](
            logits, ids, labels, mask, number, losses, ctx.grad, num_classes,
            BLOCK=1 << (num_classes - 1).bit_length(),
        )  # fmt: skip
        with side_stream.beside(side_stream.current(), losses, number, loss):
            kernels.add_up[(1,)](losses, number, loss, totals, num_rows, BLOCK=ROWS_AT_ONCE)
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        known_one = grad.data_ptr() == _one(grad.device).data_ptr()
        of_logits = ctx.grad if known_one else ctx.grad * grad.to(ctx.grad.dtype)
        return of_logits, None, None, None, None, None
