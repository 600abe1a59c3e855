"""The options of `train` and `compare`, built from where settings are declared."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from graphfm.cli.help import MORE
from graphfm.cli.own_model import choose_network, network_of_run
from graphfm.cli.shared_options import completion
from graphfm.errors import InputError
from graphfm.options import Option
from graphfm.runs.named import Named, choose_backbone, choose_method
from graphfm.runs.options import TrainOption, train_options
from graphfm.runs.own_code import importable, is_place

COMMON = "Common options"
VALUES = {int: "N", float: "X", str: "NAME", bool: "YES"}


def flag(name: str) -> str:
    """The flag of a setting: batch_size -> --batch-size."""
    return f"--{name.replace('_', '-')}"


def own_code(arguments: Sequence[str]) -> dict[str, Named]:
    """Import the method and the backbone of the user's own that a command line names.

    The current folder is importable, as with `python -m`.
    """
    chosen = (("method", choose_method), ("backbone", choose_backbone))
    found = {what: own for what, choose in chosen for own in _own(what, choose, arguments)}
    model = _own_model(arguments)
    return found if model is None else {**found, "backbone": model}


def _own_model(arguments: Sequence[str]) -> Named | None:
    """The model of the user's own that a command line names, with its arguments."""
    model, resumed = value_of("--model", arguments), value_of("--resume", arguments)
    backbone, texts = value_of("--backbone", arguments), values_of("--model-option", arguments)
    if model is None and not texts:
        return None
    if resumed is not None and texts:
        raise InputError(
            "--resume continues with the settings of the run; leave out --model-option"
        )
    with importable(os.getcwd()):
        if resumed is None:
            return choose_network(backbone, model, texts)
        again = network_of_run(Path(resumed), backbone, model)
        assert isinstance(again, Named)
        return again


def own_codes(arguments: Sequence[str]) -> list[Named]:
    """Import the methods (`--methods`, with commas) and the backbone of the user's own."""
    methods = _own("methods", choose_method, arguments)
    return [*methods, *_own("backbone", choose_backbone, arguments)]


def _own(option: str, choose: Callable[[str], Named], arguments: Sequence[str]) -> list[Named]:
    names = [name.strip() for name in (value_of(flag(option), arguments) or "").split(",")]
    own = [name for name in names if is_place(name)]
    with importable(os.getcwd() if own else None):  # nothing else may come from that folder
        return [choose(name) for name in own]


def with_settings(
    command: Callable[..., None],
    options: Mapping[str, TrainOption],
    first: Sequence[str],
    *known: Any,
) -> Callable[..., None]:
    """Give a command a parameter for every setting, in place of its `**settings`.

    The options named in `first` are the common ones, which help lists before all others. `known`
    are the command's arguments that are no options.
    """
    own = inspect.signature(command, eval_str=True)
    parameters = {name: _parameter(option) for name, option in options.items()}
    parameters |= {p.name: p for p in own.parameters.values() if p.kind is p.KEYWORD_ONLY}
    common = {name: _in_panel(COMMON, parameters[name]) for name in first}
    ordered = {**common, **{n: p for n, p in parameters.items() if n not in common}}

    def run(**given: Any) -> None:
        command(*known, **given)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = own.replace(parameters=list(ordered.values()))  # type: ignore[attr-defined]
    return run


def parsed(texts: Mapping[str, Any], method: Named, backbone: Named) -> dict[str, Any]:
    """Parse the given settings to the types that the method and the backbone declare."""
    declared = {name: option.first for name, option in train_options(method, backbone).items()}
    return typed("train", texts, declared | {**backbone.options, **method.options})


def typed(command: str, texts: Mapping[str, Any], declared: Mapping[str, Option]) -> dict[str, Any]:
    """The settings that a command was given, in their declared types."""
    return {
        name: _parsed(command, declared[name], text) if isinstance(text, str) else text
        for name, text in texts.items()
        if text is not None
    }


def _parsed(command: str, option: Option, text: str) -> Any:
    try:
        return option.parse(text)
    except ValueError:
        raise InputError(
            f"{flag(option.name)} is {text!r}; expected {option.kind.expected}; see "
            f"'graphfm {command} --help'"
        ) from None


def _parameter(option: TrainOption) -> inspect.Parameter:
    """A flag and its opposite, or a text that is parsed when its owner is known."""
    kind, name = option.first.kind, flag(option.name)
    is_flag = kind.base is bool and not kind.many
    value = VALUES[kind.base]
    about = typer.Option(
        f"{name}/--no-{name[2:]}" if is_flag else name,
        help=option.help,
        metavar=None if is_flag else f"{value}[,{value}]" if kind.many else value,
        rich_help_panel=MORE if option.first.about.rare else f"{option.panel} options",
        show_default=option.default,
        autocompletion=completion(_choices(option)),
    )
    annotation: Any = Annotated[bool | None if is_flag else str | None, about]
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def _choices(option: TrainOption) -> list[str]:
    """The names that some owner of a setting takes, each once."""
    names = (str(name) for owner in option.owners.values() for name in owner.kind.choices)
    return list(dict.fromkeys(names))


def _in_panel(panel: str, parameter: inspect.Parameter) -> inspect.Parameter:
    kind, about = get_args(parameter.annotation)
    about = copy.copy(about)  # other commands show the option elsewhere
    about.rich_help_panel = panel
    return parameter.replace(annotation=Annotated[kind, about])


def value_of(option: str, arguments: Sequence[str]) -> str | None:
    """The last value that the arguments give to an option, before typer has read them."""
    return next(reversed(values_of(option, arguments)), None)


def values_of(option: str, arguments: Sequence[str]) -> list[str]:
    """All values that the arguments give to an option, before typer has read them."""
    found = list[str]()
    for number, argument in enumerate(arguments):
        if argument == option:
            found += arguments[number + 1 : number + 2]
        elif argument.startswith(f"{option}="):
            found.append(argument.partition("=")[2])
    return found
