"""A neighbour loader in NumPy, the rival where PyG's compiled sampler is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphfm.data.graph import Graph

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Hop:
    """Sampled edges of one layer; its first `num_dst` sources are its targets."""

    indptr: Tensor  # [num_dst + 1]
    col: Tensor  # [num_edges] position of each edge's source
    num_src: int

    @property
    def num_dst(self) -> int:
        return self.indptr.numel() - 1


@dataclass(frozen=True)
class LoadedBatch:
    """What a step of the rival reads; `ids` are the first layer's sources, seeds first."""

    ids: Tensor
    hops: tuple[Hop, ...]  # input layer first
    num_seeds: int


class NeighborLoader:
    """Batches as the common loaders make them: no neighbour twice, no node twice.

    Each target of layer k + 1 gets `fanout[k]` neighbours without replacement (Floyd's algorithm,
    one column of picks at a time). A node that occurs more than once is kept once. Everything is
    vectorised, and duplicates are found through an array of marks, so that nothing is sorted.
    """

    def __init__(
        self, graph: Graph, ids: Tensor, fanout: tuple[int, ...], batch_size: int, seed: int = 0
    ) -> None:
        self.indptr = graph.indptr.cpu().numpy()
        self.indices = graph.indices.cpu().numpy()
        self.ids, self.fanout, self.batch_size = ids.cpu().numpy(), fanout, batch_size
        self.place = np.zeros(graph.num_nodes, dtype=np.int64)
        self.rng = np.random.default_rng(seed)

    def __iter__(self) -> Iterator[LoadedBatch]:
        order = self.rng.permutation(self.ids)
        for begin in range(0, order.size, self.batch_size):
            yield self.sample(order[begin : begin + self.batch_size])

    def sample(self, seeds: Ids) -> LoadedBatch:
        """Sample the neighbourhood of some nodes, from the last layer to the first."""
        ids, hops = seeds, list[Hop]()
        for fanout in reversed(self.fanout):
            neighbors, count = self._pick(ids, fanout)
            num_dst, (ids, col) = ids.size, self._merge(ids, neighbors)
            indptr = np.concatenate([np.zeros(1, np.int64), count.cumsum()])
            hops.insert(0, Hop(torch.from_numpy(indptr), torch.from_numpy(col), ids.size))
            assert hops[0].num_dst == num_dst
        return LoadedBatch(torch.from_numpy(ids), tuple(hops), seeds.size)

    def _pick(self, ids: Ids, fanout: int) -> tuple[Ids, Ids]:
        """Pick at most `fanout` distinct neighbours of each node; return them and their counts."""
        first = self.indptr[ids]
        degree = self.indptr[ids + 1] - first
        slot = np.tile(np.arange(fanout), (ids.size, 1))
        many = np.flatnonzero(degree > fanout)
        slot[many] = self._distinct(degree[many], fanout)
        count = np.minimum(degree, fanout)
        taken = np.arange(fanout) < count[:, None]
        return self.indices[(first[:, None] + slot)[taken]].astype(np.int64), count

    def _distinct(self, degree: Ids, fanout: int) -> Ids:
        """[rows, fanout] distinct numbers below each row's degree, every set equally likely."""
        picks = np.empty((degree.size, fanout), dtype=np.int64)
        for column in range(fanout):
            last = degree - fanout + column
            pick = (self.rng.random(degree.size) * (last + 1)).astype(np.int64)
            taken = (picks[:, :column] == pick[:, None]).any(axis=1)
            picks[:, column] = np.where(taken, last, pick)
        return picks

    def _merge(self, ids: Ids, neighbors: Ids) -> tuple[Ids, Ids]:
        """The distinct nodes with `ids` first, and the position of each neighbour among them."""
        place = self.place
        place[neighbors] = np.arange(neighbors.size)
        place[ids] = -1
        own = np.flatnonzero(place[neighbors] == np.arange(neighbors.size))
        everyone = np.concatenate([ids, neighbors[own]])
        place[everyone] = np.arange(everyone.size)
        return everyone, place[neighbors]
