"""Folders of OGB and GraphSAINT files under any name, read into memory as they are."""

from __future__ import annotations

import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from graphfm.data.graph import SPLITS
from graphfm.data.graph.graph_file import warn_unused
from graphfm.data.sources.foreign.number_text import check_sizes
from graphfm.data.sources.raw import open_raw
from graphfm.data.sources.raw.base import RawGraph
from graphfm.errors import InputError
from graphfm.memory import available_memory

SAINT = "graphsaint"
BYTES_PER_EDGE = 64  # while a graph is built
LABELS = {"ogb-tables": "node-label.csv.gz", "ogb-arrays": "node-label.npz"}
USED = {  # files in `raw`, and arrays in its data.npz
    *LABELS.values(), "edge.csv.gz", "node-feat.csv.gz", "num-node-list.csv.gz",
    "num-edge-list.csv.gz", "data.npz", "edge_index", "node_feat", "num_nodes_list",
    "num_edges_list",
}  # fmt: skip


def read_raw_folder(form: str, folder: Path) -> dict[str, Any]:
    """Return the arguments of `Graph.from_edges`; edges are taken as the files hold them."""
    split = "" if form == SAINT else _split_name(folder)
    with TemporaryDirectory(prefix="graphfm-") as scratch:
        raw = open_raw(form, folder, Path(scratch), split=split or "")
        needed = BYTES_PER_EDGE * raw.num_edges + 8 * raw.num_nodes * raw.num_features
        if needed > (available := available_memory()):
            raise InputError(
                f"reading it takes about {needed:,} bytes of memory, but {available:,} are "
                "available"
            )
        found: dict[str, Any] = {"x": None, "edge_index": _edges(raw)}
        if raw.num_features:
            found["x"] = np.concatenate(list(raw.features())).astype(np.float32)
        else:
            check_sizes(raw.num_nodes, raw.num_edges)
            found["num_nodes"] = raw.num_nodes
        if _has_labels(form, folder):
            found["y"] = raw.labels()
        if split is not None:
            parts = raw.split()
            masks = {f"{name}_mask": parts == part for part, name in enumerate(SPLITS)}
            found |= {name: mask for name, mask in masks.items() if mask.any()}
    if form != SAINT:
        warn_unused(str(folder), _unused(folder / "raw"))
    return found


def _edges(raw: RawGraph) -> Any:
    pieces = [np.stack(pair) for pair in raw.edges()]
    return np.concatenate(pieces, axis=1) if pieces else np.zeros((2, 0), np.int64)


def _has_labels(form: str, folder: Path) -> bool:
    """GraphSAINT's files always have labels; those of OGB may lack them."""
    return form == SAINT or (folder / "raw" / LABELS[form]).is_file()


def _unused(raw: Path) -> list[str]:
    """What OGB's files hold beside a graph: years of nodes, or features of edges, for instance."""
    names = {path.name for path in raw.iterdir()}
    if "data.npz" in names:
        with zipfile.ZipFile(raw / "data.npz") as archive:
            names |= {name.removesuffix(".npy") for name in archive.namelist()}
    return sorted(names - USED)


def _split_name(folder: Path) -> str | None:
    """The only folder in `split`; None if there is none."""
    parts = folder / "split"
    names = sorted(p.name for p in parts.iterdir() if p.is_dir()) if parts.is_dir() else []
    if len(names) > 1:
        shown = ", ".join(names[:4])
        raise InputError(f"{parts} holds several splits ({shown}); move all but one away")
    return names[0] if names else None
