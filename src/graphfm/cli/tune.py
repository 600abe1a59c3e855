"""graphfm tune"""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from graphfm.cli.compare import Epochs, Methods, Patience, Settings, shared_record, text_first
from graphfm.cli.experiment_view import experiment_view
from graphfm.cli.options import with_settings
from graphfm.cli.output import Interrupted, Json, folded, print_json, say, terminal_width
from graphfm.cli.own_model import choose_network
from graphfm.cli.per_method import parsed_per_method
from graphfm.cli.shared_options import BACKBONE, Dataset, Device, Model, ModelOptions, option
from graphfm.experiments.compare.entries import SET_ELSEWHERE
from graphfm.experiments.compare.plan import choose_methods
from graphfm.experiments.compare.sweep import own_settings
from graphfm.experiments.outcome import Outcome, summary
from graphfm.experiments.tables import Table, as_text
from graphfm.experiments.tune import TunePlan, Tuning
from graphfm.experiments.tune.plan import PATIENCE
from graphfm.experiments.tune.record import counts
from graphfm.experiments.tune.run import require_optuna
from graphfm.metrics.names import rounded
from graphfm.runs.named import Named
from graphfm.runs.options import train_options
from graphfm.runs.own_code import importable

FIRST = (
    "dataset", "methods", "backbone", "minutes", "trials", "seeds", "budget_epochs", "hidden",
    "layers", "device", "out",
)  # fmt: skip
MORE = "Search options"
Minutes = Annotated[
    float | None, option("Time for everything, the final trainings included.", "X", default=False)
]
Trials = Annotated[
    int | None,
    option(
        "Or: trainings of each method in the search. Both: what ends first.", "N", default=False
    ),
]
Seeds = Annotated[int, option("Final trainings of each method.", "N")]
Jobs = Annotated[
    int | None,
    option(
        "Trainings at a time.",
        "N",
        default="one a core, on a GPU at most 8, as far as memory allows",
        panel=MORE,
    ),
]
Out = Annotated[
    Path | None,
    option("Folder of the search.", "FOLDER", default="runs/tune-DATASET-BACKBONE"),
]


def tune_command(own: Sequence[Named]) -> Callable[..., None]:
    """`graphfm tune`, with the options of methods and of a backbone of the user's own."""
    known = train_options(*own)
    options = {n: text_first(o) for n, o in known.items() if n not in SET_ELSEWHERE}
    return with_settings(tune, options, FIRST)


def tune(
    *,
    dataset: Dataset = "debian",
    methods: Methods = "all",
    backbone: Annotated[str | None, BACKBONE] = None,
    model: Model = None,
    model_option: ModelOptions = None,
    minutes: Minutes = None,
    trials: Trials = None,
    seeds: Seeds = 3,
    budget_epochs: Epochs = None,
    device: Device = "auto",
    out: Out = None,
    settings_of: Settings = None,
    jobs: Jobs = None,
    patience: Patience = PATIENCE,
    json: Json = False,
    **settings: Any,
) -> None:
    """Search the settings of every method in the same way, and compare the best of each.

    Learning rate, dropout, weight decay, schedule and a few settings of each method are searched on
    validation nodes, the method's defaults first; test nodes are looked at only in the final
    trainings. An option that is given here is fixed and not searched. With --minutes every method
    gets the same time, and fewer epochs than its own where they would not fit (--budget-epochs sets
    them); with --trials the same number of trainings. The same command continues where an earlier
    one ended; started twice, both share the work. Exit code 1: a final training failed, or no trial
    of a method finished.
    """
    require_optuna()
    with importable(os.getcwd() if ":" in f"{methods}{backbone}{model}" else None):
        chosen, network = choose_methods(methods), choose_network(backbone, model, model_option)
        single = own_settings(settings_of or [])
        given, single = parsed_per_method(settings, chosen, network, single)
        plan = TunePlan.make(
            dataset=dataset, methods=chosen, backbone=network, minutes=minutes, trials=trials,
            seeds=seeds, budget_epochs=budget_epochs, patience=patience, own=single, jobs=jobs,
            device=device, **given,
        )  # fmt: skip
    _run(plan, out, json)


def _run(plan: TunePlan, out: Path | None, json: bool) -> None:
    def table() -> Table:
        return tuning.table()

    view = experiment_view(summarise=_summary, table=table)
    tuning = Tuning(plan, out, observer=view)
    try:
        with view:
            rows = tuning.run()
    except KeyboardInterrupt:
        raise Interrupted(_interrupted(tuning)) from None
    if json:
        plan, pace = tuning.plan, tuning.plan.pace
        shared = {**shared_record(plan.base), **plan.asked(), "out": str(tuning.path)}
        shared |= {"jobs": tuning.jobs, "num_trials": len(tuning.records)}
        shared |= {"epochs_factor": 1.0 if pace is None else pace.factor}
        caption = {"caption": tuning.table().caption}
        print_json({**shared, **caption, "rows": [row.to_json() for row in rows]})
    else:
        typer.echo(folded(tuning.table().caption, sys.stdout))
        typer.echo(as_text(tuning.table(), terminal_width()))
    say(f"tables, pictures, every trial and the best run of each method are in {tuning.path}")
    if failed := sum(row.num_failed for row in rows):
        say(f"final trainings that failed: {failed}; the same command tries them again")
    if lost := [row.method for row in rows if row.found_nothing]:
        say(f"no trial of {', '.join(lost)} finished; trials.md says why")
    if failed or lost:
        raise typer.Exit(1)


def _summary(outcome: Outcome) -> str:
    """A trial has no test score, and need not say so."""
    score = outcome.score
    if score is None or score.test is not None:
        return summary(outcome)
    return f"validation {rounded(score.val)} at epoch {score.best_epoch} of {score.epochs}"


def _interrupted(tuning: Tuning) -> str:
    if not tuning.records:
        return "interrupted before a training ended; the same command starts again"
    return (
        f"interrupted; {tuning.path} keeps the search so far ({counts(tuning.records)}); the same "
        "command continues from there"
    )
