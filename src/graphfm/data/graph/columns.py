"""Columns of tables: numbers, text, lists and missing values, whatever library they come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphfm.errors import InputError
from graphfm.metrics.names import REGRESSION

Array = np.ndarray[Any, Any]
MISSING = ("NAType", "NaTType")  # pandas' missing values, which are not even equal to themselves


def as_plain(name: str, column: Any) -> Array:
    """Return a column as a one-dimensional array: numbers where all values are, else objects."""
    try:
        convert = getattr(column, "to_numpy", None)
        array = np.asarray(convert() if callable(convert) else column)
    except (ValueError, TypeError):  # rows of unequal length
        array = _objects(column)
    except Exception as error:  # a library's own error about a column that it cannot convert
        raise InputError(f"{name} cannot be read: {error}") from None
    if array.ndim > 1:
        array = _objects(array)  # a row in each place
    elif array.dtype.kind in "US" and isinstance(column, list | tuple):
        array = _objects(column)  # numbers between text stay numbers
    if array.ndim == 0:
        raise InputError(f"{name} is one value; expected a column")
    return array.astype(object) if array.dtype.kind in "US" else array


def as_ids(name: str, column: Array) -> Array:
    """Return ids as int64, or as objects that are all text; refuse missing and other values."""
    if column.dtype.kind in "iu":
        if column.size and int(column.max()) > np.iinfo(np.int64).max:
            raise InputError(f"{name} holds {column.max()}; expected at most {2**63 - 1}, or text")
        return column.astype(np.int64)
    values = column.tolist()
    if any(is_missing(value) for value in values):
        raise InputError(f"{name} holds missing values; remove those rows")
    if all(type(value) is str for value in values):
        return _objects(values)
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return as_ids(name, np.array(values))
    wrong = next(v for v in values if type(v) is not str)
    raise InputError(
        f"{name} holds {str(wrong)[:40]!r} ({type(wrong).__name__}); expected ids that are all "
        "whole numbers or all text"
    )


def positions(name: str, ids: Array, known: Array) -> Array:
    """Return the position of each id among the known ones; refuse duplicates and unknown ids."""
    if ids.dtype != known.dtype and len(ids):
        raise InputError(
            f"{name} holds {_kind(ids)}, but the ids of nodes are {_kind(known)}; make them alike"
        )
    order = np.argsort(known, kind="stable")
    ordered = known[order]
    if (same := ordered[1:] == ordered[:-1]).any():
        twice = ordered[1:][same].tolist()[0]
        raise InputError(f"two nodes have the id {twice!r}; expected each once")
    if not len(ids):
        return np.zeros(0, np.int64)
    place = np.minimum(np.searchsorted(ordered, ids), len(known) - 1)
    if (unknown := ordered[place] != ids).any():
        raise InputError(
            f"{name} holds {int(unknown.sum()):,} ids that no node has, such as "
            f"{ids[unknown].tolist()[0]!r}; add them to the nodes, or remove those edges"
        )
    return order[place]


def holds_numbers(column: Array) -> bool:
    """True if a column can be features: numbers (some may be missing), or lists in every row."""
    if column.dtype != object:
        return column.dtype.kind in "biuf"
    if len(column) and all(isinstance(value, list | tuple | np.ndarray) for value in column):
        return True
    given = [value for value in column.tolist() if not is_missing(value)]
    return bool(given) and all(isinstance(value, int | float) for value in given)


def as_matrix(name: str, column: Array) -> Array:
    """Return numbers, or lists of numbers of one length, as an array; refuse anything else."""
    if column.dtype.kind in "biuf":
        return column
    values = column.tolist()
    if any(is_missing(value) for value in values):
        raise InputError(f"{name} holds missing values; fill them in, or remove those rows")
    try:
        array = np.array([v.tolist() if isinstance(v, np.ndarray) else v for v in values])
    except ValueError:
        raise InputError(f"{name} holds lists of different lengths; expected equal ones") from None
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{name} holds {type(values[0]).__name__} values; expected numbers (encode text, "
            "for instance as one column per value)"
        )
    return array


def as_labels(
    name: str, column: Array, task: str | None = None, classes: Sequence[str] | int | None = None
) -> dict[str, Any]:
    """Return `y`, and `class_names` where labels are not numbered from 0; a gap is -1 or NaN.

    `classes` are known already: their names, or their number.
    """
    values = column.tolist()
    is_known = np.array([not is_missing(value) for value in values], bool)
    given = [value for value in values if not is_missing(value)]
    if given and all(isinstance(value, list | tuple | np.ndarray) for value in given):
        gap = [np.nan] * len(given[0])
        rows = [gap if is_missing(value) else value for value in values]
        return {"y": as_matrix(name, _objects(rows))}
    is_number = [isinstance(v, int | float) and not isinstance(v, bool) for v in given]
    if task == REGRESSION and not all(is_number):
        wrong = next(value for value, right in zip(given, is_number, strict=True) if not right)
        raise InputError(
            f"{name} holds {str(wrong)[:40]!r}; expected the numbers of a regression, or nothing"
        )
    if all(is_number) and (task == REGRESSION or not all(float(v).is_integer() for v in given)):
        amounts = np.full(len(values), np.nan)
        amounts[is_known] = given
        return {"y": amounts}
    y = np.full(len(values), -1, np.int64)
    if all(is_number):
        given = [int(value) for value in given]
        labels = sorted({*given} - {-1})  # -1 means unlabelled, as everywhere
        if classes is not None or labels == list(range(len(labels))):
            y[is_known] = given
            return {"y": y}
    else:
        labels = _text_labels(name, given, classes)
    number = {label: place for place, label in enumerate(labels)}
    y[is_known] = [number.get(value, -1) for value in given]
    return {"y": y, "class_names": [str(label) for label in labels]} if labels else {}


def _text_labels(name: str, given: list[Any], classes: Sequence[str] | int | None) -> list[Any]:
    """The names of classes in their order: as they are known, or else in that of the alphabet."""
    if len({type(value) for value in given}) > 1:
        raise InputError(f"{name} holds values of several types; expected all text or all numbers")
    found = {*given}
    if classes is None or isinstance(classes, int):
        return sorted(found)
    if unknown := found - {*classes}:
        raise InputError(f"{name} holds {min(unknown)!r}, which class_names does not list")
    return [*classes]


def is_missing(value: Any) -> bool:
    """True for None, NaN and what pandas has for them."""
    return (
        value is None
        or (isinstance(value, float) and value != value)
        or type(value).__name__ in MISSING
    )


def listed(names: Sequence[Any]) -> str:
    """The first names, separated by commas."""
    return ", ".join(str(name) for name in names[:8]) + (", ..." if len(names) > 8 else "")


def _objects(values: Any) -> Array:
    array = np.empty(len(values), object)
    for place, value in enumerate(values):
        array[place] = value
    return array


def _kind(ids: Array) -> str:
    return "whole numbers" if ids.dtype == np.int64 else "text"
