"""Builds a graph on disk from published files: once, in pieces, all of it or nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from graphfm.data.formats.array_file import ArrayFile, write_array
from graphfm.data.sources.catalog import Source
from graphfm.data.sources.edge_sort import sort_edges
from graphfm.data.sources.mapped_folder import Tell, describe, is_current, stored_folder
from graphfm.data.sources.preparation import GIVEN
from graphfm.data.sources.raw import open_raw
from graphfm.data.sources.raw.base import RawGraph
from graphfm.data.sources.standardise import standardise
from graphfm.errors import InputError
from graphfm.files import check_room
from graphfm.memory import available_memory

BYTES_PER_NODE = 64  # held in memory at once, without labels


def build(source: Source, folder: Path, tell: Tell = lambda what, done, total: None) -> Path:
    """Build the graph from the files in `folder` unless it exists; return its folder.

    Only one process may build at a time. A killed build leaves a folder `graph.unfinished`, which
    the next build removes.
    """
    target = stored_folder(source, folder)
    if is_current(source, target):
        return target
    unfinished = target.with_name(f"{target.name}.unfinished")
    old = target.with_name(f"{target.name}.old")
    _remove(unfinished, old)
    try:
        unfinished.mkdir()
        _build(source, folder, unfinished, tell)
        if target.exists():
            target.rename(old)
        unfinished.rename(target)
    except InputError as error:
        names_folder = str(folder) in str(error)
        raise InputError(str(error) if names_folder else f"{folder}: {error}") from None
    finally:
        _remove(unfinished, old)
    return target


def _remove(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _build(source: Source, folder: Path, out: Path, tell: Tell) -> None:
    check_no_pages(source, folder)
    scratch = out / "scratch"
    scratch.mkdir()
    raw = open_raw(source.form, folder, scratch, split=source.split)
    check_room(out, 4 * raw.num_nodes * raw.num_features)
    _write_features(raw, out, tell)  # first: this verifies the number of nodes
    if source.preparation.standardised:
        standardise(out / "x.npy", (raw.num_nodes, raw.num_features))
    if BYTES_PER_NODE * raw.num_nodes > available_memory():
        raise InputError(
            f"building {raw.num_nodes:,} nodes takes more memory than is available; use a machine "
            "with more memory"
        )
    num_classes = _write_labels(raw, out)
    total = raw.num_edges * (1 if source.preparation.edges == GIVEN else 2)
    found = sort_edges(
        raw.edges,
        raw.num_nodes,
        source.preparation.edges,
        out,
        tell=lambda done: tell("edges", done, total),
    )
    shutil.rmtree(scratch)
    describe(source, folder, out, raw.num_edges, found.num_edges, num_classes)


def _write_features(raw: RawGraph, out: Path, tell: Tell) -> None:
    with ArrayFile(out / "x.npy", "<f4", (raw.num_features,)) as file:
        for rows in raw.features():
            with np.errstate(over="ignore"):  # infinite features are refused below
                rows = rows.astype(np.float32)
            bad = ~np.isfinite(rows).all(axis=1)
            if bad.any():
                node = file.num_rows + int(bad.nonzero()[0][0])
                raise InputError(f"node {node} has features that are NaN, infinite or too large")
            file.append(rows)
            tell("features", file.num_rows, raw.num_nodes)
        if file.num_rows != raw.num_nodes:
            raise InputError(
                f"{file.num_rows:,} nodes have features; expected {raw.num_nodes:,}; download the "
                "files again"
            )


def _write_labels(raw: RawGraph, out: Path) -> int:
    """Write labels and split, which must agree; return the number of classes."""
    y, split = raw.labels(), raw.split()
    unlabelled = (y < 0).any(axis=1) if y.ndim == 2 else y < 0
    if count := int((unlabelled & (split >= 0)).sum()):
        raise InputError(f"{count:,} nodes are in the split but have no label; download it again")
    for part, name in enumerate(("training", "validation")):
        if not (split == part).any():
            raise InputError(f"the split has no {name} nodes; download it again")
    write_array(out / "y.npy", "|i1" if y.ndim == 2 else "<i8", y)
    write_array(out / "split.npy", "|i1", split)
    return y.shape[1] if y.ndim == 2 else int(y.max()) + 1


def check_no_pages(source: Source, folder: Path) -> None:
    """Refuse a web page that was saved in place of a file."""
    for name in source.files:
        path = folder / name
        if path.is_file():
            with path.open("rb") as stream:
                if is_page(stream.read(1024)):
                    raise InputError(
                        f"{path} is a web page, not data; remove it and download the file again"
                    )


def is_page(beginning: bytes) -> bool:
    """True if a file that starts like this is a web page."""
    start = beginning.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return start.startswith((b"<!doctype", b"<html", b"<head", b"<?xml"))
