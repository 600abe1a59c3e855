"""Names of nodes and classes, and a graph's `meta` dictionary, checked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphfm.errors import InputError

if TYPE_CHECKING:
    from graphfm.data.graph import Graph


def as_names(name: str, value: Any) -> tuple[str, ...] | None:
    """Return a list of names as a tuple; None stays None."""
    if value is None:
        return None
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise InputError(f"{name} is a {type(value).__name__}; expected a list of names")
    return tuple(value)


def as_meta(value: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a copy that can be written as JSON."""
    try:
        return dict(json.loads(json.dumps({} if value is None else value)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"meta is not a dictionary of JSON values: {error}") from None


def check_names(name: str, names: Sequence[str] | None, count: int) -> None:
    """Refuse anything but `count` strings."""
    if names is None:
        return
    try:
        "".join(names).encode()
    except (TypeError, UnicodeEncodeError):
        raise InputError(f"{name} holds a value that is not text; expected strings only") from None
    if len(names) != count:
        raise InputError(f"{name} has {len(names)} entries; expected {count}")


def node_numbers(graph: Graph, wanted: Iterable[str]) -> dict[str, int]:
    """The number of each id that the graph has. Its names are read once, and not kept."""
    missing, found = set(wanted), dict[str, int]()
    if graph.node_names is None:
        digits = {
            text for text in missing if text.isascii() and text.isdecimal() and len(text) < 20
        }
        return {text: int(text) for text in digits if int(text) < graph.num_nodes}
    for number, name in enumerate(graph.node_names):
        if name in missing:
            found[name] = number
            missing.remove(name)
            if not missing:
                break
    return found
