"""The commands, and what becomes of an error."""

import sys
from typing import Annotated

import typer

from graphfm.cli.listing import backbones, datasets, info, methods
from graphfm.cli.results import evaluate, predict
from graphfm.cli.train import train
from graphfm.errors import InputError
from graphfm.version import VERSION

app = typer.Typer(
    name="graphfm",
    help="Train graph neural networks on large graphs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (train, evaluate, predict, datasets, methods, backbones, info):
    app.command()(command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"graphfm {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run a command; a user's mistake is one line on stderr and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except InputError as error:
        _fail(str(error))
    except Exception as error:
        describe = getattr(error, "format_message", None)  # typer's own errors, click's or vendored
        if describe is None:
            raise
        path = getattr(getattr(error, "ctx", None), "command_path", "graphfm")
        _fail(f"{describe().rstrip('.')}; see '{path} --help'")
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> None:
    typer.echo("graphfm: " + " ".join(message.split()), err=True)
    sys.exit(2)
