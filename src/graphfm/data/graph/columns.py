"""Columns of tables: numbers, text, lists and missing values, whatever library they come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphfm.errors import InputError

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
    if array.ndim > 1 or (array.dtype.kind in "US" and isinstance(column, list | tuple)):
        array = _objects(list(column))  # lists stay lists, and numbers between text stay numbers
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
        raise InputError(f"two nodes have the id {ordered[1:][same][0]!r}; expected each once")
    if not len(ids):
        return np.zeros(0, np.int64)
    place = np.minimum(np.searchsorted(ordered, ids), len(known) - 1)
    if (unknown := ordered[place] != ids).any():
        raise InputError(
            f"{name} holds {int(unknown.sum()):,} ids that no node has, such as "
            f"{ids[unknown][0]!r}; add them to the nodes, or remove those edges"
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


def named_classes(name: str, column: Array) -> dict[str, Any]:
    """Return `y`, and `class_names` where labels are not numbered from 0; missing is -1."""
    values = column.tolist()
    if values and all(isinstance(value, list | tuple | np.ndarray) for value in values):
        return {"y": as_matrix(name, column)}
    known = [not is_missing(value) for value in values]
    given = [value for value, is_known in zip(values, known, strict=True) if is_known]
    numbers = [v for v in given if isinstance(v, int | float) and not isinstance(v, bool)]
    y = np.full(len(values), -1, np.int64)
    if len(numbers) == len(given):
        if not all(float(v).is_integer() for v in given):
            return {"y": column}  # not classes: the checks of a graph say what they may be
        labels = sorted({int(v) for v in given} - {-1})  # -1 means unlabelled, as everywhere
        if labels == list(range(len(labels))):
            y[known] = np.array(given, np.int64)
            return {"y": y}
        given = [int(v) for v in given]
    elif len({type(value) for value in given}) > 1:
        raise InputError(f"{name} holds values of several types; expected all text or all numbers")
    else:
        labels = sorted(set(given))
    number = {label: place for place, label in enumerate(labels)}
    y[known] = [number.get(value, -1) for value in given]
    return {"y": y, "class_names": [str(label) for label in labels]} if labels else {}


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
