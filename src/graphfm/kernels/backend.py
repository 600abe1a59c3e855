"""Whether Triton's kernels can be used here, and whether they are wanted."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

import torch

logger = logging.getLogger("graphfm")
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # kernels as Python, for looking into them

_wanted: ContextVar[bool] = ContextVar("kernels", default=True)


@contextmanager
def kernels(wanted: bool) -> Iterator[None]:
    """Within it, use these kernels where they fit, or (`False`) never."""
    token = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(token)


def available(device: torch.device) -> bool:
    """Are there kernels for this device, and are they wanted?"""
    return _wanted.get() and (INTERPRETED or device.type == "cuda") and _triton_works()


@cache
def _triton_works() -> bool:
    """Triton may be absent, or find no C compiler for the code that launches its kernels."""
    try:
        from graphfm.kernels.triton_kernels import graph as kernels_graph

        device = "cpu" if INTERPRETED else "cuda"
        row, ids = torch.zeros(1, 1, device=device), torch.zeros(1, dtype=torch.int64).to(device)
        tables = row.clone(), row.clone()
        kernels_graph.keep[(1, 1)](row, ids, row, *tables, ids, 1, 1, 1, PLACED=False, BLOCK=1)
    except Exception as error:
        logger.info("Triton's kernels cannot be used here, plain ones are: %s", error)
        return False
    return True
