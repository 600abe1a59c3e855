"""The edges of a graph by their sources: who reads a node."""

from __future__ import annotations

import torch
from torch import Tensor

from graphfm.batch import expand_rows, offsets
from graphfm.data.graph import Graph


class OutNeighbors:
    """Out-neighbours of every node.

    An undirected graph whose rows are sorted, as `Graph.from_edges` leaves them, holds them already
    (`mirrored`), and nothing is kept.
    """

    def __init__(self, graph: Graph) -> None:
        order = torch.argsort(graph.indices, stable=True)
        indptr = offsets(torch.bincount(graph.indices, minlength=graph.num_nodes))
        readers, weight = graph.targets()[order], graph.edge_weight
        self.indptr, self.readers, self.order = indptr, readers, order
        same = torch.equal(indptr, graph.indptr) and torch.equal(readers, graph.indices)
        self.mirrored = same and (weight is None or torch.equal(weight[order], weight))
        if self.mirrored:
            self.indptr, self.readers = graph.indptr, graph.indices
            self.order = graph.indices.new_empty(0)

    def of(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Edges that leave `ids`: position in `ids`, the reader, position in the graph's `indices`.

        In a mirrored graph the last is that of the edge back, which weighs the same.
        """
        source, place = expand_rows(self.indptr, ids)
        return source, self.readers[place].long(), place if self.mirrored else self.order[place]
