"""The normalised adjacency matrix that a backbone aggregates with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from graphfm.batch import Block, Edges, Neighborhoods, offsets
from graphfm.data.graph import Graph
from graphfm.kernels import weighted_sum
from graphfm.kernels.neighbor_pick import entries, expand


@dataclass(frozen=True)
class Factors:
    """Factors of rows and columns (None: all ones), and a diagonal (None: all zeros)."""

    row: Tensor | None = None
    col: Tensor | None = None
    diagonal: Tensor | None = None


Normalize = Callable[[Tensor, Tensor], Factors]  # from weighted degrees and self-loop weights


@dataclass(frozen=True)
class Adjacency:
    """A[v, u] = row_scale[v] * edge weight * col_scale[u] for each edge, plus a diagonal.

    The normalisation is stored as factors, and the edges are the graph's own arrays. So an
    adjacency costs a few numbers per node and nothing per edge.
    """

    graph: Graph
    row_scale: Tensor | None = None  # [num_nodes]
    col_scale: Tensor | None = None  # [num_nodes]
    self_weight: Tensor | None = (
        None  # [num_nodes] the diagonal, in addition to the graph's own loops
    )
    normalize: Normalize | None = None  # computes the factors, also those of a subgraph
    averages: bool = False  # every row that is not empty adds up to one: a (weighted) mean
    weighted_graph: Graph | None = None  # the graph with its weights, if the matrix ignores them

    @staticmethod
    def of(graph: Graph, normalize: Normalize, *, averages: bool = False) -> Adjacency:
        """Return the adjacency of a graph with any normalisation."""
        factors = normalize(graph.weighted_degree, graph.loop_weight)
        return Adjacency(graph, factors.row, factors.col, factors.diagonal, normalize, averages)

    @staticmethod
    def mean(graph: Graph) -> Adjacency:
        """Row-stochastic: a target's aggregate is the (weighted) mean of its in-neighbours."""

        def normalize(degree: Tensor, loop: Tensor) -> Factors:
            return Factors(row=_safe_power(degree, -1.0))

        return Adjacency.of(graph, normalize, averages=True)

    @staticmethod
    def mean_with_self(graph: Graph) -> Adjacency:
        """The mean of a node's own row and those of its in-neighbours; its row has weight 1."""

        def normalize(degree: Tensor, loop: Tensor) -> Factors:
            return Factors(row=1 / (degree + 1), diagonal=1 / (degree + 1))

        return Adjacency.of(graph, normalize, averages=True)

    @staticmethod
    def sum(graph: Graph) -> Adjacency:
        """The graph's own edge weights, without normalisation: an aggregate is a plain sum."""
        return Adjacency.of(graph, lambda degree, loop: Factors())

    @staticmethod
    def symmetric(graph: Graph, *, diagonal: float = 0.0) -> Adjacency:
        """D^-1/2 (A + I) D^-1/2 of GCN; a node that has a self-loop gets no second one.

        `diagonal` adds that multiple of the matrix's own diagonal (Cluster-GCN, equation 11).
        """

        def normalize(degree: Tensor, loop: Tensor) -> Factors:
            own = (loop == 0).to(torch.float32)
            scale = _safe_power(degree + own, -0.5)
            return Factors(scale, scale, (own + diagonal * (own + loop)) * scale.square())

        return Adjacency.of(graph, normalize)

    @staticmethod
    def symmetric_without_loops(graph: Graph) -> Adjacency:
        """D^-1/2 A D^-1/2 of SIGN; messages of a node without in-neighbours have weight 0."""

        def normalize(degree: Tensor, loop: Tensor) -> Factors:
            scale = torch.where(degree > 0, _safe_power(degree, -0.5), 0.0)
            return Factors(scale, scale)

        return Adjacency.of(graph, normalize)

    @cached_property
    def row_sums(self) -> Tensor:
        """[num_nodes] total weight of each row, diagonal included."""
        graph, index_type = self.graph, _index_type(self.graph.num_nodes)
        rows = torch.arange(graph.num_nodes, dtype=index_type, device=graph.device)
        rows = rows.repeat_interleave(graph.degree, output_size=graph.num_edges)
        weight = self.weights(rows, graph.indices, slice(None))
        sums = torch.segment_reduce(weight.double(), "sum", offsets=graph.indptr, initial=0).float()
        return sums if self.self_weight is None else sums + self.self_weight

    def full_block(self) -> Block:
        """Return the block from all nodes to all nodes, in the order of their ids; built once."""
        return self._full_block

    @cached_property
    def _full_block(self) -> Block:
        graph = self.graph
        ids = torch.arange(graph.num_nodes, device=graph.device)
        indptr = graph.indptr.to(_index_type(graph.num_edges))
        col = graph.indices.to(indptr.dtype)
        rows = ids.repeat_interleave(graph.degree, output_size=graph.num_edges)
        edges = Edges(indptr, col, self.weights(rows, col, slice(None)), graph.num_nodes)
        return Block(ids, edges, graph.degree.float(), self.self_weight)

    def block(self, dst_ids: Tensor) -> Block:
        """Every in-neighbour of `dst_ids`."""
        graph = self.graph
        degree = graph.degree[dst_ids]
        indptr = offsets(degree)
        found = expand(dst_ids, indptr, self.neighborhoods)
        neighbor_ids, weight = found.neighbor_ids, found.weight
        src_ids, col = targets_first(dst_ids, neighbor_ids, graph.num_nodes, found.read)
        index_type = _index_type(max(neighbor_ids.numel(), src_ids.numel()))
        indptr = indptr.to(index_type)
        edges = Edges(indptr, col.to(index_type), weight, src_ids.numel())
        own = None if self.self_weight is None else self.self_weight[dst_ids]
        by_id = Edges(indptr, neighbor_ids.to(index_type), weight, graph.num_nodes)
        return Block(src_ids, edges, degree.float(), own, by_id=by_id)

    def product(self, start: int, end: int, h: Tensor) -> Tensor:
        """[end - start, width] float32 rows of the matrix times `h`, which has one per node."""
        graph, device = self.graph, self.graph.device
        ids = torch.arange(start, end, device=device)
        if device.type != "cpu" or h.dtype != torch.float32:
            block = self.block(ids)
            return weighted_sum(h[block.src_ids.to(h.device)].to(device).float(), block)
        # The edges read `h` where it is: nothing is gathered, and no node is looked up.
        first, last = graph.indptr[[start, end]].tolist()
        degree, col = graph.degree[start:end], graph.indices[first:last]
        rows = ids.repeat_interleave(degree, output_size=last - first)
        weight = self.weights(rows, col, slice(first, last))
        indptr = (graph.indptr[start : end + 1] - first).to(col.dtype)
        own = None if self.self_weight is None else self.self_weight[start:end]
        edges = Edges(indptr, col, weight, graph.num_nodes)
        return weighted_sum(h, Block(ids, edges, degree.float(), own, place=ids))

    @cached_property
    def neighborhoods(self) -> Neighborhoods:
        """The matrix without its diagonal, in the form that kernels read."""
        graph = self.graph
        return Neighborhoods(
            graph.indptr, graph.indices, graph.edge_weight, self.row_scale, self.col_scale
        )

    def bare_block(self, ids: Tensor, degree: Tensor | None = None) -> Block:
        """Return a block without edges, for a layer whose aggregate is already known."""
        indptr = torch.zeros(ids.numel() + 1, dtype=torch.int32, device=ids.device)
        nothing = torch.empty(0, device=ids.device)
        edges = Edges(indptr, nothing.int(), nothing, ids.numel())
        return Block(ids, edges, self.graph.degree[ids].float() if degree is None else degree)

    def subgraph_block(self, ids: Tensor, row: Tensor, col: Tensor, position: Tensor) -> Block:
        """Return the block of a subgraph, normalised by the degrees inside the subgraph.

        Edges lead from `col` to `row`, both positions in `ids`; `row` must be sorted.
        """
        assert self.normalize is not None
        weight = self.graph.edge_weight
        raw = torch.ones(row.numel(), device=ids.device) if weight is None else weight[position]
        indptr = offsets(torch.bincount(row, minlength=ids.numel()))
        degree = torch.segment_reduce(raw.double(), "sum", offsets=indptr, initial=0).float()
        loops = torch.where(row == col, raw, 0.0).double()
        loops = torch.segment_reduce(loops, "sum", offsets=indptr, initial=0).float()
        factors = self.normalize(degree, loops)
        scaled = raw if factors.row is None else raw * factors.row[row]
        scaled = scaled if factors.col is None else scaled * factors.col[col]
        edges = Edges(indptr.int(), col.int(), scaled, ids.numel())
        return Block(ids, edges, self.graph.degree[ids].float(), factors.diagonal, alone=True)

    def weights(self, dst_ids: Tensor, src_ids: Tensor, position: Tensor | slice) -> Tensor:
        """Return the matrix entries of edges, given by ends and by position in `indices`."""
        return entries(self.neighborhoods, dst_ids, src_ids, position)


def targets_first(
    dst_ids: Tensor, neighbor_ids: Tensor, n: int, read: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return distinct node ids with the targets first, and each neighbour's position among them.

    `read` [n] may already mark the neighbours; it is overwritten.
    """
    # Sorting few ids is cheaper than a pass over all nodes, and touches less memory.
    if n > 16 * (dst_ids.numel() + neighbor_ids.numel()):
        distinct, inverse = torch.unique(torch.cat([dst_ids, neighbor_ids]), return_inverse=True)
        src_ids, position = targets_first(
            inverse[: dst_ids.numel()], inverse[dst_ids.numel() :], distinct.numel()
        )
        return distinct[src_ids], position
    if read is None:
        read = torch.zeros(n, dtype=torch.bool, device=dst_ids.device)
        read[neighbor_ids.long()] = True
    read[dst_ids] = False
    src_ids, index_type = torch.cat([dst_ids, read.nonzero().squeeze(1)]), _index_type(n)
    position = torch.empty(n, dtype=index_type, device=dst_ids.device)  # unread entries stay unset
    position[src_ids] = torch.arange(src_ids.numel(), dtype=index_type, device=dst_ids.device)
    return src_ids, position.index_select(0, neighbor_ids)


def _safe_power(degree: Tensor, exponent: float) -> Tensor:
    return torch.where(degree > 0, degree, 1.0).pow(exponent)


def _index_type(largest: int) -> torch.dtype:
    return torch.int32 if largest < 2**31 else torch.int64
