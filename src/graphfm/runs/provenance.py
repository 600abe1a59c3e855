"""The versions and the machine behind a run's numbers and times."""

import platform
from typing import Any

import numpy as np
import torch

from graphfm.version import VERSION


def versions() -> dict[str, str]:
    """Versions of the programs that determine the numbers."""
    return {
        "graphfm": VERSION,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def machine(device: torch.device) -> dict[str, Any]:
    """The device and the number of threads, which determine the times."""
    return {"device": _device_name(device), "threads": torch.get_num_threads()}


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
