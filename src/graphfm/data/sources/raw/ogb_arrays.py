"""OGB's array files, as of ogbn-papers100M."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from graphfm.data.sources.raw.base import (
    EDGES_AT_ONCE,
    NUMBERS_AT_ONCE,
    Array,
    as_classes,
    check_num_nodes,
    reading,
)
from graphfm.data.sources.raw.ogb import OgbFiles
from graphfm.data.sources.raw.raw_array import RawArray
from graphfm.errors import InputError


class OgbArrays(OgbFiles):
    """`raw/data.npz` with edge_index, node_feat and sizes; `raw/node-label.npz` with node_label."""

    def __init__(self, folder: Path, scratch: Path, *, split: str = "") -> None:
        super().__init__(folder, scratch, split=split)
        self.data, self.label = folder / "raw" / "data.npz", folder / "raw" / "node-label.npz"
        with reading(self.data):
            self.num_nodes = self._number("num_nodes_list")
            self.num_edges = self._number("num_edges_list")
            check_num_nodes(self.num_nodes)
            self._features = RawArray.from_archive(self.data, "node_feat", scratch)
            self._edges = RawArray.from_archive(self.data, "edge_index", scratch, "iu")
            self._check("node_feat", self._features, (self.num_nodes, None))
            self._check("edge_index", self._edges, (2, self.num_edges))
        self.num_features = self._features.shape[1]

    def features(self) -> Iterator[Array]:
        with reading(self.data):
            yield from self._features.rows(max(NUMBERS_AT_ONCE // max(self.num_features, 1), 1))
        self._features.remove()

    def labels(self) -> Array:
        with reading(self.label):
            labels = RawArray.from_archive(self.label, "node_label", self.scratch)
            if labels.shape not in ((self.num_nodes,), (self.num_nodes, 1)):
                raise InputError(
                    f"node_label has shape {list(labels.shape)}; expected [{self.num_nodes}]"
                )
            classes = as_classes(labels.whole().reshape(-1))
            labels.remove()
            return classes

    def edges(self) -> Iterator[tuple[Array, Array]]:
        with reading(self.data):
            for piece in self._edges.columns(EDGES_AT_ONCE):
                yield piece[0], piece[1]

    def _number(self, key: str) -> int:
        array = RawArray.from_archive(self.data, key, self.scratch, "iu", small=True)
        if array.shape != (1,):
            raise InputError(
                f"{key} has shape {list(array.shape)}; expected [1], because there is one graph"
            )
        return int(array.whole()[0])

    def _check(self, key: str, array: RawArray, shape: tuple[int | None, ...]) -> None:
        fits = len(array.shape) == len(shape) and all(
            expected in (None, got) for expected, got in zip(shape, array.shape, strict=True)
        )
        if not fits:
            expected = [size if size is not None else "num_features" for size in shape]
            raise InputError(f"{key} has shape {list(array.shape)}; expected {expected}")
