"""Parts of a graph with few edges between them, computed once and kept."""

from __future__ import annotations

import hashlib
import heapq
import logging
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphfm.batch import offsets
from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.files import atomic_path, cache_folder, check_file

Ids = NDArray[np.int64]

HOWS = ("metis", "random")
FORMAT = 1  # raise it when the same key would give another partition
log = logging.getLogger("graphfm")


def partition(
    graph: Graph, num_parts: int, *, how: str = "metis", seed: int = 0, cache: Path | None = None
) -> Tensor:
    """[num_nodes] int64 part of each node, 0 to `num_parts` - 1, no part empty; on the CPU.

    "metis" keeps neighbours together (Karypis and Kumar, 1998) in parts of nearly equal size;
    where pymetis is not installed, regions grown breadth first stand in for it. "random" ignores
    the edges; its parts differ by one node at most. Edges count the same both ways and whatever
    their weight. The result is kept in `cache`, by default `partitions` in $GRAPHFM_CACHE, or else
    in `graphfm` in the user's cache folder: METIS takes minutes on a large graph.
    """
    if how not in HOWS:
        raise InputError(f"how is {how!r}; expected {' or '.join(map(repr, HOWS))}")
    n = graph.num_nodes
    if not 1 <= num_parts <= n:
        raise InputError(
            f"parts is {num_parts}, of a graph with {n:,} nodes; expected 1 to {n:,}, "
            f"so that no part is empty; ask for {'more' if num_parts < 1 else 'fewer'} parts"
        )
    if num_parts == 1:
        return torch.zeros(n, dtype=torch.int64)
    if how == "metis" and not _has_metis():
        log.warning("pymetis is not installed: growing regions instead, which cut more edges")
        how = "regions"
    name = f"{_digest(graph, FORMAT, n, num_parts, how, seed)}.npy"
    path = (cache or cache_folder("partitions")) / name
    part = _read(path, n, num_parts)
    if part is None:
        part = _fill_empty(PARTITIONERS[how](graph, num_parts, seed), num_parts)
        _write(path, part)
    log.info("%d nodes in %d parts by %s, seed %d", n, num_parts, how, seed)
    return torch.from_numpy(part)


def _has_metis() -> bool:
    try:
        import pymetis  # noqa: F401
    except ImportError:
        return False
    return True


def _metis(graph: Graph, num_parts: int, seed: int) -> Ids:
    import pymetis

    indptr, indices = _symmetric(graph)
    adjacency: dict[str, Any] = {"xadj": indptr, "adjncy": indices}
    if hasattr(pymetis, "CSRAdjacency"):  # pymetis 2025.2 and later, which deprecates the above
        adjacency = {"adjacency": pymetis.CSRAdjacency(indptr, indices)}
    options = pymetis.Options(seed=seed % 2**31)  # -1 would mean METIS's own
    return np.array(pymetis.part_graph(num_parts, **adjacency, options=options)[1], dtype=np.int64)


def _regions(graph: Graph, num_parts: int, seed: int) -> Ids:
    """Grow one part after another, breadth first from a random node, each until it is full."""
    indptr, indices = _symmetric(graph)
    degree = np.diff(indptr)
    starts = _shuffled(graph.num_nodes, seed)
    starts = starts[np.argsort(degree[starts] == 0, kind="stable")]  # isolated nodes fill up
    part, cursor = np.full(graph.num_nodes, -1), 0
    for here, room in enumerate(np.bincount(np.arange(graph.num_nodes) % num_parts)):
        frontier = starts[:0]
        while room > 0:
            if frontier.size == 0:
                while part[starts[cursor]] >= 0:
                    cursor += 1
                isolated = degree[starts[cursor]] == 0
                frontier = starts[cursor : cursor + (room if isolated else 1)]
            frontier = frontier[:room]
            part[frontier] = here
            room -= frontier.size
            count = degree[frontier]
            shift = indptr[frontier] - (count.cumsum() - count)
            neighbors = indices[np.arange(count.sum()) + shift.repeat(count)]
            frontier, ties = np.unique(neighbors[part[neighbors] < 0], return_counts=True)
            frontier = frontier[np.argsort(-ties, kind="stable")]  # closest first, if not all fit
    return part


def _random(graph: Graph, num_parts: int, seed: int) -> Ids:
    return _shuffled(graph.num_nodes, seed) % num_parts


PARTITIONERS = {"metis": _metis, "random": _random, "regions": _regions}


def _symmetric(graph: Graph) -> tuple[Ids, Ids]:
    """CSR with each pair once and both ways, and no loops: METIS crashes on anything else."""
    n = graph.num_nodes
    source = graph.indices.cpu().long()
    target = torch.arange(n).repeat_interleave(graph.indptr.cpu().diff())
    pairs = torch.minimum(source, target) * n + torch.maximum(source, target)
    pairs = torch.unique(pairs[source != target])
    keys = torch.cat([pairs, pairs % n * n + pairs // n]).sort().values
    return offsets(torch.bincount(keys // n, minlength=n)).numpy(), (keys % n).numpy()


def _fill_empty(part: Ids, num_parts: int) -> Ids:
    """Halve the largest part until none is empty: METIS leaves some where parts are small."""
    size = np.bincount(part, minlength=num_parts)
    order, end = np.argsort(part, kind="stable"), size.cumsum()
    heap = [(-int(size[i]), int(end[i])) for i in range(num_parts)]
    heapq.heapify(heap)
    for empty in np.flatnonzero(size == 0):
        largest, stop = heap[0]
        half = -largest // 2
        part[order[stop - half : stop]] = empty
        heapq.heapreplace(heap, (largest + half, stop - half))
        heapq.heappush(heap, (-half, stop))
    return part


def _shuffled(n: int, seed: int) -> Ids:
    return np.asarray(torch.randperm(n, generator=torch.Generator().manual_seed(seed)))


def _digest(graph: Graph, *key: object) -> str:
    """Names a partition by what it follows from: who neighbours whom, not what is known of them."""
    digest = hashlib.blake2b(" ".join(map(str, key)).encode(), digest_size=16)
    for tensor in (graph.indptr, graph.indices):
        digest.update(tensor.cpu().contiguous().numpy().data)
    return digest.hexdigest()


def _read(path: Path, num_nodes: int, num_parts: int) -> Ids | None:
    """The partition in the file, or nothing unless it is whole and fits."""
    try:
        check_file(path)
        with path.open("rb") as stream:
            part = np.lib.format.read_array(stream, allow_pickle=False)
        fits = part.shape == (num_nodes,) and part.dtype == np.int32
        if not (fits and np.array_equal(np.unique(part), np.arange(num_parts))):
            raise ValueError("it holds something else")
    except FileNotFoundError:
        return None
    except Exception as error:  # whatever a damaged file brings about, a new one mends
        log.info("%s cannot be used (%s): partitioning again", path, error)
        return None
    return part.astype(np.int64)


def _write(path: Path, part: Ids) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as unfinished, unfinished.open("wb") as stream:
            np.save(stream, part.astype(np.int32))
    except OSError as error:
        log.info("the partition is not kept: %s", error)
