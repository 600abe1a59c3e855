"""Exact outputs of a network, one layer at a time, in chunks of nodes."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor, nn

from graphfm.backbones.base import Backbone, Tell, tell_nobody
from graphfm.backbones.ending import Ending, outputs
from graphfm.batch import Targets, offsets
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.data.matrix.chunks import CHUNK_EDGES, CHUNK_NODES, ranges
from graphfm.errors import InputError
from graphfm.estimators.exact import Exact
from graphfm.layer import GraphLayer
from graphfm.norm import evaluating
from graphfm.tables.device import DeviceTable, places

MESSAGE_NUMBERS = 1 << 25  # of messages in memory together: 128 MiB
KEPT_BYTES = 8 << 30  # rows that need no neighbours are kept if smaller, else recomputed
ReadRows = Callable[[Tensor], Tensor]  # reads the rows of given nodes


class LayerwiseInference:
    """Runs the same layers as training, with every neighbour and without dropout.

    It computes only the rows that the wanted outputs depend on. It holds two layers of them (three
    where layers read the encoder's output, all where the decoder does). Beyond those and the graph
    it takes the memory of one chunk: at most `chunk_nodes` targets with at most `chunk_edges` edges
    (and at least one target, however many neighbours it has).
    """

    def __init__(
        self,
        adjacency: Adjacency,
        *,
        chunk_nodes: int = CHUNK_NODES,
        chunk_edges: int = CHUNK_EDGES,
        tell: Tell = tell_nobody,
    ) -> None:
        self.adjacency, self.chunk_nodes, self.chunk_edges = adjacency, chunk_nodes, chunk_edges
        self.ranges = ranges(adjacency.graph.indptr, chunk_nodes, chunk_edges)
        self.first_hop: DeviceTable | None = None  # the first layer's aggregates, if known
        self.exact, self.tell = Exact(), tell

    def __call__(
        self, backbone: Backbone, x: Tensor | None = None, ids: Tensor | None = None
    ) -> Tensor:
        """[num_nodes, out_width] outputs, on the device of the graph; of `ids` alone if given.

        `x` is what `backbone.input_rows` returns for the graph, for callers that have it already.
        """
        number = self.adjacency.graph.num_nodes if ids is None else ids.numel()
        return gathered(self.parts(backbone, outputs(backbone), x, ids), number)

    @torch.no_grad()
    def parts(
        self,
        backbone: Backbone,
        ending: Ending,
        x: Tensor | None = None,
        ids: Tensor | None = None,
    ) -> Iterator[Tensor]:
        """Yield outputs, or the rows of a layer, in the order of the nodes, one chunk at a time."""
        with evaluating(backbone):
            x = backbone.input_rows(self.adjacency.graph) if x is None else x
            if len(self.ranges) > 1 and not backbone.infers_itself:
                yield from self._in_chunks(backbone, ending, x, ids)
            else:
                rows = self._at_once(backbone, ending, x)
                yield rows if ids is None else rows[ids]

    @torch.no_grad()
    def know_first_hop(self, layer: GraphLayer, x: Tensor) -> DeviceTable:
        """Compute and keep the first layer's aggregate of every node, in the number type of `x`."""
        nodes, device = self.adjacency.graph.num_nodes, x.device
        table = DeviceTable(nodes, layer.agg_width, dtype=x.dtype, device=device)
        finite = torch.ones((), dtype=torch.bool, device=device)
        for start, end in self._ranges_for(layer):
            if layer.sums:
                table.rows[start:end] = self.adjacency.product(start, end, x)
            else:
                block = self.adjacency.block(torch.arange(start, end, device=device))
                table.rows[start:end] = layer.aggregate(x[block.src_ids].float(), block)
            # In parts, because a table may fill the device.
            finite &= table.rows[start:end].isfinite().all()
        if x.dtype == torch.float16 and not bool(finite):
            raise InputError(
                "sums of neighbours' features are larger than fp16 can hold; set features to bf16, "
                "or turn off the method's exact_first_hop"
            )
        self.first_hop = table
        return table

    def _ranges_for(self, layer: GraphLayer) -> Sequence[tuple[int, int]]:
        """Chunks of nodes: smaller ones for a layer that keeps a message for each edge."""
        if not layer.message_width:
            return self.ranges
        edges = max(1, min(self.chunk_edges, MESSAGE_NUMBERS // layer.message_width))
        return ranges(self.adjacency.graph.indptr, self.chunk_nodes, edges)

    def _at_once(self, backbone: Backbone, ending: Ending, x: Tensor) -> Tensor:
        """Compute every layer for all nodes together."""
        if backbone.infers_itself:
            return backbone.infer(self.adjacency, x, ending.num_layers, self.chunk_edges, self.tell)
        block, known = self.adjacency.full_block(), self.first_hop
        first = backbone.encode(x.float())

        def output(depth: int, layer: GraphLayer, h: Tensor) -> Tensor:
            if depth == 0 and known is not None:
                return layer.update(known.rows[:-1].float(), block.targets(h, first))
            return self.exact(depth, layer, block, h, first)

        return ending.finish(backbone.walk(first, output, ending.num_layers))

    def _in_chunks(
        self, backbone: Backbone, ending: Ending, x: Tensor, ids: Tensor | None
    ) -> Iterator[Tensor]:
        """Compute each layer one chunk of nodes at a time; the last one while it is read."""
        first, known = self._encoder(backbone, x), self.first_hop is not None
        h0 = first if backbone.reads_h0 else None
        num_layers = ending.num_layers
        wanted = [None] * known + self._wanted(ids, num_layers - known)

        def output(depth: int, layer: GraphLayer, read: ReadRows) -> ReadRows:
            if depth == 0 and known:
                return self._kept(self._first_layer(layer, x), layer.out_width)
            compute = self._layer(depth, layer, read, h0)
            if depth == num_layers - 1:
                return compute
            chunks = self._told_chunks(f"layer {depth + 1} of {num_layers}", wanted[depth])
            return self._stored(wanted[depth], map(compute, chunks))

        kept = backbone.walk(first, output, num_layers)
        for chunk in self._told_chunks("rows", ids):
            yield ending.finish([read(chunk) for read in kept])

    def _told_chunks(self, what: str, ids: Tensor | None) -> Iterator[Tensor]:
        """The chunks of some nodes; reports how many nodes are done."""
        done, total = 0, self.adjacency.graph.num_nodes if ids is None else ids.numel()
        for chunk in self._chunks(ids):
            yield chunk
            done += chunk.numel()
            self.tell(what, done, total)

    def _layer(
        self, depth: int, layer: GraphLayer, read: ReadRows, h0: ReadRows | None
    ) -> ReadRows:
        """Read a layer's outputs, which are computed from all neighbours of the nodes read."""

        def output(ids: Tensor) -> Tensor:
            block = self.adjacency.block(ids)
            rows = read(block.src_ids)
            return self.exact(depth, layer, block, rows, rows if h0 is None else h0(block.src_ids))

        return output

    def _encoder(self, backbone: Backbone, x: Tensor) -> ReadRows:
        def encoded(ids: Tensor) -> Tensor:
            rows: Tensor = backbone.encode(x[ids].float())
            return rows

        if isinstance(backbone.encode, nn.Identity):
            return encoded  # nothing to compute: chunks read their rows from x
        return self._kept(encoded, backbone.layers[0].in_width if backbone.layers else x.size(1))

    def _first_layer(self, layer: GraphLayer, x: Tensor) -> ReadRows:
        """Read the first layer's outputs. Its aggregates are known, so it needs no neighbours."""
        table, degree = self.first_hop, self.adjacency.graph.degree
        assert table is not None

        def output(ids: Tensor) -> Tensor:
            rows = x[ids].float()
            return layer.update(table.pull(ids), Targets(rows, rows, degree[ids].float()))

        return output

    def _kept(self, read: ReadRows, width: int) -> ReadRows:
        """Read rows of all nodes: computed now if they are small enough, else on each read."""
        num_nodes, device = self.adjacency.graph.num_nodes, self.adjacency.graph.device
        if 4 * num_nodes * width > KEPT_BYTES:
            return read
        ids = torch.arange(num_nodes, device=device)
        return self._stored(None, (read(part) for part in self._pieces(ids)))

    def _stored(self, ids: Tensor | None, parts: Iterable[Tensor]) -> ReadRows:
        """Keep the rows of all chunks, for reading."""
        num_nodes = self.adjacency.graph.num_nodes
        if ids is None:
            rows = gathered(parts, num_nodes)
            return lambda wanted: rows[wanted]
        rows, row_of_node = gathered(parts, ids.numel()), places(ids, num_nodes)
        return lambda wanted: rows[row_of_node[wanted]]

    def _wanted(self, ids: Tensor | None, num_layers: int) -> list[Tensor | None]:
        """For each layer the nodes whose outputs are read, input first; None means all nodes."""
        if ids is None:
            return [None] * num_layers
        wanted: list[Tensor | None] = [ids]
        for _ in range(num_layers - 1):
            seen = torch.zeros(self.adjacency.graph.num_nodes, dtype=torch.bool, device=ids.device)
            for chunk in self._chunks(ids):
                seen[self.adjacency.block(chunk).src_ids] = True
            ids = seen.nonzero().squeeze(1)
            wanted.insert(0, ids)
        return wanted[:num_layers]

    def _pieces(self, ids: Tensor) -> Iterator[Tensor]:
        for start in range(0, ids.numel(), self.chunk_nodes):
            yield ids[start : start + self.chunk_nodes]

    def _chunks(self, ids: Tensor | None) -> Iterator[Tensor]:
        device = self.adjacency.graph.device
        if ids is None:
            yield from (torch.arange(start, end, device=device) for start, end in self.ranges)
            return
        indptr = offsets(self.adjacency.graph.degree[ids])
        for start, end in ranges(indptr, self.chunk_nodes, self.chunk_edges):
            yield ids[start:end]


def gathered(parts: Iterable[Tensor], number: int) -> Tensor:
    """Write the rows of all parts, `number` of them, into one tensor; there is at least one part.

    It holds one part beside the tensor, where `torch.cat` would hold all of them.
    """
    done = 0
    for part in parts:
        if done == 0:
            rows = part.new_empty(number, part.size(1))
        rows[done : done + part.size(0)] = part
        done += part.size(0)
    return rows
