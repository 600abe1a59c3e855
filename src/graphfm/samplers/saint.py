"""GraphSAINT (Zeng et al., 2020): random subgraphs, corrected for how often nodes are in them."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from graphfm.batch import Batch, Block, Edges, offsets
from graphfm.data.graph.size import GraphSize, LayerFootprint
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.errors import InputError
from graphfm.samplers.base import Sampler
from graphfm.samplers.drawing.importance import Chances, as_chances, column_chances
from graphfm.samplers.drawing.induced_edges import InducedEdges
from graphfm.step_plan import StepPlan

SUBGRAPHS = ("node", "edge", "walk")
MOST = 1e4  # largest factor of an edge


@dataclass(kw_only=True)
class SaintSampler(Sampler):
    """Each batch is the subgraph induced by the nodes that `budget` draws touch.

    Draws are of nodes (by the squared norm of their column), of edges (by 1 / deg u + 1 / deg v,
    both ends are taken) or of roots of walks of `walk_length` steps. A node whose probability would
    be zero gets the smallest positive probability instead.

    Before training, subgraphs are drawn until they hold `coverage` times the nodes of the graph.
    C_v and C_uv count those with node v and with edge (u, v). Edges are multiplied by C_v / C_uv,
    which makes the aggregate of v unbiased if v is drawn, and losses by
    (subgraphs / C_v) / (training nodes), which makes the batch's loss an unbiased mean. Counts of
    zero are taken as one. An epoch draws about as many nodes as the graph has. A budget of all
    nodes or edges gives the whole graph.
    """

    subgraph: str = "walk"
    budget: int
    walk_length: int = 2
    coverage: int = 50
    seed: int = 0  # of the subgraphs drawn beforehand

    def __post_init__(self) -> None:
        if self.subgraph not in SUBGRAPHS:
            raise InputError(f"subgraph is {self.subgraph}; expected {', '.join(SUBGRAPHS)}")
        for name in ("budget", "walk_length", "coverage"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; expected 1 or more")

    def prepare(self, adjacency: Adjacency, plan: StepPlan) -> None:
        self.adjacency, self.num_layers, graph = adjacency, plan.num_layers, adjacency.graph
        self.induced = InducedEdges(graph)
        if self.subgraph == "node":
            self.chances = Chances(_above_zero(column_chances(adjacency)))
        elif self.subgraph == "edge":
            alone = (graph.degree == 0) & (
                torch.bincount(graph.indices, minlength=graph.num_nodes) == 0
            )
            self.alone = alone.nonzero().squeeze(1)
            chances = torch.cat([_edge_chances(adjacency), torch.zeros_like(self.alone)])
            self.chances = Chances(_above_zero(chances))
        self.whole = self.budget >= (
            graph.num_edges if self.subgraph == "edge" else graph.num_nodes
        )
        self._count()

    def _count(self) -> None:
        """Draw subgraphs to count nodes and edges for the normalisation."""
        graph = self.adjacency.graph
        nodes = torch.zeros(graph.num_nodes, device=graph.device)
        edges = torch.zeros(graph.num_edges, device=graph.device)
        rng = torch.Generator(graph.device).manual_seed(self.seed)
        subgraphs = size = 0
        while size < graph.num_nodes * self.coverage:
            ids = self._draw(rng)
            nodes[ids] += 1
            edges[self.induced(ids)[2]] += 1
            subgraphs, size = subgraphs + 1, size + ids.numel()
        targets = graph.edge_index[1]
        self.edge_factor = (nodes[targets].clamp(min=1) / edges.clamp(min=1)).clamp(max=MOST)
        num_train = int(graph.train_mask.sum())
        self.loss_weight = subgraphs / nodes.clamp(min=1) / max(num_train, 1)
        self.steps = max(1, round(graph.num_nodes * subgraphs / size))

    def footprint(self, size: GraphSize, num_layers: int) -> list[LayerFootprint]:
        most = self.budget * {"node": 1, "edge": 2, "walk": self.walk_length + 1}[self.subgraph]
        nodes = min(most, size.num_nodes)
        return [LayerFootprint(nodes, nodes, nodes * size.mean_degree)] * num_layers

    def epoch(self, rng: torch.Generator) -> Iterator[Tensor]:
        return (self._draw(rng) for _ in range(self.steps))

    def sample(self, seeds: Tensor, rng: torch.Generator) -> Batch:
        adjacency, graph = self.adjacency, self.adjacency.graph
        row, col, position = self.induced(seeds)
        weight = adjacency.weights(seeds[row], seeds[col], position) * self.edge_factor[position]
        indptr = offsets(torch.bincount(row, minlength=seeds.numel()))
        edges = Edges(indptr.int(), col.int(), weight, seeds.numel())
        own = None if adjacency.self_weight is None else adjacency.self_weight[seeds]
        block = Block(seeds, edges, graph.degree[seeds].float(), own)
        return Batch(seeds, seeds, (block,) * self.num_layers, self.loss_weight[seeds], weighs=True)

    def _draw(self, rng: torch.Generator) -> Tensor:
        """The nodes of one subgraph, ascending."""
        graph = self.adjacency.graph
        if self.whole:
            return torch.arange(graph.num_nodes, device=graph.device)
        if self.subgraph == "node":
            return self.chances.draw(self.budget, rng)[0]
        if self.subgraph == "edge":
            drawn, _ = self.chances.draw(self.budget, rng)
            position = drawn[drawn < graph.num_edges]
            target = torch.searchsorted(graph.indptr, position, right=True) - 1
            lone = self.alone[drawn[drawn >= graph.num_edges] - graph.num_edges]
            touched = torch.cat([target, graph.indices[position].long(), lone])
        else:
            touched = self._walks(rng)
        distinct: Tensor = torch.unique(touched)
        return distinct

    def _walks(self, rng: torch.Generator) -> Tensor:
        graph = self.adjacency.graph
        here = torch.randint(graph.num_nodes, (self.budget,), generator=rng, device=rng.device)
        seen = [here]
        for _ in range(self.walk_length):
            here = walk_step(self.adjacency, here, rng)
            seen.append(here)
        return torch.cat(seen)


def walk_step(adjacency: Adjacency, here: Tensor, rng: torch.Generator) -> Tensor:
    """Walk from each node to a random in-neighbour; a node without in-neighbours stays."""
    graph = adjacency.graph
    if graph.num_edges == 0:
        return here
    dice = torch.rand(here.numel(), generator=rng, device=rng.device, dtype=torch.float64)
    degree = graph.degree[here]
    position = (graph.indptr[here] + (dice * degree).long()).clamp(max=graph.num_edges - 1)
    return torch.where(degree > 0, graph.indices[position].long(), here)


def _above_zero(chances: Tensor) -> Tensor:
    """Raise zeros to the smallest positive number, so that every node's loss is seen sometimes."""
    least = int(chances[chances > 0].min()) if bool((chances > 0).any()) else 1
    return chances.clamp(min=least)


def _edge_chances(adjacency: Adjacency) -> Tensor:
    graph = adjacency.graph
    source, target = graph.edge_index
    readers = torch.bincount(source, minlength=graph.num_nodes)
    return as_chances(1 / graph.degree[target].double() + 1 / readers[source].double())
