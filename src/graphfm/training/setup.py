"""Checks and contexts that a training needs before its first step."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

import torch

from graphfm.backbones.base import Backbone
from graphfm.backbones.input_rows import NONE
from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.kernels.backend import execution
from graphfm.training.input_settings import InputSettings
from graphfm.training.question import Question
from graphfm.training.settings import Training

log = logging.getLogger("graphfm")


def check_trainable(graph: Graph, settings: Training) -> Question:
    """Refuse a graph that a training with these settings cannot use; return what it asks."""
    _check_features(graph, settings)
    if graph.num_classes == 0:
        raise InputError(
            "the graph has no labels; give it y, the classes to learn (docs/formats.md says how)"
        )
    for split, use in (("train", "learn from"), ("val", "choose the best epoch on")):
        if not bool(graph.mask(split).any()):
            raise InputError(f"the graph has no {split}_mask; give it nodes to {use}")
    return Question.of(graph, settings)


def _check_features(graph: Graph, settings: InputSettings) -> None:
    if graph.num_features:
        return
    if settings.node_features == NONE:
        raise InputError(
            "the graph has no features; give it x, or set node_features (--node-features) to "
            "degree, random or learned (docs/your-graph.md says what they are)"
        )
    if settings.standardize:
        raise InputError("the graph has no features to standardise; leave out standardize")


def warn_unread(graph: Graph, backbone: Backbone) -> None:
    """Name the data of edges that a network does not read."""
    if unread := [name for name in backbone.unread_data(graph) if getattr(graph, name) is not None]:
        log.warning("the graph has %s, which the network does not read", " and ".join(unread))


def check_capture(training: Training, device: torch.device) -> None:
    """Refuse to capture steps where there is no GPU."""
    if training.capture == "on" and device.type != "cuda":
        raise InputError("capture is on, but there is no GPU; set capture to auto or off")


def executing(training: Training) -> Callable[[], AbstractContextManager[None]]:
    """Make contexts in which sums, kernels and matrix products run as the settings say."""
    return partial(
        execution,
        deterministic=training.deterministic,
        kernels=training.kernels,
        precision=training.precision,
    )


def autocast(precision: str, device: torch.device) -> Callable[[], torch.autocast]:
    """Make contexts in which a forward pass multiplies in bfloat16, if `precision` is "bf16"."""
    return partial(torch.autocast, device.type, torch.bfloat16, enabled=precision == "bf16")


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Set torch's global random state to `seed`, and put it back afterwards."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


def global_generator(device: torch.device) -> torch.Generator:
    """Torch's own random generator on a device, which dropout draws from."""
    if device.type != "cuda":
        return torch.default_generator
    index = torch.cuda.current_device() if device.index is None else device.index
    return torch.cuda.default_generators[index]
