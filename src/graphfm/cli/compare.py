"""graphfm compare"""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from graphfm.cli.experiment_view import experiment_view, terminal_width
from graphfm.cli.output import Interrupted, Json, print_json, say
from graphfm.errors import InputError
from graphfm.experiments.compare.plan import Plan
from graphfm.experiments.compare.report import comparison_table
from graphfm.experiments.compare.run import compare as run_comparison
from graphfm.experiments.compare.run import default_path
from graphfm.experiments.compare.sweep import Sweep, own_settings
from graphfm.experiments.tables import Table, as_text
from graphfm.runs.own_code import importable

WHAT, NETWORK, BUDGET, RUN = "What", "Network", "Training", "Run"


def _option(panel: str, help: str, default: str | bool = True) -> Any:
    return typer.Option(help=help, rich_help_panel=panel, show_default=default)


def compare(
    dataset: Annotated[
        str, _option(WHAT, "A name that 'graphfm datasets' lists, or a FILE.npz.")
    ] = "debian",
    backbone: Annotated[
        str, _option(WHAT, "The network; 'graphfm backbones' lists them.")
    ] = "sage",
    methods: Annotated[
        str,
        _option(
            WHAT,
            "Names with commas between, or all; 'graphfm methods' lists them. Your own: "
            "package.module:function.",
        ),
    ] = "all",
    seeds: Annotated[int, _option(WHAT, "Trainings of each method.")] = 3,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A setting of one method: graphsage.fanout=2,2. Can be given several times.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        _option(WHAT, "An option of train and values for it: fanout=1,2,4 or layers=2,3,4.", False),
    ] = None,
    layers: Annotated[
        int | None, _option(NETWORK, "Layers: how many hops away a node sees.", "2; gcnii 4")
    ] = None,
    hidden: Annotated[int | None, _option(NETWORK, "Width of hidden rows.", "128")] = None,
    dropout: Annotated[
        float | None, _option(NETWORK, "Share of hidden values dropped in training.", "0.5")
    ] = None,
    lr: Annotated[float | None, _option(BUDGET, "Learning rate of Adam.", "0.01")] = None,
    budget_epochs: Annotated[
        int | None, _option(BUDGET, "Most epochs of each training.", "100")
    ] = None,
    budget_seconds: Annotated[
        float | None, _option(BUDGET, "Or: most seconds of each training.", False)
    ] = None,
    patience: Annotated[
        int, _option(BUDGET, "Stop after so many epochs without a better score; 0 never.")
    ] = 10,
    device: Annotated[str, _option(RUN, "auto, cpu or cuda.")] = "auto",
    out: Annotated[
        Path | None, _option(RUN, "Folder of the comparison.", "runs/compare-DATASET-BACKBONE")
    ] = None,
    json: Json = False,
) -> None:
    """Compare methods on one graph, one network and one budget.

    Every training runs in a process of its own, so that its peak memory is its own.
    The same command continues where an earlier one ended; a finished training is not run twice.
    More methods, seeds or values may be added later, in the same folder.
    The time to the best epoch includes preparation, not evaluation. Exit code 1: a training failed.
    """
    given = locals()
    options = {name: given[name] for name in given if name not in ("out", "json", "settings")}
    options["sweep"] = _sweep(sweep or [])
    options["own"] = own_settings(settings or [])
    with importable(os.getcwd() if ":" in methods + backbone else None):
        plan = Plan.make(**options)
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
