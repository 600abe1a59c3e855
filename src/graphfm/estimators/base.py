"""Estimators: how one layer's output is computed when the batch holds only part of the graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from graphfm.batch import Block, Rows, Targets
from graphfm.errors import InputError
from graphfm.estimators.gradient_compensation import Compensation
from graphfm.estimators.layer_step import ForwardPass, LayerStep, Setup, nodes_of
from graphfm.kernels.fused_aggregate import Combined
from graphfm.layer import GraphLayer
from graphfm.tables.base import NodeTable, TableSpec


class Estimator:
    """Computes a layer in three hooks: `sources`, `aggregate` and `record`. The defaults are exact.

    A subclass overrides some of the hooks and names the tables it needs in `declare`. After
    `prepare` it finds them in `self.tables`, and the training's step and epoch in `self.clock`.
    Checkpoints keep the numbers that it puts into `self.numbers`, which `prepare` empties.
    """

    views: ClassVar[frozenset[str]] = frozenset()  # optional fields of Block that it reads
    keeps_history: ClassVar[bool] = False
    history_of: ClassVar[str] = "output"  # or "input" or "aggregate": what histories hold
    records_first: bool = False  # the second pass, which writes histories where there is dropout
    dropout_in_histories: bool = False  # no second pass: the pass with dropout writes them
    untrained: str = "record"  # what batches without training nodes do; or "skip": nothing
    computes_halo: ClassVar[bool] = False  # the halo follows from its known `halo_aggregate`
    shares_dropout: ClassVar[bool] = False  # past rows get the same dropout mask as fresh rows
    # True if a step may be replayed as a CUDA graph: no hook depends on Python values that change.
    capturable: ClassVar[bool] = False
    exact_first_hop: bool = False  # use first aggregates computed once, where the network allows it
    first_hop: NodeTable | None = None  # every node's aggregate of raw features
    compensation: Compensation | None = None  # gradients from outside the batch
    fused: frozenset[int] = frozenset()  # layers that `combine` computes

    def declare(self, layers: Sequence[GraphLayer], first: int) -> dict[str, TableSpec]:
        """The tables it needs, by name; `first` is the first depth without known aggregates."""
        return {}

    def note(self, num_layers: int, exact_first_hop: bool) -> str | None:
        """What a user should know about it on a network of this depth, if anything."""
        return None

    def prepare(self, setup: Setup) -> None:
        """Take the declared tables. This is called once, before training."""
        self.tables, self.first_hop = setup.tables, setup.first_hop
        self.fused, self.clock = setup.plan.fused, setup.clock
        self.numbers = dict[str, float]()
        planned = setup.plan.tables.items()
        self.scratch = frozenset(name for name, table in planned if table.spec.scratch)

    def begin(self, encoded: Callable[[], Tensor]) -> None:
        """Fill the histories with their first values; `encoded()` encodes all nodes."""

    def histories_by_name(self) -> dict[str, NodeTable]:
        """The tables that outlive a step: training state, like the weights."""
        return {name: table for name, table in self.tables.items() if name not in self.scratch}

    def state_dict(self) -> dict[str, Tensor]:
        """The rows of every history by name."""
        return {name: table.rows for name, table in self.histories_by_name().items()}

    def checked_numbers(self) -> dict[str, float]:
        """Its `numbers`. Refuses what no checkpoint can hold."""
        for name, value in self.numbers.items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not math.isfinite(value):
                raise InputError(
                    f"the estimator's number {name!r} is {value!r}; expected a finite int or "
                    "float: put tensors into a table (declare), and 0 or 1 for a flag"
                )
        return dict(self.numbers)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Continue from saved histories. Rows are filled in place: nothing is held twice."""
        for name, rows in self.state_dict().items():
            rows.copy_(state[name])

    def sources(self, step: LayerStep) -> Tensor:
        """Extend the rows known so far, `step.h`, to every source of the block."""
        if step.h.size(0) != step.block.edges.num_src:
            raise ValueError(
                f"layer {step.depth} reads {step.block.num_src} nodes, but the batch has only "
                f"{step.h.size(0)}; {type(self).__name__} needs a sampler without a halo"
            )
        return step.h

    def aggregate(self, step: LayerStep) -> Tensor:
        """Estimate the layer's aggregate of the targets from what the batch holds."""
        return step.layer.aggregate(step.h, step.block)

    def record(self, step: LayerStep, agg: Tensor, out: Tensor) -> None:
        """Write histories. This must not change `out`."""

    def combine(
        self, depth: int, layer: GraphLayer, block: Block, h: Tensor | Rows, forward: ForwardPass
    ) -> Combined:
        """Do the work of `aggregate` and `record` with fused kernels, on a fixed fan-out."""
        raise AssertionError(f"{type(self).__name__} has no fused kernel")

    def can_fuse(self) -> bool:
        """True if `combine` may replace the hooks. A subclass, which may change a hook, says no."""
        return "combine" in vars(type(self))

    def first_layer_ahead(self, exact_first_hop: bool) -> bool:
        """True if the first aggregate does not depend on training state and can be made early."""
        return False

    def shares_first_layer(self, layer: GraphLayer) -> bool:
        """True if the recording pass and the training pass have the same first layer."""
        return False

    def written_ids(self, depth: int, block: Block) -> Tensor:
        """The nodes whose rows `record` writes at this depth."""
        return block.dst_ids

    def working_set(self, blocks: Sequence[Block]) -> dict[str, Tensor]:
        """The nodes whose rows a step may read or write, by table; `blocks` has one per layer.

        A table that is not on the compute device is asked for these rows before the step begins.
        The default is right for every estimator: all nodes of the batch, for each of its tables.
        """
        everyone = nodes_of(blocks)
        return dict.fromkeys(self.tables, everyone)

    def halo_aggregate(self, step: LayerStep) -> Tensor:
        """Estimate the halo's own aggregate at this layer (gradient compensation reads it)."""
        raise AssertionError(f"{type(self).__name__} has no halo")

    def kept_ids(self, depth: int) -> Tensor | None:
        """The nodes that have a row in the history at this depth; None means all."""
        return None

    def believed(self, h0: Tensor, degree: Tensor) -> dict[int, Tensor]:
        """The past rows of all nodes that a step would read now, by depth."""
        return {}

    def output(
        self,
        blocks: Sequence[Block],
        first: Tensor | Rows | Combined,
        forward: ForwardPass | None,
        depth: int,
        layer: GraphLayer,
        h: Tensor | Rows | Combined,
    ) -> Tensor:
        """The output of one layer of a batch, in the form that `Backbone.walk` calls."""
        h0 = first if isinstance(first, Tensor) else h  # nothing was encoded
        known = None if forward is None or depth > 0 else forward.first_output
        if known is None:
            return self(depth, layer, blocks[depth], h, h0, forward)
        if not known:
            with torch.enable_grad():
                known.append(self(depth, layer, blocks[depth], h, h0, forward))
        return known[0] if torch.is_grad_enabled() else known[0].detach()

    def __call__(
        self,
        depth: int,
        layer: GraphLayer,
        block: Block,
        h: Tensor | Rows | Combined,
        h0: Tensor | Rows | Combined,
        forward: ForwardPass | None = None,
    ) -> Tensor:
        """The output of one layer for the targets of a block."""
        forward = forward or ForwardPass()
        if not isinstance(h, Tensor):  # the first layer's kernel gathers the rows itself
            return self._fused(depth, layer, block, h, None, forward)
        assert isinstance(h0, Tensor)
        mask, rows = None, self.sources(LayerStep(depth, layer, block, h, h0, forward))
        if self.shares_dropout:
            mask = layer.dropout(torch.ones_like(rows))
            rows = rows * mask
        else:
            rows = layer.dropout(rows)
        if block.edges.fanout and depth in self.fused:
            return self._fused(depth, layer, block, rows, h0, forward)
        step = LayerStep(depth, layer, block, rows, h0, forward, mask)
        if depth == 0 and self.first_hop is not None:
            agg = self.first_hop.pull(block.dst_ids)
        else:
            agg = self.aggregate(step)
        num_dst, targets = block.num_dst, block.place
        own = rows[:num_dst] if targets is None else rows.index_select(0, targets)
        if h0 is not rows:
            h0 = h0[:num_dst] if targets is None else h0.index_select(0, targets)
        out = layer.update(agg, Targets(own, own if h0 is rows else h0, block.degree))
        if forward.records:
            self.record(step, agg.detach(), out.detach())
        if self.compensation is not None and out.requires_grad and self.compensation.wants(depth):
            alone = block.from_halo is None
            self.compensation.add(step, out, None if alone else self.halo_aggregate(step))
        return out

    def _fused(
        self,
        depth: int,
        layer: GraphLayer,
        block: Block,
        h: Tensor | Rows | Combined,
        h0: Tensor | None,
        forward: ForwardPass,
    ) -> Tensor:
        combined = h if isinstance(h, Combined) else self.combine(depth, layer, block, h, forward)
        agg, joined = combined.rows, None
        if layer.joins:
            joined = agg
            agg, own = joined[:, : combined.width], joined[:, combined.width :]
        else:
            own = h[: block.num_dst] if isinstance(h, Tensor) else agg
        first = own if h0 is None else h0[: block.num_dst]
        return layer.update(agg, Targets(own, first, block.degree, joined))

    def _known(self, depth: int) -> Tensor | None:
        """Every node's aggregate at this depth, if it never changes."""
        if depth > 0 or self.first_hop is None:
            return None
        resident = self.first_hop.resident
        assert resident is not None  # the plan fuses layers only with tables on the device
        return resident.rows


def table_of(table: NodeTable, layer: GraphLayer, block: Block) -> Tensor | None:
    """The rows of all nodes, if a sum over the block's edges can read them from the table."""
    if not layer.sums or block.by_id is None:
        return None
    dropped = layer.dropout.training and layer.dropout.p > 0
    found = table.resident
    if dropped or found is None or found.place is not None or found.rows.dtype != torch.float32:
        return None
    return found.rows[:-1]
