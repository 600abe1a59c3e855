"""The rival of a network of PyG: the same network in the usual loop around a loader."""

from __future__ import annotations

import time
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor, nn

from graphfm.data.graph import Graph
from graphfm.data.graph.edge_columns import edge_columns
from graphfm.experiments.bench.neighbor_loader import LoadedBatch, NeighborLoader
from graphfm.experiments.bench.pyg_rival import close_workers, has_pyg, pyg_loader
from graphfm.experiments.bench.rival import SupervisedLoop, some_train_ids
from graphfm.runs.run import Run
from graphfm.training.setup import seeded

FANOUT, BATCH_SIZE = 10, 512  # of the loader, where the method of the run has none


class ModelRival(SupervisedLoop):
    """Every layer gets all edges of the batch, as in PyG's examples."""

    def __init__(self, run: Run, graph: Graph, workers: int = 0) -> None:
        started = time.perf_counter()
        self.graph, self.device, how = graph, graph.device, run.method_settings
        batch_size = how.get("batch_size", BATCH_SIZE)
        with seeded(run.training.seed, graph.device):
            sizes = graph.num_features, graph.num_classes, graph.num_nodes
            wrapped: Any = run.new_backbone(*sizes, edge_columns(graph))
            ids = some_train_ids(graph, batch_size * run.training.steps_per_epoch)
        self.network: nn.Module = wrapped.net.to(graph.device)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=run.training.lr)
        given = how.get("fanout", (FANOUT,))
        fanout = tuple(reversed(given if len(given) > 1 else given * wrapped.num_blocks))
        self.compiled = has_pyg()
        self.batches: Any
        if self.compiled:
            self.batches = pyg_loader(graph, ids, fanout, batch_size, workers, self.limit)
        else:
            self.batches = NeighborLoader(graph, ids, fanout, batch_size)
        loader = "PyG's NeighborLoader" if self.compiled else "a NumPy neighbour loader"
        name = type(self.network).__name__
        self.name = f"{loader} {list(reversed(fanout))} around the same {name}"
        self.prepare_seconds = time.perf_counter() - started

    def logits(self, batch: Any) -> tuple[Tensor, Tensor]:
        if self.compiled:
            ids, edges, seeds = batch.n_id, batch.edge_index, batch.batch_size
        else:
            ids, edges, seeds = batch.ids, _edges(batch), batch.num_seeds
        ids = ids.to(self.device)
        out = self.network(self.graph.x[ids].float(), edges.to(self.device))
        return out[:seeds], ids[:seeds]

    def close(self) -> None:
        close_workers(self.batches)


def _edges(batch: LoadedBatch) -> Tensor:
    """[2, num_edges] the edges of all hops; a node's neighbours are those of its first hop."""
    found = []
    for hop, inner in zip_longest(batch.hops, batch.hops[1:]):
        rows = torch.arange(hop.num_dst).repeat_interleave(hop.indptr.diff())
        new = rows >= (0 if inner is None else inner.num_dst)
        found.append(torch.stack([hop.col[new], rows[new]]))
    return torch.cat(found, 1)
