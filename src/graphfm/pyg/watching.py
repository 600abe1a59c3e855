"""Hooks on a network of PyG that exist only while it runs.

A `Watcher` is told of every call of a convolution: its arguments, each propagation inside it, the
messages and the aggregate. It may change them. Nothing stays on the network afterwards.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch_geometric.nn import MessagePassing

_current: _Hooks | None = None  # a watcher is not told of what happens inside a nested one


class Place(NamedTuple):
    """A propagation: the name of its module, the number of the call, and of the hop inside it.

    Calls and hops are counted from 1; hop 0 stands for the call itself.
    """

    module: str
    call: int
    hop: int = 0

    @property
    def name(self) -> str:
        """What a message calls the module; the network itself may be a convolution."""
        return self.module or "the network itself"


class Watcher:
    """What happens while a network runs; does nothing by default."""

    def enter(self, place: Place, arguments: dict[str, Any]) -> None:
        """A convolution is called; `arguments` may be changed."""

    def propagate(self, place: Place, arguments: dict[str, Any]) -> None:
        """A convolution propagates these arguments, which may be changed."""

    def message(self, place: Place, edge_index: Tensor, out: Tensor) -> Tensor | None:
        """The messages of the edges, edge by edge, which may be replaced."""

    def aggregate(self, place: Place, out: Tensor) -> Tensor | None:
        """The aggregates, row by row, which may be replaced."""

    def before_norm(self, place: Place, norm: _BatchNorm, rows: Tensor) -> Tensor | None:
        """A batch norm is called; its rows may be replaced."""

    def after_norm(self, place: Place, norm: _BatchNorm, rows: Tensor) -> Tensor | None:
        """A batch norm has returned these rows, which may be replaced."""


@contextmanager
def watching(net: nn.Module, watcher: Watcher) -> Iterator[None]:
    """Tell the watcher what the network does inside the block."""
    global _current
    hooks, before = _Hooks(net, watcher), _current
    try:
        hooks.attach()
        _current = hooks
        yield
    finally:
        _current = before
        hooks.remove()


def convolutions(net: nn.Module) -> dict[str, MessagePassing]:
    """The convolutions of a network, by name."""
    return {name: part for name, part in net.named_modules() if isinstance(part, MessagePassing)}


class _Hooks:
    """Counts calls and hops, and passes on what PyG's hooks tell."""

    def __init__(self, net: nn.Module, watcher: Watcher) -> None:
        self.net, self.watcher = net, watcher
        self.names = {part: name for name, part in net.named_modules()}
        self.calls = Counter[nn.Module]()
        self.inside: list[tuple[MessagePassing, int]] = []  # calls that run, with hops so far
        self.edge_index: Tensor | None = None  # of the propagation that runs
        self.handles: list[Any] = []

    def attach(self) -> None:
        for part in self.names:
            if isinstance(part, MessagePassing):
                self.handles += [
                    part.register_forward_pre_hook(self._if_current(self._enter), with_kwargs=True),
                    part.register_forward_hook(self._if_current(self._leave)),
                    part.register_propagate_forward_pre_hook(self._if_current(self._propagate)),
                    part.register_message_forward_hook(self._if_current(self._message)),
                    part.register_aggregate_forward_hook(self._if_current(self._aggregate)),
                ]
            elif isinstance(part, _BatchNorm):
                self.handles += [
                    part.register_forward_pre_hook(self._if_current(self._before_norm)),
                    part.register_forward_hook(self._if_current(self._after_norm)),
                ]

    def _if_current(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: hook(*given) if _current is self else None

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def _enter(self, conv: MessagePassing, args: Any, kwargs: Any) -> Any:
        self.calls[conv] += 1
        self.inside.append((conv, 0))
        bound = inspect.signature(conv.forward).bind(*args, **kwargs)
        self.watcher.enter(Place(self.names[conv], self.calls[conv]), bound.arguments)
        return bound.args, bound.kwargs

    def _leave(self, conv: MessagePassing, args: Any, out: Any) -> None:
        self.inside.pop()

    def _place(self, conv: MessagePassing) -> Place:
        hop = next(hop for inner, hop in reversed(self.inside) if inner is conv)
        return Place(self.names[conv], self.calls[conv], hop)

    def _propagate(self, conv: MessagePassing, inputs: Any) -> Any:
        self.edge_index, size, arguments = inputs
        if not any(inner is conv for inner, _ in self.inside):  # called without `forward`
            self.inside.append((conv, 0))
        last = max(n for n, (inner, _) in enumerate(self.inside) if inner is conv)
        self.inside[last] = conv, self.inside[last][1] + 1
        moved = {name: _moved(value, conv.node_dim, 0) for name, value in arguments.items()}
        self.watcher.propagate(self._place(conv), moved)
        arguments = {name: _moved(value, 0, conv.node_dim) for name, value in moved.items()}
        return self.edge_index, size, arguments

    def _message(self, conv: MessagePassing, inputs: Any, out: Tensor) -> Tensor | None:
        rows = out.movedim(conv.node_dim, 0)
        assert self.edge_index is not None
        changed = self.watcher.message(self._place(conv), self.edge_index, rows)
        return None if changed is None else changed.movedim(0, conv.node_dim)

    def _aggregate(self, conv: MessagePassing, inputs: Any, out: Tensor) -> Tensor | None:
        changed = self.watcher.aggregate(self._place(conv), out.movedim(conv.node_dim, 0))
        # In PyG's own layout, so that later sums are taken in the same order.
        return None if changed is None else changed.movedim(0, conv.node_dim).contiguous()

    def _before_norm(self, norm: _BatchNorm, args: Any) -> Any:
        self.calls[norm] += 1
        place = Place(self.names[norm], self.calls[norm])
        changed = self.watcher.before_norm(place, norm, args[0])
        return None if changed is None else (changed,)

    def _after_norm(self, norm: _BatchNorm, args: Any, out: Tensor) -> Tensor | None:
        return self.watcher.after_norm(Place(self.names[norm], self.calls[norm]), norm, out)


def _moved(value: Any, source: int, target: int) -> Any:
    """Move the dimension of the nodes; a matrix has it in front in any case."""
    if isinstance(value, Tensor):
        return value.movedim(source, target) if value.dim() > 2 else value
    return tuple(_moved(v, source, target) for v in value) if isinstance(value, tuple) else value
