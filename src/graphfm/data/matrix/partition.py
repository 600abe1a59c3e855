"""Partitions of a graph into parts with few edges between them, cached on disk."""

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

FORMAT = 1  # increase it when the same key would give a different partition
log = logging.getLogger("graphfm")


def partition(
    graph: Graph, num_parts: int, *, how: str = "metis", seed: int = 0, cache: Path | None = None
) -> Tensor:
    """Return the part of each node, [num_nodes] int64 from 0 to `num_parts` - 1, on the CPU.

    "metis" keeps neighbours together (Karypis and Kumar, 1998) in parts of nearly equal size.
    "random" ignores the edges; its parts differ in size by at most one node. No part is empty.
    Directions and weights of edges do not matter. The result is cached in `cache`, by default
    $GRAPHFM_CACHE/partitions, or graphfm/partitions in the user's cache folder, because METIS
    takes minutes on a large graph.
    """
    if how not in PARTITIONERS:
        raise InputError(f"unknown partitioner {how!r}; choose one of {', '.join(PARTITIONERS)}")
    n = graph.num_nodes
    if not 1 <= num_parts <= n:
        raise InputError(
            f"parts is {num_parts} for a graph of {n:,} nodes; expected 1 to {n:,}, because no "
            f"part may be empty; ask for {'more' if num_parts < 1 else 'fewer'} parts"
        )
    if num_parts == 1:
        return torch.zeros(n, dtype=torch.int64)
    name = f"{_digest(graph, FORMAT, n, num_parts, how, seed)}.npy"
    path = (cache or cache_folder("partitions")) / name
    part = _read(path, n, num_parts)
    if part is None:
        part = _fill_empty(PARTITIONERS[how](graph, num_parts, seed), num_parts)
        _write(path, part)
    log.info("%s nodes in %d parts by %s, seed %d", f"{n:,}", num_parts, how, seed)
    return torch.from_numpy(part)


def _metis(graph: Graph, num_parts: int, seed: int) -> Ids:
    try:
        import pymetis
    except ImportError:
        raise InputError(
            "a METIS partition needs pymetis, which is not installed; install it with 'pip install "
            "pymetis', or use --partition random"
        ) from None
    indptr, indices = _symmetric(graph)
    adjacency: dict[str, Any] = {"xadj": indptr, "adjncy": indices}
    if hasattr(pymetis, "CSRAdjacency"):  # since pymetis 2025.2, which deprecates the above
        adjacency = {"adjacency": pymetis.CSRAdjacency(indptr, indices)}
    options = pymetis.Options(seed=seed % 2**31)  # -1 means METIS's default
    return np.array(pymetis.part_graph(num_parts, **adjacency, options=options)[1], dtype=np.int64)


def _random(graph: Graph, num_parts: int, seed: int) -> Ids:
    return _shuffled(graph.num_nodes, seed) % num_parts


PARTITIONERS = {"metis": _metis, "random": _random}


def _symmetric(graph: Graph) -> tuple[Ids, Ids]:
    """Return a symmetric CSR without duplicates and self-loops; METIS crashes on others."""
    n = graph.num_nodes
    source = graph.indices.cpu().long()
    target = torch.arange(n).repeat_interleave(graph.indptr.cpu().diff())
    pairs = torch.minimum(source, target) * n + torch.maximum(source, target)
    pairs = torch.unique(pairs[source != target])
    keys = torch.cat([pairs, pairs % n * n + pairs // n]).sort().values
    return offsets(torch.bincount(keys // n, minlength=n)).numpy(), (keys % n).numpy()


def _fill_empty(part: Ids, num_parts: int) -> Ids:
    """Halve the largest part until no part is empty; METIS leaves small parts empty."""
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
    """Digest of everything a partition depends on: its settings and the edges of the graph."""
    digest = hashlib.blake2b(" ".join(map(str, key)).encode(), digest_size=16)
    for tensor in (graph.indptr, graph.indices):
        digest.update(tensor.cpu().contiguous().numpy().data)
    return digest.hexdigest()


def _read(path: Path, num_nodes: int, num_parts: int) -> Ids | None:
    """Read a cached partition; None if there is none or it cannot be used."""
    try:
        check_file(path)
        with path.open("rb") as stream:
            part = np.lib.format.read_array(stream, allow_pickle=False)
        fits = part.shape == (num_nodes,) and part.dtype == np.int32
        if not (fits and np.array_equal(np.unique(part), np.arange(num_parts))):
            raise ValueError("it does not hold this partition")
    except FileNotFoundError:
        return None
    except Exception as error:  # a damaged file may raise anything; partitioning repairs it
        log.info("%s cannot be used (%s); partitioning again", path, error)
        return None
    return part.astype(np.int64)


def _write(path: Path, part: Ids) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as unfinished, unfinished.open("wb") as stream:
            np.save(stream, part.astype(np.int32))
    except OSError as error:
        log.info("the partition cannot be cached: %s", error)
