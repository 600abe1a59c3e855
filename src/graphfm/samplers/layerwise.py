"""FastGCN and LADIES: a fixed number of sampled nodes per layer, shared by all targets."""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphfm.batch import Batch, Block, Edges, expand_rows, offsets
from graphfm.data.graph.size import GraphSize, LayerFootprint
from graphfm.data.matrix.adjacency import Adjacency, targets_first
from graphfm.samplers.drawing.importance import Chances, as_chances, column_chances
from graphfm.samplers.seeds import SeedSampler, by_depth, check_numbers
from graphfm.step_plan import StepPlan


@dataclass(kw_only=True)
class LayerSampler(SeedSampler):
    """Draws the nodes that each layer reads by importance: `nodes_per_layer[0]` for the last layer.

    A node's probability is proportional to the squared norm of its column: in the whole matrix, the
    same for every layer and step (FastGCN, Chen et al., 2018), or with `dependent` in the rows of
    this layer's targets (LADIES, Zou et al., 2019). Edges from drawn nodes are multiplied by
    count / (draws * probability), so that aggregates are unbiased. `normalize_rows` then scales
    each row to its true total, as LADIES does: less noise, and no longer unbiased. A layer's
    targets read their own rows exactly. If there are no more nodes than draws, all are taken.
    """

    nodes_per_layer: tuple[int, ...]  # one per layer, from the targets outward; or one for all
    dependent: bool = False
    normalize_rows: bool = False
    every_neighbor: bool = False  # also fill `Block.full` with all neighbours

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers("nodes_per_layer", self.nodes_per_layer)

    @property
    def views(self) -> frozenset[str]:
        return frozenset({"full"}) if self.every_neighbor else frozenset()

    def prepare(self, adjacency: Adjacency, plan: StepPlan) -> None:
        super().prepare(adjacency, plan)
        self.numbers = by_depth("nodes_per_layer", self.nodes_per_layer, plan.num_layers)
        if not self.dependent:
            self.chances = Chances(column_chances(adjacency))

    def footprint(self, size: GraphSize, num_layers: int) -> list[LayerFootprint]:
        layers: list[LayerFootprint] = []
        targets: float = min(self.batch_size, size.num_train)
        for number in reversed(by_depth("nodes_per_layer", self.nodes_per_layer, num_layers)):
            sources = min(targets + number, size.num_nodes)
            edges = targets * size.mean_degree  # all are read, though not all are kept
            layers.insert(0, LayerFootprint(sources, targets, edges))
            targets = sources
        return layers

    def sample(self, seeds: Tensor, rng: torch.Generator) -> Batch:
        blocks: list[Block] = []
        src_ids = seeds
        for depth, number in reversed(list(enumerate(self.numbers))):
            if depth == 0 and self.plan.exact_first_hop:
                blocks.insert(0, self.adjacency.bare_block(src_ids))
            else:
                blocks.insert(0, self._block(src_ids, number, rng))
            src_ids = blocks[0].src_ids
        return Batch(src_ids, seeds, tuple(blocks), weighs=True)

    def _block(self, dst_ids: Tensor, number: int, rng: torch.Generator) -> Block:
        adjacency, graph = self.adjacency, self.adjacency.graph
        row, position = expand_rows(graph.indptr, dst_ids)
        neighbor_ids = graph.indices[position].long()
        weight = adjacency.weights(dst_ids[row], neighbor_ids, position)
        factor = self._factors(neighbor_ids, weight, number, rng)
        keep = factor.nonzero().squeeze(1)
        row, weight = row[keep], weight[keep] * factor[keep]
        src_ids, col = targets_first(dst_ids, neighbor_ids[keep], graph.num_nodes)
        indptr = offsets(torch.bincount(row, minlength=dst_ids.numel()))
        if self.normalize_rows:
            weight = weight * self._correction(dst_ids, weight, indptr)[row]
        own = adjacency.self_weight
        return Block(
            src_ids,
            Edges(indptr.int(), col.int(), weight, src_ids.numel()),
            graph.degree[dst_ids].float(),
            None if own is None else own[dst_ids],
            full=adjacency.block(dst_ids) if self.every_neighbor else None,
        )

    def _factors(
        self, neighbor_ids: Tensor, weight: Tensor, number: int, rng: torch.Generator
    ) -> Tensor:
        """The factor of each edge's weight: zero if its source was not drawn."""
        if neighbor_ids.numel() == 0:
            return torch.ones_like(weight)
        if self.dependent:
            distinct, index = torch.unique(neighbor_ids, return_inverse=True)
            squares = as_chances(weight.double().square())
            chances = Chances(torch.zeros_like(distinct).index_add_(0, index, squares))
        else:
            chances, index = self.chances, neighbor_ids
        drawn, factor = chances.draw(number, rng)
        found = torch.searchsorted(drawn, index).clamp(max=drawn.numel() - 1)
        return torch.where(drawn[found] == index, factor[found], 0.0)

    def _correction(self, dst_ids: Tensor, weight: Tensor, indptr: Tensor) -> Tensor:
        """Ratio of the true total of each row's edges to the total of the drawn ones."""
        own = self.adjacency.self_weight
        total = self.adjacency.row_sums[dst_ids] - (0 if own is None else own[dst_ids])
        seen = torch.segment_reduce(weight, "sum", offsets=indptr, initial=0)
        return torch.where(seen > 0, total / seen, 0.0)
