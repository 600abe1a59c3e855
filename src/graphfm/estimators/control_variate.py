"""VR-GCN (Chen et al., 2018): past rows of all neighbours, corrected by sampled changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from graphfm.batch import Block
from graphfm.errors import InputError
from graphfm.estimators.base import Estimator
from graphfm.estimators.layer_step import LayerStep, Setup, nodes_of
from graphfm.kernels.neighbor_pick import sum_of_all
from graphfm.layer import GraphLayer
from graphfm.tables.base import TableSpec


@dataclass(kw_only=True)
class ControlVariate(Estimator):
    """A^(h) - A^(h~) + A(h~): A^ sums sampled neighbours, A all; h~ is the history of h.

    The histories hold the layers' inputs. The estimate is unbiased for a linear aggregator, and
    exact if h~ = h. The second term uses the dropout mask of the first, or the two would not
    cancel; so only the change since h~ is noisy. For other aggregators nothing is guaranteed.

    With `split_dropout` the noise is as strong as that of all neighbours' dropout (the paper's
    CVD): A^(m) - A^(m~) + A(m~) from rows m of a first pass without dropout, whose history m~ is,
    plus sqrt(D / n) A^(h - m), where D of the n neighbours are sampled.
    """

    views: ClassVar[frozenset[str]] = frozenset({"full"})
    keeps_history: ClassVar[bool] = True
    history_of: ClassVar[str] = "input"
    shares_dropout: ClassVar[bool] = True
    capturable: ClassVar[bool] = True
    exact_first_hop: bool = True
    split_dropout: bool = False

    @property
    def records_first(self) -> bool:  # type: ignore[override]
        return self.split_dropout

    def declare(self, layers: Sequence[GraphLayer], first: int) -> dict[str, TableSpec]:
        if self.split_dropout and not all(layer.updates for layer in layers):
            raise InputError(
                "split_dropout needs a network of ours; leave it out for your own model"
            )
        depths = range(first, len(layers))
        return {f"input.{d}": TableSpec(width=layers[d].in_width) for d in depths}

    def prepare(self, setup: Setup) -> None:
        super().prepare(setup)
        layers, tables = setup.layers, setup.tables
        self.histories = {d: tables[f"input.{d}"] for d in range(setup.first, len(layers))}
        # Rows and aggregates of this step's pass without dropout, by depth; empty between steps.
        self.clean = dict[int, tuple[Tensor, Tensor]]()

    def believed(self, h0: Tensor, degree: Tensor) -> dict[int, Tensor]:
        ids = torch.arange(degree.numel(), device=degree.device)
        return {depth: table.pull(ids) for depth, table in self.histories.items()}

    def working_set(self, blocks: Sequence[Block]) -> dict[str, Tensor]:
        return {f"input.{depth}": nodes_of([blocks[depth]]) for depth in self.histories}

    def written_ids(self, depth: int, block: Block) -> Tensor:
        return block.src_ids

    def aggregate(self, step: LayerStep) -> Tensor:
        if step.forward.recorded:
            return self._with_noise(step, *self.clean.pop(step.depth))
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

    def _with_noise(self, step: LayerStep, rows: Tensor, agg: Tensor) -> Tensor:
        """The aggregate without dropout, and what dropout adds to it."""
        block, change = step.block, step.h - rows
        noise = step.layer.aggregate(change, block)
        share = block.edges.indptr.diff() / block.degree.clamp(min=1)
        scale = share.clamp(max=1).sqrt().unsqueeze(1)
        if block.self_weight is None:
            return agg + scale * noise
        own = block.self_weight.unsqueeze(1) * change[: block.num_dst]  # it is never sampled
        return agg + scale * (noise - own) + own

    def record(self, step: LayerStep, agg: Tensor, out: Tensor) -> None:
        if step.depth not in self.histories:
            return
        self.histories[step.depth].push(step.block.src_ids, step.h.detach())
        alone = torch.is_grad_enabled() or step.mask is None  # the loss's own pass, or a refresh
        if self.split_dropout and not alone:
            self.clean[step.depth] = step.h, agg
