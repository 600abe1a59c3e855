"""GraphSAINT's `class_map.json`: for each node its class, or a list of 0 and 1 for each label."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from graphfm.data.graph.checks import MOST_CLASSES
from graphfm.data.sources.raw.base import Array
from graphfm.errors import InputError
from graphfm.memory import available_memory

TEXT_AT_ONCE = 1 << 20
LONGEST_ENTRY = 1 << 22
SPACE = re.compile(r"\s*")
# Lists of 700 thousand nodes would be gigabytes of Python objects, so entries are read one by one.
ENTRY = re.compile(r'\s*"(\d{1,12})"\s*:\s*(-?\d{1,12}|\[[\s\d.,]*\])\s*([,}])')


def read_class_map(path: Path, num_nodes: int) -> Array:
    """[num_nodes] int64, or [num_nodes, num_classes] int8; -1 where a node is not named."""
    y: Array | None = None
    seen = np.zeros(num_nodes, bool)
    for node, value in _entries(path):
        if node >= num_nodes:
            raise InputError(f"it names node {node}; ids run from 0 to {num_nodes - 1}")
        if seen[node]:
            raise InputError(f"it names node {node} twice")
        if y is None:
            y = _empty(num_nodes, value)
        y[node] = _label(node, value, y.shape[1:])
        seen[node] = True
    if y is None:
        raise InputError("it names no node")
    return y


def _empty(num_nodes: int, first: int | list[int]) -> Array:
    if isinstance(first, int):
        return np.full(num_nodes, -1, np.int64)
    if num_nodes * len(first) > available_memory():
        raise InputError(f"{len(first):,} labels for {num_nodes:,} nodes do not fit into memory")
    return np.full((num_nodes, len(first)), -1, np.int8)


def _label(node: int, value: int | list[int], shape: tuple[int, ...]) -> int | list[int]:
    if isinstance(value, int):
        if shape:
            raise InputError(f"node {node} has a class where others have a list of labels")
        if not 0 <= value < MOST_CLASSES:
            raise InputError(f"node {node} has class {value}; expected 0 to {MOST_CLASSES - 1}")
        return value
    if shape != (len(value),) or not value:
        raise InputError(f"node {node} has {len(value)} labels; others have {list(shape)}")
    if not set(value) <= {0, 1}:
        raise InputError(f"node {node} has labels other than 0 and 1")
    return value


def _entries(path: Path) -> Iterator[tuple[int, int | list[int]]]:
    """Each node with its value, in the order of the file, which is never held whole."""
    with path.open(encoding="utf-8") as stream:
        text = stream.read(TEXT_AT_ONCE).lstrip()
        if not text.startswith("{"):
            raise InputError("it is no JSON object; expected nodes with their classes")
        place, mark = 1, ","
        while mark != "}":
            entry = ENTRY.match(text, place)
            while entry is None:
                more = stream.read(TEXT_AT_ONCE)
                if not more or len(text) - place > LONGEST_ENTRY:
                    raise InputError(f"it is no JSON from {text[place : place + 20]!r} on")
                text, place = text[place:] + more, 0
                entry = ENTRY.match(text, place)
            node, value, mark = entry.groups()
            yield int(node), json.loads(value)
            place = entry.end()
        if (text[place:] + stream.read(TEXT_AT_ONCE)).strip():
            raise InputError("something follows the JSON object")
