"""The mean loss of a batch and its gradient, in a few launches."""

import warnings
from functools import cache
from typing import Any

import torch
from torch import Tensor

from graphfm.kernels import backend as compiled
from graphfm.kernels import side_stream as branch

ROWS_AT_ONCE = 1024
MANY_ROWS = 1 << 15  # for one program to count


def mean_cross_entropy(
    logits: Tensor, ids: Tensor, labels: Tensor, mask: Tensor, number: Tensor, totals: Tensor
) -> Tensor:
    """Mean loss of those of the nodes `ids` that are marked, of which there are `number`.

    It times the number, and the number, are added to the two `totals`.
    """
    loss: Tensor = _CrossEntropy.apply(logits, ids, labels, mask, number, totals)  # type: ignore[no-untyped-call]
    return loss


def number_marked(ids: Tensor, mask: Tensor) -> Tensor:
    """How many of the nodes `ids` are marked."""
    if ids.numel() > MANY_ROWS or not compiled.available(ids.device):
        return mask.index_select(0, ids).sum(dtype=torch.float32)
    from graphfm.kernels.triton_kernels import step as kernels

    number = torch.empty((), device=ids.device)
    kernels.count_marked[(1,)](ids, mask, number, ids.numel(), BLOCK=ROWS_AT_ONCE)
    return number


def backward(loss: Tensor) -> None:
    """`loss.backward()`, from a 1 that is there already."""
    loss.backward(_one(loss.device))  # type: ignore[no-untyped-call]
    branch.join()


@cache
def _one(device: torch.device) -> Tensor:
    """A 1, made together with the context that products in the thread of `backward` need."""
    if device.type == "cuda":
        rows = torch.ones(1, 1, device=device, requires_grad=True)
        with warnings.catch_warnings():  # torch makes the context itself, and says so
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
        with branch.beside(branch.current(), losses, number, loss):
            kernels.add_up[(1,)](losses, number, loss, totals, num_rows, BLOCK=ROWS_AT_ONCE)
        return loss

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        known_one = grad.data_ptr() == _one(grad.device).data_ptr()
        of_logits = ctx.grad if known_one else ctx.grad * grad.to(ctx.grad.dtype)
        return of_logits, None, None, None, None, None
