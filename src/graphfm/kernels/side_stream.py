"""Work that nothing in a step waits for, beside the kernels that it would hold up.

A step that is recorded as a CUDA graph need not be a chain. Gradients of weights, and rows on their
way into a history, are wanted only when the step ends; on a branch of the graph they fill the gaps
that small kernels leave. Whoever launches such work says so (`beside`); where nothing is recorded
it is done at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

_current: ContextVar[SideStream | None] = ContextVar("branch", default=None)


class SideStream:
    """A second stream of a recording, from where it leaves the first to where the two meet."""

    def __init__(self, stream: torch.cuda.Stream) -> None:
        self.stream = stream
        self.busy = False  # was anything launched that the first stream has not waited for?
        self.read = list[Tensor]()  # memory that the first stream must not use again before `join`
        self.gradients = list[tuple[Tensor, Tensor]]()  # of parameters, as they were handed out
        self.disturbed = False  # did autograd do more with one than put it into its place?

    @contextmanager
    def growing(self) -> Iterator[None]:
        """Within it, this is the branch that `current` finds."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    @contextmanager
    def work(self, read: Sequence[Tensor]) -> Iterator[None]:
        """Within it, kernels are launched on the branch; they read these of the first stream."""
        self.stream.wait_stream(torch.cuda.current_stream())
        self.busy = True
        self.read.extend(read)
        with torch.cuda.stream(self.stream):
            yield

    def hand_out(self, parameters: Sequence[Tensor], gradients: Sequence[Tensor]) -> None:
        """Remember gradients that autograd takes while they are only being computed."""
        # another name for the same memory: autograd then adds to none of them in place
        known = [gradient.detach() for gradient in gradients]
        self.gradients.extend(zip(parameters, known, strict=True))

    def join(self) -> None:
        """Let the first stream wait for all that was launched on the branch."""
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
    """May the gradient of a parameter come late: does nobody read it as soon as it is there?"""
    hooks = parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None)
    return parameter.is_leaf and not hooks


def current() -> SideStream | None:
    """The branch of the recording that is being made, if there is one."""
    return _current.get()


@contextmanager
def beside(branch: SideStream | None, *read: Tensor) -> Iterator[None]:
    """Within it, kernels that read these go on a branch, where there is one."""
    if branch is None:
        yield
    else:
        with branch.work(read):
            yield


def join() -> None:
    """From here on, what is on a branch is needed."""
    if (branch := current()) is not None:
        branch.join()
