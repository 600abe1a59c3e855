"""What an estimator sees of one propagation of a network of PyG."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from graphfm.batch import Block, Targets
from graphfm.layer import GraphLayer
from graphfm.pyg.calls import Call
from graphfm.pyg.watching import Place

SUM, MEAN, OTHER = "sum", "mean", "other"  # how a propagation combines its messages


class Cut(GraphLayer):
    """A propagation of the user's network, with the widths of its rows and of its aggregate.

    The network itself computes everything; an estimator reads and replaces the aggregate. `repeat`
    computes the aggregate of other rows along other edges, where the call allows it.
    """

    updates = False
    repeat: Callable[[Cut, Tensor, Block], Tensor]

    def __init__(
        self,
        *,
        place: Place,
        depth: int,
        call: Call,
        inner: bool,
        rows: tuple[str, ...],
        deep: tuple[str, ...],
        in_width: int,
        deep_width: int,
        agg_width: int,
        template: dict[str, Any],
    ) -> None:
        super().__init__(
            in_width, agg_width, 0, dropout=0.0, batch_norm=False, residual=False, activation=False
        )
        self.place, self.depth, self.call, self.inner = place, depth, call, inner
        self.rows, self.deep, self.deep_width = rows, deep, deep_width
        self.template = template  # the arguments of its call, with rows that are only shapes
        self.reads_features = call.raw and not inner
        self.message_width = agg_width
        self.can_repeat = call.repeatable
        self.kind = OTHER
        self.adds_loops = False  # the convolution adds self-loops behind the edges it was given
        self.linear = self.weightless = False  # in the rows; without any parameter
        self._fresh: tuple[Tensor, Tensor] | None = None

    @property
    def is_linear(self) -> bool:
        return self.linear and self.weightless

    @contextmanager
    def showing(self, rows: Tensor, aggregate: Tensor) -> Iterator[None]:
        """Inside the block, `aggregate` of these rows is what the network has just computed."""
        self._fresh = rows, aggregate
        try:
            yield
        finally:
            self._fresh = None

    def aggregate(self, h: Tensor, block: Block) -> Tensor:
        if self._fresh is not None and h is self._fresh[0]:
            return self._fresh[1]
        return self.repeat(self, h, block)

    def update(self, agg: Tensor, targets: Targets) -> Tensor:
        raise AssertionError("the network updates its rows itself")
