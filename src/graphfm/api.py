"""The front door for Python programs: `train`, `resume`, `load_model` and `check_model`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
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
from graphfm.runs.own_model import (
    CallModel,
    ModelLike,
    choose_model,
    given_network,
    modes_kept,
    network_again,
    refuse_other,
)
from graphfm.runs.run import Run, build, load_graph
from graphfm.runs.same_graph import IN_MEMORY as IN_MEMORY
from graphfm.runs.same_graph import same_graph
from graphfm.training.callbacks import Callback, Score
from graphfm.training.own_parts import (
    OwnLoss,
    OwnOptimizer,
    OwnParts,
    OwnSchedule,
    settled_parts,
)
from graphfm.training.trainer import Trainer

if TYPE_CHECKING:
    from torch import nn

    from graphfm.pyg.certificate import Certificate

log = logging.getLogger("graphfm")


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
            "layers": self.run.backbone_settings.get("layers"),  # None: a model of one's own
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
    Three options below also take a function of your own: `loss(outputs, y)` returns a loss for each
    row, `optimizer(parameters)` a `torch.optim.Optimizer`, and `schedule(epoch)` the factor of the
    learning rate.
    With `out` the run is written to that folder, with checkpoints for `resume`: `checkpoint_every`
    is "auto", seconds ("30"), steps ("500steps") or "0" (no checkpoints).
    """
    if not isinstance(graph, Graph | str | Path):
        raise InputError(
            f"cannot train on a {type(graph).__name__}; expected a Graph (Graph.from_pyg takes a "
            "PyG Data), the name of a dataset, a file or a folder"
        )
    options = settled_parts(options)
    name = IN_MEMORY if isinstance(graph, Graph) else str(graph)
    network = given_network(backbone, model, model_options, call)
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
    loss: OwnLoss | None = None,
    optimizer: OwnOptimizer | None = None,
    schedule: OwnSchedule | None = None,
    callbacks: Sequence[Callback] = (),
    interval: Interval | None = None,
    stop_signal: StopSignal | None = None,
) -> Result:
    """Continue the run in a folder from its newest checkpoint; a finished run is only read.

    `graph` is needed if the run was trained on a graph in memory. A method, backbone, model, loss,
    optimizer or schedule of your own has to be given again: what a folder names is never imported.
    """
    from graphfm.runs.folder import RunFolder
    from graphfm.runs.reader import read_config, read_run, read_score

    path = Path(path)
    backbone = network_again(path, backbone, model, call)
    parts = OwnParts(loss=loss, optimizer=optimizer, schedule=schedule)
    run, config = read_config(path, method=method, backbone=backbone, own_parts=parts)
    run.require("method", "backbone")
    with RunFolder.reopen(path, run, config) as folder:
        score = read_score(path)
        if score is not None:
            _, trained, _ = read_run(path, backbone=backbone)
            return Result(run=run, score=score, model=trained, out=path)
        parts.require(config["run"].get("own_parts", {}), run.to_json().get("own_parts", {}))
        graph = same_graph(run, config, graph)
        if folder.checkpoints.is_empty:  # damaged ones are reported when they are read
            text = "there is no usable checkpoint in %s; training starts from the beginning"
            log.warning(text, path)
        interval = interval or Interval.parse(config.get("checkpoint_every", "auto"))
        with explained(run, graph), modes_kept(run.named_backbone):
            trainer = build(run, graph)
            refuse_other(run.named_backbone, config.get("model"))
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
    with explained(run, graph, plan), modes_kept(run.named_backbone):
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


def _result(run: Run, score: Score, trainer: Trainer, out: Path | None) -> Result:
    return Result(run=run, score=score, model=Model.of(trainer), out=out)
