"""graphfm compare"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from graphfm.cli.config import Config, PrintConfig
from graphfm.cli.experiment_view import experiment_view
from graphfm.cli.options import with_settings
from graphfm.cli.output import Interrupted, Json, print_json, say, terminal_width
from graphfm.cli.own_model import choose_network
from graphfm.cli.per_method import parsed_per_method
from graphfm.cli.shared_options import BACKBONE, Dataset, Device, Model, ModelOptions, option
from graphfm.experiments.compare.columns import SHOWN, choose_columns
from graphfm.experiments.compare.entries import SET_ELSEWHERE
from graphfm.experiments.compare.plan import Plan, choose_methods
from graphfm.experiments.compare.report import comparison_table
from graphfm.experiments.compare.run import compare as run_comparison
from graphfm.experiments.compare.run import default_path
from graphfm.experiments.compare.sweep import Sweep, own_settings
from graphfm.experiments.tables import Table, as_text
from graphfm.methods import METHODS
from graphfm.options import one_of
from graphfm.runs.config_file import comparison_as_toml
from graphfm.runs.named import Named
from graphfm.runs.options import TrainOption, train_options
from graphfm.runs.own_code import importable

FIRST = (
    "dataset", "methods", "backbone", "seeds", "budget_epochs", "lr", "hidden", "layers", "device",
    "out",
)  # fmt: skip
MORE = "Comparison options"


Methods = Annotated[
    str,
    option(
        "Names with commas between, or all; 'graphfm methods' lists them. Your own: "
        "package.module:function.",
        "NAMES",
        names=("all", *METHODS),
    ),
]
Seeds = Annotated[int, option("Trainings of each method.", "N")]
Epochs = Annotated[
    int | None, option("Most epochs of each training.", "N", default="each method's own")
]
Out = Annotated[
    Path | None,
    option("Folder of the comparison.", "FOLDER", default="runs/compare-DATASET-BACKBONE"),
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
    option(
        "An option of train and values for it: fanout=1,2,4 or layers=2,3,4. Several make a grid.",
        "OPTION=VALUES",
        panel=MORE,
    ),
]
Seconds = Annotated[float | None, option("Or: most seconds of each training.", "X", panel=MORE)]
Patience = Annotated[
    int | None,
    option(
        "Stop after so many epochs without a better score; 0 never.",
        "N",
        default="as in train",
        panel=MORE,
    ),
]
Columns = Annotated[
    str | None,
    option(
        f"Columns of the table, of table.md and of table.tex: {one_of(list(SHOWN))}.",
        "NAMES",
        default="all that say something",
        panel=MORE,
        names=SHOWN,
    ),
]


def compare_command(own: Sequence[Named]) -> Callable[..., None]:
    """`graphfm compare`, with the options of methods and of a backbone of the user's own."""
    known = train_options(*own)
    options = {n: text_first(o) for n, o in known.items() if n not in SET_ELSEWHERE}
    return with_settings(compare, options, FIRST)


def text_first(option: TrainOption) -> TrainOption:
    """An option is a flag only if it is one for all its owners: a text can say yes or no too."""
    owners = sorted(option.owners.items(), key=lambda item: item[1].kind.base is bool)
    return replace(option, owners=dict(owners))


def compare(
    *,
    dataset: Dataset = "debian",
    methods: Methods = "all",
    backbone: Annotated[str | None, BACKBONE] = None,
    model: Model = None,
    model_option: ModelOptions = None,
    seeds: Seeds = 3,
    budget_epochs: Epochs = None,
    device: Device = "auto",
    out: Out = None,
    settings_of: Settings = None,
    sweep: Sweeps = None,
    budget_seconds: Seconds = None,
    patience: Patience = None,
    columns: Columns = None,
    config: Config = None,
    print_config: PrintConfig = False,
    json: Json = False,
    **settings: Any,
) -> None:
    """Compare methods on one graph, one network and one budget.

    Every training runs in a process of its own, so that its peak memory is its own. The same
    command continues where an earlier one ended; methods, seeds or values may be added then. A
    setting goes to every method that takes it, and its value has to suit all of them; otherwise
    give it to single methods with --set. The table lists every setting in which rows differ, and
    differences of test scores from the best row. Exit code 1: a training failed.
    """
    limits: dict[str, Any] = {"budget_epochs": budget_epochs, "budget_seconds": budget_seconds}
    with importable(os.getcwd() if ":" in f"{methods}{backbone}{model}" else None):
        chosen, network = choose_methods(methods), choose_network(backbone, model, model_option)
        own = own_settings(settings_of or [])
        given, own = parsed_per_method(settings, chosen, network, own)
        plan = Plan.make(
            dataset=dataset, methods=chosen, backbone=network, seeds=seeds, device=device,
            sweep=[Sweep.parse(text) for text in sweep or []], own=own, patience=patience, **limits,
            **given,
        )  # fmt: skip
    if print_config:
        limits |= {"seeds": seeds, "set": settings_of, "sweep": sweep, "columns": columns}
        names = {"dataset": dataset, "backbone": network.name, "methods": methods, "device": device}
        _print_config(names, {**limits, "out": out}, {**given, "patience": patience})
    else:
        _run(plan, out, choose_columns(columns), json)


def _print_config(*parts: Mapping[str, Any]) -> None:
    typer.echo(comparison_as_toml(*parts), nl=False)


def _run(plan: Plan, out: Path | None, columns: Sequence[str] | None, json: bool) -> None:
    path = out or default_path(plan)

    def table() -> Table:
        outcomes = {} if view.progress is None else view.progress.outcomes
        return comparison_table(plan, plan.rows(outcomes), columns)

    view = experiment_view(table=table)
    try:
        with view:
            rows = run_comparison(plan, path, observer=view, columns=columns)
    except KeyboardInterrupt:
        raise Interrupted(_interrupted(view.num_done, len(plan.cells), path)) from None
    if json:
        print_json(
            {**shared_record(plan), "out": str(path), "rows": [row.to_json() for row in rows]}
        )
    else:
        typer.echo(as_text(comparison_table(plan, rows, columns), terminal_width()))
    say(f"tables, pictures and every training are in {path}")
    if failed := sum(row.num_failed for row in rows):
        say(f"{failed} of {len(plan.cells)} trainings failed; the same command tries them again")
        raise typer.Exit(1)


def shared_record(plan: Plan) -> dict[str, Any]:
    """What all rows have in common; a setting in which they differ is in the rows alone."""
    record = plan.shared.to_json()
    for part in ("training", "backbone_settings"):
        record[part] = {name: plan.common[name] for name in record[part] if name in plan.common}
    del record["method"], record["method_settings"]
    return {**record, **plan.asked()}


def _interrupted(num_done: int, num_cells: int, path: Path) -> str:
    if num_done == 0:
        return "interrupted before a training ended; the same command starts again"
    return (
        f"interrupted; {num_done} of {num_cells} trainings are kept in {path}; "
        "the same command continues from there"
    )
