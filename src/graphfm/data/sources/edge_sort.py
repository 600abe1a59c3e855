"""Sorts edges by target on disk; memory grows with the number of nodes, not of edges.

A first pass counts the edges into each node and cuts the nodes into ranges with few enough edges.
A second pass writes each edge next to the others of its range. Then each range is sorted in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphfm.data.formats.array_file import ArrayFile, write_array
from graphfm.data.matrix.chunks import ranges
from graphfm.data.sources.preparation import GIVEN, SYMMETRIC, UNDIRECTED
from graphfm.errors import InputError
from graphfm.files import check_room

Array = np.ndarray[Any, Any]
Pairs = Iterator[tuple[Array, ...]]  # sources, targets, and weights if there are any
RANGE_EDGES = 1 << 21  # sorted at a time; each takes about 40 bytes
PAIR = np.dtype("<i4")


@dataclass(frozen=True)
class Rules:
    """What happens to edges that occur several times (keep, drop or sum), and whether they weigh.

    Of several weights the largest is kept if duplicates are dropped.
    """

    duplicates: str = "keep"
    weighted: bool = False


@dataclass
class SortedEdges:
    """The number of edges written, of repeated ones, and of those repeated with another weight."""

    num_edges: int = 0
    duplicates: int = 0
    conflicts: int = 0


def sort_edges(
    read: Callable[[], Pairs],
    num_nodes: int,
    edges: str,
    folder: Path,
    *,
    rules: Rules | None = None,
    range_edges: int = RANGE_EDGES,
    tell: Callable[[int], None] = lambda num_edges: None,
) -> SortedEdges:
    """Write `indptr.npy`, `indices.npy` and, with weights, `edge_weight.npy`.

    `read` yields pieces of sources, targets and weights and is called twice. `edges` is the setting
    of the same name in `Preparation`, or "undirected".
    """
    rules = rules or Rules("drop" if edges == SYMMETRIC else "keep")
    degree = np.zeros(num_nodes, np.int64)
    for _, targets, *_ in _arranged(read(), num_nodes, edges):
        low = int(targets.min())
        counts = np.bincount(targets - low)
        degree[low : low + len(counts)] += counts
    offsets = np.zeros(num_nodes + 1, np.int64)
    np.cumsum(degree, out=offsets[1:])
    cuts = ranges(torch.from_numpy(offsets), num_nodes, range_edges)
    check_room(folder, int(offsets[-1]) * (20 if rules.weighted else 12))
    unsorted = folder / "edges.unsorted"
    _deal(_arranged(read(), num_nodes, edges), offsets, cuts, unsorted, rules, tell)
    found = _write_sorted(unsorted, offsets, cuts, degree, folder, rules)
    unsorted.unlink()
    np.cumsum(degree, out=offsets[1:])
    write_array(folder / "indptr.npy", "<i8", offsets)
    found.num_edges = int(offsets[-1])
    return found


def _write_sorted(
    unsorted: Path,
    offsets: Array,
    cuts: list[tuple[int, int]],
    degree: Array,
    folder: Path,
    rules: Rules,
) -> SortedEdges:
    """Sort range after range; `degree` becomes the number of edges kept at each node."""
    found, num_nodes, width = SortedEdges(), len(degree), 3 if rules.weighted else 2
    with ExitStack() as stack:
        stream = stack.enter_context(unsorted.open("rb"))
        indices = stack.enter_context(ArrayFile(folder / "indices.npy", "<i4"))
        weights = None
        if rules.weighted:
            weights = stack.enter_context(ArrayFile(folder / "edge_weight.npy", "<f4"))
        for start, end in cuts:
            count = int(offsets[end] - offsets[start])
            rows = np.fromfile(stream, PAIR, width * count).reshape(count, width)
            keys = (rows[:, 0].astype(np.int64) - start) * num_nodes + rows[:, 1]
            weight = np.ascontiguousarray(rows[:, 2]).view("<f4") if rules.weighted else None
            keys, weight = sort_keys(keys, weight, rules.duplicates, found)
            targets = keys // num_nodes
            degree[start:end] = np.bincount(targets, minlength=end - start)
            targets *= num_nodes
            keys -= targets
            indices.append(keys)
            if weights is not None and weight is not None:
                weights.append(weight)
    return found


def _arranged(pieces: Pairs, num_nodes: int, edges: str) -> Pairs:
    """Yield the edges as the preparation asks for them; refuse ids of nodes that do not exist."""
    for sources, targets, *weights in pieces:
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
            yield sources, targets, *weights
            continue
        back = slice(None) if edges != UNDIRECTED else sources != targets
        yield (
            np.concatenate([sources, targets[back]]),
            np.concatenate([targets, sources[back]]),
            *(np.concatenate([weight, weight[back]]) for weight in weights),
        )


def _deal(
    pieces: Pairs,
    offsets: Array,
    cuts: list[tuple[int, int]],
    path: Path,
    rules: Rules,
    tell: Callable[[int], None],
) -> None:
    """Write target, source and weight of each edge to the part of the file of its range."""
    starts = np.array([start for start, _ in cuts])
    next_row = offsets[starts].copy()  # where the next edge of each range is written
    range_type = np.uint16 if len(cuts) < 1 << 16 else np.int64  # numpy sorts uint16 faster
    num_edges, width = 0, 3 if rules.weighted else 2
    with path.open("wb") as stream:
        for sources, targets, *weights in pieces:
            range_ids = (np.searchsorted(starts, targets, side="right") - 1).astype(range_type)
            order = np.argsort(range_ids, kind="stable")
            bits = [weight.astype("<f4").view(PAIR) for weight in weights]
            rows = np.stack([targets, sources, *bits], axis=1).astype(PAIR)[order]
            counts = np.bincount(range_ids, minlength=len(cuts))
            ends = np.cumsum(counts)
            for part in np.flatnonzero(counts):
                stream.seek(int(next_row[part]) * width * PAIR.itemsize)
                stream.write(rows[ends[part] - counts[part] : ends[part]].data)
            next_row += counts
            num_edges += len(sources)
            tell(num_edges)


def sort_keys(
    keys: Array, weight: Array | None, duplicates: str, found: SortedEdges
) -> tuple[Array, Array | None]:
    """Sort keys of edges, and their weights with them; counts and treats edges that repeat.

    Without weights the keys are sorted in place.
    """
    if weight is None:
        keys.sort()
    else:
        order = np.lexsort((weight, keys))
        keys, weight = keys[order], weight[order]
    again = np.zeros(len(keys), bool)
    np.equal(keys[1:], keys[:-1], out=again[1:])
    found.duplicates += int(again.sum())
    if weight is not None:
        found.conflicts += int((again[1:] & (weight[1:] != weight[:-1])).sum())
    if duplicates == "keep" or not len(keys):
        return keys, weight
    if weight is not None and duplicates == "sum":
        sums = np.add.reduceat(weight.astype(np.float64), np.flatnonzero(~again))
        return keys[~again], sums.astype(np.float32)
    last = np.append(~again[1:], True)  # the largest weight of an edge comes last
    return keys[last], None if weight is None else weight[last]
