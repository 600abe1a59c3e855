"""The graph that a run is continued on must be the one that it began with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.runs.run import Run, load_graph, pick_device

IN_MEMORY = "in-memory"  # the dataset of a run whose graph has neither a name nor a file


def same_graph(run: Run, config: Mapping[str, Any], graph: Graph | None) -> Graph:
    """The graph that a run began with; refuses any other."""
    about, kind, device = config["graph"], config["machine"].get("kind"), pick_device(run.device)
    if kind not in (None, device.type):
        raise InputError(
            f"the run began on {kind}, but here it would continue on {device.type}; continue on "
            f"{kind}, or start a new run"
        )
    if graph is None:
        if run.dataset == IN_MEMORY:
            raise InputError(
                "the run was trained on a graph in memory; continue in Python: resume(RUN, graph)"
            )
        path = about.get("path")
        if path is not None and not Path(path).exists():
            raise InputError(
                f"the graph of the run is missing: {path}; restore it, or continue in Python: "
                "resume(RUN, graph)"
            )
        graph = load_graph(replace(run, dataset=path or run.dataset))
    graph = graph.with_features(run.training.feature_type or graph.x.dtype)
    if graph.fingerprint != about.get("fingerprint"):
        raise InputError(
            f"{run.dataset} is not the graph that the run began with: it has changed since, or was "
            "made on another kind of device; restore it, or start a new run"
        )
    return graph
