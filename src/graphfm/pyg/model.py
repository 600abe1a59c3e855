"""A network of PyG as a backbone: its own forward, our blocks, estimators and exact inference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from graphfm.backbones.base import Backbone, Tell, tell_nobody
from graphfm.batch import Batch, Block, Rows
from graphfm.data.graph import Graph
from graphfm.data.matrix.adjacency import Adjacency
from graphfm.estimators.base import Estimator
from graphfm.estimators.exact import Exact
from graphfm.estimators.halo_history import HaloHistory
from graphfm.estimators.layer_step import ForwardPass, LayerStep
from graphfm.kernels.fused_aggregate import Combined
from graphfm.pyg.batch_pass import BatchPass, GivenEdges, back_edges
from graphfm.pyg.calls import joined
from graphfm.pyg.cut import SUM, Cut
from graphfm.pyg.given import CallModel, default_call, run
from graphfm.pyg.guards import in_mode, uncached
from graphfm.pyg.inference import in_chunks
from graphfm.pyg.notes import Notes
from graphfm.pyg.probe import Findings, Probe
from graphfm.pyg.repeat import Found, Repeat, UpTo
from graphfm.pyg.trials import rows_follow
from graphfm.pyg.watching import Watcher, watching
from graphfm.pyg.whole_graph import WholeGraph, edge_data


class OwnModel(Backbone):
    """The user's network. `calibrate` binds it to the graph that it is trained on."""

    capturable = False
    infers_itself = True

    def __init__(self, net: nn.Module, call: CallModel, findings: Findings) -> None:
        super().__init__(nn.Identity(), findings.cuts, nn.Identity())
        self.net, self.call, self.findings = net, call, findings
        for cut in findings.cuts:
            cut.reads_features = cut.call.raw and not cut.inner
            cut.repeat = self._repeat
        self.whole: WholeGraph | None = None
        self.halo_follows = True  # rows of a halo follow from its aggregates
        self.weighs = False  # of the batch that is processed
        self.averages = not any(cut.kind == SUM for cut in findings.cuts)

    @property
    def depths(self) -> Sequence[int]:
        return [cut.depth for cut in self.findings.cuts]

    @property
    def num_blocks(self) -> int:
        return self.findings.num_hops

    @property
    def is_noisy(self) -> bool:
        return self.findings.noisy

    @property
    def begins_linear(self) -> bool:
        cuts = self.findings.cuts
        first = [cut for cut in cuts if cut.depth == 0]
        alone = len(first) == 1 and first[0].reads_features
        linear = alone and first[0].can_repeat and first[0].is_linear
        return linear and self.halo_follows

    @contextmanager
    def without_noise(self) -> Iterator[None]:
        with in_mode(self.net, False, batch_statistics=self.training):
            yield

    def adjacency(self, graph: Graph) -> Adjacency:
        """Edges without weights: the network itself weighs them."""
        plain = graph
        if graph.edge_weight is not None:
            plain = replace(graph, edge_weight=None, trusted=True)
        matrix = Adjacency.mean(plain) if self.averages else Adjacency.sum(plain)
        return matrix if plain is graph else replace(matrix, weighted_graph=graph)

    def unread_data(self, graph: Graph) -> Sequence[str]:
        read = {name for call in self.findings.calls.values() for name in call.per_edge.values()}
        if None in read:  # something that the network has made of them
            return ()
        return [name for name in edge_data(graph) if name not in read]

    def calibrate(self, graph: Graph) -> None:
        self.whole = WholeGraph(graph)

    def forward(
        self,
        x: Tensor | Rows | Combined,
        batch: Batch,
        estimator: Estimator,
        forward: ForwardPass | None = None,
    ) -> Tensor:
        assert isinstance(x, Tensor)
        assert self.whole is not None  # `calibrate` was called
        forward = forward or ForwardPass()
        targets, first = batch.target_ids.numel(), batch.blocks[0] if batch.blocks else None
        whole, exact = self.whole, isinstance(estimator, Exact) and not batch.weighs
        if first is None or (exact and (first.alone or batch.whole)):
            return self._plain(x, first, batch)[:targets]
        back = None
        moves = isinstance(estimator, HaloHistory) and estimator.moves_halo and forward.records
        if moves and first.from_halo is not None and first.from_halo.edges.num_edges:
            assert isinstance(estimator, HaloHistory)
            back = back_edges(first, estimator, self.averages, batch.weighs)
        self.weighs = batch.weighs
        edges = GivenEdges(batch, whole, self.averages, back)
        watcher = BatchPass(self.findings, whole, edges, batch, estimator, forward)
        ids = None if first.alone else batch.input_ids
        known = whole.degrees.of(ids, edges.edge_index)
        with (
            uncached(self.net), whole.degrees(), known, watching(self.net, watcher)
        ):  # fmt: skip
            return run(self.net, self.call, x, edges.edge_index, edges.data)[:targets]

    def _plain(self, x: Tensor, block: Block | None, batch: Batch) -> Tensor:
        """The network on a whole graph or on a subgraph that stands alone."""
        assert self.whole is not None
        if block is None:
            edge_index = torch.empty(2, 0, dtype=torch.int64, device=x.device)
            data = {name: values[:0] for name, values in self.whole.data.items()}
        elif batch.whole:
            edge_index, data = self.whole.graph.edge_index, self.whole.data
        else:
            edge_index = torch.stack([block.edges.col.long(), block.edges.row.long()])
            data = self.whole.data_of(block.edges, block.src_ids, block.dst_ids)
        with uncached(self.net):
            return run(self.net, self.call, x, edge_index, dict(data))

    def _repeat(self, cut: Cut, rows: Tensor, block: Block) -> Tensor:
        assert self.whole is not None
        again = Repeat(self.net, self.whole, averages=self.averages, weighs=self.weighs)
        return again(cut, rows, block)

    def infer(
        self,
        adjacency: Adjacency,
        x: Tensor,
        num_layers: int,
        chunk_edges: int,
        tell: Tell = tell_nobody,
    ) -> Tensor:
        """The network's own forward over all nodes, with messages in chunks of targets.

        The rows of a layer are those that the propagation after it reads.
        """
        graph, cuts = adjacency.weighted_graph or adjacency.graph, self.findings.cuts
        watcher = Watcher() if num_layers == len(cuts) else UpTo(cuts[num_layers])
        try:
            with (
                in_chunks(self.net, chunk_edges, tell),
                uncached(self.net),
                watching(self.net, watcher),
            ):
                return run(self.net, self.call, x.float(), graph.edge_index, edge_data(graph))
        except Found as found:
            return found.rows

    def whole_pass(
        self, x: Tensor, adjacency: Adjacency, see: Callable[[LayerStep, Tensor, Tensor], None]
    ) -> Tensor:
        assert self.whole is not None
        graph, block = self.whole.graph, adjacency.full_block()
        notes = Notes(x, graph.edge_index, self.whole.data)
        with uncached(self.net), watching(self.net, notes):
            out = run(self.net, self.call, x.float(), notes.edge_index, dict(notes.data))
        inputs = [self._rows(notes, cut, cut.rows) for cut in self.findings.cuts]
        deep = [self._rows(notes, cut, cut.deep) for cut in self.findings.cuts]
        for number, cut in enumerate(self.findings.cuts):
            step = LayerStep(number, cut, block, inputs[number], x, ForwardPass())
            agg = notes.aggregates[cut.place].flatten(1)
            see(step, agg, deep[number + 1] if number + 1 < len(deep) else agg)
        return out

    def _rows(self, notes: Notes, cut: Cut, names: Sequence[str]) -> Tensor:
        arguments = notes.propagated[cut.place] if cut.inner else notes.entered[cut.call.place]
        return joined(arguments, names) if names else notes.x[:, :0]


def own_model(
    net: nn.Module,
    width: int,
    data: Mapping[str, Tensor] | None = None,
    call: CallModel | None = None,
) -> OwnModel:
    """Examine a network for graphs of that many features, whose edges have such data."""
    call = call or default_call(net)
    model = OwnModel(net, call, Probe(net, call, width, data or {})())
    _examine_cuts(model, data or {})
    model.halo_follows = rows_follow(model, width, data or {})
    model.whole = None
    return model


@torch.no_grad()
def _examine_cuts(model: OwnModel, data: Mapping[str, Tensor]) -> None:
    """Find out which aggregates are linear in the rows, and which have no weights in them."""
    edges = torch.tensor([[5, 0, 1, 2, 0, 1, 3, 2, 4], [0, 1, 2, 3, 3, 3, 4, 4, 5]])
    some: dict[str, Any] = {
        name: values[torch.arange(9) % values.size(0)] for name, values in data.items()
    }
    graph = Graph.from_edges(edges, torch.zeros(6, 1), **some)
    model.calibrate(graph)
    block, rng = model.adjacency(graph).full_block(), torch.Generator().manual_seed(0)
    with in_mode(model.net, False):
        for cut in model.findings.cuts:
            if not cut.can_repeat:
                continue
            one, two = (torch.randn(6, cut.in_width, generator=rng) for _ in range(2))
            sums = [cut.aggregate(h, block) for h in (one, two, one + two)]
            zero = cut.aggregate(torch.zeros_like(one), block)
            cut.linear = bool((zero == 0).all()) and torch.allclose(
                sums[0] + sums[1], sums[2], atol=1e-4, rtol=1e-4
            )
            with torch.enable_grad():
                cut.weightless = not cut.aggregate(one, block).requires_grad
