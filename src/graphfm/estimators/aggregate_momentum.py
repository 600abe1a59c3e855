"""GraphFM-IB: a moving average of each node's sampled aggregate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from graphfm.errors import InputError
from graphfm.estimators.base import Estimator, LayerStep, NewTable, check_beta, per_layer
from graphfm.layer import GraphLayer

STARTS = ("fresh", "zero")


@dataclass(kw_only=True)
class AggregateMomentum(Estimator):
    """h~ = (1 - beta) h~ + beta A^(h), and the layer goes on from h~ (Algorithm 1, equation 5).

    The gradient flows through the fresh part alone. A^ is unbiased only for linear aggregators; a
    maximum or a deviation is averaged as it was sampled.

    `start="fresh"`: in a node's t-th visit beta is beta / (1 - (1 - beta)^t), so that the first
    takes the fresh value whole and the history is the average of what was seen, not of that and
    zero. `start="zero"` is the paper's.
    """

    beta: tuple[float, ...]  # one per layer, or one for all; 1 is plain neighbour sampling
    start: str = "fresh"
    keeps_history: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_beta(self.beta)
        if self.start not in STARTS:
            raise InputError(f"start is {self.start}; expected {' or '.join(STARTS)}")

    def allocate(self, layers: Sequence[GraphLayer], new_table: NewTable) -> None:
        self.betas = per_layer("beta", self.beta, len(layers))
        self.histories = [new_table(layer.agg_width) for layer in layers]
        self.visits = [new_table(1) for _ in layers]

    def aggregate(self, step: LayerStep) -> Tensor:
        past = self.histories[step.depth].pull(step.block.dst_ids)
        fresh = step.layer.aggregate(step.h, step.block)
        return torch.lerp(past, fresh, self._weight(step).expand_as(fresh))

    def record(self, step: LayerStep, agg: Tensor, out: Tensor) -> None:
        ids = step.block.dst_ids
        self.histories[step.depth].push(ids, agg)
        self.visits[step.depth].push(ids, self.visits[step.depth].pull(ids) + 1)

    def _weight(self, step: LayerStep) -> Tensor:
        """[num_dst, 1] beta of each target, by how often it was seen before."""
        beta, visits = self.betas[step.depth], self.visits[step.depth].pull(step.block.dst_ids)
        if self.start == "zero":
            return torch.full_like(visits, beta)
        return beta / (1 - (1 - beta) ** (visits + 1))
