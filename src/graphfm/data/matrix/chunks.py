"""Consecutive ranges of nodes that fit into memory with all their in-edges."""

import torch
from torch import Tensor

CHUNK_NODES, CHUNK_EDGES = 1 << 16, 1 << 20


def ranges(
    indptr: Tensor, chunk_nodes: int, chunk_edges: int, start: int = 0
) -> list[tuple[int, int]]:
    """Cut the nodes from `start` on into ranges of at most so many nodes and edges.

    Every range has at least one node, however many edges lead to that node.
    """
    indptr = indptr.cpu()
    num_nodes, cuts = indptr.numel() - 1, []
    while start < num_nodes:
        last_edge = indptr[start] + chunk_edges
        end = int(torch.searchsorted(indptr, last_edge, right=True)) - 1
        end = max(start + 1, min(end, start + chunk_nodes, num_nodes))
        cuts.append((start, end))
        start = end
    return cuts
