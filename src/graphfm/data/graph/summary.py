"""A graph in numbers: sizes, degrees, irregularities, labels and splits."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from graphfm.data.graph import SPLITS, Graph
from graphfm.data.graph.labels import labelled
from graphfm.metrics.names import CLASSES, REGRESSION

SHOWN_CLASSES = 5
OF_EDGES = ("undirected", "self_loops", "duplicate_edges", "isolated_nodes")
OF_DEGREES = ("degree_mean", "degree_median", "degree_max")
SKEWED = 0.8  # share of labelled nodes in one class above which a warning is given


def summarize(graph: Graph) -> dict[str, Any]:
    """Return sizes, degrees, irregularities, homophily, class shares and splits of a graph."""
    edges = _known_edges(graph) or _edges(graph)
    nodes = _known_nodes(graph) or node_summary(graph)
    shares = nodes["class_shares"]
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": graph.num_features,
        "classes": graph.num_classes,
        "multi_label": graph.multi_label,
        "task": graph.task,
        **{key: edges[key] for key in OF_EDGES},
        **{key: nodes[key] for key in OF_DEGREES},
        "homophily": edges["homophily"],
        "splits": nodes["splits"],
        "unlabelled": nodes["unlabelled"],
        "largest_classes": [(name, share) for name, _, share in shares[:SHOWN_CLASSES]],
        "class_counts": {name: count for name, count, _ in shares},
        "targets": targets(graph),
        "label_warning": label_warning(graph, shares),
        "graph_bytes": graph.num_bytes,
    }


def node_summary(graph: Graph) -> dict[str, Any]:
    """What there is to say of degrees, splits and labels, as JSON values."""
    degree = graph.degree
    return {
        "degree_mean": graph.num_edges / graph.num_nodes,
        "degree_median": int(degree.median()),
        "degree_max": int(degree.max()),
        "splits": {split: int(graph.mask(split).sum()) for split in SPLITS},
        "unlabelled": graph.num_nodes - int(labelled(graph.y).sum()),
        "class_shares": class_shares(graph),
    }


def _known_edges(graph: Graph) -> dict[str, Any] | None:
    """What a folder keeps of its edges, so that nobody has to read them all; None if damaged."""
    kept = graph.meta.get("edge_summary")
    fits = isinstance(kept, dict) and all(key in kept for key in (*OF_EDGES, "homophily"))
    return kept if fits else None


def _known_nodes(graph: Graph) -> dict[str, Any] | None:
    """What a folder keeps of its nodes, likewise."""
    kept: Any = graph.meta.get("node_summary")
    try:
        shares = [(str(name), int(n), float(share)) for name, n, share in kept["class_shares"]]
        splits = {split: int(kept["splits"][split]) for split in SPLITS}
        numbers = {key: kept[key] for key in (*OF_DEGREES, "unlabelled")}
    except (TypeError, KeyError, ValueError):
        return None
    return {**numbers, "splits": splits, "class_shares": shares}


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
    """Share of edges between nodes of one class; None where nodes do not have one class each."""
    if graph.task != CLASSES:
        return None
    source, target = graph.y[graph.edge_index]
    known = (source >= 0) & (target >= 0)
    return float((source == target)[known].float().mean()) if bool(known.any()) else None


def class_shares(graph: Graph) -> list[tuple[str, int, float]]:
    """Name, nodes and share of each class that has any, from the largest to the smallest.

    Of a label it is the share of the nodes of which the label is known.
    """
    if graph.task == REGRESSION:
        return []
    if graph.multi_label:
        counts, totals = (graph.y > 0).sum(dim=0), (graph.y >= 0).sum(dim=0)
    else:
        has_class = graph.y[graph.y >= 0]
        counts = torch.bincount(has_class, minlength=graph.num_classes)
        totals = torch.full_like(counts, has_class.numel())
    names = graph.class_names or tuple(str(number) for number in range(counts.numel()))
    order = torch.argsort(counts, descending=True, stable=True).tolist()
    found = zip(counts.tolist(), totals.tolist(), strict=True)
    shares = [
        (name, count, count / max(total, 1))
        for name, (count, total) in zip(names, found, strict=True)
    ]
    return [shares[number] for number in order if shares[number][1] > 0]


def targets(graph: Graph) -> list[dict[str, Any]] | None:
    """What a regression is to find: each target's known nodes, mean, deviation and range."""
    if graph.task != REGRESSION:
        return None
    columns = graph.y.reshape(graph.num_nodes, -1).double()
    names = graph.class_names or tuple(str(number) for number in range(columns.size(1)))
    found = []
    for name, column in zip(names, columns.T, strict=True):
        values = column[~column.isnan()]
        measures = (torch.mean, lambda v: torch.std(v, correction=0), torch.min, torch.max)
        numbers = [float(of(values)) if values.numel() else None for of in measures]
        told = dict(zip(("mean", "std", "min", "max"), numbers, strict=True))
        known = values.numel()
        found.append({"name": name, "known": known, "missing": columns.size(0) - known, **told})
    return found


def target_in_words(target: Mapping[str, Any]) -> str:
    """One of `targets` as a line for people."""
    if not target["known"]:
        return "no values"
    numbers = (f"{name} {target[name]:.4g}" for name in ("min", "mean", "max", "std"))
    return f"{', '.join(numbers)}; {target['missing']:,} missing"


def label_warning(graph: Graph, shares: Sequence[tuple[str, int, float]]) -> str | None:
    """Warn if most labelled nodes have one class, so that a high score says little."""
    if not shares or graph.task != CLASSES:
        return None
    name, _, share = shares[0]
    if len(shares) == 1:
        return (
            f"all labelled nodes have class {name}; every model will score 1.0, and nothing can be "
            "learned; give nodes of other classes labels too"
        )
    if share < SKEWED:
        return None
    metric = "average-precision" if graph.num_classes == 2 else "macro-f1"
    of = f" (of class {shares[-1][0]})" if graph.num_classes == 2 else ""
    return (
        f"{share:.1%} of the labelled nodes have class {name}; a model that always predicts it "
        f"scores {share:.3f}, so compare scores with that number, or train with --class-weights "
        f"balanced --metric {metric}{of}"
    )
