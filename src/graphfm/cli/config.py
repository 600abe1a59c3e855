"""`--config` and `--print-config`: a file's options, placed before those of the command line."""

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

import typer

from graphfm.cli.options import flag, own_code, own_codes, value_of
from graphfm.cli.shared_options import option
from graphfm.errors import InputError
from graphfm.options import Kind, Option, join
from graphfm.runs.config_file import Known, known_settings, read_config_file

PANEL = "Run options"
COMMANDS = ("train", "compare")
# What a file cannot say: it asks for something else than a training, or for how to print.
NOT_IN_A_FILE = ("config", "print_config", "resume", "explain", "json", "quiet", "verbose")
TABLES = {
    "dataset": "data", "backbone": "network", "method": "method", "methods": "method",
    "device": "training",
}  # fmt: skip

Config = Annotated[
    Path | None,
    option(
        "A TOML file with options; those given here override it (docs/config.md).",
        "FILE",
        panel=PANEL,
    ),
]
PrintConfig = Annotated[
    bool,
    typer.Option(
        "--print-config",
        help="Print the options as a file for --config; do not train.",
        rich_help_panel=PANEL,
    ),
]


def with_config(arguments: Sequence[str], name: str, command: Callable[..., None]) -> list[str]:
    """The arguments, with those that a --config file stands for after the name of the command.

    Of an option that is given twice the last value counts, so the command line overrides the file.
    """
    place = value_of("--config", arguments) if name in COMMANDS else None
    if place is None:
        return [*arguments]
    if value_of("--resume", arguments) is not None:
        raise InputError("--resume continues with the settings of the run; leave out --config")
    options = [_FileOption(p) for p in inspect.signature(command).parameters.values()]
    own = own_code(arguments).values() if name == "train" else own_codes(arguments)
    settings = known_settings(*own)
    known = {
        one.key: settings.get(one.key) or one.known
        for one in options
        if one.key not in NOT_IN_A_FILE
    }
    found = read_config_file(Path(place), known)
    given = [
        word
        for one in options
        if one.key in found and not (one.several and value_of(one.flag, arguments) is not None)
        for word in one.words(found[one.key])
    ]
    place_of_name = arguments.index(name) + 1
    return [*arguments[:place_of_name], *given, *arguments[place_of_name:]]


class _FileOption:
    """A parameter of a command: its key in a file, and what a value is on the command line."""

    def __init__(self, parameter: inspect.Parameter) -> None:
        kind, about = get_args(parameter.annotation)
        # In an annotation, typer keeps the first name that was given as the default.
        given = about.param_decls or (about.default,)
        names = given[0] if isinstance(given[0], str) else flag(parameter.name)
        self.flag, _, self.opposite = names.partition("/")
        self.key = self.flag.removeprefix("--").replace("-", "_")
        base = next((item for item in get_args(kind) if item is not NoneType), kind)
        self.several = get_origin(base) is list  # the option may be given several times
        base = get_args(base)[0] if self.several else base
        self.kind = Kind(str if base is Path else base, many=self.several)

    @property
    def known(self) -> Known:
        """How a file may give an option that is no setting."""
        return Known((Option(self.key, self.kind, self.kind.base, None),), TABLES.get(self.key))

    def words(self, value: Any) -> list[str]:
        """The value as words of the command line."""
        if self.several:
            return [f"{self.flag}={item}" for item in value]
        if self.opposite:
            return [self.flag if value else self.opposite]
        several = isinstance(value, list | tuple)
        return [f"{self.flag}={join(map(_text, value)) if several else _text(value)}"]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)
