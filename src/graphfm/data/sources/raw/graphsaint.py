"""GraphSAINT's files: Flickr, Reddit2, Yelp."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from graphfm.data.sources.raw.base import (
    EDGES_AT_ONCE,
    NUMBERS_AT_ONCE,
    Array,
    RawGraph,
    assign_split,
    check_num_nodes,
    reading,
)
from graphfm.data.sources.raw.class_map import read_class_map
from graphfm.data.sources.raw.raw_array import RawArray
from graphfm.errors import InputError

PARTS = ("tr", "va", "te")
BYTES_PER_ID = 24  # upper bound for one id in a JSON list


class GraphSaintFiles(RawGraph):
    """`adj_full.npz` (scipy's CSR matrix), `feats.npy`, `class_map.json` and `role.json`.

    Row u of the matrix lists the targets of the edges from u. Its values are not read.
    """

    def __init__(self, folder: Path, scratch: Path, *, split: str = "") -> None:
        super().__init__(folder, scratch, split=split)
        self.matrix, feats = self._path("adj_full.npz"), self._path("feats.npy")
        with reading(feats):
            self._features = RawArray(feats, "the array")
            if len(self._features.shape) != 2 or 0 in self._features.shape:
                raise InputError(
                    f"it has shape {list(self._features.shape)}; expected [num_nodes, num_features]"
                )
            self.num_nodes, self.num_features = self._features.shape
            check_num_nodes(self.num_nodes)
        with reading(self.matrix):
            self._check_form()
            self._indices = RawArray.from_archive(self.matrix, "indices", scratch, "iu")
            self._indptr = self._read_indptr()
        self.num_edges = self._indices.shape[0]

    def features(self) -> Iterator[Array]:
        with reading(self._path("feats.npy")):
            yield from self._features.rows(max(NUMBERS_AT_ONCE // self.num_features, 1))

    def labels(self) -> Array:
        path = self._path("class_map.json")
        with reading(path):
            return read_class_map(path, self.num_nodes)

    def split(self) -> Array:
        path = self._path("role.json")
        split = np.full(self.num_nodes, -1, np.int8)
        with reading(path):
            if path.stat().st_size > BYTES_PER_ID * self.num_nodes + 1000:
                raise InputError(f"it is larger than any list of {self.num_nodes:,} nodes")
            roles = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(roles, dict) or not all(part in roles for part in PARTS):
                raise InputError(f"it is not an object with the lists {', '.join(PARTS)}")
            for part, name in enumerate(PARTS):
                assign_split(split, part, _as_ids(roles[name]))
        return split

    def edges(self) -> Iterator[tuple[Array, Array]]:
        start = 0
        with reading(self.matrix):
            for targets in self._indices.rows(EDGES_AT_ONCE):
                positions = np.arange(start, start + len(targets))
                yield np.searchsorted(self._indptr, positions, side="right") - 1, targets
                start += len(targets)

    def _check_form(self) -> None:
        form = self._small("format", "SU")
        name = form.reshape(-1)[0] if form.size else b""
        name = name.decode("latin-1") if isinstance(name, bytes) else str(name)
        if name != "csr":
            raise InputError(f"the matrix has format {name[:20]!r}; expected 'csr'")
        shape = self._small("shape", "iu")
        if shape.tolist() != [self.num_nodes, self.num_nodes]:
            raise InputError(
                f"the matrix has shape {shape.tolist()[:3]}; expected {[self.num_nodes] * 2}, "
                f"because feats.npy has {self.num_nodes:,} rows"
            )

    def _small(self, key: str, kinds: str) -> Array:
        return RawArray.from_archive(self.matrix, key, self.scratch, kinds, small=True).whole()

    def _read_indptr(self) -> Array:
        array = RawArray.from_archive(self.matrix, "indptr", self.scratch, "iu")
        if array.shape != (self.num_nodes + 1,) or len(self._indices.shape) != 1:
            raise InputError(
                f"indptr has shape {list(array.shape)}, indices {list(self._indices.shape)}; "
                f"expected [{self.num_nodes + 1}] and [num_edges]"
            )
        indptr = array.whole().astype(np.int64)
        if indptr[0] or indptr[-1] != self._indices.shape[0] or (np.diff(indptr) < 0).any():
            raise InputError(
                "indptr does not rise from 0 to the number of edges; download it again"
            )
        return indptr

    def _path(self, name: str) -> Path:
        """PyG keeps the files in `raw`; GraphSAINT's own folders hold them directly."""
        direct = (self.folder / name).is_file() and not (self.folder / "raw").is_dir()
        return (self.folder if direct else self.folder / "raw") / name


def _as_ids(value: object) -> Array:
    is_list_of_ids = isinstance(value, list) and all(type(item) is int for item in value)
    if not is_list_of_ids:
        raise InputError("a part of the split is not a list of node ids")
    try:
        return np.array(value, dtype=np.int64)
    except OverflowError:
        raise InputError("the split holds a node id that does not fit in 64 bits") from None
