"""graphfm methods, backbones, info"""

import inspect
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from graphfm.backbones import BACKBONES
from graphfm.cli.output import Json, print_json, print_rows
from graphfm.data.datasets import load
from graphfm.data.graph.summary import summarize
from graphfm.memory import size
from graphfm.methods import METHODS


def methods(json: Json = False) -> None:
    """List the ways to train: what a step sees of the graph."""
    _print({name: inspect.getdoc(method) or "" for name, method in METHODS.items()}, json)


def backbones(json: Json = False) -> None:
    """List the networks."""
    _print({name: inspect.getdoc(kind) or "" for name, kind in BACKBONES.items()}, json)


def info(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A name or a FILE.npz.")],
    json: Json = False,
) -> None:
    """Describe a graph: size, degrees, homophily, splits, and the memory it will need."""
    record = {"dataset": dataset, **summarize(load(dataset))}
    if json:
        print_json(record)
        return
    splits = record.pop("splits")
    record |= {f"{split} nodes": count for split, count in splits.items()}
    record["memory of the graph, bytes"] = record.pop("graph_bytes")
    record["more to train sage on it, full batch, 2 layers of 128, bytes"] = record.pop(
        "full_batch_bytes"
    )
    print_rows((name.replace("_", " "), _text(name, value)) for name, value in record.items())


def _print(texts: Mapping[str, str], json: bool) -> None:
    first_lines = {name: text.split("\n\n")[0].replace("\n", " ") for name, text in texts.items()}
    if json:
        print_json([{"name": name, "about": text} for name, text in first_lines.items()])
    else:
        print_rows(first_lines.items())


def _text(name: str, value: Any) -> str:
    if value is None:
        return "not defined"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("bytes"):
        return size(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
