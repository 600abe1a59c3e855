"""Graphs by name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path

import torch

from graphfm.data.graph import Graph
from graphfm.data.graph.size import GraphSize
from graphfm.data.sources.catalog import CATALOG
from graphfm.data.sources.fetch import fetched_size, load_fetched
from graphfm.data.synthetic import SHAPES, shape_of, synthetic
from graphfm.errors import InputError

DATASETS: Mapping[str, str] = {
    "debian": "63 thousand Debian packages, their dependencies, 51 sections; comes with GraphFM",
    **{name: source.about for name, source in CATALOG.items()},
    **{
        f"synthetic:{name}": f"random graph of {shape.num_nodes:,} nodes, {shape.num_edges:,} edges"
        + (", many labels per node" if shape.multi_label else "")
        for name, shape in SHAPES.items()
    },
}


def load(
    name: str | Path,
    *,
    root: str | Path | None = None,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None,
) -> Graph:
    """A graph by name (`graphfm datasets` lists them), or from an `.npz` file.

    A synthetic graph may be scaled: `synthetic:reddit:0.01` has a hundredth of Reddit's nodes.
    The paper's datasets are read from `root`, $GRAPHFM_DATA or the user's cache folder, where
    `graphfm datasets fetch` puts them; `reddit:raw` is Reddit without preparation. With `dtype`
    the features are of that type.
    """
    graph = _load(name, root, device, dtype)
    return (graph if dtype is None else graph.with_features(dtype)).to(device)


def _load(
    name: str | Path,
    root: str | Path | None,
    device: str | torch.device,
    dtype: torch.dtype | None,
) -> Graph:
    kind = str(name).partition(":")[0]
    if kind == "synthetic":
        shape, scale = _synthetic(str(name))
        return synthetic(shape, scale=scale, dtype=dtype or torch.float32, device=device)
    if kind in CATALOG:
        return load_fetched(str(name), root)
    if name == "debian":
        with as_file(files("graphfm.data") / "debian.npz") as path:
            return Graph.from_npz(path)
    if not str(name).endswith(".npz") and Path(name).exists() and str(name):
        raise InputError(
            f"{name} is not an .npz file; make one of it (docs/npz.md shows how), or build a Graph "
            "in Python with Graph.from_edges and save it"
        )
    if not str(name).endswith(".npz"):
        known = ", ".join(DATASETS)
        raise InputError(f"there is no dataset {str(name)!r}; there is {known}, or a FILE.npz")
    return Graph.from_npz(name)


def known_size(
    name: str, device: torch.device, dtype: torch.dtype | None = None
) -> GraphSize | None:
    """How large the graph of a name will be, where that can be known without it; else None."""
    kind = name.partition(":")[0]
    if kind == "synthetic":
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
            feature_bytes=(dtype or torch.float32).itemsize,
            still_to_come=shape.num_bytes(dtype or torch.float32),
        )
    return fetched_size(name, device, dtype) if kind in CATALOG else None


def _synthetic(name: str) -> tuple[str, float]:
    """synthetic:SHAPE:SCALE -> SHAPE, SCALE."""
    _, _, rest = name.partition(":")
    shape, _, scale = rest.partition(":")
    try:
        return shape or "small", float(scale or 1)
    except ValueError:
        raise InputError(f"{name}: the scale {scale!r} is not a number") from None
