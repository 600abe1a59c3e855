"""The commands `graphfm evaluate` and `graphfm predict`."""

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch import Tensor

from graphfm.api import IN_MEMORY
from graphfm.cli.output import Json, print_json, print_rows, say
from graphfm.cli.shared_options import Device, option
from graphfm.data.datasets import DATASETS, load
from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.files import atomic_path
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


def evaluate(
    run: RunArgument,
    dataset: Dataset = None,
    backbone: Backbone = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Score the model of a run on its own graph, or on another one."""
    name, graph, model = _load(run, dataset, backbone, device)
    scores = model.evaluate(graph)
    if json:
        print_json({"run": str(run), "dataset": name, **scores})
    else:
        shown = {
            split: "no nodes" if score is None else f"{score:.4f} (micro-F1)"
            for split, score in scores.items()
        }
        print_rows(shown.items())


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
    The graph may be one that the model has never seen.
    """
    name, graph, model = _load(run, dataset, backbone, device)
    try:
        with atomic_path(out) as path, path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(["node", "name", "class", "probability"])
            writer.writerows(_rows(graph, model, model.predict(graph).cpu()))
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror or error}") from None
    if json:
        print_json({"run": str(run), "dataset": name, "nodes": graph.num_nodes, "out": str(out)})
    else:
        say(f"{graph.num_nodes:,} predictions in {out}")


def _load(
    run: Path, dataset: str | None, backbone: str | None, device: str
) -> tuple[str, Graph, Model]:
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


def _rows(graph: Graph, model: Model, chances: Tensor) -> Iterator[tuple[int, str, str, str]]:
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
