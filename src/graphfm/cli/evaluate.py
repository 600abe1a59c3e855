"""The command `graphfm evaluate`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from graphfm.cli.evaluate_tables import tables_of
from graphfm.cli.output import Json, print_json, say, terminal_width
from graphfm.cli.results import Backbone, Dataset, OwnModel, RunArgument, load_run
from graphfm.cli.shared_options import Device, option
from graphfm.data.graph import SPLITS
from graphfm.errors import InputError
from graphfm.experiments.tables import as_text
from graphfm.files import atomic_path
from graphfm.runs.model import ALL
from graphfm.runs.report_picture import draw_report

Split = Annotated[
    str | None,
    option(
        "The nodes to look at closely: train, val, test or all (every node with a label).",
        "NAME",
        default="test, or the last that has nodes",
        names=(*SPLITS, ALL),
    ),
]
Picture = Annotated[Path | None, option("Draw the report as a picture (PNG).", "FILE")]


def evaluate(
    run: RunArgument,
    dataset: Dataset = None,
    split: Split = None,
    picture: Picture = None,
    backbone: Backbone = None,
    model: OwnModel = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Score the model of a run on its own graph, or on another one.

    Every metric of every split, and of one split: precision, recall and F1 of each class, which
    classes are taken for which, how far probabilities can be trusted, and scores by degree.
    """
    if picture is not None and picture.suffix.lower() != ".png":
        raise InputError(f"--picture is {picture}; expected a file that ends in .png")
    name, graph, trained = load_run(run, dataset, (backbone, model), device)
    report = trained.report(graph, split)
    names = list(trained.class_names or map(str, range(trained.num_classes)))
    if picture is not None:
        try:
            with atomic_path(picture) as unfinished:
                draw_report(report, names, f"{name}, {report['split']} nodes", unfinished)
        except OSError as error:
            raise InputError(f"cannot write {picture}: {error.strerror or error}") from None
    if json:
        scores = {s: found.get(report["metric"]) for s, found in report["metrics"].items()}
        print_json({"run": str(run), "dataset": name, **scores, **_named(report, names)})
        return
    shown = [
        as_text(table, terminal_width(), "--json has them") for table in tables_of(report, names)
    ]
    typer.echo("\n\n".join(shown))
    if picture is not None:
        say(f"picture in {picture}")


def _named(report: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """The report with the name of each class or target in its row."""
    rows: dict[str, Any] = {
        part: [{"name": name, **row} for name, row in zip(names, report[part], strict=True)]
        for part in ("classes", "targets")
        if part in report
    }
    return {**report, **rows}
