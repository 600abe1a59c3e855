"""The numbers that decide how much memory a graph takes, known before the graph is loaded."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from graphfm.data.graph import Graph
from graphfm.data.graph.edge_columns import EdgeColumns, edge_columns


@dataclass(frozen=True, kw_only=True)
class GraphSize:
    """The size of a graph, as far as it decides the memory of a training."""

    num_nodes: int
    num_edges: int
    num_train: int
    num_features: int
    num_classes: int
    num_bytes: int
    num_scored: int  # nodes of the larger of the validation and the test split
    feature_type: torch.dtype = torch.float32
    max_degree: int | None = None  # None if the graph is not loaded yet
    still_to_come: int = 0  # bytes of the graph that are not in memory yet
    edges: EdgeColumns = field(default_factory=dict)  # the data that edges have

    @classmethod
    def of(cls, graph: Graph) -> GraphSize:
        """Return the size of a loaded graph."""
        return cls(
            num_nodes=graph.num_nodes,
            num_edges=graph.num_edges,
            num_train=int(graph.train_mask.sum()),
            num_features=graph.num_features,
            num_classes=graph.num_classes,
            num_bytes=graph.num_bytes,
            num_scored=max(int(graph.val_mask.sum()), int(graph.test_mask.sum())),
            feature_type=graph.x.dtype,
            max_degree=int(graph.degree.max()) if graph.num_nodes else 0,
            edges=edge_columns(graph),
        )

    @property
    def mean_degree(self) -> float:
        return self.num_edges / max(self.num_nodes, 1)


@dataclass(frozen=True)
class LayerFootprint:
    """Rows read, rows written and edges used by one layer of a batch."""

    sources: float
    targets: float
    edges: float
