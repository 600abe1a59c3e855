"""Compiling kernels before they are needed.

Compiling a kernel takes as long as thousands of steps, and a first step meets one after the other.
A layer knows in its forward pass what its backward pass will launch, and says so with `expect`.
Another thread then calls the same function on meta tensors, which have a shape and no memory, and
every launch in it compiles and loads its kernel.
"""

import logging
import os
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Any

import torch
from torch import Tensor

from graphfm.kernels import backend

logger = logging.getLogger("graphfm")
MOST_THREADS = 8

_expected = set[Hashable]()
_pending = set[Future[None]]()


def launch(kernel: Any, grid: tuple[int, ...], *args: Any, **options: Any) -> None:
    """Launch a kernel that may have been expected; on meta tensors, compile and load it."""
    if backend.CURRENT.get().compile_only:
        _ = kernel.warmup(*args, grid=grid, **options).run
        return
    settle()
    kernel[grid](*args, **options)


def expect(job: Callable[..., Any], *args: Tensor | None, key: Hashable) -> None:
    """Compile what `job(*args)` will launch; jobs with the same key launch the same kernels."""
    if backend.INTERPRETED or not backend.allows("precompile"):
        return
    device = next(arg.device for arg in args if arg is not None)
    known = (job, device, key)
    if known in _expected or torch.cuda.is_current_stream_capturing():
        return
    _expected.add(known)
    _pending.add(_threads().submit(_compile, job, [_meta(arg) for arg in args], device))


def settle() -> None:
    """Wait for all that is being compiled. A kernel that failed is compiled by its launch."""
    if _pending:
        waiting = set(_pending)  # another thread may expect more meanwhile
        wait(waiting)
        _pending.difference_update(waiting)
        for error in filter(None, (future.exception() for future in waiting)):
            logger.debug("a kernel was not compiled ahead: %s", error)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(MOST_THREADS, os.cpu_count() or 1), "compiling")


def _meta(arg: Tensor | None) -> Tensor | None:
    if arg is None:
        return None
    return torch.empty_strided(arg.size(), arg.stride(), dtype=arg.dtype, device="meta")


def _compile(job: Callable[..., Any], args: list[Tensor | None], device: torch.device) -> None:
    with backend.changed(compile_only=True), torch.cuda.device(device):
        job(*args)
