"""The edges of the subgraph that a set of nodes induces."""

import torch
from torch import Tensor

from graphfm.batch import expand_rows
from graphfm.data.graph import Graph


class InducedEdges:
    """Finds the edges with both ends in a set of nodes. It keeps one integer per node."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        # -1 between calls; filled and cleared by each call
        self.position_of_node = torch.full((graph.num_nodes,), -1, device=graph.device)

    def __call__(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Row and column (positions in `ids`, which are distinct) and position in the graph."""
        row, position = expand_rows(self.graph.indptr, ids)
        self.position_of_node[ids] = torch.arange(ids.numel(), device=ids.device)
        col = self.position_of_node[self.graph.indices[position].long()]
        self.position_of_node[ids] = -1
        keep = (col >= 0).nonzero().squeeze(1)
        return row[keep], col[keep], position[keep]
