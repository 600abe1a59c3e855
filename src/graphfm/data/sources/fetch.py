"""Datasets by name: downloaded, unpacked, prepared, and loaded."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import torch

from graphfm.data.graph import SPLITS, Graph
from graphfm.data.graph.size import GraphSize
from graphfm.data.sources import catalog
from graphfm.data.sources.build import build
from graphfm.data.sources.catalog import Download, Source
from graphfm.data.sources.download import Unreachable, download
from graphfm.data.sources.mapped_folder import (
    Tell,
    is_current,
    loaded_bytes,
    open_graph,
    read_record,
    stored_folder,
)
from graphfm.data.sources.raw.base import reading
from graphfm.errors import InputError
from graphfm.files import atomic_path, check_room, data_folder, folder_for, locked

COPIED_AT_ONCE = 1 << 20


class Missing(InputError):  # noqa: N818
    """Files that could not be downloaded: the address of each, and where to put it."""

    def __init__(self, reason: str, source: Source, folder: Path, command: str) -> None:
        self.reason, self.command = reason, command
        self.files = [(folder / file.path, file.url) for file in _missing_downloads(source, folder)]
        listed = ", ".join(f"{url} as {path}" for path, url in self.files)
        super().__init__(f"{reason}; download {listed} yourself and run {command} again")


def fetch(
    name: str, root: str | Path | None = None, tell: Tell = lambda what, done, total: None
) -> Path:
    """Download and prepare a dataset, as far as that is not done yet; return its folder."""
    source = catalog.find(name)
    folder = files_folder(source, root)
    target = stored_folder(source, folder)
    if is_current(source, target):
        return target
    try:
        waiting = f"another process fetches {source.base}; waiting for it"
        with folder_for(folder), locked(folder, waiting):
            for wanted in _missing_downloads(source, folder):
                try:
                    download(wanted, folder / wanted.path, tell)
                except Unreachable as error:
                    raise Missing(str(error), source, folder, _command(name, root)) from None
            _unpack(source, folder)
            return build(source, folder, tell)
    except OSError as error:
        raise InputError(
            f"cannot use {error.filename or folder}: {error.strerror or error}; choose another "
            "folder with --root or GRAPHFM_DATA"
        ) from None


def is_here(name: str, root: str | Path | None = None) -> bool:
    """True if the dataset can be loaded."""
    source = catalog.find(name)
    return is_current(source, stored_folder(source, files_folder(source, root)))


def load_fetched(name: str, root: str | Path | None = None) -> Graph:
    """Load the graph of a dataset that was fetched before."""
    source = catalog.find(name)
    folder = stored_folder(source, files_folder(source, root))
    command = _command(name, root)
    if not folder.is_dir():
        raise InputError(f"{name} is not in {folder.parent}; run {command} to download it")
    try:
        graph = open_graph(folder)
    except InputError as error:
        raise InputError(f"{error}; run {command} to build it again") from None
    if graph.meta["preparation"] != source.preparation.to_json():
        raise InputError(f"{folder} was prepared differently; run {command} to build it again")
    return graph


def fetched_size(
    name: str, device: torch.device, dtype: torch.dtype | None = None
) -> GraphSize | None:
    """Read the size of a dataset without loading it; None if it was not fetched."""
    source = catalog.find(name)
    train, *rest = source.published.split
    try:
        record = read_record(stored_folder(source, files_folder(source, None)))
    except InputError:
        return None  # loading it will explain what to do
    n = record["nodes"]
    return _size(record, round(train * n), round(max(rest) * n), device, dtype)


def folder_size(
    folder: Path, device: torch.device, dtype: torch.dtype | None = None
) -> GraphSize | None:
    """Read the size of an imported graph without loading it; None if its folder is damaged."""
    try:
        record = read_record(folder)
        train, *rest = (int(record["splits"][split]) for split in SPLITS)
    except (InputError, KeyError, TypeError, ValueError):
        return None  # loading it will explain what to do
    if not record["classes"] or not train:
        return None  # nothing to plan for
    return _size(record, train, max(rest), device, dtype)


def _size(
    record: Mapping[str, Any],
    num_train: int,
    num_scored: int,
    device: torch.device,
    dtype: torch.dtype | None,
) -> GraphSize:
    kind = dtype or torch.float32
    num_bytes = loaded_bytes(record) - (4 - kind.itemsize) * record["nodes"] * record["features"]
    return GraphSize(
        num_nodes=record["nodes"],
        num_edges=record["edges"],
        num_train=num_train,
        num_features=record["features"],
        num_classes=record["classes"],
        num_bytes=num_bytes,
        feature_type=kind,
        num_scored=num_scored,
        still_to_come=num_bytes if device.type == "cuda" else 0,  # on the CPU it stays on disk
    )


def files_folder(source: Source, root: str | Path | None) -> Path:
    """The folder of a dataset, with the published files and the graph built from them."""
    return data_folder(root) / source.base


def _command(name: str, root: str | Path | None) -> str:
    return f"'graphfm datasets fetch {name}{f' --root {root}' if root else ''}'"


def _missing_downloads(source: Source, folder: Path) -> list[Download]:
    """Return what still has to be downloaded."""
    if all((folder / name).is_file() for name in source.files):
        return []
    return [wanted for wanted in source.downloads if not (folder / wanted.path).is_file()]


def _unpack(source: Source, folder: Path) -> None:
    """Extract the missing files, and nothing else, from the archive."""
    missing = [name for name in source.files if not (folder / name).is_file()]
    if source.archive is None or not missing:
        return
    path = folder / source.archive.path
    with reading(path), zipfile.ZipFile(path) as archive:
        members = _members(archive)
        if absent := [name for name in missing if name not in members]:
            raise InputError(f"it does not hold {absent[0]}; remove it and download it again")
        check_room(folder, sum(members[name].file_size for name in missing))
        for name in missing:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with (
                archive.open(members[name]) as packed,
                atomic_path(folder / name) as unfinished,
                unfinished.open("wb") as stream,
            ):
                shutil.copyfileobj(packed, stream, COPIED_AT_ONCE)


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the files of an archive by their path below its top folder."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        parts = PurePosixPath(info.filename).parts
        if info.filename.startswith("/") or ".." in parts or "\\" in info.filename:
            raise InputError(f"it holds {info.filename!r}, a path outside its folder")
        below = "/".join(parts[1:])
        if below in members:
            raise InputError(f"it holds {below!r} twice")
        if below and not info.is_dir():
            members[below] = info
    return members
