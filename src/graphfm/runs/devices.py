"""Devices by name: auto, cpu, cuda, or one of several GPUs by its number, such as cuda:1."""

import re

import torch

from graphfm.errors import InputError, known_name

DEVICES = ("auto", "cpu", "cuda")
NUMBERED = re.compile(r"cuda:(\d{1,4})", re.ASCII)


def check_device(name: str) -> None:
    """Refuse a name that no device has anywhere."""
    if not isinstance(name, str) or not NUMBERED.fullmatch(name):
        known_name("device", str(name), (*DEVICES, "cuda:1"))


def kind_of(name: str) -> str:
    """The name without the number of the GPU: runs on GPUs of one kind may be compared."""
    return "cuda" if NUMBERED.fullmatch(name) else name


def pick_device(name: str) -> torch.device:
    """The device of that name; "auto" is the GPU if there is one.

    A GPU given by its number becomes torch's current one, because that is where Triton's kernels
    and CUDA graphs run.
    """
    check_device(name)
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    elif name != "cpu" and not torch.cuda.is_available():
        raise InputError(f"device is {name}, but torch sees no GPU; use device cpu or auto")
    device = torch.device(name)
    if device.index is not None:
        if device.index >= (count := torch.cuda.device_count()):
            last = "" if count == 1 else f" to cuda:{count - 1}"
            raise InputError(f"device is {name}, but torch sees only cuda:0{last}; use such a one")
        torch.cuda.set_device(device)
    return device
