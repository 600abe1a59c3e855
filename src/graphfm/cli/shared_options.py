"""How a command declares an option, what a shell completes, and options of several commands."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from graphfm.backbones import BACKBONES
from graphfm.data.datasets import DATASETS
from graphfm.runs.devices import DEVICES
from graphfm.runs.options import NETWORK

NETWORK_PANEL = f"{NETWORK} options"


def option(
    help: str,
    metavar: str,
    *,
    default: str | bool = True,
    panel: str | None = None,
    names: Iterable[str] = (),
) -> Any:
    """Declare an option with a value. A `default` that is a text is what the help shows.

    A shell completes the `names`, several with commas between where the metavar is NAMES.
    """
    complete = completion(names, many=metavar == "NAMES")
    return typer.Option(
        help=help,
        metavar=metavar,
        show_default=default,
        rich_help_panel=panel,
        autocompletion=complete,
    )


def completion(names: Iterable[str], *, many: bool = False) -> Callable[[str], list[str]] | None:
    """What a shell calls to complete one of the `names`, or the last of many; None if none are."""
    known = list(names)

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",") if many else ("", "", incomplete)
        return [f"{before}{comma}{name}" for name in known if name.startswith(last)]

    return complete if known else None


DATASET = option(
    "A name that 'graphfm datasets' lists, or a path.",
    "NAME",
    default="debian",
    names=DATASETS,
)
BACKBONE = option(
    "The network: a name that 'graphfm backbones' lists, or your own: package.module:Class.",
    "NAME",
    default="sage",
    names=BACKBONES,
)
Model = Annotated[
    str | None,
    option(
        "A network of PyG instead: package.module:function, or a class.",
        "NAME",
        panel=NETWORK_PANEL,
    ),
]
ModelOptions = Annotated[
    list[str] | None,
    option(
        "An argument of the model's function; may be repeated.", "NAME=VALUE", panel=NETWORK_PANEL
    ),
]
Dataset = Annotated[str, DATASET]
Device = Annotated[
    str, option("auto, cpu, cuda, or one of several GPUs: cuda:1.", "NAME", names=DEVICES)
]
