"""What an estimator is given: its tables before training, then one layer and block at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from graphfm.batch import Block
from graphfm.layer import GraphLayer
from graphfm.step_plan import Clock, StepPlan
from graphfm.tables.base import NodeTable


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What an estimator is given once, before training."""

    layers: Sequence[GraphLayer]
    tables: Mapping[str, NodeTable]  # the declared tables, by name
    plan: StepPlan = field(default_factory=StepPlan)
    first_hop: NodeTable | None = None  # every node's aggregate of raw features, if known
    clock: Clock = field(default_factory=Clock)
    averages: bool = False  # the network's matrix averages: `Adjacency.averages`

    @property
    def first(self) -> int:
        """The first depth whose aggregates are not known before training."""
        return 0 if self.first_hop is None else 1


@dataclass(frozen=True, slots=True)
class ForwardPass:
    """What one forward pass over a batch is for."""

    records: bool = True  # the pass writes histories
    recorded: bool = False  # an earlier pass of this step has written them
    loss_weight: Tensor | float = 1.0  # number of nodes that the batch's loss averages over
    # The first layer's output, where both passes of a step have the same: one computes it.
    first_output: list[Tensor] | None = None
    # Terms that gradient compensation adds to the loss, gathered layer by layer.
    compensation: list[Tensor] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LayerStep:
    """One layer applied to one block."""

    depth: int
    layer: GraphLayer
    block: Block
    h: Tensor  # [num_src, in_width] input rows of all sources, after dropout
    h0: Tensor  # [num_src, width] encoder output
    forward: ForwardPass
    mask: Tensor | None = None  # [num_src, in_width] dropout mask, if `shares_dropout`


def nodes_of(blocks: Sequence[Block]) -> Tensor:
    """The ids of all nodes in some blocks, each once if the blocks differ."""
    views = [view for block in blocks for view in (block, block.full) if view is not None]
    distinct = list({id(view): view for view in views}.values())
    if len(distinct) == 1:
        return distinct[0].src_ids
    ids: Tensor = torch.unique(torch.cat([view.src_ids for view in distinct]))
    return ids
