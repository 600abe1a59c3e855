"""Graphs in `.npz` files: read without trust, written whole or not at all.

`numpy.load` believes what a file says of itself. Here every header is read first, and nothing is
allocated until types, shapes and sizes agree with each other, with the archive's directory and
with the memory there is.
"""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from graphfm.errors import InputError
from graphfm.files import atomic_path
from graphfm.memory import physical_memory

if TYPE_CHECKING:
    from graphfm.data.graph import Graph

Array = np.ndarray[Any, Any]
REQUIRED = ("edge_index", "x")
OPTIONAL = ("y", "train_mask", "val_mask", "test_mask", "edge_weight", "x_scale", "meta")
BROKEN = (
    zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, KeyError, OverflowError,
    NotImplementedError, RuntimeError, SyntaxError, RecursionError, MemoryError,
)  # fmt: skip


def read_graph(path: Path) -> Graph:
    from graphfm.data.graph import Graph

    arrays: dict[str, Any] = dict(read_arrays(path))
    try:
        meta = _parse_meta(arrays.pop("meta", None))
        scale = arrays.pop("x_scale", None)
        if scale is not None:
            arrays["x"] = _dequantise(arrays["x"], scale)
        elif arrays["x"].dtype == np.float16:
            arrays["x"] = arrays["x"].astype(np.float32)
        names = _names(meta, "names")
        labels = _names(meta, "labels")
        return Graph.from_edges(**arrays, node_names=names, class_names=labels, meta=meta)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of a graph file by name, types and sizes checked before any is read."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        with zipfile.ZipFile(path) as archive:
            known = [key for key in REQUIRED + OPTIONAL if f"{key}.npy" in archive.namelist()]
            if missing := [key for key in REQUIRED if key not in known]:
                held = ", ".join(archive.namelist()[:8]) or "nothing"
                raise InputError(
                    f"{path}: no {' and no '.join(missing)} in it (it holds {held}); "
                    f"expected {', '.join(REQUIRED)} and optionally {', '.join(OPTIONAL)}"
                )
            total = sum(_check_member(archive, key) for key in known)
            if total > physical_memory():
                raise InputError(f"{path}: its arrays take {total:,} bytes, more than the memory")
            return {key: _read_member(archive, key) for key in known}
    except InputError as error:
        raise (error if str(path) in str(error) else InputError(f"{path}: {error}")) from None
    except BROKEN as error:
        reason = str(error) or type(error).__name__
        raise InputError(
            f"{path}: damaged, or not an .npz file ({reason}); write it again with Graph.save"
        ) from None


def write_graph(graph: Graph, path: Path) -> None:
    graph = graph.to("cpu")
    meta = {key: value for key, value in graph.meta.items() if key not in ("names", "labels")}
    if graph.class_names is not None:
        meta["labels"] = list(graph.class_names)
    if graph.node_names is not None:
        meta["names"] = list(graph.node_names)
    x = graph.x.float() if graph.x.dtype == torch.bfloat16 else graph.x  # numpy has no bfloat16
    arrays: dict[str, Array] = {
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
        np.savez_compressed(stream, allow_pickle=False, **arrays)


def _check_member(archive: zipfile.ZipFile, key: str) -> int:
    """Bytes the array will take; refuses a header that does not fit its archive entry."""
    info = archive.getinfo(f"{key}.npy")
    with archive.open(info) as stream:
        shape, dtype = _read_header(stream)
        start = stream.tell()
    if dtype.hasobject:
        raise InputError(f"{key} holds Python objects, which only pickle can read; save numbers")
    if dtype.kind not in ("U" if key == "meta" else "biuf"):
        raise InputError(
            f"{key} holds {dtype} values; expected {'text' if key == 'meta' else 'numbers'}"
        )
    size = math.prod(shape) * dtype.itemsize
    if size != info.file_size - start:
        raise InputError(
            f"{key} says {dtype} {list(shape)}, {size:,} bytes, but has {info.file_size - start:,}"
        )
    return size


def _read_header(stream: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise InputError(f"npy format {version} is not known; expected 1.0 or 2.0")
    shape, _, dtype = readers[version](stream)
    return shape, dtype


def _read_member(archive: zipfile.ZipFile, key: str) -> Array:
    with archive.open(f"{key}.npy") as stream:
        array: Array = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def _parse_meta(array: Array | None) -> dict[str, Any]:
    if array is None:
        return {}
    try:
        meta = json.loads(str(array.item()))
    except (ValueError, RecursionError):
        raise InputError("meta is not one JSON text; expected a JSON object as a string") from None
    if not isinstance(meta, dict):
        raise InputError(f"meta is a JSON {type(meta).__name__}; expected an object")
    return meta


def _names(meta: dict[str, Any], key: str) -> list[str] | None:
    names = meta.pop(key, None)
    if names is not None and not isinstance(names, list):
        raise InputError(f"meta[{key!r}] is a {type(names).__name__}; expected a list of names")
    return names


def _dequantise(x: Array, scale: Array) -> Array:
    if x.ndim != 2 or scale.shape != (x.shape[1],):
        raise InputError(
            f"x_scale has shape {list(scale.shape)} for x of shape {list(x.shape)}; "
            "expected one number per column"
        )
    product: Array = x.astype(np.float32) * scale.astype(np.float32)
    return product
