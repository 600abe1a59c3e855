"""The commands `graphfm recipes` and `graphfm reproduce`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from graphfm.cli.experiment_view import experiment_view
from graphfm.cli.output import Interrupted, Json, print_json, print_rows, say, terminal_width
from graphfm.cli.shared_options import Device, completion, option
from graphfm.errors import InputError, known_name
from graphfm.experiments.outcome import with_deviation
from graphfm.experiments.reproduce import ReproductionPlan
from graphfm.experiments.reproduce import reproduce as run_reproduction
from graphfm.experiments.reproduce.report import paper_table
from graphfm.experiments.reproduce.run import default_path, failures
from graphfm.experiments.tables import as_text
from graphfm.recipes import TABLES
from graphfm.recipes import recipes as all_recipes
from graphfm.recipes.recipe import Recipe

TableName = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help=", ".join(TABLES) + ".", autocompletion=completion(TABLES)
    ),
]


def recipes(
    table: Annotated[
        str | None, option("List only the recipes of this table.", "NAME", names=TABLES)
    ] = None,
    json: Json = False,
) -> None:
    """List the settings of the paper's tables; 'graphfm train --recipe NAME' runs one.

    Each line says where the settings come from, and which no source gives.
    """
    if table is not None:
        known_name("table", table, TABLES)
    found = [recipe for recipe in all_recipes().values() if table in (None, recipe.table)]
    if json:
        print_json([_describe(recipe) for recipe in found])
        return
    print_rows((recipe.name, _line(recipe)) for recipe in found)


def _describe(recipe: Recipe) -> dict[str, Any]:
    known = {name: value for name, value in vars(recipe).items() if name != "run"}
    return {**known, "run": recipe.run.to_json()}


def _line(recipe: Recipe) -> str:
    """Where it stands in the paper, where its settings come from, and which were chosen here."""
    text = f"{recipe.row}, {recipe.run.dataset}"
    if recipe.paper is not None:
        text += f": {with_deviation(recipe.paper, recipe.paper_std)} in the paper"
    text += f"; settings: {recipe.source}"
    return f"{text}; chosen here: {', '.join(recipe.chosen)}" if recipe.chosen else text


def reproduce(
    table: TableName,
    datasets: Annotated[
        str | None, option("Some of the table's datasets, separated by commas.", "NAMES")
    ] = None,
    backbones: Annotated[
        str | None, option("Some of the table's networks, separated by commas.", "NAMES")
    ] = None,
    seeds: Annotated[
        int | None, option("Trainings of each recipe.", "N", default="5; of a substitute 1")
    ] = None,
    substitute: Annotated[
        str | None,
        option(
            "Use debian, or synthetic graphs of similar shape, instead of the datasets.", "NAME"
        ),
    ] = None,
    scale: Annotated[
        float | None, option("Scale of synthetic graphs; 1 is full size.", "X", default="0.02")
    ] = None,
    epochs: Annotated[
        int | None,
        option("Most epochs.", "N", default="the recipe's; of a substitute 10, of table4's 6"),
    ] = None,
    device: Device = "auto",
    out: Annotated[
        Path | None, option("Folder of the table.", "FOLDER", default="runs/reproduce-TABLE")
    ] = None,
    json: Json = False,
) -> None:
    """Run a table of the paper and print it beside the paper's numbers.

    If a dataset is not on this machine, its rows say so; if none is, nothing is run.
    Run the same command again to continue: finished trainings are not repeated.
    Exit code 1: a training failed.
    """
    plan = ReproductionPlan.make(
        table, datasets=_names(datasets), backbones=_names(backbones), seeds=seeds,
        substitute=substitute, scale=scale, epochs=epochs, device=device,
    )  # fmt: skip
    _run(plan, out, json)


def _run(plan: ReproductionPlan, out: Path | None, json: bool) -> None:
    if not plan.cells:
        reasons = dict.fromkeys(line.refusal for line in plan.lines)
        raise InputError(
            f"there is nothing to run: {'; '.join(filter(None, reasons))}; get one of them, or try "
            "the table with --substitute synthetic"
        )
    path, view = out or default_path(plan), experiment_view()
    try:
        with view:
            outcomes = run_reproduction(plan, path, observer=view)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; the same command continues from {path}") from None
    found = paper_table(plan, outcomes)
    if json:
        print_json(found.records)
    else:
        typer.echo(as_text(found, terminal_width()))
    say(f"tables and every training are in {path}")
    if failed := failures(plan.lines, outcomes):
        say(f"{failed} of {len(plan.cells)} trainings failed; the same command tries them again")
        raise typer.Exit(1)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]
