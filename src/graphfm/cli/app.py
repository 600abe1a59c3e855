"""The commands of `graphfm`, and how errors are reported."""

import copy
import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from graphfm.cli.help import Command, with_verbosity
from graphfm.cli.loading import COMMANDS, called, load, named_only
from graphfm.cli.output import Interrupted, set_verbosity
from graphfm.cli.signals import Heard
from graphfm.errors import InputError
from graphfm.version import VERSION

KINDS = {"integer": "a whole number", "number": "a number"}


def make_app(arguments: Sequence[str]) -> tuple[typer.Typer, list[str]]:
    """Make the commands; returns them with the arguments, those of a --config file included.

    Only the one that is called is loaded. Code of the user's own that the arguments name adds its
    options.
    """
    app = typer.Typer(
        name="graphfm",
        help="Train graph neural networks on large graphs.",
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    wanted, expanded = called(arguments), [*arguments]
    for name in COMMANDS:
        command = named_only(name)
        if name == wanted:
            command, expanded = _loaded(name, arguments)
        if isinstance(command, typer.Typer):
            app.add_typer(_with_verbosity(command), name=name)
        else:
            app.command(cls=Command)(with_verbosity(command))
    app.callback(invoke_without_command=True)(with_verbosity(_root))
    return app, expanded


def _loaded(name: str, arguments: Sequence[str]) -> tuple[Any, list[str]]:
    """The command of a name, and the arguments with those of its --config file."""
    command: Any = load(name)
    if name == "staleness":
        command = command()
    elif name in ("train", "compare", "tune"):  # they have an option for every setting
        from graphfm.cli.config import with_config
        from graphfm.cli.options import own_code, own_codes

        command = command(own_code(arguments) if name == "train" else own_codes(arguments))
        return command, with_config(arguments, name, command)
    return command, [*arguments]


def _with_verbosity(group: typer.Typer) -> typer.Typer:
    """Copy a group of commands, and give each command -q and -v."""
    group = copy.copy(group)
    group.registered_commands = [copy.copy(command) for command in group.registered_commands]
    for command in group.registered_commands:
        assert command.callback is not None
        command.callback, command.cls = with_verbosity(command.callback), Command
    group.registered_callback = copy.copy(group.registered_callback)
    if group.registered_callback is not None and group.registered_callback.callback is not None:
        group.registered_callback.callback = with_verbosity(group.registered_callback.callback)
    return group


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"graphfm {VERSION}")
        raise typer.Exit


def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version)
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run a command; a user's mistake is one line on stderr and exit code 2."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    set_verbosity()
    with Heard() as heard:
        try:
            app, arguments = make_app(sys.argv[1:])
            code = app(args=arguments, prog_name="graphfm", standalone_mode=False)
        except (Interrupted, KeyboardInterrupt, typer.Abort) as error:
            _end(str(error) or "interrupted", getattr(error, "code", None) or heard.code)
        except Exception as error:
            message = _explain(error)
            if message is None:
                raise
            _end(message, 2)
        if code == 130:  # some versions of typer return this after Ctrl-C
            _end("interrupted", heard.code)
    sys.exit(code if isinstance(code, int) else 0)


def entry() -> None:
    """Run `main` as a process; while the process ends, further signals are ignored."""
    try:
        try:
            main()
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
    except KeyboardInterrupt as error:  # a second signal, while the first was handled
        sys.exit(getattr(error, "code", 130))


def _explain(error: Exception) -> str | None:
    """The message for a user's mistake; None for a bug of this program."""
    if isinstance(error, InputError):
        return str(error)
    if "torch" in sys.modules and _is_out_of_memory(error):
        return "there is not enough memory; use a smaller graph, or lower hidden or layers"
    if isinstance(error, OSError):
        return str(error)
    describe = getattr(error, "format_message", None)  # typer's own errors, click's or vendored
    if describe is None:
        return None
    path = getattr(getattr(error, "ctx", None), "command_path", "graphfm")
    return f"{_bad_value(error) or describe().rstrip('.')}; see '{path} --help'"


def _is_out_of_memory(error: Exception) -> bool:
    from graphfm.memory import is_out_of_memory  # loads torch, which help does without

    return is_out_of_memory(error)


def _bad_value(error: Exception) -> str | None:
    """The value that an option got, and what was expected; None if typer does not say."""
    told = getattr(error.__cause__, "errors", None)  # pydantic has the value, typer drops it
    kind = next((words for sign, words in KINDS.items() if sign in str(error)), None)
    names = getattr(getattr(error, "param", None), "opts", None)
    if told is None or kind is None or not names:
        return None
    return f"{names[0]} is {told()[0]['input']!r}; expected {kind}"


def _end(message: str, code: int) -> None:
    try:
        typer.echo("graphfm: " + " ".join(message.split()), err=True)
    except OSError:  # stderr is closed; redirect it, or the flush at exit would fail too
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.exit(code)
