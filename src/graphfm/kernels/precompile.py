"""Compiling kernels before they are needed.

A new kernel takes as long as thousands of steps, and a first step meets one after the other. Who
knows early what will be launched late (a layer its gradients) says so: `expect`. Another thread
compiles it meanwhile, in a rehearsal on tensors that have a shape and no numbers.
"""

import logging
import os
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import ContextVar
from functools import cache
from typing import Any

import torch
from torch import Tensor

from graphfm.kernels import backend as compiled

logger = logging.getLogger("graphfm")
MOST_THREADS = 8

_rehearsing: ContextVar[bool] = ContextVar("rehearsing", default=False)
_expected = set[Hashable]()
_pending = set[Future[None]]()


def launch(kernel: Any, grid: tuple[int, ...], *args: Any, **options: Any) -> None:
    """Start a kernel that may have been expected; in a rehearsal, have it compiled and loaded."""
    if _rehearsing.get():
        _ = kernel.warmup(*args, grid=grid, **options).run
        return
    settle()
    kernel[grid](*args, **options)


def expect(job: Callable[..., Any], *args: Tensor | None, key: Hashable) -> None:
    """Have compiled what `job(*args)` will launch; jobs with the same key launch the same."""
    device = next(arg.device for arg in args if arg is not None)
    known = (job, device, key)
    if known in _expected or compiled.INTERPRETED or torch.cuda.is_current_stream_capturing():
        return
    _expected.add(known)
    _pending.add(_threads().submit(_rehearse, job, [_shape(arg) for arg in args], device))


def settle() -> None:
    """Wait for what is being compiled. What failed there is compiled again by its launch."""
    if _pending:
        waiting = set(_pending)  # another thread may expect more meanwhile
        wait(waiting)
        _pending.difference_update(waiting)
        for error in filter(None, (future.exception() for future in waiting)):
            logger.debug("a kernel was not compiled ahead: %s", error)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(MOST_THREADS, os.cpu_count() or 1), "compiling")


def _shape(arg: Tensor | None) -> Tensor | None:
    if arg is None:
        return None
    return torch.empty_strided(arg.size(), arg.stride(), dtype=arg.dtype, device="meta")


def _rehearse(job: Callable[..., Any], args: list[Tensor | None], device: torch.device) -> None:
    token = _rehearsing.set(True)
    try:
        with torch.cuda.device(device):
            job(*args)
    finally:
        _rehearsing.reset(token)
