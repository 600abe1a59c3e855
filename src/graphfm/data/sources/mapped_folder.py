"""Graphs as folders of memory-mapped arrays, as `datasets fetch` and `graphfm import` write them.

`graph.json` describes the arrays `indptr`, `indices`, `x`, `y` and `split`, and for some graphs
`edge_weight`, `edge_attr`, `edge_type` and the ids of nodes, which are `.npy` files.
`docs/datasets.md` has the format.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphfm.data.formats.array_file import map_array
from graphfm.data.formats.npy import read_header
from graphfm.data.formats.text_column import NumberColumn, TextColumn
from graphfm.data.graph import SPLITS, Graph
from graphfm.data.sources.catalog import RAW, Source
from graphfm.errors import InputError
from graphfm.files import atomic_path, read_json
from graphfm.version import VERSION

FORMAT = 1  # increase it when the same files would give different arrays
ARRAYS = ("indptr", "indices", "x", "y", "split")  # that every graph has
TYPES: Mapping[str, tuple[str, ...]] = {
    "indptr": ("<i8",), "indices": ("<i4",), "x": ("<f4", "<f2"), "y": ("<i8", "|i1", "<f4"),
    "split": ("|i1",), "edge_weight": ("<f4",), "edge_type": ("<i8",),
    "edge_attr": ("<f4", "<f8", "<f2", "<i8", "<i4", "<i2", "|i1", "|u1", "|b1"),
    "ids": ("<i8",), "id_offsets": ("<i8",), "id_bytes": ("|u1",),
}  # fmt: skip
IN_META = ("name", "preparation", "raw_edges", "urls")
# In `meta` of imported graphs.
IMPORTED = ("encodings", "tables", "report", "edge_summary", "node_summary")
PIECE = 1 << 22
Tell = Callable[[str, int, int], None]  # reports progress: what, how much is done, of how much


def stored_folder(source: Source, folder: Path) -> Path:
    """The folder of the built graph, inside the folder of the dataset."""
    return folder / ("graph-raw" if source.name.endswith(f":{RAW}") else "graph")


def describe(
    source: Source, files: Path, out: Path, raw_edges: int, num_edges: int, num_classes: int
) -> None:
    """Write `graph.json`. It is written last, so every array that it describes exists."""
    write_record(
        out,
        {
            "name": source.name,
            "edges": num_edges,
            "raw_edges": raw_edges,
            "classes": num_classes,
            "preparation": source.preparation.to_json(),
            "files": {name: (files / name).stat().st_size for name in source.files},
            "urls": [download.url for download in source.downloads],
        },
    )


def write_record(out: Path, about: Mapping[str, Any]) -> None:
    """Write `graph.json` for the arrays that are in a folder, with what else is known of them."""
    there = [name for name in TYPES if (out / f"{name}.npy").is_file()]
    arrays = {name: _describe_array(out / f"{name}.npy") for name in there}
    nodes, features = arrays["x"]["shape"]
    sizes = {"format": FORMAT, "nodes": nodes, "features": features}
    record = {**sizes, **about, "arrays": arrays, "graphfm": VERSION}
    _write_json(out, record)


def extend_record(out: Path, more: Mapping[str, Any]) -> None:
    """Add to `graph.json` what was learned from the arrays."""
    _write_json(out, {**read_record(out), **more})


def _write_json(out: Path, record: Mapping[str, Any]) -> None:
    with atomic_path(out / "graph.json") as unfinished:
        unfinished.write_text(json.dumps(record, indent=1) + "\n")


def read_record(folder: Path) -> dict[str, Any]:
    """Read `graph.json` and check everything that can be checked without the arrays."""
    path = folder / "graph.json"
    try:
        record = read_json(path)
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise ValueError(f"expected format {FORMAT}")
        for key in ("nodes", "edges", "raw_edges", "features", "classes"):
            if type(record[key]) is not int or record[key] < 0:
                raise ValueError(f"{key} is {record[key]!r}")
        n, wide = record["nodes"], record["arrays"]["y"]["shape"][1:]
        shapes = {
            "indptr": [n + 1], "indices": [record["edges"]], "x": [n, record["features"]],
            "y": [n, record["classes"]] if wide else [n], "split": [n],
        }  # fmt: skip
        if record["arrays"]["y"]["dtype"] == "<f4" and (record["classes"] == 1) == bool(wide):
            raise ValueError("y has not a column for each target of a regression")
        shapes |= _optional_shapes(record)
        for name, shape in shapes.items():
            array = record["arrays"][name]
            if array["shape"] != shape or array["dtype"] not in TYPES[name]:
                raise ValueError(f"{name} is {array['dtype']} {array['shape']}")
            str(array["sha256"])
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{path} cannot be used ({error})") from None
    return record


def _optional_shapes(record: Mapping[str, Any]) -> dict[str, list[int]]:
    """Shapes that the further arrays of a graph must have; also checks the names of classes."""
    arrays, n = record["arrays"], record["nodes"]
    of_edges = ("edge_weight", "edge_type", "edge_attr")
    shapes = {name: [record["edges"]] for name in of_edges}
    shapes |= {"ids": [n], "id_offsets": [n + 1]}
    if "edge_attr" in arrays:
        shapes["edge_attr"] += arrays["edge_attr"]["shape"][1:]
    if "id_bytes" in arrays:
        shapes["id_bytes"] = [int(arrays["id_bytes"]["shape"][0])]
    if ("id_bytes" in arrays) != ("id_offsets" in arrays):
        raise ValueError("id_bytes and id_offsets belong together")
    names = record.get("class_names")
    if names is not None and (
        not isinstance(names, list)
        or len(names) != record["classes"]
        or not all(isinstance(name, str) for name in names)
    ):
        raise ValueError("class_names does not name each class")
    if not isinstance(record.get("meta", {}), dict):
        raise ValueError("meta is not an object")
    return {name: shape for name, shape in shapes.items() if name in arrays}


def loaded_bytes(record: Mapping[str, Any]) -> int:
    """Size of the tensors of a graph. The split becomes three masks; ids stay on disk."""
    ids = ("ids", "id_offsets", "id_bytes")
    arrays = (record["arrays"][name] for name in _present(record) if name not in ids)
    total: int = sum(
        math.prod(array["shape"]) * np.dtype(array["dtype"]).itemsize for array in arrays
    )
    return total + (len(SPLITS) - 1) * int(record["nodes"])


def is_current(source: Source, folder: Path) -> bool:
    """True if the graph exists and is prepared as now; checks sizes, not contents."""
    try:
        record = read_record(folder)
        _map(folder, record)
    except InputError:
        return False
    return bool(record["preparation"] == source.preparation.to_json())


def open_graph(folder: Path) -> Graph:
    """Open the graph in a folder; its arrays are mapped and read only where they are used."""
    record = read_record(folder)
    arrays = _map(folder, record)
    indptr, split = arrays["indptr"], torch.from_numpy(arrays["split"])
    if indptr[0] != 0 or indptr[-1] != record["edges"]:
        raise InputError(
            f"{folder / 'indptr.npy'} is damaged: it does not end with the number of edges"
        )
    masks: dict[str, Any] = {f"{name}_mask": split == part for part, name in enumerate(SPLITS)}
    meta: dict[str, Any] = {key: record.get(key) for key in IN_META}
    meta |= {**record.get("meta", {}), **{key: record[key] for key in IMPORTED if key in record}}
    names = record.get("class_names")
    of_edges = ("edge_weight", "edge_attr", "edge_type")
    return Graph(
        indptr=torch.from_numpy(indptr),
        indices=torch.from_numpy(arrays["indices"]),
        x=torch.from_numpy(arrays["x"]),
        y=torch.from_numpy(arrays["y"]),
        num_classes=record["classes"],
        node_names=_names(folder, arrays),
        class_names=None if names is None else tuple(names),
        meta=meta,
        trusted=True,  # the build checked it
        **masks,
        **{name: torch.from_numpy(arrays[name]) for name in of_edges if name in arrays},
    )


def _names(folder: Path, arrays: Mapping[str, Any]) -> Sequence[str] | None:
    if "ids" in arrays:
        return NumberColumn(arrays["ids"])
    if "id_offsets" not in arrays:
        return None
    offsets, content = arrays["id_offsets"], arrays["id_bytes"]
    if offsets[0] != 0 or offsets[-1] != len(content):
        raise InputError(f"{folder / 'id_offsets.npy'} is damaged: it does not end with the bytes")
    return TextColumn(offsets, content)


def check_digests(folder: Path, tell: Tell) -> None:
    """Read every array and refuse one whose digest is not the recorded one."""
    record = read_record(folder)
    _map(folder, record)
    for name in _present(record):
        path = folder / f"{name}.npy"
        if _digest(path, tell) != record["arrays"][name]["sha256"]:
            raise InputError(
                f"{path} is damaged: its digest differs from the recorded one; remove {folder} and "
                "run 'graphfm datasets fetch' again"
            )


def _map(folder: Path, record: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    described = {name: record["arrays"][name] for name in _present(record)}
    return {
        name: map_array(folder / f"{name}.npy", array["dtype"], tuple(array["shape"]))
        for name, array in described.items()
    }


def _present(record: Mapping[str, Any]) -> list[str]:
    return [name for name in TYPES if name in record["arrays"]]


def _describe_array(path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        header = read_header(stream)
    return {"dtype": header.dtype.str, "shape": list(header.shape), "sha256": _digest(path)}


def _digest(path: Path, tell: Tell = lambda what, done, total: None) -> str:
    digest, done, size = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as stream:
        while piece := stream.read(PIECE):
            digest.update(piece)
            done += len(piece)
            tell(path.name, done, size)
    return digest.hexdigest()
