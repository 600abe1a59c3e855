"""One pass of a network of PyG over a batch, with an estimator acting on its propagations."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import batch_norm
from torch.nn.modules.batchnorm import _BatchNorm

from graphfm.batch import Batch, Block
from graphfm.errors import InputError
from graphfm.estimators.base import Estimator
from graphfm.estimators.exact import Exact
from graphfm.estimators.halo_history import HaloHistory
from graphfm.estimators.layer_step import ForwardPass, LayerStep
from graphfm.pyg.calls import Call, joined, split_up
from graphfm.pyg.cut import Cut
from graphfm.pyg.factors import EdgePart, edge_part, factors_for, scaled
from graphfm.pyg.probe import Findings
from graphfm.pyg.watching import Place, Watcher
from graphfm.pyg.whole_graph import WholeGraph


class GivenEdges:
    """The edges of all blocks of a batch, one after the other, with their data."""

    def __init__(
        self, batch: Batch, whole: WholeGraph, averages: bool, back: EdgePart | None
    ) -> None:
        blocks = list({id(block): block for block in batch.blocks}.values())
        self.part_of = [next(n for n, b in enumerate(blocks) if b is own) for own in batch.blocks]
        self.parts = [edge_part(b, averages=averages, weighs=batch.weighs) for b in blocks]
        data = [whole.data_of(b.edges, b.src_ids, b.dst_ids) for b in blocks]
        if back is not None:
            self.parts.append(back)
            view = blocks[0].from_halo
            assert view is not None
            data.append(whole.data_of(view.edges, view.src_ids, view.dst_ids))
        self.back = back
        one = len(self.parts) == 1
        self.edge_index = (
            self.parts[0].edge_index if one else torch.cat([p.edge_index for p in self.parts], 1)
        )
        self.data = data[0] if one else {n: torch.cat([d[n] for d in data]) for n in data[0]}
        ends = torch.tensor([0] + [part.num_edges for part in self.parts]).cumsum(0).tolist()
        self.bounds = list(pairwise(ends))

    def chosen(self, call: Call) -> list[int]:
        """The parts whose edges a call reads; the edges to a halo are read by every call."""
        found = list(dict.fromkeys(self.part_of[call.depth : call.last_depth + 1]))
        return [*found, len(self.parts) - 1] if self.back is not None else found


class BatchPass(Watcher):
    """Hands each convolution its edges, completes halos, and lets the estimator act."""

    def __init__(
        self,
        findings: Findings,
        whole: WholeGraph,
        edges: GivenEdges,
        batch: Batch,
        estimator: Estimator,
        forward: ForwardPass,
    ) -> None:
        self.findings, self.whole, self.edges, self.batch = findings, whole, edges, batch
        self.estimator, self.forward = estimator, forward
        self.cuts = {cut.place: (n, cut) for n, cut in enumerate(findings.cuts)}
        self.num_rows = batch.input_ids.numel()
        self.rows: Tensor | None = None  # of the call that runs, after its halo is complete
        self.given: tuple[list[EdgePart], Tensor] | None = None  # edges of the call that runs
        self.rest = dict[Place, Tensor]()  # rows that a batch norm does not learn from

    def enter(self, place: Place, arguments: dict[str, Any]) -> None:
        call = self.findings.calls.get(place)
        if call is None or call.edges is None or arguments[call.edges] is not self.edges.edge_index:
            raise changed_edges(place.name)
        chosen = self.edges.chosen(call)
        if len(chosen) < len(self.edges.parts):
            self._cut_out(chosen, call, arguments)
        parts, edge_index = [self.edges.parts[n] for n in chosen], arguments[call.edges]
        self.given = parts, edge_index
        weight = next((arguments[n] for n, k in call.per_edge.items() if k == "edge_weight"), None)
        self.whole.degrees.expect(edge_index, weight)
        first = self.cuts.get(Place(place.module, place.call, 1))
        if first is not None and not first[1].inner:
            self._complete(*first, arguments)
        self.rows = joined(arguments, call.rows) if call.rows else None

    def propagate(self, place: Place, arguments: dict[str, Any]) -> None:
        found = self.cuts.get(place)
        if found is not None and found[1].inner:
            self._complete(*found, arguments)
            self.rows = joined(arguments, found[1].rows)

    def _cut_out(self, chosen: list[int], call: Call, arguments: dict[str, Any]) -> None:
        """Give a call the edges of its own blocks, with their data."""
        assert call.edges is not None
        spans = [self.edges.bounds[n] for n in chosen]
        for name in (call.edges, *call.per_edge):
            value, dim = arguments[name], int(name == call.edges)
            pieces = [value.narrow(dim, start, end - start) for start, end in spans]
            arguments[name] = pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim)

    def _complete(self, number: int, cut: Cut, arguments: dict[str, Any]) -> None:
        """Give a propagation the rows of its halo, and let no gradient leave the batch."""
        block, estimator = self.batch.blocks[cut.depth], self.estimator
        if not cut.deep or not estimator.views & {"from_halo"}:
            return
        rows, num_dst = joined(arguments, cut.deep), block.num_dst
        if not isinstance(estimator, HaloHistory):  # gradients stay inside the batch
            split_up(arguments, cut.deep, torch.cat([rows[:num_dst], rows[num_dst:].detach()]))
            return
        below = self.findings.cuts[number - 1]
        if self.forward.records:
            alone = replace(block, from_halo=None)
            step = LayerStep(number - 1, below, alone, rows, rows, self.forward)
            estimator.record(step, rows[:num_dst].detach(), rows[:num_dst].detach())
            if cut.depth == 1 and estimator.first_hop is not None:  # the halo's rows are exact
                estimator.histories[number - 1].push(block.halo_ids, rows[num_dst:].detach())
            elif self.edges.back is not None:
                estimator.move_halo(number - 1, block, rows[num_dst:].detach())
        if block.num_src > num_dst:
            step = LayerStep(number, cut, block, rows[:num_dst], rows, self.forward)
            split_up(arguments, cut.deep, estimator.sources(step))

    def message(self, place: Place, edge_index: Tensor, out: Tensor) -> Tensor | None:
        if place not in self.cuts or self.given is None:
            return None
        _, cut = self.cuts[place]
        parts, given = self.given
        active = None
        if cut.call.last_depth > cut.call.depth and len(parts) > 1 and self.edges.back is None:
            active = cut.depth - cut.call.depth
        factor = factors_for(cut, parts, active)
        if factor is None:
            return None
        return scaled(cut, out, given, edge_index, factor, self.num_rows)

    def aggregate(self, place: Place, out: Tensor) -> Tensor | None:
        if place not in self.cuts:
            return None
        (number, cut), estimator = self.cuts[place], self.estimator
        block = self.batch.blocks[cut.depth]
        num_dst, rows = block.num_dst, self.rows
        rows = out.new_empty(self.num_rows, 0) if rows is None else rows
        if isinstance(estimator, Exact) and (number > 0 or estimator.first_hop is None):
            return None
        h = rows[: block.num_src]
        step = LayerStep(number, cut, block, h, h, self.forward)
        rest = out[num_dst:]
        if number == 0 and estimator.first_hop is not None:
            agg = estimator.first_hop.pull(block.dst_ids)
            if isinstance(estimator, HaloHistory):
                rest = estimator.first_hop.pull(block.halo_ids).view(-1, *out.shape[1:])
        else:
            with cut.showing(h, out[:num_dst].flatten(1)):
                agg = estimator.aggregate(step)
        if self.forward.records and not isinstance(estimator, HaloHistory):
            estimator.record(step, agg.detach(), agg.detach())
        if estimator.computes_halo and block.num_src > num_dst and number + 1 < len(self.cuts):
            rest = estimator.halo_aggregate(step).view(-1, *out.shape[1:])
        agg = agg.view(num_dst, *out.shape[1:])
        return torch.cat([agg, rest]) if rest.size(0) else agg

    def before_norm(self, place: Place, norm: _BatchNorm, rows: Tensor) -> Tensor | None:
        """Let a batch norm learn from the rows that the batch computes, and from no others."""
        depth = self.findings.norms.get(place)
        if depth is None or not norm.training or norm.running_mean is None:
            return None
        real = self._real_rows(depth)
        if real >= rows.size(0):
            return None
        self.rest[place] = rows[real:]
        return rows[:real]

    def after_norm(self, place: Place, norm: _BatchNorm, rows: Tensor) -> Tensor | None:
        rest = self.rest.pop(place, None)
        if rest is None:
            return None
        fixed = norm.running_mean, norm.running_var, norm.weight, norm.bias
        return torch.cat([rows, batch_norm(rest, *fixed, False, 0.0, norm.eps).detach()])

    def _real_rows(self, depth: int) -> int:
        first: Block = self.batch.blocks[0]
        if self.estimator.views & {"from_halo"}:
            return first.num_dst
        return self.num_rows if depth == 0 else self.batch.blocks[depth - 1].num_dst


def changed_edges(module: str) -> InputError:
    """The error for a network whose convolutions read other edges than it was given."""
    return InputError(
        f"{module} is not given the edges of the batch as they are: the network changes them, or "
        "passes other tensors on; use full or cluster-gcn, or drop edges with the method instead"
    )


def back_edges(block: Block, estimator: HaloHistory, averages: bool, weighs: bool) -> EdgePart:
    """The edges from a batch to its halo, in the numbering of the batch."""
    view = block.from_halo
    assert view is not None
    part = edge_part(
        view,
        averages=averages,
        weighs=not estimator.rescales or weighs,
        factor=estimator.factor(view),
    )
    col, row = part.edge_index
    edge_index = torch.stack([col - view.num_dst, row + block.num_dst])
    return replace(part, edge_index=edge_index)
