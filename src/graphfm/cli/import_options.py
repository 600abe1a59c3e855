"""The options of `graphfm import`, and the request that they make."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from graphfm.cli.shared_options import option
from graphfm.data.sources.tables.encodings import ENCODINGS
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

Text, Texts = str | None, list[str] | None
# The type, the default and the declaration of each option.
OPTIONS: dict[str, tuple[Any, Any, Any]] = {
    "edges": (Texts, None, option("Tables of edges: a file or a glob; may be repeated.", "FILES")),
    "source": (Text, None, option("Column of an edge's source.", "COLUMN", default="source")),
    "target": (Text, None, option("Column of an edge's target.", "COLUMN", default="target")),
    "weight": (Text, None, option("Column of an edge's weight.", "COLUMN")),
    "undirected": (bool, False, typer.Option("--undirected", help="Each edge leads both ways.")),
    "duplicates": (
        Text,
        None,
        option(
            "Edges that occur again: keep, drop (the largest weight counts) or sum.",
            "NAME",
            default="keep; drop with --undirected",
            names=DUPLICATES,
        ),
    ),
    "nodes": (Texts, None, option("Tables of nodes: a file or a glob; may be repeated.", "FILES")),
    "id": (Text, None, option("Column of a node's id.", "COLUMN", default="id")),
    "label": (Text, None, option("Column of a node's label or labels.", "COLUMN")),
    "regress": (
        Texts,
        None,
        option("Column of numbers to predict, in place of --label; may be repeated.", "COLUMN"),
    ),
    "label_separator": (Text, None, option("What stands between labels of a node.", "TEXT")),
    "split": (Text, None, option("Column that holds train, val, test or nothing.", "COLUMN")),
    "shares": (Text, None, option("Split by shares: train,val or train,val,test.", "0.6,0.2")),
    "split_seed": (int, 0, option("Seed of a split by shares.", "N")),
    "stratified": (bool, False, typer.Option("--stratified", help="The same shares per class.")),
    "time": (Text, None, option("Split by shares along this column, oldest first.", "COLUMN")),
    "feature": (
        Texts,
        None,
        option(f"A feature and its encoding ({', '.join(ENCODINGS)}).", "COLUMN=NAME"),
    ),
    "missing": (Texts, None, option("A text that means a missing value, such as NA.", "TEXT")),
    "delimiter": (
        Text,
        None,
        option("What stands between columns of CSV.", "TEXT", default="by the line of names"),
    ),
    "allow": (Text, None, option(f"What may be lost: {', '.join(LOSSES)}.", "NAMES", names=LOSSES)),
    "add_unknown": (
        bool,
        False,
        typer.Option("--add-unknown", help="Add nodes that only edges name."),
    ),
}


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options in place of its `**options`."""
    signature = inspect.signature(command)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    more = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, told]
        )
        for name, (kind, default, told) in OPTIONS.items()
    ]
    command.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
    command.__name__ = "import"
    return command


def no_others(given: str, options: dict[str, Any]) -> None:
    """Refuse options beside a file that needs none."""
    for name, value in options.items():
        if value != OPTIONS[name][1] and value:
            shown = name.replace("_", "-")
            raise InputError(f"{given} says all there is to import; leave --{shown} out")


def make_request(given: str | None, options: dict[str, Any]) -> Request:
    """The request of a TOML file, or of options with a table of edges before them."""
    if given is not None and given.endswith(".toml"):
        no_others(given, options)
        return read_request(Path(given))
    told = {key: value for key, value in options.items() if value}
    files = [*([given] if given else []), *told.get("edges", [])]
    of_edges = ("source", "target", "weight", "undirected", "duplicates", "delimiter")
    of_nodes = ("id", "label", "label_separator", *(("delimiter",) if "nodes" in told else ()))
    features = [_feature(text) for text in told.get("feature", ())]
    if len(dict(features)) < len(features):
        raise InputError("a column was given two encodings by --feature; give it one")
    return Request(
        edges=EdgeTable(files=tuple(files), **_only(told, of_edges)),
        nodes=NodeTable(
            files=tuple(told.get("nodes", ())),
            split=_split(told),
            features=dict(features),
            missing=tuple(told.get("missing", ())),
            regress=tuple(told.get("regress", ())),
            **_only(told, of_nodes),
        ),
        allow=tuple(name for name in told.get("allow", "").split(",") if name),
        add_unknown="add_unknown" in told,
    )


def _only(options: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {key: options[key] for key in names if key in options}


def _feature(text: str) -> tuple[str, str]:
    column, equals, encoding = text.rpartition("=")
    if not equals or not column:
        raise InputError(f"--feature is {text!r}; expected COLUMN=ENCODING, as in age=standard")
    return column, encoding


def _split(options: dict[str, Any]) -> str | Split | None:
    shares, column = options.get("shares"), options.get("split")
    if shares is None:
        for name in ("stratified", "time", "split_seed"):
            if name in options:
                shown = name.replace("_", "-")
                raise InputError(f"--{shown} needs shares; give --shares, as in --shares 0.6,0.2")
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
        seed=options.get("split_seed", 0),
        stratified="stratified" in options,
        time=options.get("time"),
    )
