"""Features carried along the edges once, before training: X, AX, A^2 X, and so on."""

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
from graphfm.kernels import weighted_sum

MOST_IN_MEMORY = 1 << 30  # bytes of all hops; more of them go to files
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
    """X, AX, ..., A^num_hops X, each [num_nodes, num_features] float32 on the graph's device.

    One chunk of nodes is computed at a time. Where the hops take more than `most_in_memory` bytes
    (a GiB) they are kept in `cache`, by default `hops` in $GRAPHFM_CACHE, or else in `graphfm` in
    the user's cache folder: a computation that was killed goes on with the next chunk, a finished
    one is read back, and more hops continue from those there are.
    """
    if num_hops < 0:
        raise InputError(f"num_hops is {num_hops}; expected 0 or more")
    sizes, x = (chunk_nodes, chunk_edges), adjacency.graph.x.float()
    most = MOST_IN_MEMORY if most_in_memory is None else most_in_memory
    if num_hops * x.numel() * x.element_size() > most:
        try:
            return [x, *_in_files(adjacency, num_hops, cache or cache_folder("hops"), sizes)]
        except (OSError, InputError) as error:
            log.info("the hops are not kept (%s): computing them in memory", error)
    found = [x]
    for _ in range(num_hops):
        rows = torch.empty_like(x)
        for start, end, part in _chunks(adjacency, found[-1], sizes):
            rows[start:end] = part
        found.append(rows)
    return found


def _in_files(
    adjacency: Adjacency, num_hops: int, folder: Path, sizes: tuple[int, int]
) -> list[Tensor]:
    """Every hop but X, by way of files."""
    graph = adjacency.graph
    files = HopFiles(folder, _key(adjacency), (graph.num_nodes, graph.num_features))
    files.look()
    if files.num_rows(num_hops) < graph.num_nodes:
        with files.locked():
            files.look()  # another process may have been at it
            for hop in range(1, num_hops + 1):
                _write_hop(adjacency, files, hop, sizes)
    log.info("%d hops of %d nodes are in %s", num_hops, graph.num_nodes, folder)
    return [files.table(hop).to(graph.device) for hop in range(1, num_hops + 1)]


def _write_hop(adjacency: Adjacency, files: HopFiles, hop: int, sizes: tuple[int, int]) -> None:
    """The rows of a hop that are not written yet."""
    first, num_nodes = files.num_rows(hop), adjacency.graph.num_nodes
    if first == num_nodes:
        return
    if first > 0:
        log.info("hop %d goes on at row %d of %d", hop, first, num_nodes)
    previous = adjacency.graph.x if hop == 1 else files.table(hop - 1)
    for _, _, part in _chunks(adjacency, previous, sizes, first):
        files.append(hop, part)


def _chunks(
    adjacency: Adjacency, rows: Tensor, sizes: tuple[int, int], first: int = 0
) -> Iterator[tuple[int, int, Tensor]]:
    """A @ rows from target `first` on: start, end and rows of each chunk."""
    device = adjacency.graph.device
    for start, end in ranges(adjacency.graph.indptr, *sizes, first):
        block = adjacency.block(torch.arange(start, end, device=device))
        sources = rows[block.src_ids.to(rows.device)].to(device).float()
        yield start, end, weighted_sum(sources, block)


def _key(adjacency: Adjacency) -> str:
    """Names hops by what they follow from: the graph, the matrix, and who adds up its rows."""
    graph = adjacency.graph
    digest = hashlib.blake2b(graph.device.type.encode(), digest_size=16)
    parts = (graph.indptr, graph.indices, graph.edge_weight, graph.x)  # not labels and splits
    for part in (*parts, adjacency.row_scale, adjacency.col_scale, adjacency.self_weight):
        if part is None:
            digest.update(b"none")
            continue
        digest.update(f"{part.dtype} {tuple(part.shape)}".encode())
        digest.update(part.cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()
