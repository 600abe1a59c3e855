"""Sorts edges by target on disk; memory grows with the number of nodes, not of edges.

A first pass counts the edges into each node and cuts the nodes into ranges with few enough edges.
A second pass writes each edge next to the others of its range. Then each range is sorted in memory.
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
RANGE_EDGES = 1 << 21  # sorted at a time; each takes about 40 bytes
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
    """Write `indptr.npy` and `indices.npy`, and return the number of edges written.

    `read` yields pieces of sources and targets and is called twice. `edges` is the setting of the
    same name in `Preparation`.
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
    """Yield the edges as the preparation asks for them; refuse ids of nodes that do not exist."""
    for sources, targets in pieces:
        for ids in (sources, targets):
            if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= num_nodes):
                wrong = int(ids.min()) if int(ids.min()) < 0 else int(ids.max())
                raise InputError(
                    f"an edge holds node id {wrong}; expected 0 to {num_nodes - 1}; download the "
                    "files again"
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
    """Write (target, source) of each edge to the part of the file that belongs to its range."""
    starts = np.array([start for start, _ in cuts])
    next_row = offsets[starts].copy()  # where the next edge of each range is written
    range_type = np.uint16 if len(cuts) < 1 << 16 else np.int64  # numpy sorts uint16 faster
    num_edges = 0
    with path.open("wb") as stream:
        for sources, targets in pieces:
            range_ids = (np.searchsorted(starts, targets, side="right") - 1).astype(range_type)
            order = np.argsort(range_ids, kind="stable")
            pairs = np.stack([targets, sources], axis=1).astype(PAIR)[order]
            counts = np.bincount(range_ids, minlength=len(cuts))
            ends = np.cumsum(counts)
            for part in np.flatnonzero(counts):
                stream.seek(int(next_row[part]) * 2 * PAIR.itemsize)
                stream.write(pairs[ends[part] - counts[part] : ends[part]].data)
            next_row += counts
            num_edges += len(sources)
            tell(num_edges)


def _sorted(pairs: Array, start: int, end: int, num_nodes: int, edges: str) -> tuple[Array, Array]:
    """Sources of the edges into the nodes from `start` to `end`, by target, and in-degrees."""
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
