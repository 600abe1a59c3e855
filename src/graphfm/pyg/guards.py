"""Contexts that change a network for a while, and leave it as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

CACHES = ("_cached_edge_index", "_cached_adj_t", "_cached_x", "_cached_h")


@contextmanager
def in_mode(net: nn.Module, training: bool, *, batch_statistics: bool = False) -> Iterator[None]:
    """Set the network to training or evaluation.

    With `batch_statistics` the batch norms use the statistics of the rows they see in any case,
    and do not learn from them.
    """
    before = [(part, part.training) for part in net.modules()]
    norms = [part for part in net.modules() if isinstance(part, _BatchNorm)] * batch_statistics
    tracked = [(norm, norm.track_running_stats) for norm in norms]
    net.train(training)
    for norm in norms:
        norm.training, norm.track_running_stats = True, False
    try:
        yield
    finally:
        for part, was_training in before:
            part.training = was_training
        for norm, was_tracked in tracked:
            norm.track_running_stats = was_tracked


@contextmanager
def uncached(net: nn.Module) -> Iterator[None]:
    """Keep convolutions with `cached=True` from taking one batch's normalisation for all others."""
    names = (*CACHES, "cached")
    before = [
        (part, name, vars(part)[name])
        for part in net.modules()
        for name in names
        if name in vars(part)
    ]
    for part, name, _ in before:
        vars(part)[name] = False if name == "cached" else None
    try:
        yield
    finally:
        for part, name, value in before:
            vars(part)[name] = value
