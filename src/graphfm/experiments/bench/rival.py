"""Rivals that train SAGE layers with a neighbour loader."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from graphfm.data.graph import Graph
from graphfm.experiments.bench.contender import Contender
from graphfm.experiments.bench.neighbor_loader import Hop, LoadedBatch, NeighborLoader
from graphfm.runs.run import Run
from graphfm.samplers.seeds import by_depth
from graphfm.training.setup import seeded


class TooSlow(RuntimeError):  # noqa: N818
    """An epoch of the rival took longer than it may."""


class SupervisedLoop(Contender):
    """The usual loop: batches of a loader on the CPU, rows gathered for each batch, Adam."""

    limit = 300.0  # seconds that an epoch may take
    graph: Graph
    network: nn.Module
    optimizer: torch.optim.Optimizer
    batches: Iterable[Any]

    @abstractmethod
    def logits(self, batch: Any) -> tuple[Tensor, Tensor]:
        """The outputs of a batch's seeds, and the seeds' ids."""

    def epoch(self) -> float:
        self.network.train()
        total, count = torch.zeros((), device=self.device), 0
        started = time.monotonic()
        for batch in self.batches:
            if time.monotonic() - started > self.limit:
                raise TooSlow(f"an epoch took more than {self.limit:g} s")
            out, ids = self.logits(batch)
            loss = self._loss(out, self.graph.y[ids])
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            total += loss.detach() * ids.numel()
            count += ids.numel()
        return float(total / count)

    def _loss(self, out: Tensor, y: Tensor) -> Tensor:
        if self.graph.multi_label:
            return binary_cross_entropy_with_logits(out, y.float())
        return cross_entropy(out, y.long())


class LoaderRival(SupervisedLoop):
    """SAGE layers of the rival's own kind, of the shape of ours."""

    def __init__(self, run: Run, graph: Graph, workers: int = 0) -> None:
        started = time.perf_counter()
        settings, how = run.backbone_settings, run.method_settings
        assert run.backbone == "sage"
        assert settings["dropout"] == 0
        self.graph, self.device = graph, graph.device
        last = settings["layers"] - 1
        widths = [graph.num_features, *[settings["hidden"]] * last, graph.num_classes]
        with seeded(run.training.seed, graph.device):
            self.network = self.make_network(widths).to(graph.device)
            ids = some_train_ids(graph, how["batch_size"] * run.training.steps_per_epoch)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=run.training.lr)
        fanout = by_depth("fanout", how["fanout"], settings["layers"])
        self.batches = self.make_loader(ids, fanout, how["batch_size"], workers)
        self.prepare_seconds = time.perf_counter() - started

    @abstractmethod
    def make_network(self, widths: list[int]) -> nn.Module:
        """The network, from features to classes."""

    @abstractmethod
    def make_loader(
        self, ids: Tensor, fanout: tuple[int, ...], batch_size: int, workers: int
    ) -> Iterable[Any]:
        """Make what gives the batches of an epoch; `fanout` begins with the input layer's."""


class NumpyRival(LoaderRival):
    """A loader written for this benchmark, and SAGE layers in plain torch."""

    name = "NumPy neighbour loader (written for this benchmark)"

    @property
    def note(self) -> str:
        return (
            "PyG's compiled sampler is not installed; compared with a NumPy loader written for "
            "this benchmark"
        )

    def make_network(self, widths: list[int]) -> nn.Module:
        return nn.ModuleList(_Layer(*pair) for pair in pairwise(widths))

    def make_loader(
        self, ids: Tensor, fanout: tuple[int, ...], batch_size: int, workers: int
    ) -> NeighborLoader:
        return NeighborLoader(self.graph, ids, fanout, batch_size)

    def logits(self, batch: LoadedBatch) -> tuple[Tensor, Tensor]:
        ids = batch.ids.to(self.device)
        h = self.graph.x[ids].float()
        layers = list(self.network.children())
        for layer, hop in zip(layers, batch.hops, strict=True):
            h = layer(h, hop)
            h = h if layer is layers[-1] else h.relu()
        return h, ids[: batch.num_seeds]


class _Layer(nn.Module):
    """PyG's SAGEConv with the mean, by the fastest kernel that we found for it: a CSR product."""

    def __init__(self, in_width: int, out_width: int) -> None:
        super().__init__()
        self.neighbors = nn.Linear(in_width, out_width)
        self.root = nn.Linear(in_width, out_width, bias=False)

    def forward(self, h: Tensor, hop: Hop) -> Tensor:
        count = hop.indptr.diff()
        weight = (1 / count.clamp(min=1)).repeat_interleave(count).to(h.device)
        indptr, col = hop.indptr.to(h.device), hop.col.to(h.device)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse (CSR tensor|invariant checks)")
            size = (hop.num_dst, hop.num_src)
            edges = torch.sparse_csr_tensor(indptr, col, weight, size, check_invariants=False)
            mean = edges @ h if h.is_cuda else torch.sparse.mm(edges, h, "sum")
        out: Tensor = self.neighbors(mean) + self.root(h[: hop.num_dst])
        return out


def some_train_ids(graph: Graph, most: int) -> Tensor:
    """Training nodes, at most `most` at random (0: all), so that both sides take as many steps."""
    ids = graph.train_mask.nonzero().squeeze(1)
    chosen = torch.randperm(ids.numel(), device=ids.device)[: most or ids.numel()]
    return ids[chosen]
