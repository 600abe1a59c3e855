"""Nodes in runs that fit into memory with all their edges."""

import torch
from torch import Tensor

CHUNK_NODES, CHUNK_EDGES = 1 << 16, 1 << 20


def ranges(
    indptr: Tensor, chunk_nodes: int, chunk_edges: int, start: int = 0
) -> list[tuple[int, int]]:
    """Cut the nodes from `start` on into runs of at most so many nodes and so many edges.

    Every run has one node at least, however many edges that has.
    """
    indptr = indptr.cpu()
    num_nodes, found = indptr.numel() - 1, []
    while start < num_nodes:
        most = indptr[start] + chunk_edges
        end = int(torch.searchsorted(indptr, most, right=True)) - 1
        end = max(start + 1, min(end, start + chunk_nodes, num_nodes))
        found.append((start, end))
        start = end
    return found
