"""Gradients from beyond the batch, in the manner of LMC (Shi et al., 2023)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from graphfm.errors import InputError
from graphfm.estimators.layer_step import LayerStep, NewTable
from graphfm.layer import GraphLayer
from graphfm.norm import frozen_statistics
from graphfm.tables.base import NodeTable


class Compensation:
    """Keeps the gradient V of the loss with respect to each node's rows, and sends it back.

    A row of the batch is read by nodes of the halo too, whose part of the gradient never reaches
    the batch. With V of the halo from the past, what is missing is (dV . update)/d(aggregate) times
    the edges from batch to halo, which `loss` adds: its value means nothing, its gradient with
    respect to in-batch rows is the missing part, and weights get none of it. On a directed graph
    readers outside the halo stay silent.
    """

    def __init__(self, layers: Sequence[GraphLayer], new_table: NewTable) -> None:
        if not all(layer.is_linear for layer in layers):
            raise InputError("compensate needs a linear aggregator: sage, gcn or gcnii")
        self.gradients = {d: new_table(layers[d].out_width) for d in range(1, len(layers))}
        self.scale: Tensor | float = 1.0  # of this batch's loss: the number of nodes it averages
        self.terms: list[Tensor] = []

    def tables(self) -> dict[str, NodeTable]:
        return {f"gradient.{depth}": table for depth, table in self.gradients.items()}

    def wants(self, depth: int) -> bool:
        """Does this layer have a part in it? What feeds the first has no weights behind it."""
        return depth in self.gradients

    def add(self, step: LayerStep, out: Tensor, halo_aggregate: Tensor | None) -> None:
        """Take note of one layer of the forward pass."""
        table, ids = self.gradients[step.depth], step.block.dst_ids
        if halo_aggregate is not None:
            self.terms.append(self._missing(step, halo_aggregate, table))
        scale = self.scale

        def keep(gradient: Tensor) -> None:
            table.push(ids, gradient * scale)

        out.register_hook(keep)  # type: ignore[no-untyped-call]

    def loss(self) -> Tensor:
        """The terms gathered since the last call."""
        total = torch.stack(self.terms).sum() / self.scale if self.terms else torch.zeros(())
        self.terms = []
        return total

    def _missing(self, step: LayerStep, halo_aggregate: Tensor, table: NodeTable) -> Tensor:
        block, view = step.block, step.block.from_halo
        assert view is not None
        agg = halo_aggregate.detach().requires_grad_()
        h, h0 = (_halo_first(rows, block.num_dst).detach() for rows in (step.h, step.h0))
        with frozen_statistics(step.layer):
            rows = step.layer.update(agg, view.targets(h, h0))
        (pull,) = torch.autograd.grad(rows, agg, table.pull(block.halo_ids))
        return (pull * step.layer.aggregate(_halo_first(step.h, block.num_dst), view)).sum()


def _halo_first(h: Tensor, num_dst: int) -> Tensor:
    """Reorder [targets, halo] rows to [halo, targets], the order `from_halo` has."""
    return torch.cat([h[num_dst:], h[:num_dst]])
