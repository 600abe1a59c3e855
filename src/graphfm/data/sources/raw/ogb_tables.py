"""OGB's text files, as of ogbn-arxiv and ogbn-products."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from graphfm.data.sources.raw.base import Array, as_classes, check_num_nodes, reading
from graphfm.data.sources.raw.number_table import NumberTable
from graphfm.data.sources.raw.ogb import OgbFiles
from graphfm.errors import InputError


class OgbTables(OgbFiles):
    """`raw/*.csv.gz`: one row per edge (source, target) and one per node (features, label)."""

    def __init__(self, folder: Path, scratch: Path, *, split: str = "") -> None:
        super().__init__(folder, scratch, split=split)
        self.num_nodes = self._number("num-node-list")
        self.num_edges = self._number("num-edge-list")
        with reading(self._path("num-node-list")):
            check_num_nodes(self.num_nodes)
        if self.num_edges < 0:
            path = self._path("num-edge-list")
            raise InputError(f"{path}: it declares {self.num_edges} edges; expected 0 or more")
        self.num_features = 0  # not every graph has features
        if not self._path("node-feat").is_file():
            return
        with reading(self._path("node-feat")):
            self.num_features = NumberTable(self._path("node-feat")).num_columns()

    def features(self) -> Iterator[Array]:
        path = self._path("node-feat")
        with reading(path):
            yield from NumberTable(path, "float64").rows(self.num_features, self.num_nodes)

    def labels(self) -> Array:
        path = self._path("node-label")
        with reading(path):
            table = NumberTable(path, "float64")
            pieces = [as_classes(rows.reshape(-1)) for rows in table.rows(1, self.num_nodes)]
            return np.concatenate(pieces)

    def edges(self) -> Iterator[tuple[Array, Array]]:
        path = self._path("edge")
        with reading(path):
            for rows in NumberTable(path).rows(2, self.num_edges):
                yield rows[:, 0], rows[:, 1]

    def _number(self, name: str) -> int:
        with reading(self._path(name)):
            return NumberTable(self._path(name)).number()

    def _path(self, name: str) -> Path:
        return self.folder / "raw" / f"{name}.csv.gz"
