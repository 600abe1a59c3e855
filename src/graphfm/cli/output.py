"""What is printed where: results on stdout, all else on stderr."""

import json
import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import typer

from graphfm.errors import InputError

Json = Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")]
_quiet = False


class Interrupted(Exception):  # noqa: N818
    """Ctrl-C or SIGTERM, and where that leaves the user; the code is that of the last signal."""

    def __init__(self, message: str = "", code: int | None = None) -> None:
        self.code = code
        super().__init__(message)


def set_verbosity(*, quiet: bool = False, verbose: bool = False) -> None:
    """Print only results and errors, or debug messages too."""
    global _quiet
    if quiet and verbose:
        raise InputError("--quiet and --verbose were both given; give one of them")
    _quiet = quiet
    level = logging.ERROR if quiet else logging.DEBUG if verbose else logging.INFO
    logging.getLogger("graphfm").setLevel(level)


def is_quiet() -> bool:
    """True if only the result and errors are to be printed."""
    return _quiet


def say(message: str) -> None:
    """Tell a person, on stderr."""
    if not _quiet:
        typer.echo(message, err=True)


def print_json(record: Mapping[str, Any] | Sequence[Any]) -> None:
    """The result, as the last line of stdout."""
    sys.stderr.flush()
    typer.echo(json.dumps(record))


def print_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Two aligned columns."""
    rows = list(rows)
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        typer.echo(f"{name:<{width}}  {text}")
