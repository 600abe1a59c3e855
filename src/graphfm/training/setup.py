"""What comes before the first step: a graph that can be learned from, and a seed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

import torch

from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.kernels import reproducible
from graphfm.kernels.backend import kernels
from graphfm.kernels.precision import products
from graphfm.training.settings import Training

Method = TypeVar("Method", bound=Callable[..., Any])


def check_trainable(graph: Graph) -> None:
    """A graph to train on needs labels, training nodes and validation nodes."""
    if graph.num_classes == 0:
        raise InputError("the graph has no labels; give it y to learn")
    for split, use in (("train", "learn from"), ("val", "choose the best epoch on")):
        if not bool(graph.mask(split).any()):
            raise InputError(f"the graph has no {split}_mask; give it nodes to {use}")


def check_capture(training: Training, device: torch.device) -> None:
    """Refuse to record steps where there is nothing to record them with."""
    if training.capture == "on" and device.type != "cuda":
        raise InputError("capture is on, but there is no GPU; set capture to auto or off")


@contextmanager
def as_set(training: Training) -> Iterator[None]:
    """Sums, kernels and products as the settings want them."""
    with (
        reproducible(training.deterministic),
        kernels(training.kernels == "auto"),
        products(training.precision),
    ):
        yield


def under_settings(method: Method) -> Method:
    """A method of a trainer that does as the settings want, whoever calls it."""

    @wraps(method)
    def as_wanted(self: Any, *given: Any, **named: Any) -> Any:
        with as_set(self.training):
            return method(self, *given, **named)

    return cast(Method, as_wanted)


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Torch's global random state set to `seed`, and put back afterwards."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
