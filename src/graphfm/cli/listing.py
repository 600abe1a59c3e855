"""The commands `graphfm methods` and `graphfm backbones`."""

import inspect
from collections.abc import Mapping

from graphfm.backbones import BACKBONES
from graphfm.cli.output import Json, print_json, print_rows
from graphfm.methods import METHODS


def methods(json: Json = False) -> None:
    """List the training methods."""
    _print({name: inspect.getdoc(method) or "" for name, method in METHODS.items()}, json)


def backbones(json: Json = False) -> None:
    """List the networks."""
    _print({name: inspect.getdoc(kind) or "" for name, kind in BACKBONES.items()}, json)


def _print(texts: Mapping[str, str], json: bool) -> None:
    first_lines = {name: text.split("\n\n")[0].replace("\n", " ") for name, text in texts.items()}
    if json:
        print_json([{"name": name, "about": text} for name, text in first_lines.items()])
    else:
        print_rows(first_lines.items())
