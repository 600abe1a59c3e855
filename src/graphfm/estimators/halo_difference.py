"""GraphFM-delta (ours): the halo's aggregates are kept exact by adding each batch's changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from graphfm.batch import Block, Targets, halo_chunks, halo_reached
from graphfm.errors import InputError
from graphfm.estimators.base import Estimator, table_of
from graphfm.estimators.gradient_compensation import Compensation
from graphfm.estimators.halo_history import nothing_to_read
from graphfm.estimators.layer_step import LayerStep, Setup
from graphfm.kernels import table_sum
from graphfm.layer import GraphLayer
from graphfm.norm import frozen_statistics
from graphfm.tables.base import TableSpec


@dataclass(kw_only=True)
class HaloDifference(Estimator):
    """Keeps each layer's last known input rows K and their aggregates M = A K, except the last.

    When a batch changes the row of u by d, M[v] grows by A_vu d for every v that reads u, along
    edges that the batch holds anyway. So M stays the exact aggregate of the newest known rows,
    without a beta. A halo row is computed from M with today's weights, while GNNAutoScale reads one
    that was computed with the weights of its last visit. The aggregator must be linear. On a
    directed graph, a node that reads the batch but is not read by it gets no update until its own
    next visit.
    """

    views: ClassVar[frozenset[str]] = frozenset({"from_halo"})
    keeps_history: ClassVar[bool] = True
    records_first = True
    computes_halo: ClassVar[bool] = True
    capturable: ClassVar[bool] = True
    compensate: bool = False
    exact_first_hop: bool = True
    _halo: Tensor | None = None  # the halo's input rows of this layer; None: they are in a table

    def declare(self, layers: Sequence[GraphLayer], first: int) -> dict[str, TableSpec]:
        if not all(layer.is_linear for layer in layers):
            raise InputError(
                "graphfm-delta adds up differences, which a maximum, minimum or deviation does not "
                "allow; use sage, gcn or gcnii, or pna with --aggregators mean"
            )
        depths = self._kept(len(layers), first)
        tables = {f"known.{d}": TableSpec(width=layers[d].in_width) for d in depths}
        tables |= {f"aggregate.{d}": TableSpec(width=layers[d].agg_width) for d in depths}
        # A step writes the rows that it computes for its halo into these.
        for width in sorted({layer.in_width for layer in layers[1:] if layer.sums}):
            tables[f"current.{width}"] = TableSpec(width=width, exact=True, scratch=True)
        return tables | (Compensation.declare(layers) if self.compensate else {})

    def _kept(self, num_layers: int, first: int) -> range:
        """Depths with tables. Only compensation needs those of the last layer."""
        return range(first, num_layers if self.compensate else num_layers - 1)

    def note(self, num_layers: int, exact_first_hop: bool) -> str | None:
        return nothing_to_read(num_layers, exact_first_hop)

    def prepare(self, setup: Setup) -> None:
        super().prepare(setup)
        layers, tables = setup.layers, setup.tables
        self.layers = layers
        depths = self._kept(len(layers), setup.first)
        self.known = {d: tables[f"known.{d}"] for d in depths}
        self.sums = {d: tables[f"aggregate.{d}"] for d in depths}
        if setup.first_hop is not None:
            self.sums[0] = setup.first_hop  # exact, and never written
        widths = {layer.in_width for layer in layers[1:] if layer.sums}
        self.current = {width: tables[f"current.{width}"] for width in widths}
        self.compensation = Compensation(tables) if self.compensate else None

    def sources(self, step: LayerStep) -> Tensor:
        depth, layer, block, h, h0 = step.depth, step.layer, step.block, step.h, step.h0
        if depth == 0 or block.from_halo is None:
            self._halo = h[block.num_dst :].detach()  # features of the halo are known
            return h
        table = self._table(layer, block)
        if table is None:
            chunks = halo_chunks(block.from_halo)
            self._halo = torch.cat([self._halo_outputs(depth, block, s, h0) for s, _ in chunks])
            return torch.cat([h, self._halo])
        below, current = self.layers[depth - 1], self.current[layer.in_width]
        affine = below.affine()
        if affine is not None:
            current.put_outputs(block.halo_ids, affine, self.sums[depth - 1])
        else:
            for part, _ in halo_chunks(block.from_halo):
                current.push(block.halo_ids[part], self._halo_outputs(depth, block, part, h0))
        current.push(block.dst_ids, h.detach())
        self._halo = None
        return h

    def _halo_outputs(self, depth: int, block: Block, part: slice, h0: Tensor) -> Tensor:
        """The outputs of the layer below for a part of the halo, from the kept aggregates."""
        assert block.from_halo is not None
        degree, own = block.from_halo.degree[part], self._own(depth, block, part)
        targets = Targets(own, h0[block.num_dst :][part], degree)
        return self._output(depth - 1, block.halo_ids[part], targets)

    def _table(self, layer: GraphLayer, block: Block) -> Tensor | None:
        """The table for the layer's input rows of all nodes, if a sum can read them there."""
        if self.compensate or not layer.sums:
            return None
        return table_of(self.current[layer.in_width], layer, block)

    def _own(self, depth: int, block: Block, part: slice) -> Tensor:
        """Input rows of the layer below for a part of the halo."""
        if self._halo is not None:
            return self._halo[part]
        return self.current[self.layers[depth - 1].in_width].pull(block.halo_ids[part])

    def aggregate(self, step: LayerStep) -> Tensor:
        if step.h.size(0) < step.block.num_src:
            table = self._table(step.layer, step.block)
            assert table is not None
            return table_sum(step.h, step.block, table)
        return super().aggregate(step)

    @torch.no_grad()
    def record(self, step: LayerStep, agg: Tensor, out: Tensor) -> None:
        if step.depth not in self.known:
            return
        known, sums, block = self.known[step.depth], self.sums[step.depth], step.block
        fresh = step.h[: block.num_dst].detach()
        moved = fresh - known.pull(block.dst_ids)
        known.push(block.dst_ids, fresh)
        sums.push(
            block.dst_ids, self._sum_of_known(step, fresh)
        )  # summed anew, so rounding does not accumulate
        if block.from_halo is None:
            return
        if step.layer.sums:
            sums.spread(moved, block.from_halo)
            return
        for part, view in halo_chunks(block.from_halo):
            still = moved.new_zeros(view.num_dst, moved.size(1))
            sums.add(block.halo_ids[part], step.layer.aggregate(torch.cat([still, moved]), view))

    def _sum_of_known(self, step: LayerStep, fresh: Tensor) -> Tensor:
        """The targets' aggregate of the newest known rows of all their neighbours."""
        known, block = self.known[step.depth], step.block
        table = table_of(known, step.layer, block)
        if table is not None:
            return table_sum(fresh, block, table)
        return step.layer.aggregate(torch.cat([fresh, known.pull(block.halo_ids)]), block)

    def written_ids(self, depth: int, block: Block) -> Tensor:
        return halo_reached(block)

    def halo_aggregate(self, step: LayerStep) -> Tensor:
        return self.sums[step.depth].pull(step.block.halo_ids)

    def believed(self, h0: Tensor, degree: Tensor) -> dict[int, Tensor]:
        if not all(layer.updates for layer in self.layers):
            return {}
        ids = torch.arange(degree.numel(), device=degree.device)
        rows, h = dict[int, Tensor](), h0
        for depth in range(len(self.layers) - 1):
            rows[depth] = h = self._output(depth, ids, Targets(h, h0, degree))
        return rows

    @torch.no_grad()
    def _output(self, depth: int, ids: Tensor, targets: Targets) -> Tensor:
        """Outputs of this layer from kept aggregates, with the batch norm of evaluation."""
        with frozen_statistics(self.layers[depth]):
            return self.layers[depth].update(self.sums[depth].pull(ids), targets)
