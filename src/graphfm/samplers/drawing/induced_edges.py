"""The edges among some nodes."""

import torch
from torch import Tensor

from graphfm.batch import expand_rows
from graphfm.data.graph import Graph


class InducedEdges:
    """Finds the edges of a graph whose both ends are in a set. Keeps one number per node."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.place = torch.full((graph.num_nodes,), -1, device=graph.device)  # between calls

    def __call__(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Row and column (positions in `ids`, which are distinct) and position in the graph."""
        row, position = expand_rows(self.graph.indptr, ids)
        self.place[ids] = torch.arange(ids.numel(), device=ids.device)
        col = self.place[self.graph.indices[position].long()]
        self.place[ids] = -1
        keep = (col >= 0).nonzero().squeeze(1)
        return row[keep], col[keep], position[keep]
