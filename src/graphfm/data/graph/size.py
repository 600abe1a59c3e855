"""How large things are, before they are there."""

from __future__ import annotations

from dataclasses import dataclass

from graphfm.data.graph import Graph


@dataclass(frozen=True, kw_only=True)
class GraphSize:
    """What decides the memory of a training, of a graph."""

    num_nodes: int
    num_edges: int
    num_train: int
    num_features: int
    num_classes: int
    num_bytes: int
    num_scored: int  # nodes of the larger of the splits to evaluate on
    feature_bytes: int = 4  # of one number
    max_degree: int | None = None  # None where the graph is not there yet
    still_to_come: int = 0  # bytes of them that are not in memory yet, and will be

    @classmethod
    def of(cls, graph: Graph) -> GraphSize:
        """Of a graph that is there."""
        return cls(
            num_nodes=graph.num_nodes,
            num_edges=graph.num_edges,
            num_train=int(graph.train_mask.sum()),
            num_features=graph.num_features,
            num_classes=graph.num_classes,
            num_bytes=graph.num_bytes,
            num_scored=max(int(graph.val_mask.sum()), int(graph.test_mask.sum())),
            feature_bytes=graph.x.dtype.itemsize,
            max_degree=int(graph.degree.max()) if graph.num_nodes else 0,
        )

    @property
    def mean_degree(self) -> float:
        return self.num_edges / max(self.num_nodes, 1)


@dataclass(frozen=True)
class LayerFootprint:
    """Of one layer of a batch, how many rows it reads and writes, along how many edges."""

    sources: float
    targets: float
    edges: float
