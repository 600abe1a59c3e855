"""GraphFM-IB: a moving average of each node's sampled aggregate."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import Dropout

from graphfm.batch import Block, Edges, Rows
from graphfm.errors import InputError
from graphfm.estimators.base import Estimator
from graphfm.estimators.layer_step import ForwardPass, LayerStep, Setup
from graphfm.estimators.per_layer import check_beta, per_layer
from graphfm.kernels import fused_aggregate
from graphfm.kernels.fused_aggregate import Combined
from graphfm.kernels.momentum import NEVER_SEEN, Momentum, Noise, were_seen
from graphfm.layer import GraphLayer
from graphfm.tables.base import NodeTable, TableSpec

STARTS = ("fresh", "zero", "features")


@dataclass(kw_only=True)
class AggregateMomentum(Estimator):
    """h~ = (1 - beta) h~ + beta A^(h), and the layer continues with h~ (Algorithm 1, equation 5).

    A^(h) is the sampled aggregate and h~ the history. The gradient flows through A^(h) alone, so it
    is beta times that of an exact aggregate. A^ is unbiased for linear aggregators only; a maximum
    or a standard deviation is averaged as sampled. Three settings are ours (docs/momentum.md):

    - `whole_gradient` does not scale the gradient down.
    - `correct_lag` keeps the row h' that each node last had as a layer's source, and moves
      the history along with the rows it averages: h~ = (1 - beta) (h~ + A^(h - h')) + beta A^(h).
    - `drop_average` gives the average the dropout that the rows behind it would have: the mean of d
      rows with dropout p has the noise of one row with dropout r / (1 + r), r = p / (1 - p) / d.

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
    correct_lag: bool = False
    drop_average: bool = False
    exact_first_hop: bool = True

    def __post_init__(self) -> None:
        check_beta(self.beta)
        if self.start not in STARTS:
            raise InputError(f"start is {self.start}; expected one of {', '.join(STARTS)}")

    @property
    def records_first(self) -> bool:  # type: ignore[override]
        """With dropout, the recording pass moves the histories, and the next pass reads them."""
        return self.correct_lag

    def declare(self, layers: Sequence[GraphLayer], first: int) -> dict[str, TableSpec]:
        betas = per_layer("beta", self.beta, len(layers))
        if self.start == "features" and layers and not _fits_features(layers[0]):
            raise InputError(
                "start is features, but this network's aggregates are not as wide as its features; "
                "use start fresh or zero"
            )
        last = len(layers) - 1  # a step writes only its seeds there
        tables = {
            f"aggregate.{d}": TableSpec(width=layers[d].agg_width, seeds_only=d == last)
            for d in range(first, len(layers))
        }
        tables |= {
            f"visits.{d}": TableSpec(width=1, exact=True, seeds_only=d == last)
            for d in range(first, len(layers))
        }
        return tables | {
            f"inputs.{d}": TableSpec(width=layers[d].in_width, unwritten=NEVER_SEEN)
            for d in range(first, len(layers))
            if self.correct_lag
            and betas[d] < 1
            and layers[d].can_repeat
            and not layers[d].reads_features
        }

    def prepare(self, setup: Setup) -> None:
        super().prepare(setup)
        layers, tables = setup.layers, setup.tables
        self.betas = per_layer("beta", self.beta, len(layers))
        depths = range(setup.first, len(layers))
        self.histories = {d: tables[f"aggregate.{d}"] for d in depths}
        self.visits = {d: tables[f"visits.{d}"] for d in depths}
        self.inputs = {d: tables[f"inputs.{d}"] for d in depths if f"inputs.{d}" in tables}
        self.repeats = layers[0].agg_width // layers[0].in_width if layers else 1

    def begin(self, encoded: Callable[[], Tensor]) -> None:
        if self.start == "features" and 0 in self.histories:
            h0 = encoded()
            rows = h0.repeat(1, self.repeats)  # once for each aggregator
            self.histories[0].push(torch.arange(h0.size(0), device=h0.device), rows)

    def working_set(self, blocks: Sequence[Block]) -> dict[str, Tensor]:
        found = dict[str, Tensor]()
        for depth in self.histories:
            targets = dict.fromkeys(("aggregate", "visits"), blocks[depth].dst_ids)
            rows = targets | ({"inputs": blocks[depth].src_ids} if depth in self.inputs else {})
            found |= {f"{name}.{depth}": ids for name, ids in rows.items()}
        return found

    def kept_ids(self, depth: int) -> Tensor | None:
        history = self.histories.get(depth)
        return None if history is None else history.kept_ids()

    def believed(self, h0: Tensor, degree: Tensor) -> dict[int, Tensor]:
        ids = torch.arange(degree.numel(), device=degree.device)
        return {depth: table.pull(ids) for depth, table in self.histories.items()}

    def aggregate(self, step: LayerStep) -> Tensor:
        ids, depth, beta = step.block.dst_ids, step.depth, self.betas[step.depth]
        fresh = step.layer.aggregate(step.h, step.block).float()
        share = torch.full((ids.numel(), 1), beta, device=fresh.device)
        past = self.histories[depth].pull(ids)
        if not step.forward.recorded:  # else this step has moved the history already
            visits = self.visits[depth].pull(ids)
            if self.start == "fresh" and 0 < beta < 1:  # exact for small beta too
                share = beta / -torch.expm1((visits + 1) * math.log1p(-beta))
            if (inputs := self._inputs_of(depth, step.block)) is not None:
                past = self._corrected(past, (visits > 0).float(), step, fresh, inputs)
        if noise := self._noise(depth, step.layer, step.forward):
            past = noise.drop(past, torch.rand_like(past), step.block.degree)
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
            if (inputs := self._inputs_of(step.depth, step.block)) is not None:
                inputs.push(step.block.src_ids, step.h)

    @torch.no_grad()
    def _corrected(
        self, past: Tensor, known: Tensor, step: LayerStep, fresh: Tensor, inputs: NodeTable
    ) -> Tensor:
        """Move averages by how much the sampled rows have changed since they were last seen."""
        block, edges, kind = step.block, step.block.edges, inputs.rows.dtype
        exact = kind == torch.float32  # else rounding must not look like a change
        if step.layer.sums and block.self_weight is None and exact and _one_each(edges):
            change = inputs.pull(block.src_ids.index_select(0, edges.col))  # what the edges read
            known = known * were_seen(change)
            torch.sub(fresh, change.mul_(edges.weight.unsqueeze(1)), out=change)
        else:
            last = inputs.pull(block.src_ids)
            h = step.h.to(kind).float()
            last = torch.where(were_seen(last), last, h)
            now = fresh if exact else step.layer.aggregate(h, block).float()
            change = now - step.layer.aggregate(last, block).float()
        return past.addcmul_(change, known)

    def _inputs_of(self, depth: int, block: Block) -> NodeTable | None:
        """The rows that the sources of a block were last seen with, if they are needed."""
        return None if block.place is not None else self.inputs.get(depth)  # raw features stay

    def _noise(self, depth: int, layer: GraphLayer, forward: ForwardPass) -> Noise | None:
        """The dropout of the average, in the pass that computes the gradient."""
        p = layer.dropout.p if layer.dropout.training else 0.0
        if not self.drop_average or forward.records or p == 0 or self.betas[depth] == 1:
            return None
        return Noise(p / (1 - p))

    def shares_first_layer(self, layer: GraphLayer) -> bool:
        noisy = any(isinstance(part, Dropout) and part.p > 0 for part in layer.modules())
        return self.correct_lag and self.first_hop is not None and not noisy and layer.norm is None

    def first_layer_ahead(self, exact_first_hop: bool) -> bool:
        return self.can_fuse() and exact_first_hop

    def combine(
        self, depth: int, layer: GraphLayer, block: Block, h: Tensor | Rows, forward: ForwardPass
    ) -> Combined:
        momentum = self._momentum(depth, layer, block, h, forward)
        combined = fused_aggregate.combine(
            h, block, join=layer.joins, known=self._known(depth), momentum=momentum
        )
        if momentum is not None and forward.records:
            fused_aggregate.keep(combined, block.dst_ids, momentum)
            if momentum.inputs is not None and isinstance(h, Tensor):
                fused_aggregate.keep_inputs(h, block.src_ids, momentum.inputs)
        return combined

    def _momentum(
        self, depth: int, layer: GraphLayer, block: Block, h: Tensor | Rows, forward: ForwardPass
    ) -> Momentum | None:
        if depth not in self.histories:
            return None
        inputs = None
        if isinstance(h, Tensor) and not forward.recorded and depth in self.inputs:
            resident = self.inputs[depth].resident
            assert resident is not None
            inputs = resident.rows
        history, visits = self.histories[depth].resident, self.visits[depth].resident
        assert history is not None  # the plan fuses layers only with tables on the device
        assert visits is not None
        return Momentum(
            past=history.rows,
            visits=visits.rows,
            place=history.place,
            beta=self.betas[depth],
            fresh=self.start == "fresh" and not forward.recorded,
            whole_gradient=self.whole_gradient,
            inputs=inputs,
            noise=self._noise(depth, layer, forward),
        )


def _fits_features(layer: GraphLayer) -> bool:
    """True if the first aggregate can begin as the features, once for each aggregator."""
    if not layer.updates and not layer.reads_features:  # the network encodes its features itself
        return False
    return layer.agg_width % layer.in_width == 0


def _one_each(edges: Edges) -> bool:
    """True if every target has one edge. On a GPU only the fan-out says so: nothing waits there."""
    if edges.fanout is not None or edges.indptr.device.type != "cpu":
        return edges.fanout == 1
    return edges.num_edges == edges.num_dst and bool((edges.indptr.diff() == 1).all())
