"""GraphFM-IB: a moving average of each node's sampled aggregate."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from graphfm.batch import Block, Rows
from graphfm.errors import InputError
from graphfm.estimators.base import Estimator, check_beta, per_layer
from graphfm.estimators.layer_step import LayerStep, Setup
from graphfm.kernels import fused_aggregate
from graphfm.kernels.fused_aggregate import Combined, Momentum
from graphfm.layer import GraphLayer
from graphfm.tables.base import TableSpec

STARTS = ("fresh", "zero", "features")


@dataclass(kw_only=True)
class AggregateMomentum(Estimator):
    """h~ = (1 - beta) h~ + beta A^(h), and the layer continues with h~ (Algorithm 1, equation 5).

    A^(h) is the sampled aggregate and h~ the history. The gradient flows through A^(h) alone, so it
    is beta times that of an exact aggregate; `whole_gradient` (ours) does not scale it down. A^ is
    unbiased for linear aggregators only; a maximum or a standard deviation is averaged as sampled.

    With `start="fresh"`, beta at a node's t-th visit is beta / (1 - (1 - beta)^t): the first visit
    takes the fresh value whole, and the zeros that the history was allocated with never count.
    `"zero"` is the paper's start. `"features"` is that of the released code: the first layer's
    history starts with the node's own features (it exists only without the exact first hop), and
    the others start at zero.
    """

    keeps_history: ClassVar[bool] = True
    capturable: ClassVar[bool] = True
    history_of: ClassVar[str] = "aggregate"
    beta: tuple[float, ...]  # one per layer, or one for all; 1 is plain neighbour sampling
    start: str = "fresh"
    whole_gradient: bool = False
    exact_first_hop: bool = True

    def __post_init__(self) -> None:
        check_beta(self.beta)
        if self.start not in STARTS:
            raise InputError(f"start is {self.start}; expected one of {', '.join(STARTS)}")

    def declare(self, layers: Sequence[GraphLayer], first: int) -> dict[str, TableSpec]:
        per_layer("beta", self.beta, len(layers))
        if self.start == "features" and layers and layers[0].agg_width % layers[0].in_width:
            raise InputError(
                "start is features, but this network's aggregates are not as wide as its features; "
                "use start fresh or zero"
            )
        last = len(layers) - 1  # a step writes only its seeds there
        tables = {
            f"aggregate.{d}": TableSpec(width=layers[d].agg_width, seeds_only=d == last)
            for d in range(first, len(layers))
        }
        return tables | {
            f"visits.{d}": TableSpec(width=1, exact=True, seeds_only=d == last)
            for d in range(first, len(layers))
        }

    def prepare(self, setup: Setup) -> None:
        super().prepare(setup)
        layers, tables = setup.layers, setup.tables
        self.betas = per_layer("beta", self.beta, len(layers))
        depths = range(setup.first, len(layers))
        self.histories = {d: tables[f"aggregate.{d}"] for d in depths}
        self.visits = {d: tables[f"visits.{d}"] for d in depths}
        self.repeats = layers[0].agg_width // layers[0].in_width if layers else 1

    def begin(self, encoded: Callable[[], Tensor]) -> None:
        if self.start == "features" and 0 in self.histories:
            h0 = encoded()
            rows = h0.repeat(1, self.repeats)  # once for each aggregator
            self.histories[0].push(torch.arange(h0.size(0), device=h0.device), rows)

    def kept_ids(self, depth: int) -> Tensor | None:
        history = self.histories.get(depth)
        return None if history is None else history.kept_ids()

    def believed(self, h0: Tensor, degree: Tensor) -> dict[int, Tensor]:
        ids = torch.arange(degree.numel(), device=degree.device)
        return {depth: table.pull(ids) for depth, table in self.histories.items()}

    def aggregate(self, step: LayerStep) -> Tensor:
        ids, beta = step.block.dst_ids, self.betas[step.depth]
        past, visits = self.histories[step.depth].pull(ids), self.visits[step.depth].pull(ids)
        if self.start == "fresh" and 0 < beta < 1:  # expm1 and log1p are exact for small beta too
            share = beta / -torch.expm1((visits + 1) * math.log1p(-beta))
        else:
            share = torch.full_like(visits, beta)
        fresh = step.layer.aggregate(step.h, step.block).float()
        blended = torch.lerp(past, fresh, share.expand_as(fresh))
        if self.whole_gradient:
            return blended.detach() + (fresh - fresh.detach())
        return blended

    def record(self, step: LayerStep, agg: Tensor, out: Tensor) -> None:
        if step.depth in self.histories:
            ids, visits = step.block.dst_ids, self.visits[step.depth]
            count = visits.pull(ids) + 1
            self.histories[step.depth].push(ids, agg)
            visits.push(ids, count)

    def first_layer_ahead(self, exact_first_hop: bool) -> bool:
        return self.can_fuse() and exact_first_hop

    def combine(
        self, depth: int, layer: GraphLayer, block: Block, h: Tensor | Rows, records: bool
    ) -> Combined:
        momentum = self._momentum(depth)
        combined = fused_aggregate.combine(
            h, block, join=layer.joins, known=self._known(depth), momentum=momentum
        )
        if momentum is not None and records:
            fused_aggregate.keep(combined, block.dst_ids, momentum)
        return combined

    def _momentum(self, depth: int) -> Momentum | None:
        if depth not in self.histories:
            return None
        history, visits = self.histories[depth].resident, self.visits[depth].resident
        assert history is not None  # the plan fuses layers only with tables on the device
        assert visits is not None
        return Momentum(
            past=history.rows,
            visits=visits.rows,
            place=history.place,
            beta=self.betas[depth],
            fresh=self.start == "fresh",
            whole_gradient=self.whole_gradient,
        )
