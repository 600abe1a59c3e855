"""The commands `graphfm import` and `graphfm export`."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from graphfm.cli.import_options import make_request, no_others, with_options
from graphfm.cli.import_report import ImportBar, next_step, report_rows
from graphfm.cli.output import Json, print_json, print_rows, say
from graphfm.cli.shared_options import option
from graphfm.data.datasets import is_folder, load
from graphfm.data.sources.folder_writer import import_graph
from graphfm.data.sources.foreign import kind_of
from graphfm.data.sources.tables.export import FORMATS, export_tables
from graphfm.data.sources.tables.importer import import_tables
from graphfm.errors import InputError

DECIMAL = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
BINARY = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
Memory = Annotated[str, option("Memory to use, such as 2GB; at least 512MiB.", "SIZE")]


@with_options
def import_command(
    given: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH", help="A TOML file, a table of edges, or a graph in another format."
        ),
    ] = None,
    *,
    out: Annotated[Path, option("The folder to make.", "FOLDER")],
    memory: Memory = "2GB",
    json: Json = False,
    **options: Any,
) -> None:
    """Make a graph of your tables: CSV, TSV, JSON lines (also .gz, .zst) or Parquet.

    A graph in another format (.npz, OGB, GraphSAINT, .npy, .mtx, METIS, edge lists) is converted.
    Afterwards the folder is a dataset: graphfm train --dataset FOLDER.
    Nothing is lost without a word: see --allow. docs/your-graph.md has an example.
    """
    limit = parse_size(memory)
    if given is not None and is_graph(given):
        no_others(given, options)
        report = import_graph(load(given), out)
    else:
        request = make_request(given, options)
        with ImportBar() as bar:
            report = import_tables(request, out, memory=limit, tell=bar.tell)
    if json:
        print_json({"out": str(out), **report})
        return
    print_rows(report_rows(report))
    say(next_step(report, out))


def export(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A FOLDER, FILE.npz or name.")],
    out: Annotated[Path, option("The folder to make.", "FOLDER")],
    format: Annotated[str, option("parquet or csv.", "NAME", names=FORMATS)] = "parquet",
    memory: Memory = "2GB",
    json: Json = False,
) -> None:
    """Write a graph as tables of nodes and edges, with a graph.toml that imports them again."""
    limit, graph = parse_size(memory), load(dataset)
    export_tables(graph, out, format, limit)
    if json:
        print_json({"out": str(out), "nodes": graph.num_nodes, "edges": graph.num_edges})
    else:
        say(f"{graph.num_nodes:,} nodes and {graph.num_edges:,} edges in {out}")


def is_graph(given: str) -> bool:
    """True if a path holds a whole graph, as docs/formats.md lists them; .tsv is a table here."""
    if is_folder(given):
        raise InputError(f"{given} is a graph in a folder already; use it with --dataset {given}")
    table = given.lower().removesuffix(".gz").endswith(".tsv")
    return given.endswith(".npz") or (not table and kind_of(Path(given)) is not None)


def parse_size(text: str) -> int:
    """2GB, 1.5 GiB or 800M in bytes."""
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)\s*([KMGT]?)(i?)B?", text.strip(), re.IGNORECASE)
    if found is None or (found[3] and not found[2]):
        raise InputError(f"the memory is {text!r}; expected a size such as 2GB or 800MB")
    unit = found[2].upper()
    return int(float(found[1]) * (BINARY if found[3] else DECIMAL)[unit])
