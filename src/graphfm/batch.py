"""The one data structure every part shares: a batch is a list of bipartite blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

RUN = 128  # edges summed one after the other where the order of a sum must be fixed
HALO_ROWS = 1 << 19  # of a halo, brought up to date at a time
HUB = 4096  # edges of a row above which float32 loses digits if they are


@dataclass(frozen=True)
class Edges:
    """A sparse [num_dst, num_src] matrix in CSR form. `col` keeps its order within a row."""

    indptr: Tensor  # [num_dst + 1], same integer type as `col`
    col: Tensor  # [num_edges] source position of each edge
    weight: Tensor  # [num_edges] normalised, importance-corrected
    num_src: int
    fanout: int | None = None  # where edge j of row i reads source num_dst + i * fanout + j

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
        """Rows cut into runs of at most RUN edges: each run's first edge, each row's first run."""
        count = ((self.indptr.diff() + RUN - 1) // RUN).clamp(min=1)
        first = offsets(count)
        row = torch.arange(self.num_dst, device=count.device).repeat_interleave(count)
        number = torch.arange(row.numel(), device=count.device) - first[row]
        start = self.indptr[row] + RUN * number
        return start.to(self.col.dtype), first[:-1].to(self.col.dtype)

    @cached_property
    def hubs(self) -> tuple[Tensor, Edges] | None:
        """Rows of more than HUB edges, and those edges: too many to add one by one in float32."""
        if self.num_edges <= HUB:
            return None
        rows = (self.indptr.diff() > HUB).nonzero().squeeze(1)
        if rows.numel() == 0:
            return None
        _, place = expand_rows(self.indptr.long(), rows)
        indptr = offsets(self.indptr.diff()[rows]).to(self.col.dtype)
        return rows, Edges(indptr, self.col[place], self.weight[place], self.num_src)

    @cached_property
    def among_targets(self) -> Edges:
        """Those of the edges whose source is a target too."""
        inside = self.col < self.num_dst
        place = inside.nonzero().squeeze(1)
        counts = offsets(inside.long())[self.indptr.long()].diff()
        indptr = offsets(counts).to(self.col.dtype)
        return Edges(indptr, self.col[place], self.weight[place], self.num_dst)

    @cached_property
    def back_among_targets(self) -> Edges:
        """`among_targets` seen from the sources: along them gradients stay in a batch."""
        if "transposed" in self.__dict__:
            return self.transposed.some(0, self.num_dst)
        return self.among_targets.transposed

    def some(self, first: int, last: int) -> Edges:
        """The edges of some rows."""
        start, stop = self.indptr[[first, last]].tolist()
        indptr = self.indptr[first : last + 1] - start
        return Edges(indptr, self.col[start:stop], self.weight[start:stop], self.num_src)

    @cached_property
    def transposed(self) -> Edges:
        """The same edges seen from the sources; gradients travel along it."""
        ends, order = torch.sort(self.col, stable=True)
        indptr = _starts(ends, self.num_src).to(ends.dtype)
        row, weight = self.row.index_select(0, order), self.weight.index_select(0, order)
        return Edges(indptr, row, weight, self.num_dst)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a table, by node id, that nobody has read yet."""

    table: Tensor  # [num_nodes, width] of any floating-point type
    ids: Tensor


@dataclass(frozen=True, slots=True)
class Targets:
    """The rows one layer writes. Everything here is row-wise; no edges."""

    h: Tensor  # [num_dst, width] layer input
    h0: Tensor  # [num_dst, width] encoder output (GCNII reads it)
    degree: Tensor  # [num_dst] true in-degree, whatever was sampled
    # [num_dst, agg_width + width] aggregate and h side by side, where a kernel has put them so
    joined: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Neighborhoods:
    """Where a kernel finds every neighbour of a node, and the weights: a matrix by its factors."""

    indptr: Tensor
    indices: Tensor
    edge_weight: Tensor | None
    row_scale: Tensor | None
    col_scale: Tensor | None


@dataclass(frozen=True)
class Block:
    """Edges from sources to targets. The first `num_dst` sources are the targets.

    The block of a first layer may have all nodes as sources, so that its edges read features where
    they are and no row is copied. `place` then says which sources are the targets.

    `self_weight` is what a layer adds of a target's own row on top of its edges: the self-loops
    of GCN live here, so samplers see real neighbours only and never sample a node away from itself.
    """

    src_ids: Tensor  # [num_src] global node ids
    edges: Edges
    degree: Tensor  # [num_dst]
    self_weight: Tensor | None = None  # [num_dst]
    full: Block | None = None  # same targets, every neighbour; or, for a kernel,
    every: Neighborhoods | None = None  # where they are
    from_halo: Block | None = None  # same nodes, halo as targets: [halo, targets]
    share: Tensor | None = None  # [num_dst] of a target's total weight, what these edges carry
    by_id: Edges | None = None  # the same edges with node ids as columns, to read from a table
    place: Tensor | None = None  # [num_dst] of the targets among the sources; None: they come first

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
        """The targets' rows among the sources' rows."""
        return h[: self.num_dst] if self.place is None else h.index_select(0, self.place)

    def targets(self, h: Tensor, h0: Tensor) -> Targets:
        own = self.own(h)
        return Targets(own, own if h0 is h else self.own(h0), self.degree)


@dataclass(frozen=True, slots=True)
class Batch:
    """One training step's worth of graph."""

    input_ids: Tensor  # nodes whose features are read
    target_ids: Tensor  # nodes whose output is computed; the loss is taken on those that train
    blocks: tuple[Block, ...]  # input layer first
    # [num_targets] what a node's loss counts if it trains; they add up. None: a mean.
    loss_weight: Tensor | None = None
    whole: bool = False  # all nodes in the order of their ids: features need no gathering

    @property
    def num_inputs(self) -> int:
        """Rows of features that are read; one that several edges read in place, as often."""
        first = self.blocks[0] if self.blocks else None
        if first is None or first.place is None:
            return self.input_ids.numel()
        return first.num_dst + first.edges.num_edges

    @property
    def num_edges(self) -> int:
        """Edges of all layers, those of the optional views included."""
        views = [v for b in self.blocks for v in (b, b.full, b.from_halo) if v is not None]
        return sum(view.edges.num_edges for view in views)


def _starts(numbers: Tensor, n: int) -> Tensor:
    """[n + 1] where each number below n, and what comes behind, begins among sorted ones."""
    if numbers.device.type == "cpu":
        return offsets(torch.bincount(numbers, minlength=n))
    every = torch.arange(n + 1, dtype=numbers.dtype, device=numbers.device)
    return torch.searchsorted(numbers, every)  # to count, the host would have to wait for a GPU


def offsets(counts: Tensor) -> Tensor:
    """[n] counts -> [n + 1] starting positions."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def expand_rows(indptr: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Of all entries of some rows of a CSR: which of `rows` each is in, and where it stands."""
    count = indptr[rows + 1] - indptr[rows]
    start = offsets(count)
    row = torch.arange(rows.numel(), device=rows.device)
    row = row.repeat_interleave(count, output_size=int(start[-1]))
    shift = (indptr[rows] - start[:-1])[row]
    return row, torch.arange(row.numel(), device=rows.device) + shift


def halo_chunks(view: Block) -> Iterator[tuple[slice, Block]]:
    """The halo as targets, some rows at a time: which, and their block [some of them, batch]."""
    num_halo, num_rest = view.num_dst, view.num_src - view.num_dst
    starts = range(0, num_halo, HALO_ROWS)
    bounds = view.edges.indptr[torch.tensor([*starts, num_halo])].tolist() if starts else []
    for number, start in enumerate(starts):
        some = slice(start, min(start + HALO_ROWS, num_halo))
        if len(starts) == 1:
            yield some, view
            return
        first, last, rows = bounds[number], bounds[number + 1], some.stop - start
        edges = Edges(
            view.edges.indptr[start : some.stop + 1] - first,
            view.edges.col[first:last] - (num_halo - rows),
            view.edges.weight[first:last],
            rows + num_rest,
        )
        ids = torch.cat([view.src_ids[some], view.src_ids[num_halo:]])
        share = None if view.share is None else view.share[some]
        yield some, Block(ids, edges, view.degree[some], share=share)


def halo_reached(block: Block, threshold: int = 0) -> Tensor:
    """The targets, and those of the halo with more than `threshold` edges from them."""
    if block.from_halo is None:
        return block.dst_ids
    reached = block.from_halo.edges.indptr.diff() > threshold
    return torch.cat([block.dst_ids, block.halo_ids[reached]])
