"""Which layer it was whose numbers were the first to be none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from graphfm.backbones.base import Backbone
from graphfm.training.not_finite import NotFinite

if TYPE_CHECKING:
    from graphfm.training.keeper import Keeper
    from graphfm.training.trainer import Trainer


class _Broken(Exception):  # noqa: N818
    """A layer gave something that is not finite."""


def first_broken(trainer: Trainer, keeper: Keeper | None) -> str:
    """Train once more from the last good state, looking at every layer; '' where none breaks."""
    try:
        with _watched(trainer.backbone):
            trainer.fit(keeper=keeper)
    except _Broken as broken:
        return f", first of {broken} in step {trainer.touched['steps']}"
    except NotFinite:
        pass
    return ""


@contextmanager
def _watched(backbone: Backbone) -> Iterator[None]:
    """Within it, what a layer makes is looked at."""
    hooks = [
        module.register_forward_hook(partial(_look_at, name))
        for name, module in (("the encoder", backbone.encode), ("the decoder", backbone.decode))
    ]
    number = len(backbone.layers)
    for depth, layer in enumerate(backbone.layers, start=1):
        name = f"layer {depth} of {number}"
        layer.update = _looking(layer.update, name)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for layer in backbone.layers:
            del layer.update
        for hook in hooks:
            hook.remove()


def _looking(update: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    def looked_at(*given: Any) -> Tensor:
        rows = update(*given)
        _check(name, rows)
        return rows

    return looked_at


def _look_at(name: str, module: nn.Module, given: Any, rows: Tensor) -> None:
    _check(name, rows)


def _check(name: str, rows: Tensor) -> None:
    if not bool(rows.isfinite().all()):
        raise _Broken(name)
