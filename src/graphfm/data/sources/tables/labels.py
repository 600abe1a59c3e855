"""Labels and splits from columns: class numbers in the order of their names, and 0, 1, 2 or -1."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphfm.data.graph import SPLITS
from graphfm.data.sources.tables.database import Database
from graphfm.data.sources.tables.nodes import refuse
from graphfm.data.sources.tables.request import NodeTable, Request, Split
from graphfm.errors import InputError

Array = np.ndarray[Any, Any]
MOST_CLASSES = 1 << 15
MOST_BYTES = 1 << 34  # of labels, where a node may have many
NAMES = {
    "train": 0, "training": 0, "val": 1, "valid": 1, "validation": 1, "dev": 1, "test": 2,
    "testing": 2, "none": -1,
}  # fmt: skip


def read_labels(
    db: Database, nodes: NodeTable, kind: str, num_nodes: int
) -> tuple[Array, list[str]]:
    """Labels of all nodes, -1 where they are missing, and the names of the classes."""
    many = kind.endswith("]") or nodes.label_separator is not None
    if kind.endswith("][]") or kind.startswith(("STRUCT", "MAP", "BLOB")):
        raise InputError(f"the label holds {kind} values; expected texts, numbers or lists of them")
    labels = (
        "CAST(label AS VARCHAR[])"
        if kind.endswith("]")
        else "list_filter(string_split(label, ?), lambda v: v <> '')"
    )
    values = [nodes.label_separator] if many and not kind.endswith("]") else []
    if many and not kind.endswith("]"):
        db.run(f"CREATE TABLE many AS SELECT {labels} AS label FROM node", values)
    elif many:
        db.run(f"CREATE TABLE many AS SELECT {labels} AS label FROM node")
    single = "CAST(label AS VARCHAR)"
    source = (
        "(SELECT unnest(label) AS v FROM many)" if many else f"(SELECT {single} AS v FROM node)"
    )
    classes = _classes(db, nodes, source)
    db.run("CREATE TABLE class AS SELECT unnest(?::VARCHAR[]) AS name", [classes])
    db.run("CREATE TYPE label_class AS ENUM (SELECT name FROM class)")
    if not many:
        y = np.full(num_nodes, -1, np.int64)
        code = f"CASE WHEN label IS NULL THEN -1 ELSE enum_code({single}::label_class) END::INTEGER"
        for start, end, columns in db.pieces(f"{code} AS code", "node"):
            y[start:end] = np.asarray(columns["code"])
        return y, classes
    if num_nodes * len(classes) > MOST_BYTES:
        raise InputError(f"{num_nodes:,} nodes with {len(classes):,} labels each are too many")
    y = np.full((num_nodes, len(classes)), -1, np.int8)
    for start, end, columns in db.pieces("label IS NOT NULL AS known", "many"):
        y[start:end][np.asarray(columns["known"]).astype(bool)] = 0
        where = f"FROM many WHERE rowid >= {start} AND rowid < {end}"
        found = db.arrays(
            "SELECT node, enum_code(v::label_class)::INTEGER AS code FROM "
            f"(SELECT rowid AS node, unnest(label) AS v {where}) WHERE v IS NOT NULL"
        )
        y[np.asarray(found["node"]), np.asarray(found["code"])] = 1
    return y, classes


def _classes(db: Database, nodes: NodeTable, source: str) -> list[str]:
    rows = db.run(
        f"SELECT DISTINCT v FROM {source} WHERE v IS NOT NULL ORDER BY TRY_CAST(v AS DOUBLE), v "
        f"LIMIT {MOST_CLASSES + 1}"
    )
    found = [str(row[0]) for row in rows]
    if (not found and nodes.classes is None) or len(found) > MOST_CLASSES:
        raise InputError(
            f"the label {nodes.label!r} has {'no' if not found else f'over {MOST_CLASSES:,}'} "
            f"values; expected 1 to {MOST_CLASSES:,} classes; numbers that are no classes cannot "
            "be imported as labels"
        )
    if nodes.classes is None:
        return found
    if unknown := sorted(set(found) - set(nodes.classes)):
        raise InputError(f"the label {unknown[0]!r} is not among the classes that were given")
    if len(set(nodes.classes)) < len(nodes.classes):
        raise InputError("a class was given twice; give each once")
    return list(nodes.classes)


def read_split(db: Database, request: Request, y: Array) -> tuple[Array, int]:
    """The part of each node, and how many nodes left the split because they have no label."""
    rule = request.nodes.split
    labelled = np.asarray((y.reshape(len(y), -1) >= 0).all(axis=1))
    if rule is None:
        return np.full(len(y), -1, np.int8), 0
    if isinstance(rule, str):
        split = _split_column(db, rule, len(y))
    elif rule.time is not None:
        split = _by_time(db, rule, labelled)
    else:
        split = _by_shares(rule, y, labelled)
    if count := int(((split >= 0) & ~labelled).sum()):
        refuse(request, "unlabelled", f"{count:,} nodes are in the split but have no label")
        split[~labelled] = -1
    for part, name in enumerate(SPLITS[:2]):
        if not (split == part).any():
            raise InputError(f"the split has no {name} nodes; expected some with a label")
    return split, count


def _split_column(db: Database, name: str, num_nodes: int) -> Array:
    found = db.run(
        "SELECT DISTINCT lower(trim(CAST(split AS VARCHAR))) FROM node WHERE split IS NOT NULL "
        "LIMIT 50"
    )
    if wrong := [str(row[0]) for row in found if row[0] not in NAMES]:
        raise InputError(
            f"the split {name!r} holds {wrong[0]!r}; expected train, val, test or nothing; or "
            "split by shares"
        )
    cases = " ".join(f"WHEN '{text}' THEN {part}" for text, part in NAMES.items())
    code = f"CASE lower(trim(CAST(split AS VARCHAR))) {cases} ELSE -1 END::INTEGER"
    split = np.full(num_nodes, -1, np.int8)
    for start, end, columns in db.pieces(f"{code} AS code", "node"):
        split[start:end] = np.asarray(columns["code"])
    return split


def _cuts(rule: Split, count: int) -> tuple[int, int, int]:
    """Ends of the training, validation and test nodes among so many."""
    train = round(rule.train * count)
    val = min(round((rule.train + rule.val) * count), count)
    test = count if rule.test is None else round((rule.train + rule.val + rule.test) * count)
    return train, val, min(test, count)


def _by_shares(rule: Split, y: Array, labelled: Array) -> Array:
    if rule.stratified and y.ndim == 2:
        raise InputError("a stratified split needs one label per node; leave stratified out")
    split = np.full(len(y), -1, np.int8)
    dice = np.random.default_rng(rule.seed)
    groups = dice.permutation(np.flatnonzero(labelled))
    pieces = [groups]
    if rule.stratified:
        groups = groups[np.argsort(y[groups], kind="stable")]
        pieces = np.split(groups, np.flatnonzero(np.diff(y[groups])) + 1)
    for ids in pieces:
        train, val, test = _cuts(rule, len(ids))
        split[ids[:train]], split[ids[train:val]], split[ids[val:test]] = 0, 1, 2
    return split


def _by_time(db: Database, rule: Split, labelled: Array) -> Array:
    """Nodes of the same time stay together, so shares are met as nearly as times allow."""
    number = "TRY_CAST(time AS DOUBLE)"
    if db.one(f"SELECT count(*) FILTER (time IS NOT NULL AND {number} IS NULL) FROM node")[0]:
        number = "epoch(TRY_CAST(time AS TIMESTAMP))"
    wrong = f"time IS NULL OR {number} IS NULL OR isnan({number})"
    if found := db.run(f"SELECT CAST(time AS VARCHAR) FROM node WHERE {wrong} LIMIT 1"):
        raise InputError(
            f"the time {rule.time!r} holds {found[0][0]!r}; expected numbers, dates or times "
            "everywhere"
        )
    times = np.zeros(len(labelled))
    for start, end, columns in db.pieces(f"{number} AS v", "node"):
        times[start:end] = np.asarray(columns["v"])
    ordered = np.sort(times[labelled])
    split = np.full(len(labelled), -1, np.int8)
    for part, end in reversed(list(enumerate(_cuts(rule, len(ordered))))):
        if end:
            split[labelled & (times <= ordered[end - 1])] = part
    return split
