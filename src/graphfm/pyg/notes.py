"""What a pass of a network of PyG over a graph shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from graphfm.pyg.calls import parts_of
from graphfm.pyg.watching import Place, Watcher


@dataclass
class Notes(Watcher):
    """Writes down what a pass over a graph of known sizes shows."""

    x: Tensor
    edge_index: Tensor
    data: Mapping[str, Tensor]
    entered: dict[Place, dict[str, Any]] = field(default_factory=dict)
    propagated: dict[Place, dict[str, Any]] = field(default_factory=dict)
    aggregates: dict[Place, Tensor] = field(default_factory=dict)
    messages: dict[Place, int] = field(default_factory=dict)
    normed: dict[Place, Tensor] = field(default_factory=dict)
    repeated: set[Place] = field(default_factory=set)  # aggregated more than once in one hop

    def is_rows(self, value: Any) -> bool:
        """True for a tensor with a row of numbers for each node."""
        parts = parts_of(value)
        return bool(parts) and all(
            part.is_floating_point() and part.dim() > 1 and part.size(0) == self.x.size(0)
            for part in parts
        )

    def enter(self, place: Place, arguments: dict[str, Any]) -> None:
        self.entered[place] = dict(arguments)

    def propagate(self, place: Place, arguments: dict[str, Any]) -> None:
        self.propagated[place] = dict(arguments)

    def message(self, place: Place, edge_index: Tensor, out: Tensor) -> None:
        self.messages[place] = out.size(0)

    def aggregate(self, place: Place, out: Tensor) -> None:
        if place in self.aggregates:
            self.repeated.add(place)
        self.aggregates[place] = out

    def before_norm(self, place: Place, norm: _BatchNorm, rows: Tensor) -> None:
        self.normed[place] = rows
