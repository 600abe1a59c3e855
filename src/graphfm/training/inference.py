"""Exact outputs for all nodes, one layer at a time, in chunks."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from graphfm.backbones.base import Backbone
from graphfm.data.adjacency import Adjacency
from graphfm.data.chunks import CHUNK_EDGES, CHUNK_NODES, ranges
from graphfm.estimators.base import Exact
from graphfm.layer import GraphLayer
from graphfm.norm import evaluating


class LayerwiseInference:
    """The same layers as in training, with every neighbour and without dropout.

    Two layers' rows for all nodes are held (three where layers read the encoder's output); beyond
    those and the graph, memory is that of one chunk: at most `chunk_nodes` targets with at most
    `chunk_edges` edges (one target at least, however many neighbours it has).
    """

    def __init__(
        self,
        adjacency: Adjacency,
        *,
        chunk_nodes: int = CHUNK_NODES,
        chunk_edges: int = CHUNK_EDGES,
    ) -> None:
        self.adjacency = adjacency
        self.ranges = ranges(adjacency.graph.indptr, chunk_nodes, chunk_edges)

    @torch.no_grad()
    def __call__(self, backbone: Backbone, x: Tensor | None = None) -> Tensor:
        """[num_nodes, out_width] outputs, on the device of the graph.

        `x` is what `backbone.features` makes of the graph, for those who have it already.
        """
        with evaluating(backbone):
            return self._run(backbone, backbone.features(self.adjacency.graph) if x is None else x)

    @torch.no_grad()
    def first_aggregate(self, layer: GraphLayer, x: Tensor) -> Tensor:
        """[num_nodes, agg_width] what the first layer makes of every node's raw neighbours."""

        def parts() -> Iterator[Tensor]:
            for start, end in self.ranges:
                block = self.adjacency.block(torch.arange(start, end, device=x.device))
                yield layer.aggregate(x[block.src_ids].float(), block)

        return self._join(parts())

    def _run(self, backbone: Backbone, x: Tensor) -> Tensor:
        exact = Exact()
        if isinstance(backbone.encode, nn.Identity):
            h = x  # not copied: chunks read their rows from it
        else:
            h = self._join(backbone.encode(x[s:e].float()) for s, e in self.ranges)
        h0 = h if backbone.reads_h0 else None
        for depth, layer in enumerate(backbone.layers):
            outputs = self._layer(exact, depth, layer, h, h0)
            h = self._join(outputs)
        return self._join(backbone.decode(h[start:end].float()) for start, end in self.ranges)

    def _layer(
        self, exact: Exact, depth: int, layer: GraphLayer, h: Tensor, h0: Tensor | None
    ) -> Iterator[Tensor]:
        for start, end in self.ranges:
            if len(self.ranges) == 1:
                rows = h.float()
                yield exact(
                    depth, layer, self.adjacency.full_block(), rows, rows if h0 is None else h0
                )
                return
            block = self.adjacency.block(torch.arange(start, end, device=h.device))
            rows = h[block.src_ids].float()
            yield exact(depth, layer, block, rows, rows if h0 is None else h0[block.src_ids])

    def _join(self, parts: Iterator[Tensor]) -> Tensor:
        """The rows of all chunks, without ever holding a second copy of them."""
        first = next(parts)
        if len(self.ranges) == 1:
            return first
        joined = first.new_empty(self.adjacency.graph.num_nodes, first.size(1))
        joined[: first.size(0)] = first
        for (start, end), part in zip(self.ranges[1:], parts, strict=True):
            joined[start:end] = part
        return joined
