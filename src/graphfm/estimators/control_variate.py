"""VR-GCN (Chen et al., 2018): past rows of all neighbours, corrected by sampled changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from graphfm.batch import Block
from graphfm.estimators.base import Estimator
from graphfm.estimators.layer_step import LayerStep, Setup
from graphfm.kernels.neighbor_pick import sum_of_all
from graphfm.layer import GraphLayer
from graphfm.tables.base import TableSpec


@dataclass(kw_only=True)
class ControlVariate(Estimator):
    """A^(h) - A^(h~) + A(h~): A^ sums sampled neighbours, A all; h~ is the history of h.

    The histories hold the layers' inputs. The estimate is unbiased for a linear aggregator, and
    exact if h~ = h. The second term uses the dropout mask of the first, or the two would not
    cancel. For other aggregators nothing is guaranteed.
    """

    views: ClassVar[frozenset[str]] = frozenset({"full"})
    keeps_history: ClassVar[bool] = True
    history_of: ClassVar[str] = "input"
    shares_dropout: ClassVar[bool] = True
    capturable: ClassVar[bool] = True
    exact_first_hop: bool = True

    def declare(self, layers: Sequence[GraphLayer], first: int) -> dict[str, TableSpec]:
        depths = range(first, len(layers))
        return {f"input.{d}": TableSpec(width=layers[d].in_width) for d in depths}

    def prepare(self, setup: Setup) -> None:
        super().prepare(setup)
        layers, tables = setup.layers, setup.tables
        self.histories = {d: tables[f"input.{d}"] for d in range(setup.first, len(layers))}

    def believed(self, h0: Tensor, degree: Tensor) -> dict[int, Tensor]:
        ids = torch.arange(degree.numel(), device=degree.device)
        return {depth: table.pull(ids) for depth, table in self.histories.items()}

    def written_ids(self, depth: int, block: Block) -> Tensor:
        return block.src_ids

    def aggregate(self, step: LayerStep) -> Tensor:
        layer, block, past = step.layer, step.block, self.histories[step.depth]
        fresh = layer.aggregate(step.h, block)
        then = past.pull(block.src_ids)
        stale = layer.aggregate(then if step.mask is None else then * step.mask, block)
        return fresh - stale + self._all(step, then)

    def _all(self, step: LayerStep, then: Tensor) -> Tensor:
        """The aggregate A(h~) of all neighbours' past rows."""
        block, past = step.block, self.histories[step.depth]
        if block.every is None:
            assert block.full is not None  # guaranteed by Method
            return step.layer.aggregate(past.pull(block.full.src_ids), block.full)
        resident = past.resident
        assert resident is not None  # the plan asks for `every` only with tables on the device
        total = sum_of_all(block.dst_ids, block.every, resident.rows)
        if block.self_weight is not None:
            total += block.self_weight.unsqueeze(1) * then[: block.num_dst]
        return total

    def record(self, step: LayerStep, agg: Tensor, out: Tensor) -> None:
        if step.depth in self.histories:
            self.histories[step.depth].push(step.block.src_ids, step.h.detach())
