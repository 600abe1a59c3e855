"""Folders of `.npy` files, as of IGB: edges, features, labels, and masks of the split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from graphfm.data.graph.graph_file import warn_unused
from graphfm.data.graph.labels import MASKS
from graphfm.data.sources.foreign.number_text import check_sizes
from graphfm.data.sources.raw.base import reading
from graphfm.data.sources.raw.raw_array import RawArray
from graphfm.errors import InputError

Array = np.ndarray[Any, Any]
EDGES, FEATURES, LABELS = "edge_index.npy", "node_feat.npy", "node_label*.npy"
# Where IGB puts edges and nodes of its graph of papers, below the folder of the dataset.
LAYOUTS = (
    (".", "."),
    ("paper__cites__paper", "paper"),
    ("processed/paper__cites__paper", "processed/paper"),
)
ADVICE = "expected a file that numpy.save wrote"


def find_edges(folder: Path) -> tuple[Path, Path] | None:
    """The file with the edges, and the folder with what belongs to the nodes."""
    found = ((folder / edges / EDGES, folder / nodes) for edges, nodes in LAYOUTS)
    return next((pair for pair in found if pair[0].is_file()), None)


def read_array_folder(folder: Path) -> dict[str, Any]:
    """Return the arguments of `Graph.from_edges`."""
    place = find_edges(folder)
    if place is None:
        raise InputError(f"it has no {EDGES}; expected one beside {FEATURES}")
    path, nodes = place
    edges = _read(path, "iu")
    with reading(path, ADVICE):
        if edges.ndim != 2 or 2 not in edges.shape:
            raise InputError(f"it has shape {list(edges.shape)}; expected [2, num_edges]")
        edges = edges if edges.shape[0] == 2 else edges.T
    found: dict[str, Any] = {"edge_index": edges, "x": None}
    if (nodes / FEATURES).is_file():
        found["x"] = _read(nodes / FEATURES)
    if labels := _label_file(nodes):
        found["y"] = _read(labels)
    masks = [name for name in MASKS if (nodes / f"{name}.npy").is_file()]
    found |= {name: _read(nodes / f"{name}.npy") for name in masks}
    if found["x"] is None:
        found["num_nodes"] = _num_nodes(found, path)
    used = {path.name, FEATURES, labels and labels.name, *(f"{name}.npy" for name in masks)}
    warn_unused(str(nodes), sorted(p.name for p in nodes.glob("*.npy") if p.name not in used))
    return found


def _read(path: Path, kinds: str = "biuf") -> Array:
    with reading(path, ADVICE):
        return RawArray(path, "the array", kinds).whole()


def _label_file(nodes: Path) -> Path | None:
    files = sorted(nodes.glob(LABELS))
    if len(files) > 1:
        names = ", ".join(path.name for path in files[:4])
        raise InputError(f"{nodes} has several files of labels ({names}); move all but one away")
    return files[0] if files else None


def _num_nodes(found: dict[str, Any], path: Path) -> int:
    """Without features, labels or masks tell the number of nodes, or else the edges do."""
    for name in ("y", *MASKS):
        if name in found:
            return len(found[name])
    edges = found["edge_index"]
    with reading(path, ADVICE):
        highest = int(edges.max()) if edges.size else -1
        check_sizes(highest + 1, edges.shape[1])
    return highest + 1
