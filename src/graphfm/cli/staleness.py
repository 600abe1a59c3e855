"""graphfm staleness"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Annotated, Any

import typer
from torch import nn

from graphfm.backbones import make_backbone
from graphfm.cli.output import Json, print_json, say
from graphfm.data.datasets import load
from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.methods import METHODS
from graphfm.runs.run import Run, build, pick_device
from graphfm.training.callbacks import Callback, EpochRecord
from graphfm.training.loop import fit
from graphfm.training.setup import check_trainable
from graphfm.training.staleness import LayerStaleness
from graphfm.training.staleness import staleness as measure
from graphfm.training.trainer import Trainer

PUBLISHED = {"exact_first_hop": False}
PUBLISHED_OB = {**PUBLISHED, "start": "zero"}
FULL = "full batch"
FIRST_HOP = "gas, exact first hop"
DELTA = "graphfm-delta"
ROWS: dict[str, tuple[str, dict[str, Any]]] = {  # what a row is called; method and settings
    "gas": ("gas", PUBLISHED),
    "graphfm-ob, plain sum": ("graphfm-ob", {"partial": "sum", **PUBLISHED_OB}),
    "graphfm-ob, rescaled": ("graphfm-ob", {"partial": "rescaled", **PUBLISHED_OB}),
    FIRST_HOP: ("gas", {}),
    DELTA: ("graphfm-delta", {}),
    FULL: ("full", {}),
}


@dataclass(frozen=True)
class Row:
    """One method, over all seeds."""

    name: str
    tests: list[float]  # one per seed; none where the graph has no test nodes
    layers: list[LayerStaleness]  # means over the second half of the epochs, and over seeds

    @property
    def test(self) -> float | None:
        return fmean(self.tests) if self.tests else None

    @property
    def test_std(self) -> float | None:
        return stdev(self.tests) if len(self.tests) > 1 else None

    def to_json(self) -> dict[str, Any]:
        method, settings = ROWS[self.name]
        layers = [
            {"layer": s.depth, "score": _finite(s.score), "relative": _finite(s.relative)}
            for s in self.layers
        ]
        return {
            "name": self.name,
            "method": method,
            "settings": settings,
            "test": self.test,
            "test_std": self.test_std,
            "tests": self.tests,
            "layers": layers,
        }


class _Observer(Callback):
    """Measures staleness after each epoch of the second half."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer, self.seen = trainer, list[list[LayerStaleness]]()

    def on_epoch(self, record: EpochRecord, best: float) -> None:
        if record.epoch > self.trainer.training.epochs // 2:
            self.seen.append(measure(self.trainer))


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
    seeds: Annotated[int, typer.Option(help="Trainings of each method, seeds counting up.")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    json: Json = False,
) -> None:
    """Compare how stale histories get: the paper's Table 4 for one dataset.

    Trains each cluster method with the same settings and never refreshes a history.
    Staleness of a hidden layer: mean distance between what is remembered of a node and what the
    whole graph gives, and that relative to the norm; the mean over the second half of the epochs.
    Full batch takes as many steps as the others. Test scores are of the epoch best on validation.
    """
    options = {key: value for key, value in locals().items() if key not in ("json", "seeds")}
    if backbone in ("mlp", "sign", "sgc"):
        raise InputError(
            f"backbone {backbone} reads no neighbours in training; expected sage, gcn, gcnii or pna"
        )
    if layers < 2:
        raise InputError(f"layers is {layers}; expected 2 or more: the last layer has no history")
    if seeds < 1:
        raise InputError(f"seeds is {seeds}; expected 1 or more")
    for name in ROWS:
        _run(name, options, seeds - 1)  # refuse whatever is wrong before anything is trained
    graph = load(dataset, device=pick_device(device))
    check_trainable(graph)
    found = [_row(name, options, seeds, graph) for name in ROWS if _exists(name, options, graph)]
    if json:
        print_json({**options, "seeds": seeds, "rows": [row.to_json() for row in found]})
    else:
        _print_table(found)


def _run(name: str, options: Mapping[str, Any], number: int) -> Run:
    """The training of a row with the seed of that number."""
    method, settings = ROWS[name]
    given = {**options, **settings, "method": method, "patience": 0}
    given |= {"seed": options["seed"] + number, "beta": (options["beta"],)}
    if name == FULL:  # one step an epoch
        steps = math.ceil(options["parts"] / options["parts_per_batch"])
        given |= {"epochs": options["epochs"] * steps, "eval_every": steps}
        del given["parts"], given["parts_per_batch"]
    if method != "graphfm-ob":
        del given["beta"]
    run = Run.make(**given)
    METHODS[method](**run.method_settings)  # refuses bad settings
    return run


def _exists(name: str, options: Mapping[str, Any], graph: Graph) -> bool:
    """Does the network allow the method? If not, the user is told."""
    run = _run(name, options, 0)
    widths = graph.num_features, graph.num_classes
    network = make_backbone(run.backbone, *widths, **run.backbone_settings)
    linear = all(layer.is_linear for layer in network.layers)
    if name == DELTA and not linear:
        say(f"{name}: left out; it needs a linear aggregator, which {run.backbone} has not")
        return False
    if name == FIRST_HOP and not (linear and isinstance(network.encode, nn.Identity)):
        say(f"{name}: left out; {run.backbone} does not begin with a linear aggregate of features")
        return False
    return True


def _row(name: str, options: Mapping[str, Any], seeds: int, graph: Graph) -> Row:
    ended = [_train(name, _run(name, options, number), graph) for number in range(seeds)]
    tests = [test for test, _ in ended if test is not None]
    epochs = [measured for _, seen in ended for measured in seen]
    return Row(name, tests, [_mean(layer) for layer in zip(*epochs, strict=True)])


def _train(name: str, run: Run, graph: Graph) -> tuple[float | None, list[list[LayerStaleness]]]:
    """The test score, and the layers' staleness at each epoch of the second half."""
    trainer = build(run, graph)
    observer = _Observer(trainer)
    score = fit(trainer, [observer])
    test = "no test nodes" if score.test is None else f"test {score.test:.4f}"
    say(f"{name}, seed {run.training.seed}: {test}, {score.seconds_per_epoch:.3g} s an epoch")
    return score.test, observer.seen


def _mean(measured: Sequence[LayerStaleness]) -> LayerStaleness:
    """Of one layer, over epochs and seeds."""
    return LayerStaleness(
        measured[0].depth, fmean(m.score for m in measured), fmean(m.relative for m in measured)
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None  # JSON knows no infinity


def _print_table(rows: Sequence[Row]) -> None:
    depths = [layer.depth for layer in max((row.layers for row in rows), key=len)]
    table = [["method", "test", *(f"S^{k}" for k in depths), *(f"relative {k}" for k in depths)]]
    for row in rows:
        test = "-" if row.test is None else f"{row.test:.4f}"
        if row.test_std is not None:
            test += f" ± {row.test_std:.4f}"
        numbers = [f"{layer.score:.4f}" for layer in row.layers]
        numbers += [f"{layer.relative:.4f}" for layer in row.layers]
        table.append([row.name, test, *(numbers or ["-"] * (2 * len(depths)))])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for first, *others in table:
        cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        typer.echo("  ".join([f"{first:<{widths[0]}}", *cells]))
