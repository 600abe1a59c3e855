"""Small datasets, written the way their publishers write them."""

import gzip
import io
import json
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfm.data.sources.catalog import CATALOG, Source
from graphfm.data.sources.preparation import Preparation

FORMS = {"graphsaint": "flickr", "ogb-tables": "arxiv", "ogb-arrays": "papers100m"}


@dataclass
class Example:
    """What the files are to say."""

    pairs: np.ndarray  # [num_edges, 2] sources and targets
    x: np.ndarray
    y: np.ndarray  # -1 or a row of -1: not labelled
    split: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """[target, source]: how often the files hold each edge."""
        matrix = np.zeros((len(self.x),) * 2, dtype=int)
        np.add.at(matrix, (self.pairs[:, 1], self.pairs[:, 0]), 1)
        return matrix


def make_example(
    num_nodes: int = 6, num_edges: int = 14, *, multi_label: bool = False, seed: int = 0
) -> Example:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, num_nodes)
    if multi_label:
        y = rng.integers(0, 2, (num_nodes, 4))
    split = np.resize([0, 1, 2], num_nodes).astype(np.int8)
    if num_nodes > 5:
        split[5], y[5] = -1, -1  # a node of which only the neighbours are known
    pairs = rng.integers(0, num_nodes, (num_edges, 2))
    x = rng.normal(size=(num_nodes, 3)).astype(np.float32)
    return Example(pairs, x, y, split)


def write_saint(folder: Path, example: Example, *, compressed: bool = True, **change: Any) -> None:
    """`change` replaces an array of the matrix."""
    raw = folder / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    n = len(example.x)
    pairs = example.pairs[np.argsort(example.pairs[:, 0], kind="stable")]
    counts = np.bincount(pairs[:, 0], minlength=n)
    matrix = {
        "data": np.ones(len(pairs), dtype=bool),
        "indices": pairs[:, 1].astype(np.int32),
        "indptr": np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        "shape": np.array([n, n]),
        "format": np.array(b"csr"),
    } | change
    save = np.savez_compressed if compressed else np.savez
    save(raw / "adj_full.npz", **{k: v for k, v in matrix.items() if v is not None})
    np.save(raw / "feats.npy", example.x)
    labelled = (example.y >= 0).reshape(n, -1).all(axis=1)
    classes = {str(node): example.y[node].tolist() for node in np.flatnonzero(labelled)}
    (raw / "class_map.json").write_text(json.dumps(classes))
    roles = {
        name: np.flatnonzero(example.split == part).tolist()
        for part, name in enumerate(("tr", "va", "te"))
    }
    (raw / "role.json").write_text(json.dumps(roles))


def table(rows: Any) -> bytes:
    """Rows of numbers as OGB compresses them."""
    lines = (",".join(str(number) for number in np.atleast_1d(row).tolist()) for row in rows)
    return gzip.compress("".join(f"{line}\n" for line in lines).encode())


def write_split(folder: Path, example: Example, name: str) -> None:
    parts = folder / "split" / name
    parts.mkdir(parents=True, exist_ok=True)
    for part, file in enumerate(("train", "valid", "test")):
        (parts / f"{file}.csv.gz").write_bytes(table(np.flatnonzero(example.split == part)))


def write_tables(folder: Path, example: Example, *, split: str = "time") -> None:
    raw = folder / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    labels = ["nan" if y < 0 else y for y in example.y]
    for name, rows in {
        "num-node-list": [len(example.x)],
        "num-edge-list": [len(example.pairs)],
        "node-feat": example.x,
        "node-label": labels,
        "edge": example.pairs,
    }.items():
        (raw / f"{name}.csv.gz").write_bytes(table(rows))
    write_split(folder, example, split)


def write_arrays(
    folder: Path, example: Example, *, order: str = "C", compressed: bool = True, **change: Any
) -> None:
    raw = folder / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    arrays = {
        "edge_index": np.array(example.pairs.T, order=order),
        "node_feat": np.array(example.x, order=order),
        "num_nodes_list": np.array([len(example.x)]),
        "num_edges_list": np.array([len(example.pairs)]),
        "node_year": np.zeros((len(example.x), 1)),
    } | change
    save = np.savez_compressed if compressed else np.savez
    save(raw / "data.npz", **{key: value for key, value in arrays.items() if value is not None})
    labels = np.where(example.y < 0, np.nan, example.y).astype(np.float32)[:, None]
    save(raw / "node-label.npz", node_label=labels)
    write_split(folder, example, "time")


WRITERS = {"graphsaint": write_saint, "ogb-tables": write_tables, "ogb-arrays": write_arrays}


def zipped(folder: Path, top: str) -> bytes:
    """The archive of a folder of files, as OGB serves it."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{top}/RELEASE_v1.txt", "")
        for path in sorted(folder.rglob("*.*z")):
            archive.write(path, f"{top}/{path.relative_to(folder)}")
    return stream.getvalue()


@dataclass(frozen=True)
class Published:
    """Everything above, for tests that cannot import it."""

    forms = tuple(FORMS)
    example = staticmethod(make_example)
    kind = Example
    saint = staticmethod(write_saint)
    tables = staticmethod(write_tables)
    arrays = staticmethod(write_arrays)
    table = staticmethod(table)
    zipped = staticmethod(zipped)

    def write(self, form: str, folder: Path, example: Example, **options: Any) -> None:
        WRITERS[form](folder, example, **options)

    def source(self, form: str, **preparation: Any) -> Source:
        """A dataset of the catalogue that comes in this form, prepared in the given way."""
        return replace(CATALOG[FORMS[form]], preparation=Preparation(**preparation))


@pytest.fixture(scope="session")
def published() -> Published:
    return Published()
