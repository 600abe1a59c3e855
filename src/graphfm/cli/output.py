"""Printing: results go to stdout, everything else to stderr."""

import json
import logging
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Annotated, Any

import typer

from graphfm.errors import InputError

Json = Annotated[bool, typer.Option("--json", help="Print the result as one line of JSON.")]
_quiet = _verbose = False


class Interrupted(Exception):  # noqa: N818
    """Ctrl-C or SIGTERM ended a command; the message says how to continue."""

    def __init__(self, message: str = "", code: int | None = None) -> None:
        self.code = code
        super().__init__(message)


def set_verbosity(*, quiet: bool = False, verbose: bool = False) -> None:
    """Choose what is printed: only results and errors (quiet), or debug messages too (verbose)."""
    global _quiet, _verbose
    if quiet and verbose:
        raise InputError("--quiet and --verbose were both given; give one of them")
    _quiet, _verbose = quiet, verbose
    level = logging.ERROR if quiet else logging.DEBUG if verbose else logging.INFO
    logging.getLogger("graphfm").setLevel(level)


def add_verbosity(*, quiet: bool, verbose: bool) -> None:
    """Add a command's own flags to those before its name: `graphfm -q train`."""
    set_verbosity(quiet=quiet or _quiet, verbose=verbose or _verbose)


def is_quiet() -> bool:
    """True if only results and errors are printed."""
    return _quiet


def say(message: str, *, fold: bool = False) -> None:
    """Print a message for a person to stderr, unless quiet; a long one may be folded."""
    if not _quiet:
        typer.echo(folded(message, sys.stderr) if fold else message, err=True)


def folded(line: str, stream: IO[str]) -> str:
    """Break a line between words where the stream is a terminal; elsewhere it stays one line."""
    if not stream.isatty():
        return line
    return textwrap.fill(
        line,
        terminal_width(),
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def terminal_width() -> int:
    """The width of the terminal, or 80 characters where there is none."""
    return shutil.get_terminal_size((80, 24)).columns


def print_json(record: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print the result as one line of JSON to stdout."""
    sys.stderr.flush()
    typer.echo(json.dumps(record))


def print_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Print two aligned columns."""
    rows = list(rows)
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        typer.echo(f"{name:<{width}}  {text}")
