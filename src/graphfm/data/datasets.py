"""Loads graphs by name (packaged, of the paper, synthetic), and from files and folders."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path

import torch

from graphfm.data.graph import Graph
from graphfm.data.graph.size import GraphSize
from graphfm.data.sources.catalog import CATALOG
from graphfm.data.sources.fetch import fetched_size, folder_size, load_fetched
from graphfm.data.sources.foreign import FORMATS, kind_of, read_foreign
from graphfm.data.sources.mapped_folder import open_graph
from graphfm.data.sources.tables.joining import join_tables
from graphfm.data.synthetic import SHAPES, shape_of, synthetic
from graphfm.errors import InputError, did_you_mean

DATASETS: Mapping[str, str] = {
    "debian": "63 thousand Debian packages and their dependencies, 51 classes; included in GraphFM",
    **{name: source.about for name, source in CATALOG.items()},
    **{
        f"synthetic:{name}": f"random graph of {shape.num_nodes:,} nodes, {shape.num_edges:,} edges"
        + (", multi-label" if shape.multi_label else "")
        for name, shape in SHAPES.items()
    },
}


LARGE = 1 << 28  # bytes of an .npz file that is better converted
log = logging.getLogger("graphfm")


def load(
    name: str | Path,
    *,
    root: str | Path | None = None,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None,
) -> Graph:
    """Load a graph by name (`graphfm datasets` lists the names) or from a file or folder.

    `docs/formats.md` lists the formats.

    A synthetic graph can be scaled: `synthetic:reddit:0.01` has a hundredth of Reddit's nodes.
    The paper's datasets are read from `root`, $GRAPHFM_DATA or the user's cache folder, where
    `graphfm datasets fetch` puts them; `reddit:raw` is Reddit without preparation. `dtype` is the
    type of the features.
    """
    graph = _load(name, root, device, dtype)
    return (graph if dtype is None else graph.with_features(dtype)).to(device)


def join(graph: Graph | str | Path, nodes: str | Path, edges: str | Path | None = None) -> Graph:
    """Return an imported graph with new nodes after its own, and with their edges.

    `nodes` and `edges` are tables with the columns of the import (a file or a glob). New rows are
    encoded as then; edges may also name nodes of the graph.
    """
    own = graph if isinstance(graph, Graph) else load(graph)
    return join_tables(own, [str(nodes)], [] if edges is None else [str(edges)])


def _load(
    name: str | Path,
    root: str | Path | None,
    device: str | torch.device,
    dtype: torch.dtype | None,
) -> Graph:
    base = str(name).partition(":")[0]
    if base == "synthetic":
        shape, scale = _synthetic(str(name))
        return synthetic(shape, scale=scale, dtype=dtype or torch.float32, device=device)
    if base in CATALOG:
        return load_fetched(str(name), root)
    if name == "debian":
        with as_file(files("graphfm.data") / "debian.npz") as path:
            return Graph.from_npz(path)
    if is_folder(name):
        return open_graph(Path(name))
    if str(name) and (kind := kind_of(Path(name))):
        return read_foreign(kind, Path(name))
    if not str(name).endswith(".npz") and Path(name).exists() and str(name):
        raise InputError(
            f"{name} is not a graph that is recognised; expected {FORMATS} (docs/formats.md), or a "
            "folder of 'graphfm import', which reads tables (docs/your-graph.md)"
        )
    if not str(name).endswith(".npz"):
        names = ", ".join(DATASETS)
        near = did_you_mean(str(name), DATASETS)
        raise InputError(
            f"unknown dataset {str(name)!r}; choose one of {names}, or a file or folder{near}"
        )
    return _from_npz(Path(name))


def is_folder(name: str | Path) -> bool:
    """True if this is the path of a graph in a folder of mapped arrays."""
    return bool(str(name)) and Path(name, "graph.json").exists()


def _from_npz(path: Path) -> Graph:
    if path.is_file() and path.stat().st_size >= LARGE:
        log.info(
            "%s is large, and is read and sorted at every start; 'graphfm import %s --out FOLDER' "
            "makes a folder of it that opens at once", path, path,
        )  # fmt: skip
    return Graph.from_npz(path)


def path_of(name: str) -> Path | None:
    """The path that a dataset names, made absolute; None if it is the name of a dataset."""
    base = name.partition(":")[0]
    if base in ("synthetic", "debian") or base in CATALOG or not name:
        return None
    path = Path(name)
    known = name.endswith(".npz") or is_folder(name) or kind_of(path)
    return path.resolve() if known else None


def known_size(
    name: str, device: torch.device, dtype: torch.dtype | None = None
) -> GraphSize | None:
    """Return the size of a graph without loading it; None if its name does not tell."""
    base = name.partition(":")[0]
    if base == "synthetic":
        shape_name, scale = _synthetic(name)
        shape = shape_of(shape_name).times(scale)
        return GraphSize(
            num_nodes=shape.num_nodes,
            num_edges=shape.num_edges,
            num_train=max(round(shape.split[0] * shape.num_nodes), 1),
            num_features=shape.num_features,
            num_classes=shape.num_classes,
            num_bytes=shape.num_bytes(dtype or torch.float32),
            num_scored=round(max(shape.split[1:]) * shape.num_nodes),
            feature_type=dtype or torch.float32,
            still_to_come=shape.num_bytes(dtype or torch.float32),
        )
    if base in CATALOG:
        return fetched_size(name, device, dtype)
    return folder_size(Path(name), device, dtype) if is_folder(name) else None


def _synthetic(name: str) -> tuple[str, float]:
    """Split synthetic:SHAPE:SCALE into SHAPE and SCALE."""
    _, _, rest = name.partition(":")
    shape, _, scale = rest.partition(":")
    try:
        return shape or "small", float(scale or 1)
    except ValueError:
        raise InputError(
            f"{name}: the scale is {scale!r}; expected a number, as in synthetic:reddit:0.1"
        ) from None
