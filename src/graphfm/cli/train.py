"""graphfm train"""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from graphfm.api import start as start_run
from graphfm.checkpointing.schedule import Interval
from graphfm.cli.ending import report, stoppable
from graphfm.cli.output import Json, say
from graphfm.cli.progress import ProgressBar
from graphfm.cli.resume import go_on
from graphfm.data.datasets import load
from graphfm.errors import InputError
from graphfm.recipes import recipe_of
from graphfm.runs.folder import check_free, new_path
from graphfm.runs.memory_plan import MemoryPlan, foresee, memory_plan
from graphfm.runs.run import Run, pick_device
from graphfm.training.setup import check_capture, check_trainable

NO_SETTINGS = ("out", "json", "recipe", "resume", "checkpoint_every")
WHAT, NETWORK, METHOD, TRAINING, RUN = "What", "Network", "Method", "Training", "Run"


def _option(panel: str, help: str, default: str | bool = False) -> Any:
    return typer.Option(help=help, rich_help_panel=panel, show_default=default)


def train(
    dataset: Annotated[
        str | None, _option(WHAT, "A name that 'graphfm datasets' lists, or a FILE.npz.", "debian")
    ] = None,
    backbone: Annotated[
        str | None, _option(WHAT, "The network: sage, gcn, gcnii, pna, mlp, sign or sgc.", "sage")
    ] = None,
    method: Annotated[
        str | None,
        _option(WHAT, "How a step sees the graph; 'graphfm methods' lists them.", "full"),
    ] = None,
    recipe: Annotated[
        str | None,
        _option(
            WHAT, "The paper's settings, as 'graphfm recipes' lists them; options override.", False
        ),
    ] = None,
    layers: Annotated[
        int | None,
        _option(NETWORK, "Layers (sign, sgc: hops): how far away a node sees.", "2; gcnii 4"),
    ] = None,
    hidden: Annotated[int | None, _option(NETWORK, "Width of hidden rows.", "128")] = None,
    dropout: Annotated[
        float | None, _option(NETWORK, "Share of hidden values dropped in training.", "0.5")
    ] = None,
    dropout_input: Annotated[
        bool | None, _option(NETWORK, "Drop input features too.", "no")
    ] = None,
    batch_norm: Annotated[
        bool | None, _option(NETWORK, "Normalise hidden rows over the batch.", "no")
    ] = None,
    residual: Annotated[
        bool | None, _option(NETWORK, "Add a layer's input to its output.", "no")
    ] = None,
    diagonal: Annotated[
        float | None,
        _option(NETWORK, "gcn: how much of the matrix's diagonal to add to it.", "0"),
    ] = None,
    alpha: Annotated[
        float | None, _option(NETWORK, "gcnii: share of the first rows in every layer.", "0.1")
    ] = None,
    theta: Annotated[
        float | None, _option(NETWORK, "gcnii: strength of each layer's weights.", "0.5")
    ] = None,
    shared_weights: Annotated[
        bool | None, _option(NETWORK, "gcnii: one matrix for both terms of a layer.", "yes")
    ] = None,
    aggregators: Annotated[
        str | None, _option(NETWORK, "pna: some of mean,max,min,std.", "mean,max")
    ] = None,
    scalers: Annotated[
        str | None,
        _option(NETWORK, "pna: identity,amplification,attenuation.", "identity,amplification"),
    ] = None,
    transform: Annotated[
        bool | None, _option(NETWORK, "pna: a layer on the rows before they are aggregated.", "no")
    ] = None,
    jump: Annotated[
        bool | None, _option(NETWORK, "pna: decode the rows of all layers side by side.", "no")
    ] = None,
    fanout: Annotated[
        str | None,
        _option(
            METHOD,
            "Neighbours sampled per node: one number, or one per layer, input first: 1,2.",
            "graphsage, shadow 5; graphfm-ib 1; vr-gcn 2",
        ),
    ] = None,
    nodes_per_layer: Annotated[
        str | None,
        _option(
            METHOD,
            "fastgcn, ladies, mvs-gcn: nodes drawn for a layer: one number, or one per layer.",
            "fastgcn 2000; ladies, mvs-gcn 1000",
        ),
    ] = None,
    normalize_rows: Annotated[
        bool | None,
        _option(METHOD, "ladies: scale what was drawn to each row's true total.", "yes"),
    ] = None,
    subgraph: Annotated[
        str | None,
        _option(
            METHOD,
            "graphsaint: node, edge or walk; shadow: khop or pagerank.",
            "graphsaint walk; shadow khop",
        ),
    ] = None,
    budget: Annotated[
        int | None,
        _option(
            METHOD,
            "graphsaint: nodes, edges or walks drawn; shadow, pagerank: nodes of a subgraph.",
            "graphsaint 2000; shadow 20",
        ),
    ] = None,
    walk_length: Annotated[int | None, _option(METHOD, "graphsaint: steps of a walk.", "2")] = None,
    coverage: Annotated[
        int | None,
        _option(METHOD, "graphsaint: times the graph is drawn over to count.", "50"),
    ] = None,
    depth: Annotated[
        int | None, _option(METHOD, "shadow, khop: steps from the target.", "2")
    ] = None,
    batch_size: Annotated[int | None, _option(METHOD, "Training nodes in a step.", "512")] = None,
    parts: Annotated[int | None, _option(METHOD, "Parts the graph is cut into.", "24")] = None,
    parts_per_batch: Annotated[int | None, _option(METHOD, "Parts in a step.", "4")] = None,
    partition: Annotated[
        str | None, _option(METHOD, "How to cut: metis, or random.", "metis")
    ] = None,
    edge_drop: Annotated[
        float | None,
        _option(METHOD, "gas, graphfm-ob: share of the edges left out of a step.", "0"),
    ] = None,
    beta: Annotated[
        str | None,
        _option(
            METHOD,
            "Momentum: weight of the fresh value, 0 to 1; or one per layer (ob: per hidden one).",
            "graphfm-ib 0.7; graphfm-ob 0.3",
        ),
    ] = None,
    start: Annotated[
        str | None,
        _option(METHOD, "A node's first history: fresh or zero; graphfm-ib: or features.", "fresh"),
    ] = None,
    whole_gradient: Annotated[
        bool | None,
        _option(METHOD, "graphfm-ib: do not scale gradients of neighbours by beta.", "no"),
    ] = None,
    partial: Annotated[
        str | None,
        _option(
            METHOD, "graphfm-ob: what the batch sees of a neighbour: rescaled or sum.", "rescaled"
        ),
    ] = None,
    threshold: Annotated[
        int | None,
        _option(
            METHOD,
            "graphfm-ob: move a neighbour only if it reads more than so many nodes of the batch.",
            "0",
        ),
    ] = None,
    exact_first_hop: Annotated[
        bool | None, _option(METHOD, "Aggregate raw features once for all, where it can be.", "yes")
    ] = None,
    compensate: Annotated[
        bool | None,
        _option(METHOD, "gas, graphfm-ob and -delta: gradients from beyond the batch.", "no"),
    ] = None,
    history: Annotated[
        str | None, _option(METHOD, "Number type of histories: fp32, bf16 or fp16.", "fp32")
    ] = None,
    refresh_histories: Annotated[
        bool | None, _option(METHOD, "Rewrite all histories at each evaluation.", "no")
    ] = None,
    lr: Annotated[float | None, _option(TRAINING, "Learning rate of Adam.", "0.01")] = None,
    weight_decay: Annotated[float | None, _option(TRAINING, "Weight decay of Adam.", "0")] = None,
    schedule: Annotated[
        str | None, _option(TRAINING, "Learning rate: constant, cosine or step.", "constant")
    ] = None,
    clip: Annotated[
        float | None, _option(TRAINING, "Largest norm of the gradient; 0 is no limit.", "0")
    ] = None,
    epochs: Annotated[int | None, _option(TRAINING, "Most epochs to train.", "100")] = None,
    steps_per_epoch: Annotated[
        int | None, _option(TRAINING, "At most so many steps in an epoch; 0 is all.", "0")
    ] = None,
    max_seconds: Annotated[
        float | None,
        _option(
            TRAINING, "Seconds, with preparation, after which no epoch begins; 0 is no limit.", "0"
        ),
    ] = None,
    patience: Annotated[
        int | None,
        _option(TRAINING, "Stop after so many epochs without a better score; 0 never.", "50"),
    ] = None,
    eval_every: Annotated[
        int | None, _option(TRAINING, "Epochs from one evaluation to the next.", "1")
    ] = None,
    staleness_every: Annotated[
        int | None, _option(TRAINING, "Epochs between measurements of staleness; 0 never.", "0")
    ] = None,
    seed: Annotated[int | None, _option(TRAINING, "Same seed, same numbers.", "0")] = None,
    deterministic: Annotated[
        bool | None, _option(TRAINING, "Same seed, same bits; a GPU is faster without.", "yes")
    ] = None,
    features: Annotated[
        str | None, _option(TRAINING, "Number type of features: as-is, fp32, bf16, fp16.", "as-is")
    ] = None,
    capture: Annotated[
        str | None,
        _option(TRAINING, "A step as one CUDA graph: auto (where it can be), on or off.", "auto"),
    ] = None,
    kernels: Annotated[
        str | None, _option(TRAINING, "GPU: auto (Triton's, where they fit) or plain.", "auto")
    ] = None,
    precision: Annotated[
        str | None,
        _option(TRAINING, "Matrix products: fp32, tf32 (a GPU's alone) or bf16.", "fp32"),
    ] = None,
    device: Annotated[str, _option(RUN, "auto, cpu or cuda.", "auto")] = "auto",
    out: Annotated[
        Path | None, _option(RUN, "Folder for the run.", "a new one under runs/")
    ] = None,
    checkpoint_every: Annotated[
        str | None,
        _option(
            RUN,
            "Seconds (30), or steps (500steps), between checkpoints; 0: only when interrupted.",
            "auto: less than a minute is lost",
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        _option(RUN, "Go on with the run in this folder; its settings are its own.", False),
    ] = None,
    json: Json = False,
) -> None:
    """Train a network on a graph and report its test score.

    Without options: GraphSAGE on the graph of Debian's packages.

    The epoch with the best validation score counts.
    Test nodes are looked at once, for that epoch.
    """
    options = {key: value for key, value in locals().items() if key not in NO_SETTINGS}
    options |= {
        "aggregators": _list(aggregators),
        "scalers": _list(scalers),
        "fanout": _list(fanout, int),
        "nodes_per_layer": _list(nodes_per_layer, int),
        "beta": _list(beta, float),
    }
    options = {name: value for name, value in options.items() if value is not None}
    interval = None if checkpoint_every is None else Interval.parse(checkpoint_every)
    if resume is not None:
        go_on(resume, interval, json, {"out": out, "recipe": recipe, **options})
        return
    if recipe is None:
        _train(options, out, interval, json)
        return
    known = recipe_of(recipe)
    settled = known.options(**options)
    departure = known.departure(settled)
    if departure is not None:
        say(departure)
    _train(settled, out, interval, json)
    if departure is None and known.paper is not None and "dataset" not in options:
        say(f"{known.row} on {known.run.dataset} has {known.paper:.4f} in the paper")


def _train(
    options: dict[str, Any], out: Path | None, interval: Interval | None, json: bool
) -> None:
    run = Run.make(**options)
    device = pick_device(run.device)
    check_capture(run.training, device)
    check_free(out or Path("runs") / "new")
    plan = foresee(run, device)
    if plan is not None:  # else the graph has to tell how large it is
        _tell(plan, run)
    graph = load(run.dataset, device=device, dtype=run.training.feature_type)
    check_trainable(graph)
    if plan is None:
        _tell(memory_plan(run, graph), run)
    out = out or new_path(run)
    say(
        f"{run.dataset}: {graph.num_nodes:,} nodes, {graph.num_edges:,} edges, "
        f"{graph.num_features} features, {graph.num_classes} classes; "
        f"{run.backbone} of {run.backbone_settings['layers']} layers, {run.method}, on {device}"
    )
    try:
        with stoppable(out) as stop_signal, ProgressBar(run.training.epochs) as bar:
            result = start_run(run, graph, [bar], out, interval=interval, stop_signal=stop_signal)
    finally:
        with suppress(OSError):
            out.rmdir()  # nothing was written to it
    report(result, json)


def _tell(plan: MemoryPlan, run: Run) -> None:
    plan.check(run)
    say(str(plan))


def _list(text: str | None, kind: type[Any] = str) -> Any:
    """'1,2' -> (1, 2)."""
    if text is None:
        return None
    try:
        return tuple(kind(item) for item in text.split(","))
    except ValueError:
        what = "whole numbers" if kind is int else "numbers"
        raise InputError(f"{text!r} is not a list of {what} with commas between") from None
