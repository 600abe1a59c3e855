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
from graphfm.estimators.layer_step import LayerStep, NewTable
from graphfm.kernels import fused_aggregate as fanout
from graphfm.kernels.fused_aggregate import Combined, Momentum
from graphfm.layer import GraphLayer
from graphfm.tables.base import NodeTable
from graphfm.tables.device import DeviceTable

STARTS = ("fresh", "zero", "features")


@dataclass(kw_only=True)
class AggregateMomentum(Estimator):
    """h~ = (1 - beta) h~ + beta A^(h), and the layer goes on from h~ (Algorithm 1, equation 5).

    The gradient flows through the fresh part alone, so beta times as much of it as through an exact
    aggregate; `whole_gradient` (ours) does not scale it down. A^ is unbiased for linear aggregators
    only; a maximum or a deviation is averaged as it was sampled.

    `start="fresh"`: at a node's t-th visit beta is beta / (1 - (1 - beta)^t), so that the first
    takes the fresh value whole, and the history is an average of what was seen rather than of
    that and zero. `start="zero"` is the paper's, `"features"` that of the released code: the first
    layer's history begins as the node's own features (where it has one: without the exact first
    hop), the others at zero.
    """

    keeps_history: ClassVar[bool] = True
    combines: ClassVar[bool] = True
    history_of: ClassVar[str] = "aggregate"
    beta: tuple[float, ...]  # one per layer, or one for all; 1 is plain neighbour sampling
    start: str = "fresh"
    whole_gradient: bool = False
    exact_first_hop: bool = True

    def __post_init__(self) -> None:
        check_beta(self.beta)
        if self.start not in STARTS:
            raise InputError(f"start is {self.start}; expected {', '.join(STARTS)}")

    def allocate(self, layers: Sequence[GraphLayer], new_table: NewTable) -> None:
        self.betas = per_layer("beta", self.beta, len(layers))
        known = 0 if self.first_hop is None else 1  # what never changes needs no history
        last = len(layers) - 1
        self.histories = {
            d: new_table(layers[d].agg_width, last=d == last) for d in range(known, len(layers))
        }
        self.visits = {d: new_table(1, exact=True, last=d == last) for d in self.histories}
        self.repeats = layers[0].agg_width // layers[0].in_width if layers else 1
        if self.start == "features" and layers and layers[0].agg_width % layers[0].in_width:
            raise InputError(
                "start is features, but this network's aggregates are not as wide as its features; "
                "use start fresh or zero"
            )

    def begin(self, encoded: Callable[[], Tensor]) -> None:
        if self.start == "features" and 0 in self.histories:
            h0 = encoded()
            rows = h0.repeat(1, self.repeats)  # once for each of several aggregators
            self.histories[0].push(torch.arange(h0.size(0), device=h0.device), rows)

    def tables(self) -> dict[str, NodeTable]:
        named = {f"aggregate.{depth}": table for depth, table in self.histories.items()}
        return named | {f"visits.{depth}": table for depth, table in self.visits.items()}

    def kept_ids(self, depth: int) -> Tensor | None:
        history = self.histories.get(depth)
        return history.kept_ids() if isinstance(history, DeviceTable) else None

    def believed(self, h0: Tensor, degree: Tensor) -> dict[int, Tensor]:
        ids = torch.arange(degree.numel(), device=degree.device)
        return {depth: table.pull(ids) for depth, table in self.histories.items()}

    def aggregate(self, step: LayerStep) -> Tensor:
        past = self.histories[step.depth].pull(step.block.dst_ids)
        fresh = step.layer.aggregate(step.h, step.block).float()
        blended = torch.lerp(past, fresh, self._weight(step).expand_as(fresh))
        if self.whole_gradient:
            return blended.detach() + (fresh - fresh.detach())
        return blended

    def record(self, step: LayerStep, agg: Tensor, out: Tensor) -> None:
        if step.depth in self.histories:
            ids, visits = step.block.dst_ids, self.visits[step.depth]
            self.histories[step.depth].push(ids, agg)
            visits.push(ids, visits.pull(ids) + 1)

    @property
    def first_unlearned(self) -> bool:
        return self.has_kernel and 0 not in self.histories

    def combine(self, depth: int, layer: GraphLayer, block: Block, h: Tensor | Rows) -> Combined:
        momentum = self._momentum(depth)
        combined = fanout.combine(
            h, block, join=layer.joins, known=self._known(depth), momentum=momentum
        )
        if momentum is not None and self.recording:
            fanout.keep(combined, block.dst_ids, momentum)
        return combined

    def _momentum(self, depth: int) -> Momentum | None:
        if depth not in self.histories:
            return None
        history, visits = self.histories[depth], self.visits[depth]
        assert isinstance(history, DeviceTable)
        assert isinstance(visits, DeviceTable)
        return Momentum(
            past=history.rows,
            visits=visits.rows,
            place=history.place,
            beta=self.betas[depth],
            fresh=self.start == "fresh",
            whole_gradient=self.whole_gradient,
        )

    def _weight(self, step: LayerStep) -> Tensor:
        """[num_dst, 1] beta of each target, by how often it was seen before."""
        beta, visits = self.betas[step.depth], self.visits[step.depth].pull(step.block.dst_ids)
        if self.start != "fresh" or beta == 0:
            return torch.full_like(visits, beta)
        if beta == 1:
            return torch.ones_like(visits)
        return beta / -torch.expm1((visits + 1) * math.log1p(-beta))  # exact for small beta too
