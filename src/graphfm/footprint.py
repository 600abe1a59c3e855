"""How large things are, before they are there."""

from __future__ import annotations

from dataclasses import dataclass

from graphfm.data.graph import Graph


@dataclass(frozen=True)
class GraphSize:
    """What decides the memory of a training, of a graph."""

    num_nodes: int
    num_edges: int
    num_train: int

    @classmethod
    def of(cls, graph: Graph) -> GraphSize:
        return cls(graph.num_nodes, graph.num_edges, int(graph.train_mask.sum()))

    @property
    def mean_degree(self) -> float:
        return self.num_edges / max(self.num_nodes, 1)


@dataclass(frozen=True)
class LayerFootprint:
    """Of one layer of a batch, how many rows it reads and writes, along how many edges."""

    sources: float
    targets: float
    edges: float
