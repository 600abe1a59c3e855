"""The error type for mistakes that a user can fix."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Says what was got, what was expected and what to do. The command line prints one line."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error about a wrong name: the nearest known one, or nothing if none is near."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near and near[0] != name else ""
