"""Contexts that change a network for a while, and leave it as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
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
    """Keep nothing of a pass on the network.

    Convolutions with `cached=True` would take one batch's normalisation for all others. Others put
    their attention aside while they run, and leave it there if they are interrupted.
    """
    names = (*CACHES, "cached")
    before = [(part, dict(vars(part))) for part in net.modules()]
    for part, values in before:
        for name in names:
            if name in values:
                vars(part)[name] = False if name == "cached" else None
    try:
        yield
    finally:
        for part, values in before:
            for name, value in list(vars(part).items()):
                known = values.get(name)
                cache = name in names and name in values
                if cache or (value is not known and _is_of_a_pass(value, known)):
                    vars(part)[name] = known
                    if name not in values:
                        del vars(part)[name]


def _is_of_a_pass(value: Any, known: Any) -> bool:
    """True for tensors that a pass has put in the place of nothing, or that carry its gradients."""
    some = value if isinstance(value, tuple | list) else [value]
    tensors = [one for one in some if isinstance(one, Tensor)]
    return bool(tensors) and (known is None or any(one.grad_fn is not None for one in tensors))
