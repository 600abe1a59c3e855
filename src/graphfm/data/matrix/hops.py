"""Hops: the features X multiplied by the adjacency matrix before training (AX, A^2 X, ...)."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from graphfm.data.matrix.adjacency import Adjacency
from graphfm.data.matrix.chunks import CHUNK_EDGES, CHUNK_NODES, ranges
from graphfm.data.matrix.hop_files import HopFiles
from graphfm.errors import InputError
from graphfm.files import cache_folder

MOST_IN_MEMORY = 1 << 30  # bytes; larger hops are kept in files
log = logging.getLogger("graphfm")


@torch.no_grad()
def hops(
    adjacency: Adjacency,
    num_hops: int,
    *,
    most_in_memory: int | None = None,
    cache: Path | None = None,
    chunk_nodes: int = CHUNK_NODES,
    chunk_edges: int = CHUNK_EDGES,
) -> list[Tensor]:
    """Return X, AX, ..., A^num_hops X, each [num_nodes, num_features] float32.

    They are computed on the graph's device, one chunk of nodes at a time. If they take more than
    `most_in_memory` bytes (1 GiB), they are kept in files in `cache`, by default
    $GRAPHFM_CACHE/hops, or graphfm/hops in the user's cache folder. Then a killed computation
    continues with the next chunk, finished hops are read back, and a request for more hops
    continues from the last one.
    """
    if num_hops < 0:
        raise InputError(f"num_hops is {num_hops}; expected 0 or more")
    sizes, x = (chunk_nodes, chunk_edges), adjacency.graph.x.float()
    most = MOST_IN_MEMORY if most_in_memory is None else most_in_memory
    if num_hops * x.numel() * x.element_size() > most:
        try:
            return [x, *_in_files(adjacency, num_hops, cache or cache_folder("hops"), sizes)]
        except (OSError, InputError) as error:
            log.info("the hops cannot be kept in files (%s); computing them in memory", error)
    tables = [x]
    for _ in range(num_hops):
        rows = torch.empty_like(x)
        for start, end, part in _chunks(adjacency, tables[-1], sizes):
            rows[start:end] = part
        tables.append(rows)
    return tables


def _in_files(
    adjacency: Adjacency, num_hops: int, folder: Path, sizes: tuple[int, int]
) -> list[Tensor]:
    """Return every hop but X, computed into files and memory-mapped."""
    graph = adjacency.graph
    files = HopFiles(folder, _key(adjacency), (graph.num_nodes, graph.num_features))
    files.look()
    if files.num_rows(num_hops) < graph.num_nodes:
        with files.locked():
            files.look()  # another process may have written some meanwhile
            for hop in range(1, num_hops + 1):
                _write_hop(adjacency, files, hop, sizes)
    log.info("%d hops of %d nodes are in %s", num_hops, graph.num_nodes, folder)
    return [files.table(hop).to(graph.device) for hop in range(1, num_hops + 1)]


def _write_hop(adjacency: Adjacency, files: HopFiles, hop: int, sizes: tuple[int, int]) -> None:
    """Compute and write the rows of a hop that are not written yet."""
    first, num_nodes = files.num_rows(hop), adjacency.graph.num_nodes
    if first == num_nodes:
        return
    if first > 0:
        log.info("hop %d continues at row %d of %d", hop, first, num_nodes)
    previous = adjacency.graph.x if hop == 1 else files.table(hop - 1)
    for _, _, part in _chunks(adjacency, previous, sizes, first):
        files.append(hop, part)


def _chunks(
    adjacency: Adjacency, rows: Tensor, sizes: tuple[int, int], first: int = 0
) -> Iterator[tuple[int, int, Tensor]]:
    """Compute A @ rows from target `first` on; yield start, end and rows of each chunk."""
    for start, end in ranges(adjacency.graph.indptr, *sizes, first):
        yield start, end, adjacency.product(start, end, rows)


def _key(adjacency: Adjacency) -> str:
    """Digest of everything the hops depend on: edges, features, matrix and kind of device."""
    graph = adjacency.graph
    digest = hashlib.blake2b(graph.device.type.encode(), digest_size=16)
    parts = (
        graph.indptr,
        graph.indices,
        graph.edge_weight,
        graph.x,
    )  # labels and splits do not matter
    for part in (*parts, adjacency.row_scale, adjacency.col_scale, adjacency.self_weight):
        if part is None:
            digest.update(b"none")
            continue
        digest.update(f"{part.dtype} {tuple(part.shape)}".encode())
        digest.update(part.cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()
