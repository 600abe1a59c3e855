"""The commands `graphfm datasets`, `datasets fetch` and `datasets check`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from graphfm.cli.output import Json, print_json, print_rows, say
from graphfm.cli.shared_options import completion, option
from graphfm.cli.transfer_bar import TransferBar
from graphfm.data.datasets import DATASETS, load
from graphfm.data.graph import SPLITS, Graph
from graphfm.data.sources import catalog
from graphfm.data.sources.catalog import CATALOG, Source, Statistics
from graphfm.data.sources.fetch import Missing, fetch, files_folder, is_here
from graphfm.data.sources.mapped_folder import check_digests, stored_folder
from graphfm.errors import InputError
from graphfm.files import data_folder
from graphfm.memory import size

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help=f"{', '.join(CATALOG)}, or NAME:raw (not prepared).",
        autocompletion=completion(CATALOG),
    ),
]
Root = Annotated[
    Path | None,
    option(
        "Folder of all datasets. Other commands read it from GRAPHFM_DATA.",
        "FOLDER",
        default="$GRAPHFM_DATA, or graphfm/data in the user's cache",
    ),
]
TOLERANCE = 0.006  # the published shares of splits are rounded

datasets = typer.Typer(
    invoke_without_command=True,
    no_args_is_help=False,
    help="List the graphs that can be loaded by name; fetch and check those of the paper.",
)


@datasets.callback(invoke_without_command=True)
def _list(context: typer.Context, json: Json = False) -> None:
    """List the graphs that can be loaded by name; fetch and check those of the paper."""
    if context.invoked_subcommand is not None:
        return
    here = {name: name not in CATALOG or is_here(name) for name in DATASETS}
    if json:
        print_json(
            [{"name": key, "about": about, "here": here[key]} for key, about in DATASETS.items()]
        )
        return
    status = {True: "fetched", False: "not fetched"}
    print_rows(
        (name, f"{about} [{status[here[name]]}]" if name in CATALOG else about)
        for name, about in DATASETS.items()
    )
    typer.echo(
        "\nA file or a folder can be used too, also one of 'graphfm import'; docs/formats.md lists "
        "the formats.\n"
        "'synthetic:NAME:0.1' has a tenth of the size.\n"
        f"'graphfm datasets fetch NAME' downloads a dataset into {data_folder()}."
    )


@datasets.command("fetch")
def fetch_command(name: Name, root: Root = None, json: Json = False) -> None:
    """Download a dataset of the paper and prepare it for training.

    Files that are already there are not downloaded again.
    If a download is interrupted, run the command again to continue it.
    """
    try:
        with TransferBar() as bar:
            folder = fetch(name, root, bar.tell)
    except Missing as error:
        for path, url in error.files:
            say(f"save {url}\n  as {path}")
        raise InputError(
            f"{error.reason}; download the files above yourself, save them under the names above, "
            f"and run {error.command} again"
        ) from None
    graph = load(name, root=root)
    if json:
        record = {"name": name, "folder": str(folder), "bytes": graph.num_bytes}
        print_json(record | _sizes(graph))
        return
    typer.echo(
        f"{name}: {graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {graph.num_features} "
        f"features, {graph.num_classes} classes; {size(graph.num_bytes)} in {folder}"
    )
    if root is not None:
        say(f"to use it: GRAPHFM_DATA={root} graphfm train --dataset {name}")


@datasets.command("check")
def check_command(name: Name, root: Root = None, json: Json = False) -> None:
    """Verify the arrays of a dataset, and compare its statistics with the published ones."""
    source = catalog.find(name)
    graph = load(name, root=root)
    with TransferBar() as bar:
        check_digests(stored_folder(source, files_folder(source, root)), bar.tell)
    rows = _compare(source, graph)
    if json:
        print_json({"name": name, "statistics": rows, "remark": source.remark})
    else:
        typer.echo(f"{'':<22}{'paper':>15}{'published':>15}{'here':>15}")
        for row in rows:
            shown = "".join(f"{_text(row[key]):>15}" for key in ("paper", "published", "here"))
            typer.echo(f"{row['what']:<22}{shown}{'' if row['agrees'] else '  differs'}")
        if source.remark:
            typer.echo(f"\n{source.remark}")
    if wrong := [row["what"] for row in rows if not row["agrees"]]:
        raise InputError(
            f"{name} is not the published dataset: {', '.join(wrong)} differ; download it again"
        )


def _compare(source: Source, graph: Graph) -> list[dict[str, Any]]:
    """Compare the graph with the numbers of the paper and of the publisher."""
    here = _sizes(graph)
    raw_edges = graph.meta["raw_edges"]
    counted = {
        "nodes": here["nodes"],
        "edges in the files": raw_edges,
        "edges as printed": raw_edges // 2 if source.counted_once else raw_edges,
        "features": here["features"],
        "classes": here["classes"],
        **{f"share of {split} nodes": here[split] / here["nodes"] for split in SPLITS},
    }
    published = _printed(source.published)
    published["edges in the files"] = source.published.edges
    published["edges as printed"] = None
    paper = _printed(source.paper) if source.paper else {}
    return [
        {
            "what": what,
            "paper": paper.get(what),
            "published": published[what],
            "here": value,
            "agrees": _agrees(published[what], value),
        }
        for what, value in counted.items()
    ]


def _printed(statistics: Statistics) -> dict[str, Any]:
    shares = zip(SPLITS, statistics.split, strict=True)
    return {
        "nodes": statistics.nodes,
        "edges as printed": statistics.edges,
        "features": statistics.features,
        "classes": statistics.classes,
        **{f"share of {split} nodes": share for split, share in shares},
    }


def _agrees(published: float | None, here: float) -> bool:
    if published is None or isinstance(published, int):
        return published in (None, here)
    return abs(published - here) <= TOLERANCE


def _sizes(graph: Graph) -> dict[str, int]:
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": graph.num_features,
        "classes": graph.num_classes,
        **{split: int(graph.mask(split).sum()) for split in SPLITS},
    }


def _text(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
