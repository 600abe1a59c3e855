"""A graph as the arrays of an `.npz` file. `docs/npz.md` describes the keys."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from graphfm.data.formats.npz import ArrayRule, read_arrays
from graphfm.errors import InputError
from graphfm.metrics.names import REGRESSION

if TYPE_CHECKING:
    from graphfm.data.graph import Graph

Array = np.ndarray[Any, Any]
RULES = {
    "edge_index": ArrayRule(required=True, working_bytes=28),  # sorting edges takes more memory
    "x": ArrayRule(required=True),
    "y": ArrayRule(),
    "train_mask": ArrayRule(),
    "val_mask": ArrayRule(),
    "test_mask": ArrayRule(),
    "edge_weight": ArrayRule(),
    "edge_attr": ArrayRule(working_bytes=16),
    "edge_type": ArrayRule(working_bytes=24),
    "x_scale": ArrayRule(),
    "meta": ArrayRule(kinds="U"),
}
KEYS_IN_META = ("labels", "names", "num_classes")  # the rest of `meta` belongs to the user
log = logging.getLogger("graphfm")


def read_graph_file(path: Path) -> dict[str, Any]:
    """Read the keyword arguments of `Graph.from_edges` from a file."""
    read = read_arrays(path, RULES)
    warn_unused(str(path), read.unused)
    arrays: dict[str, Any] = dict(read.arrays)
    meta = _parse_meta(arrays.pop("meta", None))
    scale = arrays.pop("x_scale", None)
    if scale is not None:
        arrays["x"] = _dequantise(arrays["x"], scale)
    elif arrays["x"].dtype.kind == "f" and arrays["x"].dtype.itemsize == 2:
        arrays["x"] = arrays["x"].astype(np.float32)  # in a file, half precision only saves disk
    if arrays["x"].ndim == 2 and arrays["x"].shape[1] == 0:  # saved without features
        arrays["num_nodes"], arrays["x"] = len(arrays["x"]), None
    class_names, node_names, num_classes = (meta.pop(key, None) for key in KEYS_IN_META)
    return arrays | {
        "class_names": class_names,
        "node_names": node_names,
        "num_classes": num_classes,
        "task": meta.pop("task") if meta.get("task") == REGRESSION else None,
        "meta": meta,
    }


def graph_arrays(graph: Graph) -> dict[str, Any]:
    """Return the arrays that `read_graph_file` turns back into the same graph."""
    graph = graph.to("cpu")
    meta = {key: value for key, value in graph.meta.items() if key not in KEYS_IN_META}
    if graph.class_names is not None:
        meta["labels"] = list(graph.class_names)
    elif graph.num_classes:
        meta["num_classes"] = graph.num_classes
    if graph.task == REGRESSION:  # its numbers may all be whole
        meta["task"] = graph.task
    if graph.node_names is not None:
        meta["names"] = list(graph.node_names)
    x = graph.x.float() if graph.x.dtype == torch.bfloat16 else graph.x  # numpy has no bfloat16
    arrays: dict[str, Any] = {
        "edge_index": graph.edge_index.int().numpy(),
        "x": x.numpy(),
        "meta": np.array(json.dumps(meta)),
    }
    if graph.num_classes:
        arrays["y"] = graph.y.numpy()
    for name in ("train_mask", "val_mask", "test_mask"):
        if bool(getattr(graph, name).any()):
            arrays[name] = getattr(graph, name).numpy()
    for name in ("edge_weight", "edge_attr", "edge_type"):
        values = getattr(graph, name)
        if values is not None:
            wide = values.float() if values.dtype == torch.bfloat16 else values
            arrays[name] = wide.numpy()
    return arrays


def warn_unused(source: str, names: Iterable[str]) -> None:
    """Name what a graph was given and does not use, in one warning."""
    if names := list(names):
        listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        log.warning(
            "%s: %s %s not used; docs/npz.md and docs/formats.md list what a graph holds",
            source, listed, "is" if len(names) == 1 else "are",
        )  # fmt: skip


def _parse_meta(array: Array | None) -> dict[str, Any]:
    if array is None:
        return {}
    try:
        meta = json.loads(str(array.item()))
    except (ValueError, RecursionError, SystemError):  # numpy's SystemError: not a character
        raise InputError("meta is not one JSON text; expected a JSON object as a string") from None
    if not isinstance(meta, dict):
        raise InputError(f"meta is a JSON {type(meta).__name__}; expected an object")
    return meta


def _dequantise(x: Array, scale: Array) -> Array:
    if x.ndim != 2 or scale.shape != (x.shape[1],):
        raise InputError(
            f"x_scale has shape {list(scale.shape)} for x of shape {list(x.shape)}; "
            "expected one number per column"
        )
    if not np.isfinite(scale).all():
        raise InputError("x_scale holds NaN or infinite values; expected finite numbers")
    with np.errstate(over="ignore"):  # the checks of the graph refuse infinite features
        product: Array = x.astype(np.float32) * scale.astype(np.float32)
    return product
