"""SHADOW (Zeng et al., 2021): a small separate subgraph for every target."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from graphfm.batch import Batch, Block, Edges, expand_rows, offsets
from graphfm.data.graph.size import GraphSize, LayerFootprint
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.errors import InputError
from graphfm.kernels.choice import distinct_positions
from graphfm.samplers.saint import walk_step
from graphfm.samplers.seeds import EVEN, INDEPENDENT, SeedSampler, check_picks
from graphfm.step_plan import StepPlan

SUBGRAPHS = ("khop", "pagerank")
RESTART = 0.15  # probability that a walk ends at each step


@dataclass(kw_only=True)
class ShadowSampler(SeedSampler):
    """The network, however deep, runs on a subgraph around each seed; its output is the seed's row.

    "khop": `fanout` neighbours of each node, up to `depth` steps away. "pagerank": the `budget`
    nodes that `walks` walks from the seed visit most often; a walk ends with probability 0.15 at
    each step, or at a node without in-neighbours (personalised PageRank by simulation). Both keep
    all edges among these nodes, normalised as if the subgraph were the whole graph. A budget of all
    nodes gives the whole graph. The subgraphs of a batch are not connected: a node in several of
    them occurs several times.
    """

    subgraph: str = "khop"
    depth: int = 2
    fanout: tuple[int, ...] = (5,)  # one per step away from the seed; or one for all
    budget: int = 20
    walks: int = 64
    picks: str = EVEN  # of khop's neighbours; or "independent"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_picks(self.picks)
        if self.subgraph not in SUBGRAPHS:
            raise InputError(f"subgraph is {self.subgraph}; expected {' or '.join(SUBGRAPHS)}")
        for name in ("depth", "budget", "walks"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; expected 1 or more")
        if not self.fanout or min(self.fanout) < 1 or len(self.fanout) not in (1, self.depth):
            said = ",".join(map(str, self.fanout)) or "empty"
            raise InputError(
                f"fanout is {said} and depth {self.depth}; expected numbers of 1 or more, "
                "one for each step from the target or one for all"
            )

    def prepare(self, adjacency: Adjacency, plan: StepPlan) -> None:
        super().prepare(adjacency, plan)
        graph, n = adjacency.graph, adjacency.graph.num_nodes
        source, target = graph.edge_index
        self.edge_keys, self.edge_order = target * n + source, None
        if bool((self.edge_keys[1:] < self.edge_keys[:-1]).any()):  # rows are not sorted
            self.edge_keys, self.edge_order = self.edge_keys.sort()

    def footprint(self, size: GraphSize, num_layers: int) -> list[LayerFootprint]:
        nodes: float = self.budget
        if self.subgraph == "khop":
            nodes = new = 1.0
            for fanout in (self.fanout * self.depth)[: self.depth]:
                new *= min(fanout, size.mean_degree)
                nodes += new
        nodes = min(nodes, size.num_nodes)
        edges = nodes * min(size.mean_degree, nodes)
        seeds = min(self.batch_size, size.num_train)
        return [LayerFootprint(nodes * seeds, nodes * seeds, edges * seeds)] * num_layers

    def sample(self, seeds: Tensor, rng: torch.Generator) -> Batch:
        if self.num_layers == 0:
            return Batch(seeds, seeds, ())
        n = self.adjacency.graph.num_nodes
        roots = torch.arange(seeds.numel(), device=seeds.device)
        keys = self._walked(seeds, rng) if self.subgraph == "pagerank" else self._hops(seeds, rng)
        own = roots * n + seeds
        others = keys[~torch.isin(keys, own)]
        keys = torch.cat([own, others])  # roots first
        group, ids = keys // n, keys % n
        block = self.adjacency.subgraph_block(ids, *self._edges(keys, group, ids))
        last = _first_rows(block, seeds.numel())
        return Batch(ids, seeds, (*(block,) * (self.num_layers - 1), last))

    def _hops(self, seeds: Tensor, rng: torch.Generator) -> Tensor:
        """Keys (subgraph * num_nodes + node) of all nodes in all subgraphs, ascending."""
        graph, n = self.adjacency.graph, self.adjacency.graph.num_nodes
        keys = new = torch.arange(seeds.numel(), device=seeds.device) * n + seeds
        fanouts = (self.fanout * self.depth)[: self.depth]
        for fanout in fanouts if graph.num_edges else ():
            uniform: Any = partial(_uniform, fanout, rng)
            if self.picks != INDEPENDENT or fanout == 1:
                uniform = _uniform(1, rng, new).squeeze(0)
            count, position, _ = distinct_positions(graph.indptr, new % n, fanout, uniform)
            group = (new // n).repeat_interleave(count)
            reached: Tensor = torch.unique(group * n + graph.indices[position])
            new = reached[~torch.isin(reached, keys)]
            keys = torch.cat([keys, new])
        return keys.sort().values

    def _walked(self, seeds: Tensor, rng: torch.Generator) -> Tensor:
        """Keys like those of `_hops`, for the nodes that walks visit most often."""
        n, device = self.adjacency.graph.num_nodes, seeds.device
        group = torch.arange(seeds.numel(), device=device)
        if self.budget >= n:
            return (group.unsqueeze(1) * n + torch.arange(n, device=device)).flatten()
        group, here = group.repeat_interleave(self.walks), seeds.repeat_interleave(self.walks)
        seen = [group * n + here]
        while group.numel():
            walking = torch.rand(group.numel(), generator=rng, device=rng.device) >= RESTART
            walking &= self.adjacency.graph.degree[here] > 0
            group, here = group[walking], walk_step(self.adjacency, here[walking], rng)
            seen.append(group * n + here)
        keys, visits = torch.unique(torch.cat(seen), return_counts=True)
        order = visits.argsort(descending=True, stable=True)
        order = order[(keys[order] // n).argsort(stable=True)]  # by subgraph, most visited first
        first = offsets(torch.bincount(keys // n, minlength=seeds.numel()))
        rank = torch.arange(keys.numel(), device=device) - first[keys[order] // n]
        kept: Tensor = keys[order[rank < self.budget]]
        return kept.sort().values

    def _edges(self, keys: Tensor, group: Tensor, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Row, column and position in the graph of the edges within subgraphs, rows ascending.

        If a node has more neighbours than its subgraph has nodes, the subgraph's nodes are looked
        up among its neighbours; otherwise its neighbours are looked up among the subgraph's nodes.
        """
        graph, n = self.adjacency.graph, self.adjacency.graph.num_nodes
        ordered, row_of_sorted = keys.sort()
        members = offsets(torch.bincount(group))
        size = members.diff()[group]
        hub = graph.degree[ids] > size
        few, many = (~hub).nonzero().squeeze(1), hub.nonzero().squeeze(1)

        row, position = expand_rows(graph.indptr, ids[few])
        row = few[row]
        wanted = group[row] * n + graph.indices[position]
        found = torch.searchsorted(ordered, wanted).clamp(max=ordered.numel() - 1)
        keep = (ordered[found] == wanted).nonzero().squeeze(1)
        row, col, position = row[keep], row_of_sorted[found[keep]], position[keep]

        pair, member = expand_rows(members, group[many])
        pair, member = many[pair], row_of_sorted[member]
        wanted = ids[pair] * n + ids[member]
        first = torch.searchsorted(self.edge_keys, wanted)
        count = torch.searchsorted(self.edge_keys, wanted, right=True) - first
        which = torch.arange(pair.numel(), device=ids.device).repeat_interleave(count)
        shift = torch.arange(which.numel(), device=ids.device) - offsets(count)[which]
        row = torch.cat([row, pair[which]])
        col = torch.cat([col, member[which]])
        found = first[which] + shift
        found = found if self.edge_order is None else self.edge_order[found]
        position = torch.cat([position, found])
        order = row.argsort(stable=True)
        return row[order], col[order], position[order]


def _uniform(number: int, rng: torch.Generator, ids: Tensor) -> Tensor:
    """[number, num_ids] random numbers in [0, 1)."""
    shape = (number, ids.numel())
    return torch.rand(shape, generator=rng, device=rng.device, dtype=torch.float64)


def _first_rows(block: Block, number: int) -> Block:
    """The same block with only its first rows as targets."""
    edges, end = block.edges, int(block.edges.indptr[number])
    kept = Edges(edges.indptr[: number + 1], edges.col[:end], edges.weight[:end], edges.num_src)
    own = None if block.self_weight is None else block.self_weight[:number]
    return Block(block.src_ids, kept, block.degree[:number], own, alone=block.alone)
