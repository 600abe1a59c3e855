"""Options that several commands have, and how a command declares one."""

from typing import Annotated, Any

import typer


def option(help: str, metavar: str, *, default: str | bool = True, panel: str | None = None) -> Any:
    """Declare an option with a value. A `default` that is a text is what the help shows."""
    return typer.Option(help=help, metavar=metavar, show_default=default, rich_help_panel=panel)


DATASET = option("A name that 'graphfm datasets' lists, or a FILE.npz.", "NAME", default="debian")
BACKBONE = option(
    "The network: a name that 'graphfm backbones' lists, or your own: package.module:Class.",
    "NAME",
    default="sage",
)
Dataset = Annotated[str, DATASET]
Device = Annotated[str, option("auto, cpu or cuda.", "NAME")]
