"""graphfm compare"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from graphfm.cli.experiment_view import experiment_view, terminal_width
from graphfm.cli.options import COMMON, typed, with_settings
from graphfm.cli.output import Interrupted, Json, print_json, say
from graphfm.errors import InputError
from graphfm.experiments.compare.plan import SET_ELSEWHERE, Plan
from graphfm.experiments.compare.report import comparison_table
from graphfm.experiments.compare.run import compare as run_comparison
from graphfm.experiments.compare.run import default_path
from graphfm.experiments.compare.sweep import Sweep, own_settings
from graphfm.experiments.tables import Table, as_text
from graphfm.runs.named import Named
from graphfm.runs.options import TrainOption, train_options
from graphfm.runs.own_code import importable

FIRST = (
    "dataset", "methods", "backbone", "seeds", "budget_epochs", "lr", "hidden", "layers", "device",
    "out",
)  # fmt: skip
MORE = "Comparison options"


def _option(panel: str, help: str, default: str | bool = True, metavar: str | None = None) -> Any:
    return typer.Option(help=help, rich_help_panel=panel, show_default=default, metavar=metavar)


Dataset = Annotated[
    str, _option(COMMON, "A name that 'graphfm datasets' lists, or a FILE.npz.", metavar="NAME")
]
Methods = Annotated[
    str,
    _option(
        COMMON,
        "Names with commas between, or all; 'graphfm methods' lists them. Your own: "
        "package.module:function.",
        metavar="NAMES",
    ),
]
BackboneName = Annotated[
    str,
    _option(
        COMMON,
        "The network: a name that 'graphfm backbones' lists, or your own: package.module:Class.",
        metavar="NAME",
    ),
]
Seeds = Annotated[int, _option(COMMON, "Trainings of each method.", metavar="N")]
Epochs = Annotated[int | None, _option(COMMON, "Most epochs of each training.", "100", "N")]
Device = Annotated[str, _option(COMMON, "auto, cpu or cuda.", metavar="NAME")]
Out = Annotated[
    Path | None,
    _option(COMMON, "Folder of the comparison.", "runs/compare-DATASET-BACKBONE", "FOLDER"),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A setting of one method: graphsage.fanout=2,2. Can be given several times.",
        rich_help_panel=MORE,
        metavar="METHOD.OPTION=VALUE",
    ),
]
Sweeps = Annotated[
    list[str] | None,
    _option(
        MORE,
        "An option of train and values for it: fanout=1,2,4 or layers=2,3,4.",
        False,
        "OPTION=VALUES",
    ),
]
Seconds = Annotated[float | None, _option(MORE, "Or: most seconds of each training.", False, "X")]
Patience = Annotated[
    int, _option(MORE, "Stop after so many epochs without a better score; 0 never.", metavar="N")
]


def compare_command(own: Sequence[Named]) -> Callable[..., None]:
    """`graphfm compare`, with the options of methods and of a backbone of the user's own."""
    options = {n: o for n, o in train_options(*own).items() if n not in SET_ELSEWHERE}
    named = partial(compare, options)
    named.__name__, named.__doc__ = compare.__name__, compare.__doc__  # type: ignore[attr-defined]
    return with_settings(named, options, FIRST)


def compare(
    options: Mapping[str, TrainOption],
    *,
    dataset: Dataset = "debian",
    methods: Methods = "all",
    backbone: BackboneName = "sage",
    seeds: Seeds = 3,
    budget_epochs: Epochs = None,
    device: Device = "auto",
    out: Out = None,
    settings_of: Settings = None,
    sweep: Sweeps = None,
    budget_seconds: Seconds = None,
    patience: Patience = 10,
    json: Json = False,
    **settings: Any,
) -> None:
    """Compare methods on one graph, one network and one budget.

    Every training runs in a process of its own, so that its peak memory is its own. The same
    command continues where an earlier one ended; a finished training is not run twice. More
    methods, seeds or values may be added later, in the same folder. A setting goes to every method
    that takes it. The time to the best epoch includes preparation, not evaluation. Exit code 1: a
    training failed.
    """
    given = typed(settings, {name: option.first for name, option in options.items()})
    with importable(os.getcwd() if ":" in methods + backbone else None):
        plan = Plan.make(
            dataset=dataset, methods=methods, backbone=backbone, seeds=seeds, device=device,
            budget_epochs=budget_epochs, budget_seconds=budget_seconds, patience=patience,
            sweep=_sweep(sweep or []), own=own_settings(settings_of or []), **given,
        )  # fmt: skip
    _run(plan, out, json)


def _run(plan: Plan, out: Path | None, json: bool) -> None:
    path = out or default_path(plan)

    def table() -> Table:
        outcomes = {} if view.progress is None else view.progress.outcomes
        return comparison_table(plan, plan.rows(outcomes))

    view = experiment_view(table=table)
    try:
        with view:
            rows = run_comparison(plan, path, observer=view)
    except KeyboardInterrupt:
        raise Interrupted(_interrupted(view.num_done, len(plan.cells), path)) from None
    if json:
        shared = {**plan.shared.to_json(), **plan.asked(), "out": str(path)}
        del shared["method"], shared["method_settings"], shared["training"]["seed"]
        print_json({**shared, "rows": [row.to_json() for row in rows]})
    else:
        typer.echo(as_text(comparison_table(plan, rows), terminal_width()))
    say(f"tables, pictures and every training are in {path}")
    if failed := sum(row.num_failed for row in rows):
        say(f"{failed} of {len(plan.cells)} trainings failed; the same command tries them again")
        raise typer.Exit(1)


def _sweep(given: list[str]) -> Sweep | None:
    if len(given) > 1:
        raise InputError(
            f"--sweep was given {len(given)} times; a comparison sweeps one option: run the "
            "command once for each"
        )
    return Sweep.parse(given[0]) if given else None


def _interrupted(num_done: int, num_cells: int, path: Path) -> str:
    if num_done == 0:
        return "interrupted before a training ended; the same command starts again"
    return (
        f"interrupted; {num_done} of {num_cells} trainings are kept in {path}; "
        "the same command continues from there"
    )
