"""What OGB's text files and array files have in common: the split."""

from __future__ import annotations

import numpy as np

from graphfm.data.sources.raw.base import Array, RawGraph, assign_split, reading
from graphfm.data.sources.raw.number_table import NumberTable

PARTS = ("train", "valid", "test")


class OgbFiles(RawGraph):
    """A graph of OGB's node property prediction; its split is three lists of nodes."""

    def split(self) -> Array:
        split = np.full(self.num_nodes, -1, np.int8)
        for part, name in enumerate(PARTS):
            path = self.folder / "split" / self.split_name / f"{name}.csv.gz"
            with reading(path):
                assign_split(split, part, NumberTable(path).column(self.num_nodes))
        return split
