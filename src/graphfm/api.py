"""The front door for Python programs: `train`, `resume`, `load_model` and `compare`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfm.checkpointing.schedule import Interval
from graphfm.checkpointing.signals import StopSignal
from graphfm.data.graph import Graph
from graphfm.data.graph.edge_columns import edge_columns
from graphfm.errors import InputError
from graphfm.runs.execute import explained, fit, fit_in
from graphfm.runs.memory_plan import MemoryPlan
from graphfm.runs.model import Model
from graphfm.runs.named import BackboneLike, MethodLike
from graphfm.runs.options import show_options
from graphfm.runs.own_model import CallModel, ModelLike, choose_model, network_again
from graphfm.runs.run import Run, build, load_graph, pick_device
from graphfm.training.callbacks import Callback, Score
from graphfm.training.trainer import Trainer

if TYPE_CHECKING:
    from torch import nn

    from graphfm.experiments.compare import Row, Sweep
    from graphfm.pyg.certificate import Certificate

log = logging.getLogger("graphfm")
IN_MEMORY = "in-memory"  # the dataset of a run whose graph has neither a name nor a file


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """A finished training: its settings, its score, its model, and its folder if it has one."""

    run: Run
    score: Score
    model: Model
    out: Path | None

    @property
    def module(self) -> nn.Module:
        """The trained network: the user's own module, if one was given as the model."""
        return self.model.module

    def to_json(self) -> dict[str, Any]:
        return {
            "dataset": self.run.dataset,
            "method": self.run.method,
            "backbone": self.run.backbone,
            "layers": self.model.backbone.num_blocks,
            "seed": self.run.training.seed,
            **asdict(self.score),
            "out": None if self.out is None else str(self.out),
        }


def train(
    graph: Graph | str | Path,
    *,
    method: MethodLike = "full",
    backbone: BackboneLike | None = None,
    model: ModelLike | None = None,
    model_options: Mapping[str, Any] | None = None,
    call: CallModel | None = None,
    device: str = "auto",
    out: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint_every: str = "auto",
    **options: Any,
) -> Result:
    """Train on a graph, a dataset's name, a file or a folder.

    `train(graph, backbone="gcn", method="full", layers=2, hidden=64, lr=0.01, epochs=100)`.
    `method` is a name, "package.module:function", a function that returns a `Method` (its
    parameters are settings like those below), or a `Method`. `backbone` is a name,
    "package.module:Class" or a subclass of `Backbone`; without one it is sage, or the method's own.
    `model` is a network of PyG instead: a module, which is trained in place, or a function or class
    that makes one from `model_options`, also as "package.module:function"; `call(net, batch)` says
    how it is called, if not by x, edge_index and the names of edge data (docs/pyg.md).
    With `out` the run is written to that folder, with checkpoints for `resume`: `checkpoint_every`
    is "auto", seconds ("30"), steps ("500steps") or "0" (no checkpoints).
    """
    if not isinstance(graph, Graph | str | Path):
        raise InputError(
            f"cannot train on a {type(graph).__name__}; expected a Graph (Graph.from_pyg takes a "
            "PyG Data), the name of a dataset, a file or a folder"
        )
    name = IN_MEMORY if isinstance(graph, Graph) else str(graph)
    network = _network(backbone, model, model_options, call)
    what: dict[str, Any] = {"method": method, "backbone": network, "device": device}
    run = Run.make(**{"dataset": name, **what, **options})
    if not isinstance(graph, Graph):
        graph = load_graph(run)
    return start(run, graph, callbacks, out, interval=Interval.parse(checkpoint_every))


show_options(train)  # for help() and completion


def resume(
    path: str | Path,
    graph: Graph | None = None,
    *,
    method: MethodLike | None = None,
    backbone: BackboneLike | None = None,
    model: ModelLike | None = None,
    call: CallModel | None = None,
    callbacks: Sequence[Callback] = (),
    interval: Interval | None = None,
    stop_signal: StopSignal | None = None,
) -> Result:
    """Continue the run in a folder from its newest checkpoint; a finished run is only read.

    `graph` is needed if the run was trained on a graph in memory. A method, backbone or model of
    your own has to be given again: what a folder names is never imported.
    """
    from graphfm.runs.folder import RunFolder
    from graphfm.runs.reader import read_config, read_run, read_score

    path = Path(path)
    backbone = network_again(path, backbone, model, call)
    run, config = read_config(path, method=method, backbone=backbone)
    run.require("method", "backbone")
    with RunFolder.reopen(path, run, config) as folder:
        score = read_score(path)
        if score is not None:
            _, trained, _ = read_run(path, backbone=backbone)
            return Result(run=run, score=score, model=trained, out=path)
        graph = _same_graph(run, config, graph)
        if folder.checkpoints.is_empty:  # damaged ones are reported when they are read
            log.warning(
                "there is no usable checkpoint in %s; training starts from the beginning",
                path,
            )
        interval = interval or Interval.parse(config.get("checkpoint_every", "auto"))
        with explained(run, graph):
            trainer = build(run, graph)
            score = fit_in(folder, run, trainer, callbacks, interval, stop_signal)
    return _result(run, score, trainer, path)


def start(
    run: Run,
    graph: Graph,
    callbacks: Sequence[Callback] = (),
    out: str | Path | None = None,
    *,
    interval: Interval | None = None,
    stop_signal: StopSignal | None = None,
    plan: MemoryPlan | None = None,
) -> Result:
    """Train a run. Nothing is written before all settings are checked.

    `plan` is the memory plan, if the graph and the plan were already checked.
    """
    path, interval = None if out is None else Path(out), interval or Interval()
    log.debug("settings: %s", run)
    with explained(run, graph, plan):
        trainer = build(run, graph, plan)
        if path is None:
            score = fit(run, trainer, callbacks)
        else:
            from graphfm.runs.folder import RunFolder

            with RunFolder.create(path, run, trainer.graph, interval) as folder:
                score = fit_in(folder, run, trainer, callbacks, interval, stop_signal)
    return _result(run, score, trainer, path)


def load_model(
    path: str | Path,
    *,
    backbone: BackboneLike | None = None,
    model: ModelLike | None = None,
    call: CallModel | None = None,
) -> Model:
    """Load the model of a run's folder. A backbone or model of your own has to be given again."""
    from graphfm.runs.reader import read_run

    return read_run(Path(path), backbone=network_again(Path(path), backbone, model, call))[1]


def check_model(
    model: ModelLike, graph: Graph, *, options: Mapping[str, Any] | None = None,
    call: CallModel | None = None,
) -> Certificate:  # fmt: skip
    """Say which methods can train a network of PyG on a graph, and why not the others.

    `print(check_model(net, graph))`. The network stays as it is.
    """
    named = choose_model(model, options, call)
    named.code.planned(graph.num_features, graph.num_classes, edge_columns(graph))
    certificate: Certificate = named.code.certificate
    return certificate


def compare(
    dataset: str | Path,
    methods: str | Sequence[MethodLike] = "all",
    *,
    backbone: BackboneLike | None = None,
    model: ModelLike | None = None,
    model_options: Mapping[str, Any] | None = None,
    seeds: int = 3,
    budget_epochs: int | None = None,
    budget_seconds: float | None = None,
    patience: int | None = None,
    sweep: Sweep | Sequence[Sweep] | None = None,
    own: Mapping[str, Mapping[str, Any]] | None = None,
    device: str = "auto",
    out: str | Path | None = None,
    columns: str | Sequence[str] | None = None,
    **options: Any,
) -> list[Row]:
    """Train several methods on one graph, network and budget, and return the table's rows.

    `compare("debian", ["graphsage", my_method], seeds=2, budget_epochs=20, hidden=64)`. Every
    training runs in a process of its own, which imports a method of your own from its module;
    trainings found in `out` are not run again.

    `seeds` is the number of trainings of each method, `budget_epochs` or `budget_seconds` the most
    that each may take, and `patience` the number of epochs without a better score after which one
    ends (0: never). `sweep` tries values of an option, `Sweep("fanout", (1, 2, 4))` from
    `graphfm.experiments.compare`; several make a grid. `own` has options of single methods:
    `{"graphsage": {"fanout": (2, 2)}}`. `columns` are those of the tables, such as "test,settings".
    The options below go to every method that takes them. `model` is the function or class that
    makes a network of PyG from `model_options`.
    """
    from graphfm.experiments.compare import Plan
    from graphfm.experiments.compare import compare as run_plan

    if not isinstance(dataset, str | Path):
        raise InputError(
            f"cannot compare on a {type(dataset).__name__}: trainings run in processes of their "
            "own and read the graph by name; save it (graph.save) and give the .npz file"
        )
    network = _network(backbone, model, model_options)
    plan = Plan.make(
        dataset=str(dataset), methods=methods, backbone=network, seeds=seeds, device=device,
        budget_epochs=budget_epochs, budget_seconds=budget_seconds, patience=patience, sweep=sweep,
        own=own, **options,
    )  # fmt: skip
    return run_plan(plan, out, columns=columns)


show_options(compare, without=("seed", "epochs", "max_seconds"))


def _network(
    backbone: BackboneLike | None,
    model: ModelLike | None,
    options: Mapping[str, Any] | None = None,
    call: CallModel | None = None,
) -> BackboneLike | None:
    """The backbone that was given, or the model, but not both."""
    if model is None:
        if options or call is not None:
            raise InputError("model_options and call belong to a model; give model as well")
        return backbone
    if backbone is not None:
        raise InputError("backbone and model were both given; give one of them")
    return choose_model(model, options, call)


def _same_graph(run: Run, config: Mapping[str, Any], graph: Graph | None) -> Graph:
    """The graph that a run began with; refuses any other."""
    about, kind, device = config["graph"], config["machine"].get("kind"), pick_device(run.device)
    if kind not in (None, device.type):
        raise InputError(
            f"the run began on {kind}, but here it would continue on {device.type}; continue on "
            f"{kind}, or start a new run"
        )
    if graph is None:
        if run.dataset == IN_MEMORY:
            raise InputError(
                "the run was trained on a graph in memory; continue in Python: resume(RUN, graph)"
            )
        path = about.get("path")
        if path is not None and not Path(path).exists():
            raise InputError(
                f"the graph of the run is missing: {path}; restore it, or continue in Python: "
                "resume(RUN, graph)"
            )
        graph = load_graph(replace(run, dataset=path or run.dataset))
    graph = graph.with_features(run.training.feature_type or graph.x.dtype)
    if graph.fingerprint != about.get("fingerprint"):
        raise InputError(
            f"{run.dataset} is not the graph that the run began with: it has changed since, or was "
            "made on another kind of device; restore it, or start a new run"
        )
    return graph


def _result(run: Run, score: Score, trainer: Trainer, out: Path | None) -> Result:
    return Result(run=run, score=score, model=Model.of(trainer), out=out)
