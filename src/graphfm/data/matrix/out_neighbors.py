"""The edges of a graph, sorted by source instead of by target."""

from __future__ import annotations

import torch
from torch import Tensor

from graphfm.batch import expand_rows, offsets
from graphfm.data.graph import Graph


class OutNeighbors:
    """The out-neighbours of every node.

    In an undirected graph with sorted rows (`Graph.from_edges` sorts them) they equal the
    in-neighbours. Then `mirrored` is true, and the graph's own arrays are used.
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
        """Edges that leave `ids`: position in `ids`, out-neighbour, position in `graph.indices`.

        In a mirrored graph the last one is that of the reverse edge, which has the same weight.
        """
        source, position = expand_rows(self.indptr, ids)
        out_neighbors = self.readers[position].long()
        return source, out_neighbors, position if self.mirrored else self.order[position]
