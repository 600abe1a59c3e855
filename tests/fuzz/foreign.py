"""Good files of other projects, under any name, for the fuzz."""

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from graphfm import Graph, load
from graphfm.data.sources.foreign import kind_of
from tests.unit.data.conftest import WRITERS, make_example

MATRIX = "%%MatrixMarket matrix coordinate real symmetric\n% two edges\n3 3 2\n2 1 0.5\n3 2 1.5\n"
METIS = "% a path\n3 2 011 1\n7 2 4\n8 1 4 3 5\n9 2 5\n"
EDGES = "# source target weight\n0 1 0.5\n1 2 1\n2 0 3\n"


def read_foreign_graph(folder: Path) -> Graph:
    """Read the only file in a folder, or else the folder itself."""
    inside = [path for path in folder.iterdir() if path.name.startswith("graph")]
    graph = load(inside[0] if inside else folder)
    assert graph.num_nodes > 0
    return graph


def _text(name: str, text: str) -> Callable[[Path], None]:
    content = text.encode()
    packed = gzip.compress(content) if name.endswith(".gz") else content
    return lambda folder: _write(folder / name, packed)


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert kind_of(path)


def _arrays(folder: Path) -> None:
    np.save(folder / "edge_index.npy", np.array([[0, 1, 2], [1, 2, 0]]))
    np.save(folder / "node_feat.npy", np.ones((3, 2), np.float32))
    np.save(folder / "node_label.npy", np.array([0.0, 1.0, np.nan]))
    np.save(folder / "train_mask.npy", np.array([True, False, False]))


FOREIGN: Mapping[str, Callable[[Path], None]] = {
    "matrix-market": _text("graph.mtx", MATRIX),
    "matrix-market, packed": _text("graph.mtx.gz", MATRIX),
    "metis": _text("graph.graph", METIS),
    "edge-list": _text("graph.edges", EDGES),
    "npy-folder": _arrays,
    **{f"own {form}": lambda f, w=write: w(f, make_example()) for form, write in WRITERS.items()},
}
