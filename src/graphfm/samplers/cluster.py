"""Batches of parts of the graph, with or without the neighbours just outside."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphfm.batch import Batch, Block, Edges, offsets
from graphfm.data.graph.size import GraphSize, LayerFootprint
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.data.matrix.out_neighbors import OutNeighbors
from graphfm.data.matrix.partition import partition
from graphfm.errors import InputError
from graphfm.samplers.base import Sampler
from graphfm.samplers.drawing.edge_drop import drop_released, drop_scaled, kept_edges
from graphfm.samplers.drawing.induced_edges import InducedEdges
from graphfm.step_plan import StepPlan

REACHES, EDGE_DROP_FORMS = ("read", "all"), ("scaled", "released")


@dataclass(kw_only=True)
class ClusterSampler(Sampler):
    """Batches of `parts_per_batch` random parts; the last batch of an epoch takes the rest.

    The targets of every layer are the nodes of these parts; the sources are the targets and their
    in-neighbours outside the batch (the halo). `Block.from_halo` holds the edges from the batch to
    the halo. Their weights are looked up in the matrix: those of the opposite edges would be wrong
    for a row-normalised or directed matrix.

    Without `halo`, edges from outside are dropped and the rest is normalised as if it were the
    whole graph (Cluster-GCN, Chiang et al., 2019).

    `edge_drop` leaves out a share of a step's edges (DropEdge, Rong et al., 2020). With the form
    "scaled" the other edges are scaled up, and a node's own row and the edges to the halo stay.
    With "released", as in the code of GNNAutoScale and GraphFM-OB, the diagonal of the matrix and
    the edges to the halo are dropped as well, and a mean is that of the edges that are left.
    """

    parts: int
    parts_per_batch: int | None = 1  # None: a tenth of them
    how: str = "metis"
    halo: bool = True
    edges_back: bool = True  # fill `from_halo` with edges, for estimators that update the halo
    reach: str = "read"  # or "all": the halo also has nodes that read the batch, unread by it
    edge_drop: float = 0.0  # share of the edges left out of a step
    edge_drop_form: str = "scaled"
    seed: int = 0  # of the partition

    def __post_init__(self) -> None:
        for name, number in (("parts", self.parts), ("parts_per_batch", self.parts_per_batch)):
            if number is not None and number < 1:
                raise InputError(f"{name} is {number}; expected 1 or more")
        if not 0 <= self.edge_drop < 1:
            raise InputError(f"edge_drop is {self.edge_drop}; expected 0 or more and below 1")
        for name, known in (("reach", REACHES), ("edge_drop_form", EDGE_DROP_FORMS)):
            if (value := getattr(self, name)) not in known:
                raise InputError(f"{name} is {value}; expected {' or '.join(known)}")
        if self.per_batch > self.parts:
            raise InputError(
                f"parts_per_batch is {self.parts_per_batch} and parts {self.parts}; give a "
                f"parts_per_batch of {self.parts} or less"
            )

    @property
    def per_batch(self) -> int:
        """Parts in a step."""
        return max(self.parts // 10, 1) if self.parts_per_batch is None else self.parts_per_batch

    @property
    def always_trains(self) -> bool:
        return all(self.has_training_nodes)

    @property
    def views(self) -> frozenset[str]:
        return frozenset({"from_halo"}) if self.halo else frozenset()

    def prepare(self, adjacency: Adjacency, plan: StepPlan) -> None:
        graph = adjacency.graph
        self.adjacency, self.num_layers = adjacency, plan.num_layers
        self.num_parts = min(self.parts, graph.num_nodes)  # no part is empty
        part = partition(graph, self.num_parts, how=self.how, seed=self.seed).to(graph.device)
        self.members = torch.argsort(part, stable=True)
        self.induced = None if self.halo else InducedEdges(graph)
        self.readers = OutNeighbors(graph) if self.halo and self.edges_back else None
        known = graph.edge_weight is None or adjacency.row_scale is adjacency.col_scale
        self.mirrored = self.readers is not None and self.readers.mirrored and known
        if self.readers is not None and not self.mirrored:
            # -1 between calls; filled and cleared by each call
            self.row_of_node = torch.full((graph.num_nodes,), -1, device=graph.device)
        self.bounds = offsets(torch.bincount(part, minlength=self.num_parts)).tolist()
        taught = torch.bincount(part[graph.train_mask], minlength=self.num_parts)
        self.has_training_nodes: list[bool] = (taught > 0).tolist()  # by part

    def footprint(self, size: GraphSize, num_layers: int) -> list[LayerFootprint]:
        share = min(self.per_batch / min(self.parts, max(size.num_nodes, 1)), 1.0)
        targets, edges = share * size.num_nodes, share * size.num_edges
        sources = min(targets + edges, size.num_nodes) if self.halo else targets
        return [LayerFootprint(sources, targets, edges * (1 + self.halo))] * num_layers

    def epoch(self, rng: torch.Generator) -> Iterable[Tensor]:
        order = torch.randperm(self.num_parts, generator=rng, device=rng.device)
        return torch.split(order, self.per_batch)

    def sample(self, seeds: Tensor, rng: torch.Generator) -> Batch:
        parts = sorted(seeds.tolist())
        dst_ids = torch.cat([self.members[self.bounds[p] : self.bounds[p + 1]] for p in parts])
        trains = any(self.has_training_nodes[p] for p in parts)
        if self.num_layers == 0:
            return Batch(dst_ids, dst_ids, (), trains=trains)
        if self.induced is not None:
            block = self.adjacency.subgraph_block(dst_ids, *self.induced(dst_ids))
        else:
            block = self._with_halo(dst_ids, rng)
        blocks, weighs = (block,) * self.num_layers, self.edge_drop > 0
        return Batch(block.src_ids, dst_ids, blocks, trains=trains, weighs=weighs)

    def _with_halo(self, dst_ids: Tensor, rng: torch.Generator) -> Block:
        block, drop = self.adjacency.block(dst_ids), self.edge_drop
        released = drop > 0 and self.edge_drop_form == "released"
        if self.reach == "all" and self.readers is not None and not self.mirrored:
            block = self._with_readers(block, self.readers)
        whole = block
        if released:  # before the view: it holds the same edges
            block = drop_released(block, drop, rng, averages=self.adjacency.averages)
        if block.num_src > block.num_dst:
            view = self._from_halo(block)
            if released:
                view = self._dropped(view, whole, rng)
            block = replace(block, from_halo=view)
        return drop_scaled(block, drop, rng) if drop > 0 and not released else block

    def _with_readers(self, block: Block, readers: OutNeighbors) -> Block:
        """The same block with further sources: nodes that read the batch, which does not read them.

        No edge of the block begins there; they join the halo that an estimator updates.
        """
        _, reader_ids, _ = readers.of(block.dst_ids)
        self.row_of_node[block.src_ids] = 0
        others = torch.unique(reader_ids[self.row_of_node[reader_ids] < 0])
        self.row_of_node[block.src_ids] = -1
        src_ids = torch.cat([block.src_ids, others])
        return replace(block, src_ids=src_ids, edges=replace(block.edges, num_src=src_ids.numel()))

    def _from_halo(self, block: Block) -> Block:
        """The block with the halo as targets and the batch as sources."""
        halo_ids, num_halo = block.halo_ids, block.num_src - block.num_dst
        degree = self.adjacency.graph.degree[halo_ids].float()
        ids = torch.cat([halo_ids, block.dst_ids])
        if self.readers is None:
            indptr = torch.zeros(num_halo + 1, dtype=torch.int32, device=ids.device)
            empty = torch.empty(0, device=ids.device)
            edges = Edges(indptr, empty.int(), empty, block.num_src)
            return Block(ids, edges, degree, seen=indptr[1:])
        edges = self._mirrored(block) if self.mirrored else self._read_by(block, self.readers)
        return self._with_share(Block(ids, edges, degree, seen=edges.indptr.diff()))

    def _with_share(self, view: Block) -> Block:
        """The view with the share of each row's weight that its edges have."""
        seen = offsets(view.edges.weight.double()).index_select(0, view.edges.indptr).diff()
        return replace(view, share=seen.float() / self.adjacency.row_sums[view.dst_ids])

    def _dropped(self, view: Block, whole: Block, rng: torch.Generator) -> Block:
        """The view where a step drops edges: it counts those of the whole block.

        A mirrored view has lost the batch's dropped edges already; the edges of another (of a
        directed graph, or a weighted one that is averaged) are dropped here, by dice of their own.
        """
        if self.readers is None:
            return view
        edges, seen, adjacency = view.edges, view.seen, self.adjacency
        if self.mirrored:
            seen = torch.bincount(whole.edges.col, minlength=whole.num_src)[whole.num_dst :]
            scaled = adjacency.row_scale is adjacency.col_scale  # with the weights of the batch
        else:
            edges, scaled = kept_edges(edges, self.edge_drop, rng), False
        if not scaled and not adjacency.averages:
            edges = replace(edges, weight=edges.weight / (1 - self.edge_drop))
        return self._with_share(replace(view, edges=edges, seen=seen))

    def _mirrored(self, block: Block) -> Edges:
        """The edges from batch to halo of an undirected graph: the batch's own, transposed."""
        back = block.edges.transposed.some(block.num_dst, block.num_src)
        weight, adjacency = back.weight, self.adjacency
        if adjacency.row_scale is not adjacency.col_scale:
            ends = block.halo_ids[back.row], block.dst_ids[back.col]
            weight = adjacency.weights(*ends, slice(None))
        return Edges(back.indptr, back.col + back.num_dst, weight, block.num_src)

    def _read_by(self, block: Block, readers: OutNeighbors) -> Edges:
        """The edges from batch to halo of a directed graph."""
        halo_ids, num_halo = block.halo_ids, block.num_src - block.num_dst
        source, reader_ids, position = readers.of(block.dst_ids)
        self.row_of_node[halo_ids] = torch.arange(num_halo, device=halo_ids.device)
        row = self.row_of_node[reader_ids]
        self.row_of_node[halo_ids] = -1
        keep = (row >= 0).nonzero().squeeze(1)
        keep = keep[torch.argsort(row[keep], stable=True)]
        row, source, position = row[keep], source[keep], position[keep]
        weight = self.adjacency.weights(halo_ids[row], block.dst_ids[source], position)
        indptr = offsets(torch.bincount(row, minlength=num_halo))
        return Edges(indptr.int(), (source + num_halo).int(), weight, block.num_src)
