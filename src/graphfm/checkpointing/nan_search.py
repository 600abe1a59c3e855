"""Find the first layer that produced NaN or Inf."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from graphfm.backbones.base import Backbone
from graphfm.checkpointing.checkpointer import Checkpointer
from graphfm.training.callbacks import Callback, EpochRecord
from graphfm.training.errors import NonFiniteError
from graphfm.training.loop import fit
from graphfm.training.trainer import Trainer

Check = Callable[[str, Tensor], None]


class _Broken(Exception):  # noqa: N818
    """A layer produced NaN or Inf."""


class _Enough(Exception):  # noqa: N818
    """The search is over: the fault did not occur again, or a stop was requested."""


class _UpTo(Callback):
    """Ends a training after a given epoch."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def on_epoch(self, record: EpochRecord, best: float) -> None:
        if record.epoch >= self.epoch:
            raise _Enough


def first_broken(
    trainer: Trainer, checkpointer: Checkpointer | None, epoch: int, shall_stop: Callable[[], bool]
) -> str:
    """Train again from the last good state to the end of `epoch`, checking every layer's output.

    Returns '' if no layer breaks, or if a stop was requested.
    """

    def check(name: str, rows: Tensor) -> None:
        if shall_stop():
            raise _Enough
        if not bool(rows.isfinite().all()):
            raise _Broken(name)

    try:
        with _watched(trainer.backbone, check):
            fit(trainer, [_UpTo(epoch)], checkpointer)
    except _Broken as broken:
        return f", first in {broken}, step {trainer.touched['steps']}"
    except (_Enough, NonFiniteError):
        pass
    return ""


@contextmanager
def _watched(backbone: Backbone, check: Check) -> Iterator[None]:
    """Check the output of every layer while the context lasts, that of halo rows too."""
    hooks = [
        module.register_forward_hook(partial(_check_output, check, name))
        for name, module in (("the encoder", backbone.encode), ("the decoder", backbone.decode))
    ]
    number = len(backbone.layers)
    for depth, layer in enumerate(backbone.layers, start=1):
        name = f"layer {depth} of {number}"
        layer.update = _checked(layer.update, check, name)  # type: ignore[method-assign]
        layer.affine = lambda: None  # type: ignore[method-assign]  # so that no row bypasses `update`
    try:
        yield
    finally:
        for layer in backbone.layers:
            del layer.update, layer.affine
        for hook in hooks:
            hook.remove()


def _checked(update: Callable[..., Tensor], check: Check, name: str) -> Callable[..., Tensor]:
    def checked_update(*given: Any) -> Tensor:
        rows = update(*given)
        check(name, rows)
        return rows

    return checked_update


def _check_output(check: Check, name: str, module: nn.Module, given: Any, rows: Tensor) -> None:
    check(name, rows)
