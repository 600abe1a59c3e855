"""Labels, targets of a regression, and splits from columns of the table of nodes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from graphfm.data.graph import SPLITS
from graphfm.data.graph.labels import labelled
from graphfm.data.sources.tables.database import Database, as_text
from graphfm.data.sources.tables.encodings import GAP, check_castable, number_sql
from graphfm.data.sources.tables.nodes import NUL, refuse
from graphfm.data.sources.tables.request import NodeTable, Request, Split
from graphfm.errors import InputError, counted

Array = np.ndarray[Any, Any]
MOST_CLASSES = 1 << 15
MANY_NUMBERS, MANY_FRACTIONS = 200, 20  # so many classes that are numbers may be amounts
log = logging.getLogger("graphfm")
MOST_BYTES = 1 << 34  # of labels, where a node may have many
NAMES = {
    "train": 0, "training": 0, "val": 1, "valid": 1, "validation": 1, "dev": 1, "test": 2,
    "testing": 2, "none": -1,
}  # fmt: skip


def read_labels(
    db: Database, nodes: NodeTable, kind: str, num_nodes: int
) -> tuple[Array, list[str]]:
    """Labels of all nodes, -1 where they are missing, and the names of the classes."""
    if kind.endswith("][]") or kind.startswith(("STRUCT", "MAP", "BLOB")):
        raise InputError(f"the label holds {kind} values; expected texts, numbers or lists of them")
    if kind.endswith("]"):
        element = kind.partition("[")[0]
        as_texts = f"list_transform(label, lambda v: {as_text('v', element)})"
        db.run(f"CREATE TABLE many AS SELECT {as_texts} AS label FROM node")
    elif nodes.label_separator is not None:
        split = "list_filter(string_split(label, ?), lambda v: v <> '')"
        db.run(f"CREATE TABLE many AS SELECT {split} AS label FROM node", [nodes.label_separator])
    else:
        classes = _classes(db, nodes, "(SELECT label AS v FROM node)")
        return _one_label(db, num_nodes), classes
    classes = _classes(db, nodes, "(SELECT unnest(label) AS v FROM many)")
    if num_nodes * len(classes) > MOST_BYTES:
        raise InputError(f"{num_nodes:,} nodes with {len(classes):,} labels each are too many")
    return _many_labels(db, num_nodes, len(classes)), classes


def _one_label(db: Database, num_nodes: int) -> Array:
    y = np.full(num_nodes, -1, np.int64)
    code = "CASE WHEN label IS NULL THEN -1 ELSE enum_code(label::label_class) END::INTEGER"
    for start, end, columns in db.pieces(f"{code} AS code", "node"):
        y[start:end] = np.asarray(columns["code"])
    return y


def _many_labels(db: Database, num_nodes: int, num_classes: int) -> Array:
    y = np.full((num_nodes, num_classes), -1, np.int8)
    for start, end, columns in db.pieces("label IS NOT NULL AS known", "many"):
        y[start:end][np.asarray(columns["known"]).astype(bool)] = 0
        where = f"FROM many WHERE rowid >= {start} AND rowid < {end}"
        found = db.arrays(
            "SELECT node, enum_code(v::label_class)::INTEGER AS code FROM "
            f"(SELECT rowid AS node, unnest(label) AS v {where}) WHERE v IS NOT NULL"
        )
        y[np.asarray(found["node"]), np.asarray(found["code"])] = 1
    return y


def read_targets(
    db: Database, nodes: NodeTable, columns: Mapping[str, str], num_nodes: int
) -> Array:
    """The numbers that a regression is to find, in float32; NaN where they are missing."""
    y = np.full((num_nodes, len(nodes.regress)), np.nan, np.float32)
    for number, name in enumerate(nodes.regress):
        if columns[name].endswith("]"):
            raise InputError(f"{name!r} holds lists; a regression expects a column per target")
        check_castable(db, name, "regress", f"y{number}", "DOUBLE", GAP)
        for start, end, read in db.pieces(f"{number_sql(f'y{number}')} AS v", "node"):
            values = np.ma.filled(read["v"].astype(np.float64), np.nan)
            if (np.abs(values) > np.finfo(np.float32).max).any():
                raise InputError(f"{name!r} holds a number above 3e38; scale the column")
            y[start:end, number] = values
        if np.isnan(y[:, number]).all():
            raise InputError(f"{name!r} has no values; a regression expects some numbers")
    return y[:, 0] if y.shape[1] == 1 else y


def _classes(db: Database, nodes: NodeTable, source: str) -> list[str]:
    """The names of the classes, in order; also makes the type `label_class` of them."""
    rows = db.run(
        f"SELECT DISTINCT v FROM {source} WHERE v IS NOT NULL ORDER BY TRY_CAST(v AS DOUBLE), v "
        f"LIMIT {MOST_CLASSES + 1}"
    )
    found = [str(row[0]) for row in rows]
    if any("\0" in name for name in found):
        raise InputError(NUL.format(f"the label {nodes.label!r}"))
    advice = f"if they are amounts, give --regress {nodes.label} in place of --label"
    if (not found and nodes.classes is None) or len(found) > MOST_CLASSES:
        raise InputError(
            f"the label {nodes.label!r} has {'no' if not found else f'over {MOST_CLASSES:,}'} "
            f"values; expected 1 to {MOST_CLASSES:,} classes" + (f"; {advice}" if found else "")
        )
    if nodes.classes is None and _are_amounts(found):
        log.warning(
            "the label %r has %d distinct numbers, and each becomes a class; %s",
            nodes.label, len(found), advice,
        )  # fmt: skip
    if unknown := sorted(set(found) - set(nodes.classes or found)):
        raise InputError(f"the label {unknown[0]!r} is not among the classes that were given")
    classes = list(nodes.classes or found)
    if len(set(classes)) < len(classes):
        raise InputError("a class was given twice; give each once")
    db.run("CREATE TABLE class AS SELECT unnest(?::VARCHAR[]) AS name", [classes])
    db.run("CREATE TYPE label_class AS ENUM (SELECT name FROM class)")
    return classes


def _are_amounts(names: list[str]) -> bool:
    """True if the names of classes look like measured numbers: many, above all with fractions."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return False
    whole = all(number.is_integer() for number in numbers)
    return len(numbers) >= (MANY_NUMBERS if whole else MANY_FRACTIONS)


def read_split(db: Database, request: Request, y: Array) -> tuple[Array, int]:
    """The part of each node, and how many nodes left the split because they have no label."""
    rule = request.nodes.split
    has_label = labelled(torch.from_numpy(y)).numpy()
    if rule is None:
        return np.full(len(y), -1, np.int8), 0
    if isinstance(rule, str):
        split = _split_column(db, rule, len(y))
    elif rule.time is not None:
        split = _by_time(db, rule, has_label)
    else:
        split = _by_shares(rule, y, has_label)
    if count := int(((split >= 0) & ~has_label).sum()):
        who = counted(count, "node of the split has", "nodes of the split have")
        refuse(request, "unlabelled", f"{who} no label")
        split[~has_label] = -1
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


def _by_shares(rule: Split, y: Array, has_label: Array) -> Array:
    if rule.stratified and y.ndim == 2:
        raise InputError("a stratified split needs one label per node; leave stratified out")
    split = np.full(len(y), -1, np.int8)
    dice = np.random.default_rng(rule.seed)
    groups = dice.permutation(np.flatnonzero(has_label))
    pieces = [groups]
    if rule.stratified:
        groups = groups[np.argsort(y[groups], kind="stable")]
        pieces = np.split(groups, np.flatnonzero(np.diff(y[groups])) + 1)
    for ids in pieces:
        train, val, test = _cuts(rule, len(ids))
        split[ids[:train]], split[ids[train:val]], split[ids[val:test]] = 0, 1, 2
    return split


def _by_time(db: Database, rule: Split, has_label: Array) -> Array:
    """Nodes of the same time stay together, so shares are met as nearly as times allow."""
    number = "TRY_CAST(time AS DOUBLE)"
    if db.one(f"SELECT count(*) FILTER (time IS NOT NULL AND {number} IS NULL) FROM node")[0]:
        number = "epoch(TRY_CAST(time AS TIMESTAMPTZ))"  # without a time zone it is UTC
    wrong = f"time IS NULL OR {number} IS NULL OR isnan({number})"
    if found := db.run(f"SELECT CAST(time AS VARCHAR) FROM node WHERE {wrong} LIMIT 1"):
        raise InputError(
            f"the time {rule.time!r} holds {found[0][0]!r}; expected numbers, dates or times "
            "everywhere"
        )
    times = np.zeros(len(has_label))
    for start, end, columns in db.pieces(f"{number} AS v", "node"):
        times[start:end] = np.asarray(columns["v"])
    ordered = np.sort(times[has_label])
    split = np.full(len(has_label), -1, np.int8)
    for part, end in reversed(list(enumerate(_cuts(rule, len(ordered))))):
        if end:
            split[has_label & (times <= ordered[end - 1])] = part
    return split
