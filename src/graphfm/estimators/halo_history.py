"""GNNAutoScale and GraphFM-OB: read out-of-batch neighbours from a history of layer outputs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from graphfm.batch import Block, Targets, halo_chunks, halo_reached
from graphfm.errors import InputError
from graphfm.estimators.base import Estimator, table_of
from graphfm.estimators.gradient_compensation import Compensation
from graphfm.estimators.layer_step import LayerStep, Setup
from graphfm.estimators.per_layer import check_beta, per_layer
from graphfm.kernels import sum_of_rest, table_sum
from graphfm.kernels.halo_update import Blend
from graphfm.layer import GraphLayer
from graphfm.norm import frozen_statistics
from graphfm.tables.base import NodeTable, TableSpec

PARTIALS, STARTS, UNTRAINED = ("rescaled", "sum", "released"), ("fresh", "zero"), ("record", "skip")


def nothing_to_read(num_layers: int, exact_first_hop: bool) -> str | None:
    """What to tell a user if the halo's rows are all known, so that no history is read."""
    if not exact_first_hop or num_layers > 2:
        return None
    return (
        f"with the exact first hop, a network of {num_layers} layers reads no histories, so gas, "
        "graphfm-ob and graphfm-delta do the same; use more layers, or turn off exact_first_hop"
    )


@dataclass(kw_only=True)
class HaloHistory(Estimator):
    """Writes in-batch outputs to a history and reads halo rows from it (Fey et al., 2021).

    With `beta` above 0 the batch also updates the halo's rows (Algorithm 2, equations 9 and 10):
    h~_v = (1 - beta) h~_v + beta update(A(in-batch neighbours of v)), for halo nodes with more than
    `threshold` of them. The batch sees only part S_v of such a neighbourhood: `partial="rescaled"`
    divides by the share of the weight that it sees, `"sum"` does not. `"released"` does what the
    paper's code does: the plain sum where a network weighs its edges (GCN, GCNII); where it
    averages (SAGE, PNA), S_v counts as all neighbours, in means and in degrees. It leaves out the
    residual connection. A row that was never written takes the new value whole (`start="fresh"`),
    or is blended with the zeros it was allocated with (`"zero"`, as in the paper).

    With the exact first hop, the halo's first-layer rows are computed with today's weights instead
    of being read from the history. `dropout_in_histories` writes rows as the training pass computes
    them, and `untrained="skip"` ignores a batch without training nodes, both as the code does.
    """

    views: ClassVar[frozenset[str]] = frozenset({"from_halo"})
    keeps_history: ClassVar[bool] = True
    records_first = True
    capturable: ClassVar[bool] = True
    beta: tuple[float, ...] = (0.0,)  # one per hidden layer, or one for all; 0 is GNNAutoScale
    partial: str = "rescaled"
    threshold: int = 0
    start: str = "fresh"
    compensate: bool = False
    exact_first_hop: bool = True
    dropout_in_histories: bool = False
    untrained: str = "record"

    def __post_init__(self) -> None:
        check_beta(self.beta)
        choices = {"partial": PARTIALS, "start": STARTS, "untrained": UNTRAINED}
        for name, known in choices.items():
            if (value := getattr(self, name)) not in known:
                raise InputError(f"{name} is {value}; expected one of {', '.join(known)}")
        if self.threshold < 0:
            raise InputError(f"threshold is {self.threshold}; expected 0 or more")

    def declare(self, layers: Sequence[GraphLayer], first: int) -> dict[str, TableSpec]:
        betas = per_layer("beta", self.beta, max(len(layers) - 1, 1))
        tables = {f"output.{d}": TableSpec(width=la.out_width) for d, la in enumerate(layers[:-1])}
        if max(betas) > 0:
            flag = TableSpec(width=1, exact=True)  # 1 if the row has been written
            tables |= {f"written.{d}": flag for d in range(len(layers) - 1)}
        return tables | (Compensation.declare(layers) if self.compensate else {})

    def note(self, num_layers: int, exact_first_hop: bool) -> str | None:
        return nothing_to_read(num_layers, exact_first_hop)

    def prepare(self, setup: Setup) -> None:
        super().prepare(setup)
        layers, tables = setup.layers, setup.tables
        self.betas = per_layer("beta", self.beta, max(len(layers) - 1, 1))
        hidden = range(max(len(layers) - 1, 0))
        self.histories = [tables[f"output.{d}"] for d in hidden]
        self.written = [tables[f"written.{d}"] for d in hidden if max(self.betas) > 0]
        self.first_layer = layers[0] if layers else None
        self.seen_is_all = self.partial == "released" and setup.averages
        self.rescales = self.partial == "rescaled" or self.seen_is_all
        self.compensation = Compensation(tables) if self.compensate else None

    def believed(self, h0: Tensor, degree: Tensor) -> dict[int, Tensor]:
        ids = torch.arange(degree.numel(), device=degree.device)
        rows = {depth: table.pull(ids) for depth, table in enumerate(self.histories)}
        first = self.first_layer
        if rows and self.first_hop is not None and first is not None:
            # The first layer's rows are computed, not read from the history.
            if not first.updates:
                return {depth: rows[depth] for depth in rows if depth > 0}
            with torch.no_grad(), frozen_statistics(first):
                targets = Targets(h0, h0, degree)
                rows[0] = first.update(self.first_hop.pull(ids), targets)
        return rows

    def sources(self, step: LayerStep) -> Tensor:
        if step.h.size(0) == step.block.num_src:  # depth 0: features of the halo are known
            return step.h
        if self._table(step) is not None:
            return step.h  # `aggregate` reads the halo's rows from the table
        return torch.cat([step.h, self.histories[step.depth - 1].pull(step.block.halo_ids)])

    def _table(self, step: LayerStep) -> Tensor | None:
        """The layer's input rows of all nodes, if the batch has just written its own there."""
        if not step.forward.records or self.compensate or step.depth == 0:
            return None
        return table_of(self.histories[step.depth - 1], step.layer, step.block)

    def aggregate(self, step: LayerStep) -> Tensor:
        if step.h.size(0) < step.block.num_src:
            table = self._table(step)
            assert table is not None
            return table_sum(step.h, step.block, table)
        return super().aggregate(step)

    def record(self, step: LayerStep, agg: Tensor, out: Tensor) -> None:
        if step.depth == len(self.histories):  # the last output is never read back
            return
        history, block = self.histories[step.depth], step.block
        history.push(block.dst_ids, out)
        if self.written:
            self.written[step.depth].push(block.dst_ids, out.new_ones(out.size(0), 1))
        if block.from_halo is None:
            return
        if step.depth == 0 and self.first_hop is not None:
            self._renew(step, block.from_halo, history, self.first_hop)
        elif self.betas[step.depth] > 0:
            self._blend(step, block.from_halo, history)

    @torch.no_grad()
    def _renew(self, step: LayerStep, view: Block, history: NodeTable, sums: NodeTable) -> None:
        """Compute the halo's rows with today's weights from aggregates that never change."""
        affine = step.layer.affine()
        if affine is not None:
            history.put_outputs(step.block.halo_ids, affine, sums)
            return
        for part, chunk in halo_chunks(view):
            ids, own = step.block.halo_ids[part], self._halo_rows(step, part)
            history.push(ids, self._update(step, part, chunk, own, sums.pull(ids)))

    def _halo_rows(self, step: LayerStep, part: slice) -> Tensor:
        """Input rows of a part of the halo."""
        block = step.block
        if step.h.size(0) == block.num_src:
            return step.h[block.num_dst :][part].detach()
        return self.histories[step.depth - 1].pull(block.halo_ids[part])

    @property
    def moves_halo(self) -> bool:
        """True if a batch updates rows of its halo."""
        return max(self.betas) > 0

    @torch.no_grad()
    def move_halo(self, depth: int, block: Block, rows: Tensor) -> None:
        """Blend the halo's rows with what a network has made of their in-batch neighbours."""
        if self.betas[depth] > 0 and block.from_halo is not None:
            assert block.from_halo.seen is not None
            seen = block.from_halo.seen > self.threshold
            share = self._shares(depth, block.halo_ids, seen)
            self.histories[depth].blend(block.halo_ids, rows, share)

    def written_ids(self, depth: int, block: Block) -> Tensor:
        if depth == 0 and self.first_hop is not None:
            return block.src_ids
        moves = depth < len(self.betas) and self.betas[depth] > 0
        return halo_reached(block, self.threshold) if moves else block.dst_ids

    @torch.no_grad()
    def _blend(self, step: LayerStep, view: Block, history: NodeTable) -> None:
        """Blend the halo's rows with what the layer makes of their in-batch neighbours."""
        ids, affine = step.block.halo_ids, step.layer.affine()
        if self.seen_is_all:
            view = replace(view, degree=view.edges.indptr.diff().float())
        assert view.seen is not None
        share = self._shares(step.depth, ids, view.seen > self.threshold)
        if (
            affine is not None and step.layer.sums
        ):  # multiply first: the batch has fewer rows than the halo
            rows = affine.product(step.h[: step.block.num_dst])
            history.spread(rows, view, Blend(affine, self.factor(view), share))
            return
        residual = self.partial != "released"
        for part, chunk in halo_chunks(view):
            own = self._halo_rows(step, part)
            agg = self._partial(step, chunk, own, self.factor(chunk))
            with step.layer.with_residual(residual):
                out = self._update(step, part, chunk, own, agg)
            history.blend(ids[part], out, share[part])

    def _shares(self, depth: int, ids: Tensor, seen: Tensor) -> Tensor:
        """The beta of each row of the halo; marks the rows above 0 as written."""
        written = self.written[depth].pull(ids).squeeze(1) > 0
        whole = ~written if self.start == "fresh" else torch.zeros_like(written)
        self.written[depth].push(ids, (written | seen).float().unsqueeze(1))
        return torch.where(seen, torch.where(whole, 1.0, self.betas[depth]), 0.0)

    def factor(self, view: Block) -> Tensor | None:
        """By how much the sum over a halo node's in-batch neighbours is scaled up; None: not."""
        return _whole_by_part(view) if self.rescales else None

    def halo_aggregate(self, step: LayerStep) -> Tensor:
        view, num_dst = step.block.from_halo, step.block.num_dst
        assert view is not None  # guaranteed by Method
        return self._partial(step, view, step.h[num_dst:], _whole_by_part(view))

    @torch.no_grad()
    def _partial(self, step: LayerStep, view: Block, own: Tensor, factor: Tensor | None) -> Tensor:
        """The aggregate of in-batch rows alone, for the halo nodes whose rows are `own`."""
        if factor is not None:
            weight = view.edges.weight * factor[view.edges.row]
            view = replace(view, edges=replace(view.edges, weight=weight))
        batch = step.h[: step.block.num_dst]
        if step.layer.sums:
            return sum_of_rest(batch, view)
        return step.layer.aggregate(torch.cat([own, batch]), view)

    @torch.no_grad()
    def _update(
        self, step: LayerStep, part: slice, view: Block, own: Tensor, agg: Tensor
    ) -> Tensor:
        """The output of a part of the halo from its aggregate, with evaluation's batch norm."""
        targets = Targets(own, step.h0[step.block.num_dst :][part], view.degree)
        with frozen_statistics(step.layer):
            return step.layer.update(agg, targets)


def _whole_by_part(view: Block) -> Tensor:
    """Factors that scale each partial sum up to the whole neighbourhood."""
    assert view.share is not None
    seen = view.share.isfinite() & (view.share != 0)  # a row without any weight has share NaN
    return torch.where(seen, 1 / view.share, 0.0)
