"""How operations are executed: the settings in force, and whether Triton kernels can run here.

All settings are fields of one `Execution` in one context variable. A thread that autograd or a
thread pool starts does not inherit it: an operation reads what it needs in its forward pass and
keeps that for its backward pass.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch

from graphfm.errors import InputError

if TYPE_CHECKING:
    from graphfm.kernels.side_stream import SideStream

logger = logging.getLogger("graphfm")
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # Triton runs kernels as Python, on a CPU
PARTS = ("triton", "side_stream", "three_pass", "precompile")  # what `without` can switch off


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The settings that decide which kernel an operation runs."""

    deterministic: bool = True  # sums on a GPU have a fixed order; without it they are faster
    triton: bool = True  # use Triton kernels wherever they fit
    precision: str = "fp32"  # of matrix products: "fp32", "tf32" or "bf16"
    side_stream: SideStream | None = None  # of the CUDA graph that is being captured
    compile_only: bool = False  # a launch compiles and loads its kernel, and does not run it
    without: frozenset[str] = frozenset()  # of PARTS, what an ablation has switched off


DEFAULT = Execution()
CURRENT: ContextVar[Execution] = ContextVar("execution", default=DEFAULT)


def current() -> Execution:
    """Return the settings in force."""
    return CURRENT.get()


@contextmanager
def changed(**changes: Any) -> Iterator[None]:
    """Change some fields of the settings, and restore them at the end."""
    token = CURRENT.set(replace(CURRENT.get(), **changes))
    try:
        yield
    finally:
        CURRENT.reset(token)


@contextmanager
def execution(
    *, deterministic: bool = True, kernels: str = "auto", precision: str = "fp32"
) -> Iterator[None]:
    """Execute as training settings ask for, torch's own matrix products included."""
    before = torch.get_float32_matmul_precision()
    with changed(deterministic=deterministic, triton=kernels == "auto", precision=precision):
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)


@contextmanager
def without(*parts: str) -> Iterator[None]:
    """Switch off some of `PARTS`, whatever the settings say: for measuring what each one gains."""
    for part in parts:
        if part not in PARTS:
            raise InputError(f"unknown part {part!r}; choose from {', '.join(PARTS)}")
    with changed(without=current().without | frozenset(parts)):
        yield


def allows(part: str) -> bool:
    """True unless `without` has switched the part off."""
    return part not in current().without


def available(device: torch.device) -> bool:
    """True if Triton kernels are wanted and can run on this device."""
    if not (INTERPRETED or device.type == "cuda"):
        return False
    now = CURRENT.get()
    return now.triton and "triton" not in now.without and _triton_works()


@cache
def _triton_works() -> bool:
    """Try a kernel once; if it cannot run, say why in one line and use the plain twins."""
    reason = _why_triton_fails()
    if reason is not None:
        logger.warning("Triton kernels are off, and training is slower without them: %s", reason)
    return reason is None


def _why_triton_fails() -> str | None:
    """Compile and launch a kernel of two lines; return the reason if that fails."""
    if find_spec("triton") is None:
        return "Triton is not installed; it comes with torch's GPU builds (pip install triton)"
    try:
        from graphfm.kernels.triton_kernels.probe import fill

        out = torch.zeros(1, device="cpu" if INTERPRETED else "cuda")
        fill[(1,)](out, 1.0, BLOCK=1)
    except Exception as error:  # of many kinds: of the compiler, the linker, the driver
        text = str(error).strip() or type(error).__name__
        if "C compiler" in text:
            return "Triton found no C compiler; install gcc, or set CC to one"
        return text.splitlines()[0]
    return None
