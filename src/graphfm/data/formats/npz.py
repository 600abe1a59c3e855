"""Graphs in `.npz` files: read without trust, written whole or not at all.

`numpy.load` believes what a file says of itself. Here every header is read first, and nothing is
allocated until types, shapes and sizes agree with each other, with the archive's directory and
with the memory there is.
"""

from __future__ import annotations

import json
import math
import warnings
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from graphfm.data.formats.npy import check_archive, check_header, read_header
from graphfm.errors import InputError
from graphfm.files import atomic_path
from graphfm.memory import available_memory

if TYPE_CHECKING:
    from graphfm.data.graph import Graph

Array = np.ndarray[Any, Any]
REQUIRED = ("edge_index", "x")
OPTIONAL = ("y", "train_mask", "val_mask", "test_mask", "edge_weight", "x_scale", "meta")
BUILDING = {"edge_index": 28}  # bytes per element beside the array, to make a graph of it; else 8
IN_META = ("labels", "names", "num_classes")  # what `meta` holds beside the user's own


def read_graph(path: Path) -> Graph:
    from graphfm.data.graph import Graph

    arrays: dict[str, Any] = dict(read_arrays(path))
    try:
        meta = _parse_meta(arrays.pop("meta", None))
        scale = arrays.pop("x_scale", None)
        if scale is not None:
            arrays["x"] = _dequantise(arrays["x"], scale)
        elif arrays["x"].dtype.kind == "f" and arrays["x"].dtype.itemsize == 2:
            arrays["x"] = arrays["x"].astype(np.float32)  # half precision saves disk only
        labels, names, num_classes = (meta.pop(key, None) for key in IN_META)
        return Graph.from_edges(
            **arrays, node_names=names, class_names=labels, num_classes=num_classes, meta=meta
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of a graph file by name, types and sizes checked before any is read."""
    try:
        if not path.is_file():
            what = "it is a folder, or no file" if path.exists() else "no such file"
            raise InputError(f"{what}; give the path of an .npz file, as docs/npz.md has it")
        with warnings.catch_warnings(), zipfile.ZipFile(path) as archive:
            warnings.simplefilter("ignore")  # of numpy, about old headers
            keys = _check_names(archive)
            total = sum(_check_member(archive, key) for key in keys)
            if total > available_memory():
                raise InputError(f"it takes {total:,} bytes of memory, and there is less")
            return {key: _read_member(archive, key) for key in keys}
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except PermissionError:
        raise InputError(f"{path}: it may not be read; ask its owner to let you (chmod)") from None
    except Exception as error:  # each parser below has errors of its own: zip, zlib, lzma, numpy
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise InputError(
            f"{path}: damaged, or not an .npz file ({reason}); write it again with Graph.save"
        ) from None


def write_graph(graph: Graph, path: Path) -> None:
    graph = graph.to("cpu")
    meta = {key: value for key, value in graph.meta.items() if key not in IN_META}
    if graph.class_names is not None:
        meta["labels"] = list(graph.class_names)
    elif graph.num_classes:
        meta["num_classes"] = graph.num_classes
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
    if graph.edge_weight is not None:
        arrays["edge_weight"] = graph.edge_weight.numpy()
    with atomic_path(path) as unfinished, unfinished.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


def _check_names(archive: zipfile.ZipFile) -> list[str]:
    """The keys of the arrays in it that make a graph."""
    names = check_archive(archive)
    known = [key for key in REQUIRED + OPTIONAL if f"{key}.npy" in names]
    if missing := [key for key in REQUIRED if key not in known]:
        raise InputError(
            f"no {' and no '.join(missing)} in it (it holds {', '.join(names[:8]) or 'nothing'}); "
            f"expected {', '.join(REQUIRED)} and optionally {', '.join(OPTIONAL)}"
        )
    return known


def _check_member(archive: zipfile.ZipFile, key: str) -> int:
    """Bytes it takes to use the array; refuses a header that does not fit its archive entry."""
    info = archive.getinfo(f"{key}.npy")
    with archive.open(info) as stream:
        header = read_header(stream)
    check_header(key, header, info.file_size, "U" if key == "meta" else "biuf")
    return header.num_bytes + math.prod(header.shape) * BUILDING.get(key, 8)


def _read_member(archive: zipfile.ZipFile, key: str) -> Array:
    with archive.open(f"{key}.npy") as stream:
        array: Array = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def _parse_meta(array: Array | None) -> dict[str, Any]:
    if array is None:
        return {}
    try:
        meta = json.loads(str(array.item()))
    except (ValueError, RecursionError, SystemError):  # the last of numpy, for what is no letter
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
        raise InputError("x_scale holds NaN or infinite values")
    with np.errstate(over="ignore"):  # infinite features are refused later
        product: Array = x.astype(np.float32) * scale.astype(np.float32)
    return product
