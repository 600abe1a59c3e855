"""The rival that people use: PyG's NeighborLoader and SAGEConv."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.experiments.bench.rival import LoaderRival, TooSlow


def has_pyg() -> bool:
    """Whether PyG is installed with a compiled sampler that loads."""
    if find_spec("torch_geometric") is None:
        return False
    from torch_geometric import typing

    return bool(typing.WITH_PYG_LIB or typing.WITH_TORCH_SPARSE)


class PyGRival(LoaderRival):
    """Batches by PyG's own sampler; rows are gathered where the network is, not in the workers.

    With pyg-lib a layer computes only what the next one reads (`trim_to_layer`); torch-sparse does
    not say which rows those are, and every layer then computes all of them, as in PyG's examples.

    Workers are spawned, not forked: this process holds CUDA and threads that compile kernels, and a
    fork copies their locks in whatever state they are. `close` ends the workers.
    """

    def make_network(self, widths: list[int]) -> nn.Module:
        if not has_pyg():
            raise InputError(
                "PyG's compiled sampler is not installed; install torch_geometric and pyg-lib to "
                "compare with PyG"
            )
        from torch_geometric import typing
        from torch_geometric.nn import SAGEConv

        sampler = "pyg-lib" if typing.WITH_PYG_LIB else "torch-sparse"
        self.name = f"PyG NeighborLoader ({sampler}) + SAGEConv"
        return nn.ModuleList(SAGEConv(*pair) for pair in pairwise(widths))

    def make_loader(
        self, ids: Tensor, fanout: tuple[int, ...], batch_size: int, workers: int
    ) -> Iterable[Any]:
        return pyg_loader(self.graph, ids, fanout, batch_size, workers, self.limit)

    def epoch(self) -> float:
        try:
            return super().epoch()
        except RuntimeError as error:
            if "DataLoader timed out" in str(error):
                raise TooSlow(f"no batch came for {self.limit:g} s") from None
            raise

    def close(self) -> None:
        """Shut the workers down; persistent ones would run beside every later case."""
        close_workers(self.batches)

    def logits(self, batch: Any) -> tuple[Tensor, Tensor]:
        from torch_geometric.utils import trim_to_layer

        ids = batch.n_id.to(self.device)
        h, edges = self.graph.x[ids].float(), batch.edge_index.to(self.device)
        nodes = getattr(batch, "num_sampled_nodes", None)
        per_hop = getattr(batch, "num_sampled_edges", None)
        layers = list(self.network.children())
        for depth, layer in enumerate(layers):
            if nodes is not None:
                h, edges, _ = trim_to_layer(depth, nodes, per_hop, h, edges)
            h = layer(h, edges)
            h = h if layer is layers[-1] else h.relu()
        return h[: batch.batch_size], ids[: batch.batch_size]


def pyg_loader(
    graph: Graph, ids: Tensor, fanout: tuple[int, ...], batch_size: int, workers: int, limit: float
) -> Iterable[Any]:
    """PyG's NeighborLoader; `fanout` begins with the input layer's."""
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader

    indptr, indices = graph.indptr.cpu(), graph.indices.cpu().long()
    targets = torch.arange(graph.num_nodes).repeat_interleave(indptr.diff())
    data = Data(
        edge_index=torch.stack([indices, targets]), num_nodes=graph.num_nodes
    )  # fmt: skip
    workers = min(workers, os.cpu_count() or 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch-sparse is deprecated, and still the sampler
        loader: Any = NeighborLoader(
            data,
            num_neighbors=list(reversed(fanout)),
            input_nodes=ids.cpu(),
            batch_size=batch_size,
            shuffle=True,
            **worker_options(workers, limit),
        )
    # The sampler has its own copy of the edges. Each worker would receive these too.
    loader.data = Data(edge_index=torch.empty(2, 0).long(), num_nodes=graph.num_nodes)
    batches: Iterable[Any] = loader
    return batches


def worker_options(workers: int, seconds: float) -> dict[str, Any]:
    """Options of torch's DataLoader for workers; a batch may take at most so many seconds."""
    if workers == 0:
        return {"num_workers": 0}
    return {
        "num_workers": workers,
        "persistent_workers": True,
        "multiprocessing_context": "spawn",
        "timeout": seconds,
    }


def close_workers(loader: Any) -> None:
    """End the processes of a DataLoader at once; torch itself does so when nothing refers to it."""
    iterator = getattr(loader, "_iterator", None)
    inner: Any = getattr(iterator, "iterator", iterator)  # PyG wraps torch's iterator
    if hasattr(inner, "_shutdown_workers"):
        inner._shutdown_workers()
        loader._iterator = None
