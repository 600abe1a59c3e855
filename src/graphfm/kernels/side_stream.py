"""Kernels that run beside a captured step, because nothing in the step waits for them.

A captured CUDA graph may use several streams. Gradients of weights and writes to histories are
needed only when the step ends; on a side stream they fill the gaps that small kernels leave on the
main stream. An operation that launches such work wraps it in `beside`; where no CUDA graph is being
captured the work runs on the current stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from graphfm.kernels import backend


class SideStream:
    """A second stream of a captured CUDA graph, from its first work to `join`."""

    def __init__(self, stream: torch.cuda.Stream) -> None:
        self.stream = stream
        self.busy = False  # has work that the main stream has not waited for
        self.read = list[Tensor]()  # memory that the main stream must not reuse before `join`
        self.gradients = list[tuple[Tensor, Tensor]]()  # of parameters, as autograd got them
        self.disturbed = False  # autograd did more with a gradient than store it

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make this the stream that `current` returns, unless an ablation has none."""
        with backend.changed(side_stream=self if backend.allows("side_stream") else None):
            yield

    @contextmanager
    def work(self, read: Sequence[Tensor]) -> Iterator[None]:
        """Launch kernels on this stream; `read` are tensors of the main stream that they read."""
        self.stream.wait_stream(torch.cuda.current_stream())
        self.busy = True
        self.read.extend(read)
        with torch.cuda.stream(self.stream):
            yield

    def hand_out(self, parameters: Sequence[Tensor], gradients: Sequence[Tensor]) -> None:
        """Remember gradients that autograd receives before they are finished.

        That is safe only if autograd stores them without accumulating; `join` verifies this.
        """
        # A second tensor on the same memory keeps autograd from adding to a gradient in place.
        known = [gradient.detach() for gradient in gradients]
        self.gradients.extend(zip(parameters, known, strict=True))

    def join(self) -> None:
        """Let the main stream wait for all work on this one."""
        if self.busy:
            torch.cuda.current_stream().wait_stream(self.stream)
        for parameter, gradient in self.gradients:
            taken = parameter.grad
            same = taken is not None and taken.data_ptr() == gradient.data_ptr()
            self.disturbed = self.disturbed or not same
        self.busy = False
        self.read.clear()
        self.gradients.clear()


def may_wait(parameter: Tensor) -> bool:
    """True if nothing reads the gradient of a parameter before the step's end: it has no hook."""
    hooks = parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None)
    return parameter.is_leaf and not hooks


def current() -> SideStream | None:
    """Return the side stream of the CUDA graph that is being captured, if there is one."""
    return backend.CURRENT.get().side_stream


@contextmanager
def beside(stream: SideStream | None, *read: Tensor) -> Iterator[None]:
    """Launch kernels that read these tensors on a side stream, if one is given."""
    if stream is None:
        yield
    else:
        with stream.work(read):
            yield


def join() -> None:
    """Wait for the work on the side stream: what comes next needs its results."""
    if (stream := current()) is not None:
        stream.join()
