"""Estimators: how one layer's output is computed when the batch holds only part of the graph."""

from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from graphfm.batch import Block, Rows, Targets
from graphfm.errors import InputError
from graphfm.estimators.gradient_compensation import Compensation
from graphfm.estimators.layer_step import LayerStep, NewTable
from graphfm.kernels import backend as compiled
from graphfm.kernels import fused_aggregate as fanout
from graphfm.kernels.fused_aggregate import Combined
from graphfm.layer import GraphLayer
from graphfm.tables.base import NodeTable
from graphfm.tables.device import DeviceTable


class Estimator:
    """Complete the sources, aggregate, record. The defaults are exact."""

    views: ClassVar[frozenset[str]] = frozenset()  # optional Block fields this estimator reads
    keeps_history: ClassVar[bool] = False
    history_of: ClassVar[str] = "output"  # or "input" or "aggregate": of a layer, what is kept
    exact_first_hop: bool = False  # ask for `first_hop`; given where the backbone allows it
    first_hop: NodeTable | None = None  # every node's aggregate of raw features, computed once
    recording: bool = True  # off in a pass whose rows are not fit for the histories
    records_first: ClassVar[bool] = (
        False  # where two passes are needed, is that for histories first?
    )
    shares_dropout: ClassVar[bool] = (
        False  # drop from the past what is dropped now (LayerStep.mask)
    )
    compensation: Compensation | None = None  # gradients from beyond the batch
    combines: ClassVar[bool] = False  # may `combine` stand for the hooks, where there are kernels?

    def allocate(self, layers: Sequence[GraphLayer], new_table: NewTable) -> None:
        """Create the histories. Called once, before training."""

    def begin(self, encoded: Callable[[], Tensor]) -> None:
        """Fill the histories with what they start from; `encoded()` encodes all nodes."""

    def tables(self) -> dict[str, NodeTable]:
        """The histories by name: with the weights, all that training has learned."""
        return {}

    def sources(self, depth: int, layer: GraphLayer, block: Block, h: Tensor, h0: Tensor) -> Tensor:
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

    def combine(self, depth: int, layer: GraphLayer, block: Block, h: Tensor | Rows) -> Combined:
        """`aggregate` and `record` by one kernel each, on a block of fixed fan-out."""
        raise AssertionError(f"{type(self).__name__} has no kernel")

    @property
    def has_kernel(self) -> bool:
        """May `combine` stand for this class's hooks? A subclass may have changed them."""
        return bool(vars(type(self)).get("combines", False))

    def written_ids(self, depth: int, block: Block) -> Tensor:
        """The nodes whose rows at this depth `record` writes; for a history, how old it is."""
        return block.dst_ids

    def halo_aggregate(self, step: LayerStep) -> Tensor:
        """The halo's own aggregate at this layer, as well as can be told (for compensation)."""
        raise AssertionError(f"{type(self).__name__} knows no halo")

    def kept_ids(self, depth: int) -> Tensor | None:
        """The nodes that have a row in the history at this depth; None is all."""
        return None

    def believed(self, h0: Tensor, degree: Tensor) -> dict[int, Tensor]:
        """By depth, what a step would take from the past for every node (see `history_of`)."""
        return {}

    def __call__(
        self, depth: int, layer: GraphLayer, block: Block, h: Tensor, h0: Tensor
    ) -> Tensor:
        h, mask = self.sources(depth, layer, block, h, h0), None
        if self.shares_dropout:
            mask = layer.dropout(torch.ones_like(h))
            h = h * mask
        else:
            h = layer.dropout(h)
        if self.has_kernel and layer.sums and fanout.fits(block) and compiled.available(h.device):
            return self._at_once(depth, layer, block, h, h0)
        step = LayerStep(depth, layer, block, h, h0, mask)
        if depth == 0 and self.first_hop is not None:
            agg = self.first_hop.pull(block.dst_ids)
        else:
            agg = self.aggregate(step)
        out = layer.update(agg, block.targets(h, h0))
        if self.recording:
            self.record(step, agg.detach(), out.detach())
        if self.compensation is not None and out.requires_grad and self.compensation.wants(depth):
            alone = block.from_halo is None
            self.compensation.add(step, out, None if alone else self.halo_aggregate(step))
        return out

    @property
    def first_unlearned(self) -> bool:
        """Is what the first layer combines the same whatever steps have done?"""
        return False

    def ahead(self, layer: GraphLayer, block: Block, rows: Rows) -> Rows | Combined:
        """What the first layer reads; combined already, where that needs no other step's work."""
        return self.combine(0, layer, block, rows) if self.first_unlearned else rows

    def read(self, layer: GraphLayer, block: Block, rows: Rows | Combined) -> Tensor:
        """The first layer, from rows that a kernel gathers on the way, or has gathered."""
        return self._at_once(0, layer, block, rows, None)

    def _at_once(
        self,
        depth: int,
        layer: GraphLayer,
        block: Block,
        h: Tensor | Rows | Combined,
        h0: Tensor | None,
    ) -> Tensor:
        combined = h if isinstance(h, Combined) else self.combine(depth, layer, block, h)
        agg, joined = combined.rows, None
        if layer.joins:
            joined = agg
            agg, own = joined[:, : combined.width], joined[:, combined.width :]
        else:
            own = h[: block.num_dst] if isinstance(h, Tensor) else agg
        first = own if h0 is None else h0[: block.num_dst]
        return layer.update(agg, Targets(own, first, block.degree, block.valid, joined))

    def _known(self, depth: int) -> Tensor | None:
        """Every node's aggregate at this depth, if it never changes."""
        if depth > 0 or self.first_hop is None:
            return None
        assert isinstance(self.first_hop, DeviceTable)
        return self.first_hop.rows


class Exact(Estimator):
    """Trust the block: full batch, and every method whose sampler alone makes the estimate."""

    combines: ClassVar[bool] = True

    @property
    def first_unlearned(self) -> bool:
        return self.has_kernel

    def combine(self, depth: int, layer: GraphLayer, block: Block, h: Tensor | Rows) -> Combined:
        return fanout.combine(h, block, join=layer.joins, known=self._known(depth))


def check_beta(beta: Sequence[float]) -> None:
    if not beta or not all(0 <= value <= 1 for value in beta):
        said = ",".join(map(str, beta)) or "empty"
        raise InputError(
            f"beta is {said}; expected numbers from 0 to 1, one for all or one a layer"
        )


def per_layer(name: str, values: Sequence[float], num_layers: int) -> tuple[float, ...]:
    """One value for each layer, of one given for all or one given for each."""
    if len(values) not in (1, num_layers):
        raise InputError(
            f"{name} has {len(values)} numbers, and {num_layers} would be needed to give one for "
            "each layer that has a history; give as many, or one for all"
        )
    return tuple(values) if len(values) == num_layers else tuple(values) * num_layers
