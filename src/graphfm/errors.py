"""The error type for mistakes that a user can fix."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable


class InputError(ValueError):
    """Says what was got, what was expected and what to do. The command line prints one line."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error about a wrong name: the nearest known one, or nothing if none is near."""
    listed = [other for other in known if other != name]
    folded = {other.casefold(): other for other in listed}
    near = difflib.get_close_matches(name, listed, n=1)
    near += [folded[key] for key in difflib.get_close_matches(name.casefold(), folded, n=1)]
    return f" (did you mean {near[0]}?)" if near else ""


def counted(number: int, one: str, more: str) -> str:
    """A number and what there are so many of, as in "1 row is" and "2 rows are"."""
    return f"{number:,} {one if number == 1 else more}"


def known_name(what: str, name: str, known: Collection[str]) -> None:
    """Refuse an unknown name."""
    if name not in known:
        near = did_you_mean(name, known)
        raise InputError(f"unknown {what} {name!r}; choose one of {', '.join(known)}{near}")


def needs(what: str, package: str) -> InputError:
    """The error for a package that only some users need and that is not installed."""
    return InputError(f"{what} needs {package}, which is not installed: pip install {package}")
