"""Matrix products in bfloat16, and a note where a precision has no effect."""

import logging

import torch

logger = logging.getLogger("graphfm")


def check_precision(precision: str, device: torch.device) -> None:
    """Tell the user if a precision has no effect on this device."""
    if precision == "tf32" and device.type != "cuda":
        logger.info("precision tf32 is a GPU's; here it is the same as fp32")


def rounded(precision: str, device: torch.device) -> torch.autocast:
    """Multiply in bfloat16 within a forward pass, if that precision is asked for."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")
