"""Estimators: how one layer's output is computed when the batch holds only part of the graph."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from graphfm.batch import Block
from graphfm.errors import InputError
from graphfm.layer import GraphLayer
from graphfm.tables.base import NodeTable

NewTable = Callable[[int], NodeTable]  # width -> empty table


@dataclass(frozen=True, slots=True)
class LayerStep:
    """One layer applied to one block."""

    depth: int
    layer: GraphLayer
    block: Block
    h: Tensor  # [num_src, in_width] complete, after dropout
    h0: Tensor  # [num_src, width] encoder output


class Estimator:
    """Complete the sources, aggregate, record. The defaults are exact."""

    views: ClassVar[frozenset[str]] = frozenset()  # optional Block fields this estimator reads
    keeps_history: ClassVar[bool] = False
    recording: bool = True  # off in a pass whose rows are not fit for the histories

    def allocate(self, layers: Sequence[GraphLayer], new_table: NewTable) -> None:
        """Create the histories. Called once, before training."""

    def sources(self, depth: int, block: Block, h: Tensor) -> Tensor:
        """Extend the rows known so far to every source of `block`."""
        if h.size(0) != block.num_src:
            raise ValueError(
                f"layer {depth} reads {block.num_src} nodes but only {h.size(0)} are in the batch; "
                f"{type(self).__name__} needs a sampler that keeps no halo"
            )
        return h

    def aggregate(self, step: LayerStep) -> Tensor:
        """The layer's aggregate of the targets, as well as this batch can tell."""
        return step.layer.aggregate(step.h, step.block)

    def record(self, step: LayerStep, agg: Tensor, out: Tensor) -> None:
        """Write histories. Nothing here may change `out`."""

    def __call__(
        self, depth: int, layer: GraphLayer, block: Block, h: Tensor, h0: Tensor
    ) -> Tensor:
        h = layer.dropout(self.sources(depth, block, h))
        step = LayerStep(depth, layer, block, h, h0)
        agg = self.aggregate(step)
        out = layer.update(agg, block.targets(h, h0))
        if self.recording:
            self.record(step, agg.detach(), out.detach())
        return out


class Exact(Estimator):
    """Trust the block: full batch, and every method whose sampler alone makes the estimate."""


def check_beta(beta: tuple[float, ...]) -> None:
    if not beta or not all(0 <= value <= 1 for value in beta):
        said = ",".join(map(str, beta)) or "empty"
        raise InputError(
            f"beta is {said}; expected numbers from 0 to 1, one for all or one a layer"
        )


def per_layer(name: str, values: tuple[float, ...], num_layers: int) -> tuple[float, ...]:
    """One value for each layer, of one given for all or one given for each."""
    if len(values) not in (1, num_layers):
        raise InputError(
            f"{name} has {len(values)} numbers and the network {num_layers} layers; "
            "give one number per layer, or one for all"
        )
    return values if len(values) == num_layers else values * num_layers
