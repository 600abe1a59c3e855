"""GraphSAINT's `class_map.json`: the class of each node, or a list with 0 or 1 per label."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from graphfm.data.graph.conversion import MOST_CLASSES
from graphfm.data.sources.raw.base import Array
from graphfm.errors import InputError
from graphfm.memory import available_memory

TEXT_AT_ONCE = 1 << 20
LONGEST_ENTRY = 1 << 22
# Lists of 700 thousand nodes would take gigabytes as Python objects, so entries are read singly.
ENTRY = re.compile(r'\s*"(\d{1,12})"\s*:\s*(-?\d{1,12}|\[[\s\d.,]*\])\s*([,}])')


def read_class_map(path: Path, num_nodes: int) -> Array:
    """Return [num_nodes] int64, or [num_nodes, num_classes] int8; -1 if a node is not listed."""
    y: Array | None = None
    seen = np.zeros(num_nodes, bool)
    for node, value in _entries(path):
        if node >= num_nodes:
            raise InputError(f"it holds node id {node}; expected 0 to {num_nodes - 1}")
        if seen[node]:
            raise InputError(f"it lists node {node} twice")
        if y is None:
            y = _empty(num_nodes, value)
        y[node] = _label(node, value, y.shape[1:])
        seen[node] = True
    if y is None:
        raise InputError("it lists no node; expected nodes with their classes")
    return y


def _empty(num_nodes: int, first: int | list[int]) -> Array:
    if isinstance(first, int):
        return np.full(num_nodes, -1, np.int64)
    if num_nodes * len(first) > available_memory():
        raise InputError(f"{len(first):,} labels for {num_nodes:,} nodes do not fit in memory")
    return np.full((num_nodes, len(first)), -1, np.int8)


def _label(node: int, value: int | list[int], shape: tuple[int, ...]) -> int | list[int]:
    if isinstance(value, int):
        if shape:
            raise InputError(f"node {node} has one class; expected a list of labels, as before")
        if not 0 <= value < MOST_CLASSES:
            raise InputError(f"node {node} has class {value}; expected 0 to {MOST_CLASSES - 1}")
        return value
    if shape != (len(value),) or not value:
        raise InputError(f"node {node} has {len(value)} labels; expected {list(shape)}, as before")
    if not set(value) <= {0, 1}:
        raise InputError(f"node {node} has labels other than 0 and 1")
    return value


def _entries(path: Path) -> Iterator[tuple[int, int | list[int]]]:
    """Yield each node with its value, in the order of the file, without loading all of it."""
    with path.open(encoding="utf-8") as stream:
        text = stream.read(TEXT_AT_ONCE).lstrip()
        if not text.startswith("{"):
            raise InputError("it is not a JSON object; expected nodes with their classes")
        position, mark = 1, ","
        while mark != "}":
            entry = ENTRY.match(text, position)
            while entry is None:
                more = stream.read(TEXT_AT_ONCE)
                if not more or len(text) - position > LONGEST_ENTRY:
                    rest = text[position : position + 20]
                    raise InputError(f"it is not valid JSON from {rest!r} on")
                text, position = text[position:] + more, 0
                entry = ENTRY.match(text, position)
            node, value, mark = entry.groups()
            yield int(node), json.loads(value)
            position = entry.end()
        if (text[position:] + stream.read(TEXT_AT_ONCE)).strip():
            raise InputError("more text follows the JSON object; expected one object")
