"""Edges sorted by target on the disk, in memory for all nodes but not for all edges.

A first pass counts the edges into each node, and cuts the nodes into ranges with few enough edges.
A second pass lays each edge beside the others of its range. Then each range is sorted in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphfm.data.formats.array_file import ArrayFile, write_array
from graphfm.data.matrix.chunks import ranges
from graphfm.data.sources.preparation import GIVEN, SYMMETRIC
from graphfm.errors import InputError
from graphfm.files import check_room

Array = np.ndarray[Any, Any]
Pairs = Iterator[tuple[Array, Array]]
RANGE_EDGES = 1 << 21  # sorted at a time; one takes 40 bytes or so
PAIR = np.dtype("<i4")


def sort_edges(
    read: Callable[[], Pairs],
    num_nodes: int,
    edges: str,
    folder: Path,
    *,
    range_edges: int = RANGE_EDGES,
    tell: Callable[[int], None] = lambda num_edges: None,
) -> int:
    """Write `indptr.npy` and `indices.npy`; `read` gives sources and targets, and is used twice.

    `edges` is that of a `Preparation`. Returns how many edges were written.
    """
    degree = np.zeros(num_nodes, np.int64)
    for _, targets in _arranged(read(), num_nodes, edges):
        low = int(targets.min())
        counts = np.bincount(targets - low)
        degree[low : low + len(counts)] += counts
    offsets = np.zeros(num_nodes + 1, np.int64)
    np.cumsum(degree, out=offsets[1:])
    cuts = ranges(torch.from_numpy(offsets), num_nodes, range_edges)
    check_room(folder, int(offsets[-1]) * 12)
    unsorted = folder / "edges.unsorted"
    _deal(_arranged(read(), num_nodes, edges), offsets, cuts, unsorted, tell)
    with (
        ArrayFile(folder / "indices.npy", "<i4") as indices,
        unsorted.open("rb") as stream,
    ):
        for start, end in cuts:
            count = int(offsets[end] - offsets[start])
            pairs = np.fromfile(stream, PAIR, 2 * count).reshape(count, 2)
            sources, degree[start:end] = _sorted(pairs, start, end, num_nodes, edges)
            indices.append(sources)
    unsorted.unlink()
    np.cumsum(degree, out=offsets[1:])
    write_array(folder / "indptr.npy", "<i8", offsets)
    return int(offsets[-1])


def _arranged(pieces: Pairs, num_nodes: int, edges: str) -> Pairs:
    """The edges as the preparation wants them; refuses ids that there are not."""
    for sources, targets in pieces:
        for ids in (sources, targets):
            if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= num_nodes):
                wrong = int(ids.min()) if int(ids.min()) < 0 else int(ids.max())
                raise InputError(
                    f"an edge names node {wrong}; there are {num_nodes:,}, so ids run from 0 to "
                    f"{num_nodes - 1}"
                )
        if not sources.size:
            continue
        sources, targets = sources.astype(np.int64), targets.astype(np.int64)
        if edges == GIVEN:
            yield sources, targets
        else:
            yield np.concatenate([sources, targets]), np.concatenate([targets, sources])


def _deal(
    pieces: Pairs,
    offsets: Array,
    cuts: list[tuple[int, int]],
    path: Path,
    tell: Callable[[int], None],
) -> None:
    """Write (target, source) of each edge to where its range lies in the file."""
    starts = np.array([start for start, _ in cuts])
    place = offsets[starts].copy()  # where the next edge of each range goes
    kind = np.uint16 if len(cuts) < 1 << 16 else np.int64  # numpy sorts short numbers fast
    num_edges = 0
    with path.open("wb") as stream:
        for sources, targets in pieces:
            home = (np.searchsorted(starts, targets, side="right") - 1).astype(kind)
            order = np.argsort(home, kind="stable")
            pairs = np.stack([targets, sources], axis=1).astype(PAIR)[order]
            counts = np.bincount(home, minlength=len(cuts))
            ends = np.cumsum(counts)
            for part in np.flatnonzero(counts):
                stream.seek(int(place[part]) * 2 * PAIR.itemsize)
                stream.write(pairs[ends[part] - counts[part] : ends[part]].data)
            place += counts
            num_edges += len(sources)
            tell(num_edges)


def _sorted(pairs: Array, start: int, end: int, num_nodes: int, edges: str) -> tuple[Array, Array]:
    """Sources of the edges into the nodes from start to end, by target, and how many each has."""
    keys = pairs[:, 0].astype(np.int64)
    keys -= start
    keys *= num_nodes
    keys += pairs[:, 1]
    keys.sort()
    if edges == SYMMETRIC and len(keys):
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
    rows = keys // num_nodes
    degree = np.bincount(rows, minlength=end - start)
    rows *= num_nodes
    keys -= rows
    return keys, degree
