"""What to import: files, columns, encodings, split, and what may be lost. From TOML or options."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from graphfm.data.sources.tables.table_files import is_csv
from graphfm.errors import InputError, did_you_mean, known_name
from graphfm.files import check_file

DUPLICATES = ("keep", "drop", "sum")
LOSSES = {
    "unknown-ids": "edges whose node is not in the nodes table are left out",
    "missing-ids": "rows without an id are left out",
    "duplicate-ids": "of several rows with the same id the first counts",
    "bad-weights": "edges whose weight is missing, zero, negative or too large are left out",
    "unlabelled": "nodes of the split without a label leave the split",
}
OF_EDGES = ("source", "target", "weight", "undirected", "duplicates", "delimiter")  # kept
OF_NODES = ("id", "missing", "delimiter")
TOP = ("edges", "nodes", "allow", "add_unknown")


@dataclass(frozen=True, kw_only=True)
class EdgeTable:
    """Where the edges are, and how they are meant."""

    files: tuple[str, ...] = ()
    source: str = "source"
    target: str = "target"
    weight: str | None = None
    undirected: bool = False
    duplicates: str | None = None  # None: kept where directed, once per pair where undirected
    delimiter: str | None = None

    def __post_init__(self) -> None:
        if self.duplicates is not None:
            known_name("way with duplicates", self.duplicates, DUPLICATES)
        if self.duplicates == "sum" and self.weight is None:
            raise InputError("duplicates are to be summed, but there is no weight; name its column")

    @property
    def duplicate_rule(self) -> str:
        """What happens to edges that occur again."""
        return self.duplicates or ("drop" if self.undirected else "keep")


@dataclass(frozen=True, kw_only=True)
class Split:
    """A split by shares: at random, in equal shares of each class, or by time."""

    train: float
    val: float
    test: float | None = None  # None: the rest
    seed: int = 0
    stratified: bool = False
    time: str | None = None  # a column: the oldest nodes train, the newest test

    def __post_init__(self) -> None:
        shares = [self.train, self.val, self.test or 0.0]
        total = math.fsum(shares)
        if min(shares) < 0 or not self.train or not self.val or not total <= 1 + 1e-9:
            raise InputError(
                f"the shares of the split are {shares}; expected positive shares for training and "
                "validation that add up to 1 at most"
            )
        if self.time is not None and self.stratified:
            raise InputError("a split is by time or stratified, not both; leave one out")
        if not 0 <= self.seed < 1 << 32:
            raise InputError(f"the seed of the split is {self.seed}; expected 0 to {(1 << 32) - 1}")


@dataclass(frozen=True, kw_only=True)
class NodeTable:
    """Where the nodes are, and what their columns mean."""

    files: tuple[str, ...] = ()
    id: str = "id"
    label: str | None = None
    label_separator: str | None = None  # for many labels in one text
    regress: tuple[str, ...] = ()  # columns of numbers to predict, in place of a label
    classes: tuple[str, ...] | None = None  # the order of the classes, or names of the targets
    split: str | Split | None = None
    features: Mapping[str, str] = field(default_factory=dict)  # column to encoding
    missing: tuple[str, ...] = ()  # texts that mean a missing value
    delimiter: str | None = None

    def __post_init__(self) -> None:
        if self.regress and self.label is not None:
            raise InputError("a label is for classes and regress for numbers; give one of them")
        if len(set(self.regress)) < len(self.regress):
            raise InputError("regress names a column twice; name each once")
        if self.regress and isinstance(self.split, Split) and self.split.stratified:
            raise InputError("a stratified split needs classes, not regress; leave stratified out")
        if self.regress and self.classes is not None and len(self.classes) != len(self.regress):
            raise InputError("classes must name each column of regress, or be left out")
        if self.split is not None and self.label is None and not self.regress:
            raise InputError(
                "a split is one of labelled nodes, but no label was given; name its column with "
                "--label, or with --regress for numbers"
            )
        if self.label_separator is not None and self.label is None:
            raise InputError("label_separator is given without a label; name the label's column")


@dataclass(frozen=True, kw_only=True)
class Request:
    """A whole import."""

    edges: EdgeTable
    nodes: NodeTable = NodeTable()
    allow: tuple[str, ...] = ()
    add_unknown: bool = False
    joins: bool = False  # the nodes and edges join a graph, where nothing may be left out

    def __post_init__(self) -> None:
        for name in self.allow:
            known_name("loss to allow", name, LOSSES)
        if not self.edges.files and not self.joins:
            raise InputError("no edges were given; give a file with --edges, or a TOML file")
        given = [item.name for item in fields(NodeTable) if item.name not in ("files", "id")]
        default = NodeTable()
        named = [name for name in given if getattr(self.nodes, name) != getattr(default, name)]
        if not self.nodes.files and named:
            raise InputError(f"{named[0]} is a matter of nodes, but no nodes were given; add them")
        if self.add_unknown and "unknown-ids" in self.allow:
            raise InputError("unknown ids are either added or left out; leave one option away")

    def kept(self) -> dict[str, Any]:
        """What `graph.json` keeps, so that further tables with the same columns can be read."""
        tables = (("edges", self.edges, OF_EDGES), ("nodes", self.nodes, OF_NODES))
        return {
            name: {key: value for key in keys if (value := getattr(table, key)) is not None}
            for name, table, keys in tables
        }


def joining_request(
    kept: Mapping[str, Any], nodes: Sequence[str], edges: Sequence[str], features: Mapping[str, str]
) -> Request:
    """The request for new tables with the columns that `Request.kept` has kept."""
    own = {
        name: _checked({**_as(kept.get(name, {}), dict, name), "files": list(files)}, kind, name)
        for name, kind, files in (("edges", EdgeTable, edges), ("nodes", NodeTable, nodes))
    }
    for table in own.values():  # another kind of file may follow one with a delimiter
        if not all(is_csv(text) for text in table["files"]):
            table.pop("delimiter", None)
    return Request(
        edges=EdgeTable(**own["edges"]), nodes=NodeTable(**own["nodes"], features=features),
        joins=True,
    )  # fmt: skip


def read_request(path: Path) -> Request:
    """Read a TOML file; its globs start at its own folder."""
    try:
        check_file(path)
        with path.open("rb") as stream:
            content = tomllib.load(stream)
        return _request(content, path.parent)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not TOML: {error}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _request(content: Mapping[str, Any], folder: Path) -> Request:
    _known_keys(content, TOP, "")
    edges = _table(content.get("edges", {}), EdgeTable, "edges", folder)
    nodes = dict(_table(content.get("nodes", {}), NodeTable, "nodes", folder))
    if isinstance(nodes.get("split"), dict):
        split = nodes["split"]
        if not {"train", "val"} <= set(split):
            raise InputError("nodes.split has no train or no val; expected the share of each")
        nodes["split"] = Split(**_checked(split, Split, "nodes.split"))
    features = nodes.get("features", {})
    if not all(isinstance(name, str) for name in features.values()):
        raise InputError("nodes.features gives each column the name of an encoding, as a text")
    return Request(
        edges=EdgeTable(**edges),
        nodes=NodeTable(**nodes),
        allow=_texts(content.get("allow", []), "allow"),
        add_unknown=_as(content.get("add_unknown", False), bool, "add_unknown"),
    )


def _table(content: Any, kind: type, name: str, folder: Path) -> dict[str, Any]:
    checked = _checked(_as(content, dict, name), kind, name)
    if "files" in checked:
        checked["files"] = tuple(
            text if "://" in text else str(folder / text) for text in checked["files"]
        )
    return checked


def _checked(content: Mapping[str, Any], kind: type, name: str) -> dict[str, Any]:
    """The values of a TOML table, each of the type that its field has."""
    _known_keys(content, [item.name for item in fields(kind)], f"{name}.")
    types = {item.name: str(item.type) for item in fields(kind)}
    checked: dict[str, Any] = {}
    for key, value in content.items():
        where, kind_name = f"{name}.{key}", types[key]
        if kind_name.startswith("tuple"):
            checked[key] = _texts(value, where)
        elif kind_name.startswith("float"):
            checked[key] = float(_as(value, (int, float), where))
        elif "Mapping" in kind_name or (key == "split" and isinstance(value, dict)):
            checked[key] = _as(value, dict, where)
        else:
            wanted = {"bool": bool, "int": int}.get(kind_name, str)
            checked[key] = _as(value, wanted, where)
    return checked


def _known_keys(content: Mapping[str, Any], known: Any, prefix: str) -> None:
    for key in content:
        if key not in known:
            near = did_you_mean(key, known)
            raise InputError(f"unknown key {prefix}{key}; expected {', '.join(known)}{near}")


def _texts(value: Any, name: str) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(text, str) for text in values):
        raise InputError(f"{name} is {value!r}; expected a text or a list of texts")
    return tuple(values)


def _as(value: Any, kind: Any, name: str) -> Any:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        names = {dict: "a table", str: "a text", bool: "true or false", int: "a whole number"}
        wanted = names.get(kinds[0] if len(kinds) == 1 else float, "a number")
        raise InputError(f"{name} is {value!r}; expected {wanted}")
    return value
