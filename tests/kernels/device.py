"""Where the tests of kernels run, and how both sides of a comparison are made."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch

from graphfm.kernels import backend

ON_GPU = torch.cuda.is_available() and not backend.INTERPRETED
DEVICE = torch.device("cuda" if ON_GPU else "cpu")
T = TypeVar("T")
FLOAT_TYPES = [torch.float32, torch.float16, torch.bfloat16]


def sized(on_gpu: T, interpreted: T) -> T:
    """A size, or a list of cases: the interpreter takes milliseconds for each program."""
    return interpreted if backend.INTERPRETED else on_gpu


def with_and_without(do: Callable[[], Any]) -> tuple[Any, Any]:
    """What `do` returns with kernels, and what it returns without, from the same random state."""
    assert backend.available(DEVICE)
    found = []
    for wanted in ("auto", "plain"):
        torch.manual_seed(5)
        with backend.execution(kernels=wanted):
            found.append(do())
    return found[0], found[1]
