"""How exactly matrices are multiplied."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import torch

logger = logging.getLogger("graphfm")


@contextmanager
def products(precision: str) -> Iterator[None]:
    """Within it float32 matrices are multiplied as they are, or by a GPU's tensor cores."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def check_precision(precision: str, device: torch.device) -> None:
    """Say so where a precision is not to be had."""
    if precision == "tf32" and device.type != "cuda":
        logger.info("precision tf32 is a GPU's; here it is the same as fp32")


def rounded(precision: str, device: torch.device) -> torch.autocast:
    """Within it a forward pass multiplies in bfloat16, if that is asked for."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")
