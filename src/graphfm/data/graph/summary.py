"""What a graph is like, in numbers."""

from typing import Any

import torch

from graphfm.data.graph import SPLITS, Graph
from graphfm.memory import full_batch_bytes


def summarize(graph: Graph) -> dict[str, Any]:
    """Sizes, degrees, oddities, homophily and splits of a graph."""
    source, target = graph.edge_index
    n = graph.num_nodes
    keys, reversed_keys = target * n + source, source * n + target
    distinct = torch.unique(keys)
    degree = graph.degree
    return {
        "nodes": n,
        "edges": graph.num_edges,
        "features": graph.num_features,
        "classes": graph.num_classes,
        "multi_label": graph.multi_label,
        "undirected": torch.equal(distinct, torch.unique(reversed_keys)),
        "self_loops": int((source == target).sum()),
        "duplicate_edges": graph.num_edges - distinct.numel(),
        "isolated_nodes": int(((degree == 0) & (torch.bincount(source, minlength=n) == 0)).sum()),
        "degree_mean": float(degree.float().mean()),
        "degree_median": int(degree.median()),
        "degree_max": int(degree.max()),
        "homophily": homophily(graph),
        "splits": {split: int(graph.mask(split).sum()) for split in SPLITS},
        "unlabelled": int((graph.y.reshape(n, -1)[:, 0] < 0).sum()),
        "graph_bytes": graph.num_bytes,
        "full_batch_bytes": full_batch_bytes(
            n, graph.num_edges, graph.num_features, graph.num_classes, layers=2, hidden=128
        ),
    }


def homophily(graph: Graph) -> float | None:
    """Share of edges between nodes of one class; None with many labels or no labelled edge."""
    if graph.multi_label:
        return None
    source, target = graph.y[graph.edge_index]
    known = (source >= 0) & (target >= 0)
    return float((source == target)[known].float().mean()) if bool(known.any()) else None
