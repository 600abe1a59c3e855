"""The command `graphfm info`."""

from typing import Annotated, Any

import typer

from graphfm.cli.output import Json, print_json, print_rows
from graphfm.cli.shared_options import completion
from graphfm.data.datasets import DATASETS, is_folder, known_size, load
from graphfm.data.graph import Graph
from graphfm.data.graph.size import GraphSize
from graphfm.data.graph.summary import summarize, target_in_words
from graphfm.memory import size
from graphfm.runs.memory_plan import plan_for
from graphfm.runs.run import Run

PLANNED = {"full": "full batch", "graphfm-ib": "graphfm-ib"}  # methods whose memory is shown


def info(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET", help="A name or a path.", autocompletion=completion(DATASETS)
        ),
    ],
    json: Json = False,
) -> None:
    """Describe a graph: size, degrees, homophily, classes, splits, and the memory of a training."""
    graph = load(dataset)
    known = known_size(dataset, graph.device) if is_folder(dataset) else None
    training = _training_bytes(graph, known)
    record = {"dataset": dataset, **summarize(graph), "training_bytes": training}
    if json:
        print_json(record)
        return
    print_rows(_rows(record))
    if record["label_warning"]:
        typer.echo(f"warning: {record['label_warning']}")


def _training_bytes(graph: Graph, known: GraphSize | None) -> dict[str, int] | None:
    """Memory that the plan gives for SAGE beside the graph, by method; None without labels."""
    if not graph.num_classes:
        return None
    size_of_graph = known or GraphSize.of(graph)
    plans = {m: plan_for(Run.make(method=m), size_of_graph, graph.device) for m in PLANNED}
    return {method: plan.needed for method, plan in plans.items()}


def _rows(record: dict[str, Any]) -> list[tuple[str, str]]:
    """The record as lines for people: what it is, and its value."""
    shown: dict[str, Any] = {}
    for name, value in record.items():
        if name == "splits":
            shown |= {f"{split} nodes": count for split, count in value.items()}
        elif name == "largest_classes":
            counts = record["class_counts"]
            parts = [f"{label} {counts[label]:,} ({share:.1%})" for label, share in value]
            rest = f", and {more} more" if (more := len(counts) - len(parts)) else ""
            shown |= {"largest classes": ", ".join(parts) + rest} if parts else {}
        elif name == "targets":
            shown |= {f"target {target['name']}": target_in_words(target) for target in value or ()}
        elif name == "graph_bytes":
            shown["memory of the graph"] = size(value)
        elif name == "training_bytes":
            needs = ((PLANNED[method], size(number)) for method, number in (value or {}).items())
            shown |= {f"more to train sage, {method}": f"about {need}" for method, need in needs}
        elif name not in ("label_warning", "class_counts"):
            shown[name.replace("_", " ")] = value
    return [(name, _text(value)) for name, value in shown.items()]


def _text(value: Any) -> str:
    if value is None:
        return "not defined"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
