"""The one data structure every part shares: a batch is a list of bipartite blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

RUN = 128  # edges that are summed in sequence, so that the order of a sum is fixed
HALO_ROWS = 1 << 19  # rows of a halo that are updated at a time
HUB = 4096  # a row with more edges loses digits if they are summed in sequence in float32


@dataclass(frozen=True)
class Edges:
    """A sparse [num_dst, num_src] matrix in CSR form. `col` keeps its order within a row."""

    indptr: Tensor  # [num_dst + 1], same integer type as `col`
    col: Tensor  # [num_edges] source position of each edge
    weight: Tensor  # [num_edges] normalised, importance-corrected
    num_src: int
    fanout: int | None = None  # if set, edge j of row i reads source num_dst + i * fanout + j

    @cached_property
    def num_dst(self) -> int:
        return self.indptr.numel() - 1

    @cached_property
    def num_edges(self) -> int:
        return self.col.numel()

    @cached_property
    def row(self) -> Tensor:
        """[num_edges] target position of each edge."""
        target = torch.arange(self.num_dst, dtype=self.col.dtype, device=self.col.device)
        return target.repeat_interleave(self.indptr.diff(), output_size=self.num_edges)

    @cached_property
    def runs(self) -> tuple[Tensor, Tensor]:
        """Runs of at most RUN edges: (first edge of each run, first run of each row)."""
        count = ((self.indptr.diff() + RUN - 1) // RUN).clamp(min=1)
        first = offsets(count)
        row = torch.arange(self.num_dst, device=count.device).repeat_interleave(count)
        number = torch.arange(row.numel(), device=count.device) - first[row]
        start = self.indptr[row] + RUN * number
        return start.to(self.col.dtype), first[:-1].to(self.col.dtype)

    @cached_property
    def hubs(self) -> tuple[Tensor, Edges] | None:
        """Rows with more than HUB edges, and their edges, which need a more exact sum."""
        if self.num_edges <= HUB:
            return None
        rows = (self.indptr.diff() > HUB).nonzero().squeeze(1)
        if rows.numel() == 0:
            return None
        _, position = expand_rows(self.indptr.long(), rows)
        indptr = offsets(self.indptr.diff()[rows]).to(self.col.dtype)
        return rows, Edges(indptr, self.col[position], self.weight[position], self.num_src)

    @cached_property
    def among_targets(self) -> Edges:
        """The edges whose source is a target too."""
        inside = self.col < self.num_dst
        position = inside.nonzero().squeeze(1)
        counts = offsets(inside.long())[self.indptr.long()].diff()
        indptr = offsets(counts).to(self.col.dtype)
        return Edges(indptr, self.col[position], self.weight[position], self.num_dst)

    @cached_property
    def back_among_targets(self) -> Edges:
        """`among_targets` transposed: the edges along which gradients stay inside a batch."""
        if "transposed" in self.__dict__:
            return self.transposed.some(0, self.num_dst)
        return self.among_targets.transposed

    def some(self, first: int, last: int) -> Edges:
        """The edges of the rows from `first` up to, but not including, `last`."""
        start, stop = self.indptr[[first, last]].tolist()
        indptr = self.indptr[first : last + 1] - start
        return Edges(indptr, self.col[start:stop], self.weight[start:stop], self.num_src)

    @cached_property
    def transposed(self) -> Edges:
        """The transposed matrix, along which gradients flow back."""
        ends, order = torch.sort(self.col, stable=True)
        indptr = _starts(ends, self.num_src).to(ends.dtype)
        row, weight = self.row.index_select(0, order), self.weight.index_select(0, order)
        return Edges(indptr, row, weight, self.num_dst)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a table, by node id, that the first layer's kernel will gather itself."""

    table: Tensor  # [num_nodes, width] of any floating-point type
    ids: Tensor


@dataclass(frozen=True, slots=True)
class Targets:
    """What `GraphLayer.update` reads of the rows that a layer writes: row-wise data, no edges."""

    h: Tensor  # [num_dst, width] layer input
    h0: Tensor  # [num_dst, width] encoder output (GCNII reads it)
    degree: Tensor  # [num_dst] true in-degree, whatever was sampled
    joined: Tensor | None = None  # [num_dst, agg_width + width] aggregate and h, by a kernel


@dataclass(frozen=True, slots=True)
class Neighborhoods:
    """The matrix in CSR form, weights as factors, for kernels that read every neighbour."""

    indptr: Tensor
    indices: Tensor
    edge_weight: Tensor | None
    row_scale: Tensor | None
    col_scale: Tensor | None


@dataclass(frozen=True)
class Block:
    """Edges from sources to targets. The first `num_dst` sources are the targets.

    The first layer's block may have all nodes as sources, so that its edges read features from the
    feature table and no row is copied. `place` then says which sources are the targets.

    `self_weight` is the weight of a target's own row, which a layer adds to the sum over its edges.
    It holds the self-loops of GCN: samplers see real neighbours only, and a self-loop is never
    sampled away.
    """

    src_ids: Tensor  # [num_src] global node ids
    edges: Edges
    degree: Tensor  # [num_dst]
    self_weight: Tensor | None = None  # [num_dst]
    full: Block | None = None  # same targets with every neighbour
    every: Neighborhoods | None = None  # replaces `full` where a kernel reads all neighbours
    from_halo: Block | None = None  # same nodes with the halo as targets: [halo, targets]
    share: Tensor | None = None  # [num_dst] share of a target's total weight on these edges
    seen: Tensor | None = None  # [num_dst] edges of each target, also those that a step dropped
    by_id: Edges | None = None  # the same edges with node ids as columns, to read from a table
    place: Tensor | None = None  # [num_dst] positions of the targets; None: they come first
    alone: bool = False  # a subgraph, normalised as if there were no other nodes

    @cached_property
    def num_src(self) -> int:
        return self.edges.num_src

    @cached_property
    def num_dst(self) -> int:
        return self.edges.num_dst

    @cached_property
    def dst_ids(self) -> Tensor:
        return self.own(self.src_ids)

    @property
    def halo_ids(self) -> Tensor:
        return self.src_ids[self.num_dst :]

    def own(self, h: Tensor) -> Tensor:
        """Select the targets' rows from the sources' rows."""
        return h[: self.num_dst] if self.place is None else h.index_select(0, self.place)

    def targets(self, h: Tensor, h0: Tensor) -> Targets:
        own = self.own(h)
        return Targets(own, own if h0 is h else self.own(h0), self.degree)


@dataclass(frozen=True, slots=True)
class Batch:
    """The part of the graph that one training step sees."""

    input_ids: Tensor  # nodes whose features are read
    target_ids: Tensor  # nodes whose output is computed; the loss is taken on those that train
    blocks: tuple[Block, ...]  # input layer first
    loss_weight: Tensor | None = None  # [num_targets] of losses in a sum; None: they are averaged
    whole: bool = False  # the inputs are all nodes in the order of their ids: nothing to gather
    trains: bool = True  # False if no target is a training node, so that there is no loss
    weighs: bool = False  # its edge weights say more than how many neighbours were picked

    @property
    def num_inputs(self) -> int:
        """Feature rows that are read; a row that edges read in place counts once per edge."""
        first = self.blocks[0] if self.blocks else None
        if first is None or first.place is None:
            return self.input_ids.numel()
        return first.num_dst + first.edges.num_edges

    @property
    def num_edges(self) -> int:
        """Edges of all layers, including those of the optional views."""
        views = [v for b in self.blocks for v in (b, b.full, b.from_halo) if v is not None]
        return sum(view.edges.num_edges for view in views)


def _starts(numbers: Tensor, n: int) -> Tensor:
    """[n + 1] position at which each number from 0 to n begins in a sorted list."""
    if numbers.device.type == "cpu":
        return offsets(torch.bincount(numbers, minlength=n))
    every = torch.arange(n + 1, dtype=numbers.dtype, device=numbers.device)
    return torch.searchsorted(numbers, every)  # bincount would make the host wait for the GPU


def offsets(counts: Tensor) -> Tensor:
    """[n] counts -> [n + 1] starting positions."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def expand_rows(indptr: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """For each entry of the given rows of a CSR: its index into `rows`, and its position."""
    count = indptr[rows + 1] - indptr[rows]
    start = offsets(count)
    row = torch.arange(rows.numel(), device=rows.device)
    row = row.repeat_interleave(count, output_size=int(start[-1]))
    shift = (indptr[rows] - start[:-1])[row]
    return row, torch.arange(row.numel(), device=rows.device) + shift


def halo_chunks(view: Block) -> Iterator[tuple[slice, Block]]:
    """Cut a view with the halo as targets into (slice of the halo, its block [slice, batch])."""
    num_halo, num_rest = view.num_dst, view.num_src - view.num_dst
    starts = range(0, num_halo, HALO_ROWS)
    bounds = view.edges.indptr[torch.tensor([*starts, num_halo])].tolist() if starts else []
    for number, start in enumerate(starts):
        part = slice(start, min(start + HALO_ROWS, num_halo))
        if len(starts) == 1:
            yield part, view
            return
        first, last, rows = bounds[number], bounds[number + 1], part.stop - start
        edges = Edges(
            view.edges.indptr[start : part.stop + 1] - first,
            view.edges.col[first:last] - (num_halo - rows),
            view.edges.weight[first:last],
            rows + num_rest,
        )
        ids = torch.cat([view.src_ids[part], view.src_ids[num_halo:]])
        share = None if view.share is None else view.share[part]
        yield part, Block(ids, edges, view.degree[part], share=share)


def halo_reached(block: Block, threshold: int = 0) -> Tensor:
    """The targets, and the halo nodes that more than `threshold` edges from targets reach."""
    if block.from_halo is None or block.from_halo.seen is None:
        return block.dst_ids
    reached = block.from_halo.seen > threshold
    return torch.cat([block.dst_ids, block.halo_ids[reached]])
