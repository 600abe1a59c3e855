"""Encodings that a graph keeps, and which values of new rows they can take."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from graphfm.data.graph import Graph
from graphfm.data.sources.tables.database import Database
from graphfm.data.sources.tables.encodings import (
    ENCODINGS,
    Encoding,
    check_castable,
    encode,
    is_list,
    number_sql,
)
from graphfm.errors import InputError, counted, known_name

HAVE = ("new row has", "new rows have")
log = logging.getLogger("graphfm")


def kept_encodings(graph: Graph) -> list[Encoding]:
    """The fitted encodings of a graph, in the order of its features; none: the in-degree."""
    kept = graph.meta.get("encodings")
    if not isinstance(kept, list) or graph.node_names is None:
        raise InputError(
            "nodes cannot join this graph: it keeps no encodings of its features, because it was "
            "not made of tables by 'graphfm import'"
        )
    try:
        encodings = [_encoding(entry) for entry in kept]
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise InputError(f"the encodings in graph.json are damaged ({error})") from None
    width = sum(encoding.width for encoding in encodings) or 1
    if width != graph.num_features:
        raise InputError(
            f"nodes cannot join this graph: its encodings make {width} features, but it has "
            f"{graph.num_features}"
        )
    return encodings


def _encoding(entry: dict[str, Any]) -> Encoding:
    """One encoding as `graph.json` keeps it; an error says what is wrong with it."""
    own = Encoding(**entry)
    known_name("encoding", own.encoding, ENCODINGS)
    if not isinstance(own.column, str) or type(own.width) is not int or own.width < 1:
        raise ValueError(f"the width of {own.column!r} is {own.width!r}")
    sizes = {"one-hot": "values", "buckets": "bounds"}
    widths = {own.width}
    if own.encoding in sizes:
        widths.add(len(own.fitted[sizes[own.encoding]]) + (own.encoding == "buckets"))
    if not is_list(own):  # encoding a value shows whether all that it needs was kept
        widths.add(encode(own, np.zeros(1), np.zeros(1, bool)).shape[1])
    if len(widths) > 1:
        raise ValueError(f"the width of {own.column!r} is {own.width}, but its values differ")
    return own


def check_new_values(db: Database, encoding: Encoding, number: int, kind: str) -> None:
    """Refuse new values that a fitted encoding cannot take; warn of those that it has not seen."""
    name, how, place = encoding.column, encoding.encoding, f"f{number}"
    if is_list(encoding) != kind.endswith("]"):
        held, expected = ("single values", "lists") if is_list(encoding) else ("lists", "no lists")
        raise InputError(f"{name!r} holds {held}; expected {expected}, as in the import")
    if is_list(encoding):
        no_number = f"len(list_filter({place}, lambda v: TRY_CAST(v AS DOUBLE) IS NULL)) > 0"
        wrong = f"{place} IS NULL OR len({place}) <> {encoding.width} OR {no_number}"
        if count := db.one(f"SELECT count(*) FILTER ({wrong}) FROM node")[0]:
            raise InputError(
                f"{counted(count, *HAVE)} no list of {encoding.width} numbers in {name!r}"
            )
    elif how == "one-hot":
        unseen = f"{place} IS NOT NULL AND TRY_CAST({place} AS values_of{number}) IS NULL"
        count, value = db.one(f"SELECT count(*), any_value({place}) FROM node WHERE {unseen}")
        if count:
            log.warning(
                "%s a value of %r that the import has not seen, such as %r; it is "
                "0 in its columns", counted(count, *HAVE), name, value,
            )  # fmt: skip
    else:
        boolean = how == "boolean"
        kind, advice = "BOOLEAN" if boolean else "DOUBLE", "mend it, or leave it empty if missing"
        check_castable(db, name, how, place, kind, advice)
        value = f"TRY_CAST({place} AS BOOLEAN)" if boolean else number_sql(place)
        missing = int(db.one(f"SELECT count(*) FILTER ({value} IS NULL) FROM node")[0])
        if missing and how == "as-is":
            raise InputError(f"{counted(missing, *HAVE)} no {name!r}, which is taken as it is")
        if missing and not encoding.flagged and how != "buckets":
            log.warning(
                "%s no %r, which no row of the import lacked; it counts as 0 after "
                "its encoding", counted(missing, *HAVE), name,
            )  # fmt: skip
