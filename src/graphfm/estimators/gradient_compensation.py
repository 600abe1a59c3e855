"""Gradients from outside the batch, after LMC (Shi et al., 2023)."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from graphfm.errors import InputError
from graphfm.estimators.layer_step import ForwardPass, LayerStep
from graphfm.layer import GraphLayer
from graphfm.norm import frozen_statistics
from graphfm.tables.base import NodeTable, TableSpec


class Compensation:
    """Keeps a history V of the loss gradient of each node's rows, and adds what a batch misses.

    Nodes of the halo read rows of the batch, but their gradient never reaches the batch. With their
    past V, the missing part is d(V . update)/d(aggregate), carried along the edges from batch to
    halo. `loss` is a term whose gradient with respect to in-batch rows is the missing part; its
    value means nothing, and the weights get no gradient from it. On a directed graph, nodes outside
    the halo that read the batch contribute nothing.
    """

    def __init__(self, tables: Mapping[str, NodeTable]) -> None:
        prefix = "gradient."
        self.gradients = {
            int(name.removeprefix(prefix)): table
            for name, table in tables.items()
            if name.startswith(prefix)
        }

    @staticmethod
    def declare(layers: Sequence[GraphLayer]) -> dict[str, TableSpec]:
        """A table for every layer except the first, whose input does not depend on weights."""
        if not all(layer.updates for layer in layers):
            raise InputError("compensate needs a network of ours; leave it out for your own model")
        if not all(layer.is_linear for layer in layers):
            raise InputError("compensate needs a linear aggregator; use sage, gcn or gcnii")
        return {
            f"gradient.{d}": TableSpec(width=layers[d].out_width) for d in range(1, len(layers))
        }

    def wants(self, depth: int) -> bool:
        """True if this layer takes part: every layer except the first."""
        return depth in self.gradients

    def add(self, step: LayerStep, out: Tensor, halo_aggregate: Tensor | None) -> None:
        """Add the term of one layer of the forward pass, and store its gradient when it comes."""
        table, ids, scale = self.gradients[step.depth], step.block.dst_ids, step.forward.loss_weight
        if halo_aggregate is not None:
            step.forward.compensation.append(self._missing(step, halo_aggregate, table))

        def keep(gradient: Tensor) -> None:
            table.push(ids, gradient * scale)

        out.register_hook(keep)  # type: ignore[no-untyped-call]

    def loss(self, forward: ForwardPass) -> Tensor:
        """The sum of the terms that a forward pass has gathered."""
        if not forward.compensation:
            return torch.zeros(())
        return torch.stack(forward.compensation).sum() / forward.loss_weight

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
