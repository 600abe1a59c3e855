# ruff: noqa: N803
# mypy: ignore-errors
"""The kernel that `backend` launches once to find out whether Triton works on this machine."""

import triton
import triton.language as tl


@triton.jit
def fill(out, value, BLOCK: tl.constexpr):
    """Write one value to `BLOCK` places."""
    tl.store(out + tl.arange(0, BLOCK), value)
