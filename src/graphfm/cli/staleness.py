"""The command `graphfm staleness`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from graphfm.cli.experiment_view import experiment_view, terminal_width
from graphfm.cli.output import Interrupted, Json, print_json, say
from graphfm.experiments.staleness import compare_staleness, staleness_table
from graphfm.experiments.tables import as_text


def staleness(
    dataset: Annotated[
        str, typer.Option(help="A name that 'graphfm datasets' lists, or a FILE.npz.")
    ] = "debian",
    backbone: Annotated[str, typer.Option(help="The network: sage, gcn, gcnii or pna.")] = "gcn",
    layers: Annotated[int, typer.Option(help="Layers of the network.")] = 3,
    hidden: Annotated[int, typer.Option(help="Width of hidden rows.")] = 64,
    dropout: Annotated[float, typer.Option(help="Share of hidden values dropped.")] = 0.0,
    parts: Annotated[int, typer.Option(help="Parts the graph is cut into.")] = 24,
    parts_per_batch: Annotated[int, typer.Option(help="Parts in a step.")] = 4,
    beta: Annotated[float, typer.Option(help="graphfm-ob: weight of the fresh value.")] = 0.3,
    epochs: Annotated[int, typer.Option(help="Epochs of each training.")] = 15,
    lr: Annotated[float, typer.Option(help="Learning rate of Adam.")] = 0.01,
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    seeds: Annotated[
        int, typer.Option(help="Trainings of each method, with consecutive seeds.")
    ] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for tables and trainings; a finished one is not run twice."),
    ] = None,
    json: Json = False,
) -> None:
    """Compare how stale histories get: the paper's Table 4 for one dataset.

    Trains each cluster method with the same settings and never refreshes a history.
    Staleness S^k of hidden layer k: the mean distance between the remembered row of a node and the
    row that the whole graph gives; 'relative' divides by the norm. Both are means over the second
    half of the epochs. Full batch takes as many steps as the others. Test scores are those of the
    epoch that is best on validation. Exit code 1: a training failed.
    """
    ours = ("json", "seeds", "out")
    options = {name: value for name, value in locals().items() if name not in (*ours, "ours")}
    _run(options, seeds, out, json)


def _run(options: dict[str, Any], seeds: int, out: Path | None, json: bool) -> None:
    view = experiment_view()
    try:
        with view:
            rows = compare_staleness(options, seeds, out, observer=view)
    except KeyboardInterrupt:
        kept = "nothing was kept" if out is None else f"the same command continues from {out}"
        raise Interrupted(f"interrupted; {kept}") from None
    if json:
        print_json({**options, "seeds": seeds, "rows": [row.to_json() for row in rows]})
    else:
        typer.echo(as_text(staleness_table(rows), terminal_width(), rest="--json prints them"))
    if out is not None:
        say(f"tables and every training are in {out}")
    if any(row.note for row in rows):
        say("some trainings failed; see the notes below the table")
        raise typer.Exit(1)
