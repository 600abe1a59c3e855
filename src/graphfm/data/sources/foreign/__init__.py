"""Graph files of other projects, under any name: recognised by ending and contents, never trusted.

`kind_of` says what a path holds, and `read_foreign` reads it. `docs/formats.md` lists the formats.
Imported by: `data.datasets`.
May import: `errors`, `files`, `memory`, `data.formats`, `data.graph`, `data.sources.raw`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from graphfm.data.graph import Graph
from graphfm.data.sources.foreign.array_folder import find_edges, read_array_folder
from graphfm.data.sources.foreign.edge_text import read_edge_text
from graphfm.data.sources.foreign.matrix_market import read_matrix_market
from graphfm.data.sources.foreign.metis import read_metis
from graphfm.data.sources.foreign.raw_folder import read_raw_folder
from graphfm.errors import InputError

ENDINGS: Mapping[str, str] = {
    ".mtx": "matrix-market",
    ".graph": "metis",
    ".metis": "metis",
    ".txt": "edge-list",
    ".tsv": "edge-list",
    ".edges": "edge-list",
    ".edgelist": "edge-list",
}
FOLDERS: Mapping[str, tuple[str, ...]] = {  # a file that gives a folder away, by kind
    "graphsaint": ("raw/adj_full.npz", "adj_full.npz"),
    "ogb-arrays": ("raw/data.npz",),
    "ogb-tables": ("raw/edge.csv.gz",),
}
FORMATS = (
    "an .npz file, MatrixMarket (.mtx), METIS (.graph), an edge list (.txt, .tsv, .edges), or a "
    "folder of OGB, GraphSAINT or .npy files"
)


def kind_of(path: Path) -> str | None:
    """Return the kind of a path: of a folder by what is in it, of a file by its ending."""
    if path.is_dir():
        for kind, names in FOLDERS.items():
            if any((path / name).is_file() for name in names):
                return kind
        return None if find_edges(path) is None else "npy-folder"
    name = path.name.lower().removesuffix(".gz")
    return next((kind for ending, kind in ENDINGS.items() if name.endswith(ending)), None)


def read_foreign(kind: str, path: Path) -> Graph:
    """Read a path of that kind; an error names the path."""
    readers: Mapping[str, Callable[[Path], dict[str, Any]]] = {
        "matrix-market": read_matrix_market,
        "metis": read_metis,
        "edge-list": read_edge_text,
        "npy-folder": read_array_folder,
    }
    try:
        read = readers[kind](path) if kind in readers else read_raw_folder(kind, path)
        return Graph.from_edges(**read, meta={"source": path.name, "format": kind})
    except InputError as error:
        told = str(error)
        raise InputError(told if str(path) in told else f"{path}: {told}") from None
