"""The tracking lemma: how the error of each layer's histories contracts, rests and drifts."""

from __future__ import annotations

import torch
from torch import Tensor

from graphfm.backbones.base import Backbone
from graphfm.data.graph import Graph
from graphfm.estimators.aggregate_momentum import AggregateMomentum
from graphfm.estimators.layer_step import Setup
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.step_plan import StepPlan
from graphfm.tables.device import DeviceTable


class LayerTracking:
    """GraphFM-IB's histories, moved as the paper's analysis moves them (its eq:update_u).

    At each step every layer draws `batch` nodes of its own and reads what the lower layer's history
    held before the step. (The method itself draws a layer's nodes among those that the layer above
    picked, and reads rows of the same step.) Expectations are means over `copies` of the graph,
    which share the weights and nothing else. The estimator and the sampler are those of training.
    """

    def __init__(
        self,
        graph: Graph,
        network: Backbone,
        *,
        beta: tuple[float, ...],
        batch: int,
        fanout: int = 1,
        copies: int = 100,
        seed: int = 0,
    ) -> None:
        self.network, self.batch, self.copies = network, batch, copies
        self.num_nodes = graph.num_nodes
        self.graph = _copies(graph, copies)
        self.adjacency = network.adjacency(self.graph)
        self.sampler = NeighborSampler(fanout=(fanout,), batch_size=batch)
        self.sampler.prepare(self.adjacency, StepPlan(num_layers=1))
        self.estimator = AggregateMomentum(beta=beta, start="zero", exact_first_hop=False)
        tables = {
            name: DeviceTable(self.graph.num_nodes, spec.width)
            for name, spec in self.estimator.declare(network.layers, 0).items()
        }
        self.estimator.prepare(Setup(layers=network.layers, tables=tables))
        self.rng = torch.Generator().manual_seed(seed)

    @torch.no_grad()
    def step(self) -> None:
        """Move the histories of all layers; weights stay as they are."""
        first = torch.arange(self.copies).unsqueeze(1) * self.num_nodes
        for depth in reversed(range(len(self.network.layers))):  # before the layer below moves
            dice = torch.rand(self.copies, self.num_nodes, generator=self.rng)
            chosen = (first + dice.argsort(dim=1)[:, : self.batch]).flatten()
            drawn, rows = self.sampler.sample(chosen, self.rng), self._inputs(depth)
            block = drawn.blocks[0]
            self.estimator(depth, self.network.layers[depth], block, rows[drawn.input_ids], rows)

    @torch.no_grad()
    def errors(self) -> Tensor:
        """[layers, copies] of Y_k = ||u_k - f_k(u_{k-1})||^2, summed over nodes."""
        block = self.adjacency.full_block()
        found = [
            layer.aggregate(self._inputs(depth), block) - self._history(depth)
            for depth, layer in enumerate(self.network.layers)
        ]
        return torch.stack([e.square().view(self.copies, -1).sum(dim=1) for e in found])

    @torch.no_grad()
    def variances(self) -> Tensor:
        """[layers, copies] variance of one sampled neighbour, summed over nodes: n sigma_f^2."""
        edges = self.adjacency.full_block().edges
        row, degree = edges.row.long(), self.graph.degree.unsqueeze(1)
        found = []
        for depth in range(len(self.network.layers)):
            message = edges.weight.unsqueeze(1) * self._inputs(depth)[edges.col.long()]
            total = torch.zeros(self.graph.num_nodes, message.size(1))
            square = degree * total.index_add(0, row, message.square())
            spread = square - total.index_add(0, row, message).square()
            found.append(spread.view(self.copies, -1).sum(dim=1))
        return torch.stack(found)

    def _history(self, depth: int) -> Tensor:
        return self.estimator.histories[depth].pull(torch.arange(self.graph.num_nodes))

    def _inputs(self, depth: int) -> Tensor:
        """The rows of all nodes that a layer reads, as the histories below have them."""
        rows: Tensor = self.network.encode(self.graph.x)
        if depth == 0:
            return rows
        targets = self.adjacency.full_block().targets(rows, rows)
        return self.network.layers[depth - 1].update(self._history(depth - 1), targets)


def _copies(graph: Graph, copies: int) -> Graph:
    """So many copies of a graph, without edges between them."""
    nodes = graph.num_nodes
    target = torch.arange(nodes).repeat_interleave(graph.degree)
    edges = torch.stack([graph.indices.long(), target])
    shifted = [edges + copy * nodes for copy in range(copies)]
    return Graph.from_edges(torch.cat(shifted, dim=1), graph.x.repeat(copies, 1))
