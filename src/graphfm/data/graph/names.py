"""Names of nodes and classes, and what else is said of a graph."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from graphfm.errors import InputError


def as_names(name: str, value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise InputError(f"{name} is a {type(value).__name__}; expected a list of names")
    return tuple(value)


def as_meta(value: Mapping[str, Any] | None) -> dict[str, Any]:
    """A copy that JSON can hold."""
    try:
        return dict(json.loads(json.dumps({} if value is None else value)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"meta is not a dictionary of JSON values: {error}") from None


def check_names(name: str, names: tuple[str, ...] | None, count: int) -> None:
    if names is None:
        return
    try:
        "".join(names).encode()
    except (TypeError, UnicodeEncodeError):
        raise InputError(f"{name} holds something that is not text; expected names only") from None
    if len(names) != count:
        raise InputError(f"there are {len(names)} {name}; expected {count}")
