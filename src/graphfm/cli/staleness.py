"""The command `graphfm staleness`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from graphfm.backbones import BACKBONES
from graphfm.cli.experiment_view import experiment_view
from graphfm.cli.options import typed, with_settings
from graphfm.cli.output import Interrupted, Json, print_json, say, terminal_width
from graphfm.cli.own_model import choose_network
from graphfm.cli.shared_options import Dataset, Device, Model, ModelOptions, option
from graphfm.errors import InputError
from graphfm.experiments.staleness import (
    NO_NEIGHBORS,
    ROWS,
    compare_staleness,
    network_name,
    staleness_table,
)
from graphfm.experiments.tables import as_text
from graphfm.options import one_of
from graphfm.runs.named import choose_backbone, choose_method
from graphfm.runs.options import TrainOption, collect
from graphfm.runs.own_code import importable

OF_OURS = {"layers", "hidden", "dropout"}  # which a model of the user's own does not have
NETWORKS = [name for name in BACKBONES if name not in NO_NEIGHBORS]
DEFAULTS: dict[str, Any] = {
    "layers": 3, "hidden": 64, "dropout": 0.0, "parts": 24, "parts_per_batch": 4, "beta": 0.3,
    "epochs": 15, "lr": 0.01, "seed": 0,
}  # fmt: skip
FIRST = (
    "dataset", "backbone", "epochs", "lr", "hidden", "layers", "seeds", "device", "out",
)  # fmt: skip


def staleness_command() -> Callable[..., None]:
    """Make `graphfm staleness`, with the settings of the methods that it trains."""
    return with_settings(staleness, _declared(), FIRST)


def _declared() -> dict[str, TrainOption]:
    """The settings as they are declared, with defaults of this command's own."""
    methods = dict.fromkeys(method for method, _ in ROWS.values())
    known = collect([*map(choose_method, methods)], [*map(choose_backbone, NETWORKS)])
    return {name: known[name].with_default(value) for name, value in DEFAULTS.items()}


def staleness(
    *,
    dataset: Dataset = "debian",
    backbone: Annotated[
        str, option(f"The network: {one_of(NETWORKS)}.", "NAME", names=NETWORKS)
    ] = "gcn",
    model: Model = None,
    model_option: ModelOptions = None,
    seeds: Annotated[int, option("Trainings of each method, with consecutive seeds.", "N")] = 1,
    device: Device = "auto",
    out: Annotated[
        Path | None,
        option("Folder for tables and trainings; a finished one is not run twice.", "FOLDER"),
    ] = None,
    json: Json = False,
    **settings: Any,
) -> None:
    """Compare how stale histories get: the paper's Table 4 for one dataset.

    Trains each cluster method with the same settings and never refreshes a history.
    Staleness S^k of hidden layer k: the mean distance between the remembered row of a node and the
    row that the whole graph gives; 'relative' divides by the norm. Both are means over the second
    half of the epochs. Full batch takes as many steps as the others. Test scores are those of the
    epoch that is best on validation. Exit code 1: a training failed.
    """
    given = typed("staleness", settings, {name: one.first for name, one in _declared().items()})
    if len(given.get("beta", ())) == 1:  # JSON and folders have always had a number
        (given["beta"],) = given["beta"]
    what: dict[str, Any] = {"dataset": dataset, "backbone": backbone}
    usual = DEFAULTS
    if model is not None or model_option:
        usual = {name: value for name, value in DEFAULTS.items() if name not in OF_OURS}
        if wrong := sorted(given.keys() & OF_OURS):
            raise InputError(
                f"--{wrong[0]} is a setting of our networks; leave it out with --model"
            )
        with importable(os.getcwd()):
            what["backbone"] = choose_network(None, model, model_option)
    _run({**what, **usual, **given, "device": device}, seeds, out, json)


def _run(options: dict[str, Any], seeds: int, out: Path | None, json: bool) -> None:
    view = experiment_view()
    try:
        with view:
            rows = compare_staleness(options, seeds, out, observer=view)
    except KeyboardInterrupt:
        kept = "nothing was kept" if out is None else f"the same command continues from {out}"
        raise Interrupted(f"interrupted; {kept}") from None
    if json:
        shown = {**options, "backbone": network_name(options)}
        print_json({**shown, "seeds": seeds, "rows": [row.to_json() for row in rows]})
    else:
        typer.echo(as_text(staleness_table(rows), terminal_width(), rest="--json prints them"))
    if out is not None:
        say(f"tables and every training are in {out}")
    if any(row.note for row in rows):
        say("some trainings failed; see the notes below the table")
        raise typer.Exit(1)
