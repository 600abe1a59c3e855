"""A graph in numbers: sizes, degrees, irregularities, labels and splits."""

from typing import Any

import torch

from graphfm.data.graph import SPLITS, Graph

SHOWN_CLASSES = 5
OF_EDGES = ("undirected", "self_loops", "duplicate_edges", "isolated_nodes")
SKEWED = 0.8  # share of labelled nodes in one class above which a warning is given


def summarize(graph: Graph) -> dict[str, Any]:
    """Return sizes, degrees, irregularities, homophily, class shares and splits of a graph."""
    n, degree = graph.num_nodes, graph.degree
    edges = _known_edges(graph) or _edges(graph)
    shares = class_shares(graph)
    return {
        "nodes": n,
        "edges": graph.num_edges,
        "features": graph.num_features,
        "classes": graph.num_classes,
        "multi_label": graph.multi_label,
        **{key: edges[key] for key in OF_EDGES},
        "degree_mean": float(degree.float().mean()),
        "degree_median": int(degree.median()),
        "degree_max": int(degree.max()),
        "homophily": edges["homophily"],
        "splits": {split: int(graph.mask(split).sum()) for split in SPLITS},
        "unlabelled": int((graph.y.reshape(n, -1)[:, 0] < 0).sum()),
        "largest_classes": shares[:SHOWN_CLASSES],
        "label_warning": None if graph.multi_label else label_warning(shares),
        "graph_bytes": graph.num_bytes,
    }


def _known_edges(graph: Graph) -> dict[str, Any] | None:
    """What a folder keeps of its edges, so that nobody has to read them all; None if damaged."""
    kept = graph.meta.get("edge_summary")
    fits = isinstance(kept, dict) and all(key in kept for key in (*OF_EDGES, "homophily"))
    return kept if fits else None


def _edges(graph: Graph) -> dict[str, Any]:
    source, target = graph.edge_index
    n, unused = graph.num_nodes, graph.degree == 0
    keys, reversed_keys = target * n + source, source * n + target
    distinct = torch.unique(keys)
    return {
        "undirected": torch.equal(distinct, torch.unique(reversed_keys)),
        "self_loops": int((source == target).sum()),
        "duplicate_edges": graph.num_edges - distinct.numel(),
        "isolated_nodes": int((unused & (torch.bincount(source, minlength=n) == 0)).sum()),
        "homophily": homophily(graph),
    }


def homophily(graph: Graph) -> float | None:
    """Share of edges between nodes of one class; None for multi-label or unlabelled graphs."""
    if graph.multi_label:
        return None
    source, target = graph.y[graph.edge_index]
    known = (source >= 0) & (target >= 0)
    return float((source == target)[known].float().mean()) if bool(known.any()) else None


def class_shares(graph: Graph) -> list[tuple[str, float]]:
    """Share of the labelled nodes in each class that has any, from the largest to the smallest.

    In a multi-label graph the shares may add up to more than 1.
    """
    if graph.multi_label:
        labelled = graph.y[(graph.y >= 0).all(dim=1)]
        counts, total = labelled.sum(dim=0, dtype=torch.int64), labelled.size(0)
    else:
        labelled = graph.y[graph.y >= 0]
        counts, total = torch.bincount(labelled, minlength=graph.num_classes), labelled.numel()
    names = graph.class_names or tuple(str(number) for number in range(counts.numel()))
    order = torch.argsort(counts, descending=True, stable=True).tolist()
    return [(names[c], int(counts[c]) / total) for c in order if int(counts[c]) > 0]


def label_warning(shares: list[tuple[str, float]]) -> str | None:
    """Warn if most labelled nodes have one class, so that a high score says little."""
    if not shares:
        return None
    name, share = shares[0]
    if len(shares) == 1:
        return f"all labelled nodes have class {name}; every model will score 1.0"
    if share >= SKEWED:
        return (
            f"{share:.1%} of the labelled nodes have class {name}; a model that always predicts it "
            f"scores {share:.3f}, so compare scores with that number"
        )
    return None
