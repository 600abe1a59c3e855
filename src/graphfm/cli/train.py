"""The command `graphfm train`."""

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from graphfm.api import start as start_run
from graphfm.checkpointing.schedule import Interval
from graphfm.cli.config import Config, PrintConfig
from graphfm.cli.ending import report, stoppable
from graphfm.cli.options import parsed, with_settings
from graphfm.cli.output import Json, folded, print_json, say
from graphfm.cli.progress import progress_of
from graphfm.cli.resume import go_on
from graphfm.cli.shared_options import BACKBONE, DATASET, Device, Model, ModelOptions, option
from graphfm.data.datasets import load
from graphfm.data.graph.labels import in_words
from graphfm.errors import InputError
from graphfm.methods import METHODS
from graphfm.recipes import recipe_of
from graphfm.recipes.recipe import Recipe
from graphfm.runs.config_file import run_as_toml
from graphfm.runs.explain import explain as explain_run
from graphfm.runs.folder import check_free, new_path
from graphfm.runs.memory_plan import foresee, memory_plan
from graphfm.runs.named import Named, choose_backbone, choose_method
from graphfm.runs.options import train_options
from graphfm.runs.run import Run, backbone_of, pick_device
from graphfm.training.setup import check_capture, check_trainable

RUN = "Run options"
FIRST = (
    "dataset", "method", "backbone", "epochs", "lr", "hidden", "layers", "batch_size", "device",
    "out",
)  # fmt: skip


MethodName = Annotated[
    str | None,
    option(
        "How a step sees the graph: a name that 'graphfm methods' lists, or your own: "
        "package.module:function.",
        "NAME",
        default="full",
        names=METHODS,
    ),
]
Out = Annotated[
    Path | None, option("Folder for the run.", "FOLDER", default="a new one under runs/")
]
RecipeName = Annotated[
    str | None,
    option(
        "The paper's settings, as 'graphfm recipes' lists them; options override.",
        "NAME",
        panel=RUN,
    ),
]
Resume = Annotated[
    Path | None,
    option("Continue the run in this folder, with its own settings.", "FOLDER", panel=RUN),
]
CheckpointEvery = Annotated[
    str | None,
    option(
        "Seconds (30) or steps (500steps) between checkpoints; 0: only when interrupted.",
        "TIME",
        default="auto: less than a minute is lost",
        panel=RUN,
    ),
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Print the plan; do not train.", rich_help_panel=RUN)
]


def train_command(own: Mapping[str, Named]) -> Callable[..., None]:
    """Make `graphfm train`, with the options of the user's own method and backbone."""
    return with_settings(train, train_options(*own.values()), FIRST, own)


def train(
    own: Mapping[str, Named],
    *,
    dataset: Annotated[str | None, DATASET] = None,
    method: MethodName = None,
    backbone: Annotated[str | None, BACKBONE] = None,
    model: Model = None,
    model_option: ModelOptions = None,
    device: Device = "auto",
    out: Out = None,
    recipe: RecipeName = None,
    resume: Resume = None,
    checkpoint_every: CheckpointEvery = None,
    explain: Explain = False,
    config: Config = None,
    print_config: PrintConfig = False,
    json: Json = False,
    **settings: Any,
) -> None:
    """Train a network on a graph and report its test score.

    Without options, it trains GraphSAGE on the graph of Debian's packages. The test score is
    computed once, for the epoch with the best validation score, whose weights are kept.
    """
    interval = None if checkpoint_every is None else Interval.parse(checkpoint_every)
    what = {"dataset": dataset, "method": method, "backbone": backbone}
    given = {name: value for name, value in what.items() if value is not None}
    if resume is not None:
        if explain or print_config:
            flag = "explain" if explain else "print-config"
            raise InputError(f"--{flag} prints the plan of a new training; leave out --resume")
        others = {"dataset": dataset, "out": out, "recipe": recipe, **settings}
        others["device"] = None if device == "auto" else device
        go_on(resume, interval, json, {**given, **own}, others)
        return
    known = None if recipe is None else recipe_of(recipe)
    options = _settled(own, given, settings, device, known)
    if print_config:
        typer.echo(run_as_toml(Run.make(**{**options, **own})), nl=False)
        return
    if (departure := None if known is None else known.departure(options)) is not None:
        say(departure)
    _train({**options, **own}, out, interval, json=json, explain=explain)
    if departure is None and dataset is None and not explain:
        _say_published(known)


def _say_published(recipe: Recipe | None) -> None:
    """Say what the paper has for a run that follows a recipe, if it has a number."""
    if recipe is not None and recipe.paper is not None:
        say(f"{recipe.row} on {recipe.run.dataset} has {recipe.paper:.4f} in the paper")


def _settled(
    own: Mapping[str, Named],
    given: Mapping[str, str],
    settings: Mapping[str, Any],
    device: str,
    known: Recipe | None = None,
) -> dict[str, Any]:
    """Options for `Run.make`: the names that were given, and the parsed settings."""
    recipe = {} if known is None else {n: getattr(known.run, n) for n in ("method", "backbone")}
    names = {**recipe, **given}
    method = own.get("method") or choose_method(names.get("method", "full"))
    network = names.get("backbone") or backbone_of(method) or "sage"
    backbone = own.get("backbone") or choose_backbone(network)
    options = {**given, "device": device, **parsed(settings, method, backbone)}
    return options if known is None else known.options(**options)


def _train(
    options: Mapping[str, Any],
    out: Path | None,
    interval: Interval | None,
    *,
    json: bool,
    explain: bool,
) -> None:
    run = Run.make(**options)
    device = pick_device(run.device)
    check_capture(run.training, device)
    if not explain:
        check_free(out or Path("runs") / "new")
    plan = foresee(run, device)
    if plan is not None:  # otherwise its size is known only after loading
        plan.check(run)
        if not explain:  # an explanation has this line already
            say(str(plan), fold=True)
    graph = load(run.dataset, device=device, dtype=run.training.feature_type)
    check_trainable(graph, run.training)
    if explain:
        lines = explain_run(run, graph)
        shown = "\n".join(folded(line, sys.stdout) for line in lines)
        print_json(lines) if json else typer.echo(shown)
        return
    if plan is None:
        plan = memory_plan(run, graph)
        plan.check(run)
        say(str(plan), fold=True)
    out = out or new_path(run)
    say(
        f"{run.dataset}: {graph.num_nodes:,} nodes, {graph.num_edges:,} edges, "
        f"{run.training.in_words(graph.num_features)}, {in_words(graph)}; "
        f"{_network_of(run)}, {run.method}, on {device}",
        fold=True,
    )
    try:
        with stoppable(out, run) as stop_signal, progress_of(run.training) as bar:
            result = start_run(
                run, graph, [bar], out, interval=interval, stop_signal=stop_signal, plan=plan
            )
    finally:
        with suppress(OSError):
            out.rmdir()  # fails, as it should, if anything was written to it
    report(result, json)


def _network_of(run: Run) -> str:
    """The network in words: its name, and its depth if that is a setting."""
    layers = run.backbone_settings.get("layers")
    return run.backbone if layers is None else f"{run.backbone} of {layers} layers"
