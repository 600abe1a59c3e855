"""A note where a precision has no effect."""

import logging

import torch

logger = logging.getLogger("graphfm")


def check_precision(precision: str, device: torch.device) -> None:
    """Tell the user if a precision has no effect on this device."""
    if precision == "tf32" and device.type != "cuda":
        logger.info("precision tf32 is a GPU's; here it is the same as fp32")
