"""GraphSAGE: a few sampled neighbours per node and layer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphfm.batch import Batch, Block, Edges, offsets
from graphfm.data.graph.size import GraphSize, LayerFootprint
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.kernels.choice import numbers_for
from graphfm.kernels.neighbor_pick import pick, pick_distinct, pick_plain
from graphfm.samplers.drawing.deduplicate import Deduplicate
from graphfm.samplers.seeds import (
    EVEN,
    INDEPENDENT,
    SeedSampler,
    by_depth,
    check_numbers,
    check_picks,
)
from graphfm.step_plan import IN_PLACE, StepPlan

MOST_LAYOUTS = 16  # layouts to keep: full batches have one size, the last of an epoch another


@dataclass(kw_only=True)
class NeighborSampler(SeedSampler):
    """Picks `fanout[0]` neighbours of each target, `fanout[1]` of each of those, and so on.

    That is GraphSAGE (Hamilton et al., 2017). Of the d neighbours of v, r are picked and their
    weights are multiplied by d / r, so the estimate of a weighted sum is unbiased for any weights.
    If r >= d, all are taken and the sum is exact. `picks` says how: "even" takes them at equal
    distances from a random start, so each neighbour is equally likely and most pairs never meet;
    "independent" makes every set of r neighbours equally likely. Both follow from a hash of the
    node and of a number drawn per step and layer, so a node that occurs twice in a layer has the
    same neighbours and the same row both times; different nodes pick independently.

    On a GPU nothing is sorted and duplicates stay, so the number of seeds determines every shape:
    it grows by a factor of fanout + 1 per layer. Only if that exceeds the number of nodes are
    duplicates removed. On a CPU they are always removed: fixed shapes gain nothing there, and
    fewer rows gain much.
    """

    fanout: tuple[int, ...]  # one per layer, from the targets outward; or one for all
    every_neighbor: bool = False  # also fill `Block.full` with all neighbours
    picks: str = EVEN  # or "independent"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_picks(self.picks)
        check_numbers("fanout", self.fanout, "; a fanout above every degree takes all neighbours")

    @property
    def independent(self) -> bool:
        """Whether every set of neighbours is equally likely."""
        return self.picks == INDEPENDENT

    @property
    def views(self) -> frozenset[str]:
        return frozenset({"full"}) if self.every_neighbor else frozenset()

    def prepare(self, adjacency: Adjacency, plan: StepPlan) -> None:
        super().prepare(adjacency, plan)
        graph = adjacency.graph
        self.fanouts = self._clamped(int(graph.degree.max()), plan.num_layers)
        self.distinct = Deduplicate(graph.num_nodes) if graph.device.type == "cpu" else None
        self.layouts = dict[tuple[int, int], tuple[Tensor, Tensor]]()  # by targets and fan-out

    def fixed_fanouts(self, size: GraphSize, num_layers: int) -> tuple[int, ...]:
        return self._clamped(size.max_degree, num_layers)

    def _clamped(self, max_degree: int | None, num_layers: int) -> tuple[int, ...]:
        """The fan-out of each layer, input first, at most the largest degree."""
        fanouts = by_depth("fanout", self.fanout, num_layers)
        if max_degree is None:
            return fanouts
        return tuple(min(fanout, max(max_degree, 1)) for fanout in fanouts)

    def crowded_layers(
        self, size: GraphSize, num_layers: int, exact_first_hop: bool
    ) -> frozenset[int]:
        crowded, rows = set[int](), min(self.batch_size, size.num_train)
        for depth in reversed(range(int(exact_first_hop), num_layers)):
            picks = rows * self.fixed_fanouts(size, num_layers)[depth]
            if picks > size.num_nodes:
                crowded.add(depth)
            rows += min(picks, size.num_nodes)
        return frozenset(crowded)

    def reads_in_place(self, device: torch.device, sums: bool) -> bool:
        return sums and not self.every_neighbor and device.type == "cpu"

    def static_shapes(self, size: GraphSize, plan: StepPlan) -> bool:
        if plan.device.type == "cpu" or plan.crowded:
            return False
        picked = self.fixed_fanouts(size, plan.num_layers)[int(plan.exact_first_hop) :]
        in_place = size.num_edges > 0 and max(picked, default=0) <= plan.whole_up_to
        return in_place or not self.every_neighbor

    def footprint(self, size: GraphSize, num_layers: int) -> list[LayerFootprint]:
        layers: list[LayerFootprint] = []
        targets: float = min(self.batch_size, size.num_train)
        for fanout in reversed(by_depth("fanout", self.fanout, num_layers)):
            picks = targets * fanout
            if picks > size.num_nodes:  # then rows are not padded with repeated picks
                picks = targets * min(fanout, size.mean_degree)
            edges = picks + targets * self.every_neighbor * size.mean_degree
            sources = targets + min(picks, size.num_nodes)
            layers.insert(0, LayerFootprint(sources, targets, edges))
            targets = sources
        return layers

    def sample(self, seeds: Tensor, rng: torch.Generator) -> Batch:
        blocks: list[Block] = []
        src_ids, degree = seeds, None
        salts = torch.randint(1 << 62, (self.num_layers,), generator=rng, device=rng.device)
        for depth, fanout in reversed(list(enumerate(self.fanouts))):
            salt = salts[self.num_layers - 1 - depth :][:1]  # drawn from the output down
            if depth == 0 and self.plan.exact_first_hop:
                block = self.adjacency.bare_block(src_ids, degree)
            elif self._fits(src_ids, fanout):
                block, degree = self._picked_at_once(src_ids, fanout, salt)
            else:
                in_place = depth == 0 and self.plan.features == IN_PLACE
                block, degree = self._block(src_ids, fanout, salt, in_place), None
            blocks.insert(0, block)
            src_ids = block.src_ids
        whole = bool(blocks) and blocks[0].place is not None
        return Batch(src_ids, seeds, tuple(blocks), whole=whole)

    def _block(self, dst_ids: Tensor, fanout: int, salt: Tensor, in_place: bool) -> Block:
        """The block of a layer whose shapes depend on the nodes that are picked."""
        adjacency, where = self.adjacency, self.adjacency.neighborhoods
        if self.distinct is None and not self._crowded(dst_ids.numel(), fanout):
            # Not `pick`: its kernel's weights differ in their last bits.
            uniform = numbers_for(dst_ids, salt, fanout, self.independent)
            picks = pick_plain(dst_ids, uniform, fanout, where)
            src_ids = picks.src_ids
            edges = self._side_by_side(picks.weight, dst_ids.numel(), fanout)
        else:
            src_ids, edges = self._compact(dst_ids, fanout, salt, in_place)
        own = adjacency.self_weight
        return Block(
            src_ids,
            edges,
            adjacency.graph.degree.index_select(0, dst_ids).float(),
            None if own is None else own[dst_ids],
            full=adjacency.block(dst_ids) if self.every_neighbor else None,
            place=dst_ids if in_place else None,
        )

    def _compact(
        self, dst_ids: Tensor, fanout: int, salt: Tensor, in_place: bool
    ) -> tuple[Tensor, Edges]:
        """Distinct sources, and edges without the repeated picks that only pad a row."""
        graph, where = self.adjacency.graph, self.adjacency.neighborhoods
        count, neighbor_ids, weight = pick_distinct(dst_ids, salt, fanout, where, self.independent)
        indptr = offsets(count).int()
        if in_place:
            return graph.ids, Edges(indptr, neighbor_ids.int(), weight, graph.num_nodes)
        if self.distinct is not None:
            src_ids, col = self.distinct(dst_ids, neighbor_ids)
        else:
            ids, index = torch.unique(neighbor_ids, return_inverse=True)
            src_ids, col = torch.cat([dst_ids, ids]), (dst_ids.numel() + index).int()
        return src_ids, Edges(indptr, col, weight, src_ids.numel())

    def _fits(self, dst_ids: Tensor, fanout: int) -> bool:
        """True if one operation can pick this layer's neighbours, with shapes known beforehand."""
        in_place = fanout <= self.plan.whole_up_to and self.adjacency.graph.num_edges > 0
        if self.every_neighbor and not in_place:
            return False
        return self.distinct is None and not self._crowded(dst_ids.numel(), fanout)

    def _crowded(self, num_rows: int, fanout: int) -> bool:
        """True if there are more picks than nodes."""
        return num_rows * fanout > self.adjacency.graph.num_nodes

    def _picked_at_once(self, dst_ids: Tensor, fanout: int, salt: Tensor) -> tuple[Block, Tensor]:
        """Return a block, and the degrees of all its sources."""
        adjacency, where = self.adjacency, self.adjacency.neighborhoods
        picks = pick(dst_ids, salt, fanout, where, self.independent)
        own = adjacency.self_weight
        block = Block(
            picks.src_ids,
            self._side_by_side(picks.weight, dst_ids.numel(), fanout),
            picks.degree[: dst_ids.numel()],
            None if own is None else own[dst_ids],
            every=where if self.every_neighbor else None,
        )
        return block, picks.degree

    def _side_by_side(self, weight: Tensor, num_dst: int, fanout: int) -> Edges:
        """Edges of a layer in which every pick is a source of its own, after the targets."""
        size, device = num_dst * (fanout + 1), weight.device
        layout = self.layouts.get((num_dst, fanout))
        if layout is None:
            first = torch.arange(num_dst + 1, dtype=torch.int32, device=device) * fanout
            layout = first, torch.arange(num_dst, size, dtype=torch.int32, device=device)
            if len(self.layouts) < MOST_LAYOUTS:
                self.layouts[num_dst, fanout] = layout
        return Edges(*layout, weight, size, fanout)
