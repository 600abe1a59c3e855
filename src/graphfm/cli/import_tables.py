"""The commands `graphfm import` and `graphfm export`."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from graphfm.cli.import_report import ImportBar, report_rows
from graphfm.cli.output import Json, print_json, print_rows, say
from graphfm.cli.shared_options import option
from graphfm.data.datasets import load
from graphfm.data.graph import Graph
from graphfm.data.sources.tables.encodings import ENCODINGS
from graphfm.data.sources.tables.export import FORMATS, export_tables
from graphfm.data.sources.tables.importer import import_graph, import_tables
from graphfm.data.sources.tables.request import (
    DUPLICATES,
    LOSSES,
    EdgeTable,
    NodeTable,
    Request,
    Split,
    read_request,
)
from graphfm.errors import InputError

Files = Annotated[list[str] | None, option("Files or globs; may be repeated.", "FILES")]
Text = str | None
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
BINARY = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def import_command(
    given: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="A TOML file, a FILE.npz, or a table of edges."),
    ] = None,
    *,
    out: Annotated[Path, option("The folder to make.", "FOLDER")],
    edges: Files = None,
    source: Annotated[Text, option("Column of an edge's source.", "COLUMN")] = None,
    target: Annotated[Text, option("Column of an edge's target.", "COLUMN")] = None,
    weight: Annotated[Text, option("Column of an edge's weight.", "COLUMN")] = None,
    undirected: Annotated[
        bool, typer.Option("--undirected", help="Each edge leads both ways.")
    ] = False,
    duplicates: Annotated[
        Text,
        option(
            "Edges that occur again: keep, drop (the largest weight counts) or sum.",
            "NAME",
            default="keep; drop with --undirected",
            names=DUPLICATES,
        ),
    ] = None,
    nodes: Files = None,
    id: Annotated[Text, option("Column of a node's id.", "COLUMN", default="id")] = None,
    label: Annotated[Text, option("Column of a node's label or labels.", "COLUMN")] = None,
    label_separator: Annotated[
        Text, option("What stands between many labels of a node.", "TEXT")
    ] = None,
    split: Annotated[
        Text, option("Column that holds train, val, test or nothing.", "COLUMN")
    ] = None,
    shares: Annotated[
        Text, option("Split by shares instead: train,val or train,val,test.", "0.6,0.2")
    ] = None,
    split_seed: Annotated[int, option("Seed of the split by shares.", "N")] = 0,
    stratified: Annotated[
        bool, typer.Option("--stratified", help="The same shares in each class.")
    ] = False,
    time: Annotated[
        Text, option("Split by shares along this column, oldest first.", "COLUMN")
    ] = None,
    feature: Annotated[
        list[str] | None,
        option(f"A feature and its encoding ({', '.join(ENCODINGS)}).", "COLUMN=NAME"),
    ] = None,
    missing: Annotated[
        list[str] | None, option("A text that means a missing value, such as NA.", "TEXT")
    ] = None,
    delimiter: Annotated[
        Text, option("What stands between columns of CSV.", "TEXT", default="by the file's ending")
    ] = None,
    allow: Annotated[
        Text, option(f"What may be lost: {', '.join(LOSSES)}.", "NAMES", names=LOSSES)
    ] = None,
    add_unknown: Annotated[
        bool, typer.Option("--add-unknown", help="Add nodes that only edges name.")
    ] = False,
    memory: Annotated[str, option("Memory to use.", "SIZE")] = "2GB",
    json: Json = False,
) -> None:
    """Make a graph of your tables: CSV, TSV, JSON lines (also .gz, .zst) or Parquet.

    Afterwards the folder is a dataset: graphfm train --dataset FOLDER.
    Nothing is lost without a word: see --allow. docs/your-graph.md has an example.
    """
    named = {
        "edges": edges, "source": source, "target": target, "weight": weight,
        "undirected": undirected, "duplicates": duplicates, "nodes": nodes, "id": id,
        "label": label, "label_separator": label_separator, "split": split, "shares": shares,
        "stratified": stratified, "time": time, "feature": feature, "missing": missing,
        "delimiter": delimiter, "allow": allow, "add_unknown": add_unknown,
    }  # fmt: skip
    limit, options = parse_size(memory), {key: value for key, value in named.items() if value}
    if given is not None and given.endswith(".npz"):
        _no_others(given, options)
        report = import_graph(Graph.from_npz(given), out)
    else:
        request = _request(given, options, split_seed)
        with ImportBar() as bar:
            report = import_tables(request, out, memory=limit, tell=bar.tell)
    if json:
        print_json({"out": str(out), **report})
        return
    print_rows(report_rows(report))
    say(f"to use it: graphfm train --dataset {out}")


import_command.__name__ = "import"


def export(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A FOLDER, FILE.npz or name.")],
    out: Annotated[Path, option("The folder to make.", "FOLDER")],
    format: Annotated[str, option("parquet or csv.", "NAME", names=FORMATS)] = "parquet",
    memory: Annotated[str, option("Memory to use.", "SIZE")] = "2GB",
    json: Json = False,
) -> None:
    """Write a graph as tables of nodes and edges, with a graph.toml that imports them again."""
    graph = load(dataset)
    export_tables(graph, out, format, parse_size(memory))
    if json:
        print_json({"out": str(out), "nodes": graph.num_nodes, "edges": graph.num_edges})
    else:
        say(f"{graph.num_nodes:,} nodes and {graph.num_edges:,} edges in {out}")


def parse_size(text: str) -> int:
    """2GB, 1.5 GiB or 800M in bytes."""
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)\s*([KMGT]?)(i?)B?", text.strip(), re.IGNORECASE)
    if found is None or (found[3] and not found[2]):
        raise InputError(f"the memory is {text!r}; expected a size such as 2GB or 800MB")
    unit = found[2].upper()
    return int(float(found[1]) * (BINARY if found[3] else UNITS)[unit])


def _no_others(given: str, options: dict[str, Any]) -> None:
    if options:
        name = next(iter(options)).replace("_", "-")
        raise InputError(f"{given} says all there is to import; leave --{name} out")


def _request(given: str | None, options: dict[str, Any], seed: int) -> Request:
    if given is not None and given.endswith(".toml"):
        _no_others(given, options)
        return read_request(Path(given))
    files = [*([given] if given else []), *options.get("edges", [])]
    both = {key: options[key] for key in ("delimiter",) if key in options}
    of_edges = ("source", "target", "weight", "undirected", "duplicates")
    edges = EdgeTable(files=tuple(files), **both, **_only(options, of_edges))
    nodes = NodeTable(**_only(options, ("id", "label", "label_separator")))
    nodes = replace(
        nodes,
        files=tuple(options.get("nodes", ())),
        split=_split(options, seed),
        features=dict(map(_feature, options.get("feature", ()))),
        missing=tuple(options.get("missing", ())),
        delimiter=options.get("delimiter") if "nodes" in options else None,
    )
    allowed = tuple(name for name in options.get("allow", "").split(",") if name)
    unknown = bool(options.get("add_unknown"))
    return Request(edges=edges, nodes=nodes, allow=allowed, add_unknown=unknown)


def _only(options: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {key: options[key] for key in names if key in options}


def _feature(text: str) -> tuple[str, str]:
    column, equals, encoding = text.rpartition("=")
    if not equals or not column:
        raise InputError(f"--feature is {text!r}; expected COLUMN=ENCODING, as in age=standard")
    return column, encoding


def _split(options: dict[str, Any], seed: int) -> str | Split | None:
    shares, column = options.get("shares"), options.get("split")
    if shares is None:
        for name in ("stratified", "time"):
            if name in options:
                raise InputError(f"--{name} needs shares; give --shares, as in --shares 0.6,0.2")
        return column
    if column is not None:
        raise InputError("--split and --shares were both given; give one of them")
    try:
        numbers = [float(number) for number in shares.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3):
        raise InputError(f"--shares is {shares!r}; expected train,val or train,val,test")
    return Split(
        train=numbers[0],
        val=numbers[1],
        test=numbers[2] if len(numbers) == 3 else None,
        seed=seed,
        stratified="stratified" in options,
        time=options.get("time"),
    )
