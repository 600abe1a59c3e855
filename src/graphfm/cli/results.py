"""The command `graphfm predict`, and how the model of a run and its graph are loaded."""

import csv
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch import Tensor

from graphfm.api import IN_MEMORY
from graphfm.cli.output import Json, print_json, say
from graphfm.cli.shared_options import Device, option
from graphfm.data.datasets import DATASETS, load
from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.files import atomic_path
from graphfm.metrics.names import REGRESSION
from graphfm.runs.model import Model
from graphfm.runs.own_code import importable
from graphfm.runs.reader import read_run
from graphfm.runs.run import pick_device

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
Dataset = Annotated[
    str | None,
    option("Another graph with the same features: a name or a path.", "NAME", names=DATASETS),
]
Backbone = Annotated[
    str | None,
    option("The backbone, if it is your own: package.module:Class.", "NAME"),
]


def predict(
    run: RunArgument,
    out: Annotated[Path, option("The CSV file to write.", "FILE")],
    dataset: Dataset = None,
    backbone: Backbone = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Write each node's predicted class and its probability as CSV.

    Columns: node, name, class, probability.
    With several labels per node, all labels above one half are written, joined by '|'.
    Of a regression: node, name, and the predicted value of each target.
    The graph may be one that the model has never seen.
    """
    name, graph, model = load_run(run, dataset, backbone, device)
    try:
        with atomic_path(out) as path, path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            found = model.predict(graph).cpu()
            writer.writerow(["node", "name", *_columns(model)])
            writer.writerows((_values if model.task == REGRESSION else _rows)(graph, model, found))
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror or error}") from None
    if json:
        print_json({"run": str(run), "dataset": name, "nodes": graph.num_nodes, "out": str(out)})
    else:
        say(f"{graph.num_nodes:,} predictions in {out}")


def load_run(
    run: Path, dataset: str | None, backbone: str | None, device: str
) -> tuple[str, Graph, Model]:
    """The name of the graph, the graph and the model of a run."""
    with importable(os.getcwd() if backbone is not None else None):
        settings, model, trained_on = read_run(run, backbone=backbone)
    if dataset is None and settings.dataset == IN_MEMORY:
        raise InputError(f"{run} was trained on a graph in memory; save it and give --dataset FILE")
    graph = load(dataset or trained_on.get("path") or settings.dataset, device=pick_device(device))
    if dataset is None and graph.fingerprint != trained_on.get("fingerprint"):
        if settings.dataset.startswith("synthetic"):
            raise InputError(
                f"{settings.dataset} is another graph on {graph.device.type}: random numbers "
                "differ between kinds of device; give the --device that the run was trained on"
            )
        say(f"graphfm: warning: {settings.dataset} has changed since the run was made")
    return dataset or settings.dataset, graph, model


def _columns(model: Model) -> Sequence[str]:
    if model.task != REGRESSION:
        return ["class", "probability"]
    numbered = [f"value_{number}" for number in range(model.num_classes)]
    return model.class_names or (["value"] if model.num_classes == 1 else numbered)


def _values(graph: Graph, model: Model, values: Tensor) -> Iterator[tuple[int | str, ...]]:
    names = graph.node_names or [""] * graph.num_nodes
    rows = (row for chunk in torch.split(values, 1 << 14) for row in chunk.tolist())
    for node, (name, row) in enumerate(zip(names, rows, strict=True)):
        yield (node, name, *(f"{value:.9g}" for value in row))


def _rows(graph: Graph, model: Model, chances: Tensor) -> Iterator[tuple[int | str, ...]]:
    classes = model.class_names or [str(number) for number in range(model.num_classes)]
    names = graph.node_names or [""] * graph.num_nodes
    rows = (row for chunk in torch.split(chances, 1 << 14) for row in chunk.tolist())
    for node, (name, row) in enumerate(zip(names, rows, strict=True)):
        best = max(range(len(row)), key=row.__getitem__)
        chosen = [c for c, p in enumerate(row) if p > 0.5] if model.multi_label else [best]
        yield (
            node,
            name,
            "|".join(classes[c] for c in chosen),
            "|".join(f"{row[c]:.6f}" for c in chosen),
        )
