"""The commands `graphfm predict` and `graphfm embed`, and how a run and its graph are loaded."""

import os
from pathlib import Path
from typing import Annotated, NamedTuple

import torch
import typer
from torch import Tensor

from graphfm.api import IN_MEMORY
from graphfm.cli.output import Json, print_json, say
from graphfm.cli.own_model import network_of_run
from graphfm.cli.shared_options import Device, option
from graphfm.cli.transfer_bar import TransferBar
from graphfm.data.datasets import DATASETS, load
from graphfm.data.graph import Graph
from graphfm.data.sources.tables.joining import join_tables
from graphfm.errors import InputError
from graphfm.metrics.names import REGRESSION
from graphfm.runs.model import Model
from graphfm.runs.node_choice import by_id, num_rows
from graphfm.runs.own_code import importable
from graphfm.runs.reader import read_run
from graphfm.runs.result_columns import EmbeddingTable, PredictionTable
from graphfm.runs.result_files import NPY, ending_of, write_results
from graphfm.runs.run import pick_device

SIX_DIGITS, EXACT = "%.6f", "%.9g"  # nine digits tell any two float32 numbers apart

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
Dataset = Annotated[
    str | None,
    option("Another graph with the same features: a name or a path.", "NAME", names=DATASETS),
]
OwnModel = Annotated[
    str | None,
    option("The model, if it is your own network of PyG: package.module:function.", "NAME"),
]
Backbone = Annotated[
    str | None,
    option("The backbone, if it is your own: package.module:Class.", "NAME"),
]
Out = Annotated[Path, option("The file to write: .csv, .csv.gz, .parquet or .npy.", "FILE")]
SomeNodes = Annotated[
    str | None,
    option(
        "Some nodes: ids with commas between, or a file: .txt (an id per line) or a table.",
        "NAMES",
        default="all",
    ),
]
IdColumn = Annotated[
    str | None,
    option("The column of the table of --nodes that holds the ids.", "NAME", default="the first"),
]
AddNodes = Annotated[
    list[str] | None,
    option("Tables of new nodes, which join the graph; only they are written.", "FILE"),
]
AddEdges = Annotated[
    list[str] | None,
    option("Tables of edges of the new nodes; ids as in the import.", "FILE"),
]
Top = Annotated[
    int | None, option("Name the N best classes: class, class_2, ...", "N", default="1")
]
Probabilities = Annotated[
    bool,
    typer.Option("--probabilities", help="Add the probability of every class, a column each."),
]
Layer = Annotated[
    int | None,
    option(
        "0 is what the first graph layer reads, K the output of layer K, -1 the last.",
        "N",
        default="the last hidden rows",
    ),
]


def predict(
    run: RunArgument,
    out: Out,
    dataset: Dataset = None,
    nodes: SomeNodes = None,
    id: IdColumn = None,
    add_nodes: AddNodes = None,
    add_edges: AddEdges = None,
    top: Top = None,
    probabilities: Probabilities = False,
    backbone: Backbone = None,
    model: OwnModel = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Write the predicted class of each node, with its probability.

    Columns: node, name, class, probability, and where they are known truth and split.
    With several labels per node, all labels above one half are written, joined by '|'.
    Of a regression: the predicted value of each target instead of class and probability.
    An .npy file is the matrix of all probabilities (or values), a row per node.
    The graph may be one that the model has never seen, and new nodes may join it: --add-nodes.
    """
    if ending_of(out) == NPY and top is not None:
        raise InputError("an .npy file holds all probabilities; leave out --top, or write a table")
    new = New(add_nodes or [], add_edges or [])
    chosen = choose(run, dataset, (backbone, model), device, nodes, id, new)
    table = PredictionTable(
        graph=chosen.graph, ids=chosen.ids, model=chosen.model, top=top, every=probabilities
    )
    number_format = EXACT if chosen.model.task == REGRESSION else SIX_DIGITS
    with TransferBar() as bar:
        rows = chosen.model.predictions(chosen.graph, chosen.ids, bar.tell)
        write_results(out, rows, chosen.num_rows, table.columns, number_format)
    _tell(chosen, run, out, "predictions", json)


def embed(
    run: RunArgument,
    out: Out,
    layer: Layer = None,
    dataset: Dataset = None,
    nodes: SomeNodes = None,
    id: IdColumn = None,
    add_nodes: AddNodes = None,
    add_edges: AddEdges = None,
    backbone: Backbone = None,
    model: OwnModel = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Write the rows that a layer of the network computes for each node.

    Columns: node, name, e0, e1, ... An .npy file is the matrix, a row per node.
    They are exact: every neighbour counts, and nothing is dropped.
    """
    ending_of(out)  # refuses a wrong one before the graph is read
    new = New(add_nodes or [], add_edges or [])
    chosen = choose(run, dataset, (backbone, model), device, nodes, id, new)
    table = EmbeddingTable(graph=chosen.graph, ids=chosen.ids)
    with TransferBar() as bar:
        rows = chosen.model.embeddings(chosen.graph, layer, chosen.ids, bar.tell)
        write_results(out, rows, chosen.num_rows, table.columns, EXACT)
    _tell(chosen, run, out, "embeddings", json)


OwnNetwork = tuple[str | None, str | None]
OF_THESE_NODES = ("random", "learned")  # rows that mean something in the graph of the training only
ELSEWHERE = (
    "the model reads {} rows of the nodes that it was trained on, which mean something else in "
    "another graph; its predictions there are of little use"
)


class Chosen(NamedTuple):
    """A graph with its name, a model, and the nodes to write rows of; None stands for all."""

    name: str
    graph: Graph
    model: Model
    ids: Tensor | None

    @property
    def num_rows(self) -> int:
        return num_rows(self.graph, self.ids)


class New(NamedTuple):
    """Tables of nodes and edges that join the graph."""

    nodes: list[str]
    edges: list[str]


def choose(
    run: Path, dataset: str | None, own: OwnNetwork, device: str,
    nodes: str | None, id: str | None, new: New,
) -> Chosen:  # fmt: skip
    """Load a run and its graph, and find the nodes that rows are to be written of."""
    if new.edges and not new.nodes:
        raise InputError("--add-edges joins new nodes to the graph; give --add-nodes too")
    if id is not None and nodes is None:
        raise InputError("--id names a column of the table of --nodes; give --nodes too")
    name, graph, model = load_run(run, dataset, own, device)
    ids = None
    if new.nodes:
        old, graph = graph.num_nodes, join_tables(graph, new.nodes, new.edges)
        if model.node_rows == "random":
            say(f"graphfm: warning: {ELSEWHERE.format('random')}")
        ids = torch.arange(old, graph.num_nodes, device=graph.device)
    if nodes is not None:
        ids = by_id(graph, nodes, id)
    return Chosen(name, graph, model, ids)


def load_run(
    run: Path, dataset: str | None, own: OwnNetwork, device: str
) -> tuple[str, Graph, Model]:
    """The name of the graph, the graph and the model of a run.

    `own` are the names of a backbone and of a model of the user's own, if they are given again.
    """
    with importable(None if own == (None, None) else os.getcwd()):
        settings, model, trained_on = read_run(run, backbone=network_of_run(run, *own))
    if dataset is None and settings.dataset == IN_MEMORY:
        raise InputError(f"{run} was trained on a graph in memory; save it and give --dataset FILE")
    path = trained_on.get("path")
    if dataset is None and path is not None and not Path(path).exists():
        raise InputError(f"the graph of the run is missing: {path}; restore it, or give --dataset")
    kind = settings.training.feature_type
    graph = load(dataset or path or settings.dataset, device=pick_device(device), dtype=kind)
    made = settings.training.node_features
    if dataset is not None and made in OF_THESE_NODES:
        fits = made == "random" or graph.num_nodes == trained_on["num_nodes"]  # else: refused
        if fits and graph.fingerprint != trained_on.get("fingerprint"):
            say(f"graphfm: warning: {ELSEWHERE.format(made)}")
    elif dataset is None and graph.fingerprint != trained_on.get("fingerprint"):
        if settings.dataset.startswith("synthetic"):
            raise InputError(
                f"{settings.dataset} is another graph on {graph.device.type}: random numbers "
                "differ between kinds of device; give the --device that the run was trained on"
            )
        say(f"graphfm: warning: {settings.dataset} has changed since the run was made")
    return dataset or settings.dataset, graph, model


def _tell(chosen: Chosen, run: Path, out: Path, what: str, json: bool) -> None:
    if json:
        found = {"run": str(run), "dataset": chosen.name, "nodes": chosen.num_rows, "out": str(out)}
        print_json(found)
    else:
        say(f"{chosen.num_rows:,} {what} in {out}")
