"""Graphs by name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path

import torch

from graphfm.data.catalog import CATALOG
from graphfm.data.fetching import load_fetched
from graphfm.data.graph import Graph
from graphfm.data.synthetic import SHAPES, synthetic
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
    return graph if dtype is None else graph.with_features(dtype)


def _load(
    name: str | Path,
    root: str | Path | None,
    device: str | torch.device,
    dtype: torch.dtype | None,
) -> Graph:
    kind, _, rest = str(name).partition(":")
    if kind == "synthetic":
        shape, _, scale = rest.partition(":")
        try:
            factor = float(scale or 1)
        except ValueError:
            raise InputError(f"{name}: the scale {scale!r} is not a number") from None
        dtype = dtype or torch.float32
        return synthetic(shape or "small", scale=factor, dtype=dtype, device=device)
    if kind in CATALOG:
        return load_fetched(str(name), root).to(device)
    if name == "debian":
        with as_file(files("graphfm.data") / "debian.npz") as path:
            return Graph.from_npz(path).to(device)
    if not str(name).endswith(".npz") and Path(name).exists() and str(name):
        raise InputError(
            f"{name} is not an .npz file; make one of it (docs/npz.md shows how), or build a Graph "
            "in Python with Graph.from_edges and save it"
        )
    if not str(name).endswith(".npz"):
        known = ", ".join(DATASETS)
        raise InputError(f"there is no dataset {str(name)!r}; there is {known}, or a FILE.npz")
    return Graph.from_npz(name).to(device)
