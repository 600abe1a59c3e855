"""What each choice between paper, released code and this project changes, one row for each.

    python benchmarks/faithfulness.py [--dataset debian] [--seeds 3] [--epochs 10] [--only norm]

Two settings that differ in that choice alone are trained side by side; what the project does not
offer is patched in here. docs/faithfulness.md has the numbers.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import torch
from torch.nn.functional import linear

from graphfm import Graph, load
from graphfm.backbones.sage import SAGE, SAGELayer
from graphfm.data.matrix.adjacency import Adjacency, Factors
from graphfm.estimators import halo_history
from graphfm.estimators.halo_history import HaloHistory
from graphfm.norm import BatchNorm
from graphfm.runs.run import Run, build
from graphfm.samplers import cluster
from graphfm.samplers.cluster import ClusterSampler
from graphfm.training.inference import LayerwiseInference
from graphfm.training.loop import fit
from graphfm.training.trainer import Trainer

Around = Callable[[], AbstractContextManager[object]]
Options = dict[str, Any]
IB: Options = {
    "backbone": "sage", "method": "graphfm-ib", "layers": 2, "hidden": 64, "dropout": 0.0,
    "fanout": (1,), "beta": (0.9,), "start": "zero", "exact_first_hop": False, "lr": 0.003,
}  # fmt: skip
GAS: Options = {
    "backbone": "gcn", "method": "gas", "layers": 3, "hidden": 64, "dropout": 0.5,
    "batch_norm": True, "exact_first_hop": False,
}  # fmt: skip
OB: Options = {**GAS, "method": "graphfm-ob", "start": "zero", "partial": "sum"}
PNA: Options = {**GAS, "backbone": "pna", "hidden": 32}


@dataclass(frozen=True)
class Setting:
    """A training: its options, and what is patched around it or done to its graph and trainer."""

    options: Options
    around: Around = nullcontext
    change: Callable[[Trainer], None] = lambda trainer: None
    prepare: Callable[[Graph], Graph] = lambda graph: graph

    def score(self, graph: Graph, seed: int, epochs: int) -> float:
        every = {"epochs": epochs, "eval_every": 2, "patience": 0, "device": "cpu"}
        run = Run.make(**{**every, **self.options, "seed": seed})
        with self.around():
            trainer = build(run, self.prepare(graph))
            self.change(trainer)
            test = fit(trainer).test
        assert test is not None
        return test


@dataclass(frozen=True)
class Choice:
    """Two settings by name; the second is the first with some changes."""

    what: str
    first: str
    second: str
    base: Options
    changes: Options = field(default_factory=dict)
    patches: dict[str, Any] = field(default_factory=dict)  # of the second `Setting`

    def settings(self) -> tuple[Setting, Setting]:
        return Setting(self.base), Setting({**self.base, **self.changes}, **self.patches)


def standardise(graph: Graph) -> Graph:
    return replace(graph, x=(graph.x - graph.x.mean(0)) / graph.x.std(0).clamp(min=1e-6))


@contextmanager
def itself_in_the_average() -> Iterator[None]:
    """Mean over N_v and v (the paper's equation 4), and no weights for the own row alone."""

    def normalize(degree: torch.Tensor, loop: torch.Tensor) -> Factors:
        return Factors(row=1 / (degree + 1), diagonal=1 / (degree + 1))

    def adjacency(self: SAGE, graph: Graph) -> Adjacency:
        return Adjacency.of(graph, normalize)

    def update(self: SAGELayer, agg: torch.Tensor, targets: Any) -> torch.Tensor:
        of_neighbors = self.weight[:, : self.in_width]
        return self.finish(linear(agg, of_neighbors, self.bias), targets)

    with patch.object(SAGE, "adjacency", adjacency), patch.object(SAGELayer, "update", update):
        yield


def with_dropout(trainer: Trainer) -> None:
    """Histories are written by the pass that takes the loss."""
    trainer.plan = replace(trainer.plan, recording_pass=False)


def own_statistics() -> AbstractContextManager[object]:
    """The halo is normalised as a batch of its own."""
    return patch.object(halo_history, "frozen_statistics", lambda layer: nullcontext())


def norm_in_training_only() -> AbstractContextManager[object]:
    inference = LayerwiseInference.__call__

    def bare(self: LayerwiseInference, *arguments: Any) -> torch.Tensor:
        with patch.object(BatchNorm, "forward", lambda self, x: x):
            return inference(self, *arguments)

    return patch.object(LayerwiseInference, "__call__", bare)


def no_residual_of_the_halo() -> AbstractContextManager[object]:
    update = HaloHistory._update

    def bare(self: HaloHistory, step: Any, *given: Any) -> torch.Tensor:
        with patch.object(step.layer, "residual", False):
            return update(self, step, *given)

    return patch.object(HaloHistory, "_update", bare)


def fewer_edges_to_the_halo() -> AbstractContextManager[object]:
    from_halo = ClusterSampler._from_halo

    def fewer(self: ClusterSampler, block: Any) -> Any:
        view, dice = from_halo(self, block), torch.default_generator
        return replace(view, edges=cluster._without_some(view.edges, self.edge_drop, dice))

    return patch.object(ClusterSampler, "_from_halo", fewer)


class Inherited:
    """Histories begin as the training before has left them."""

    def __init__(self) -> None:
        self.before: dict[str, torch.Tensor] = {}

    def __call__(self, trainer: Trainer) -> None:
        tables: dict[str, Any] = trainer.method.estimator.histories_by_name()
        for name, table in tables.items():
            if name in self.before:
                table.rows.copy_(self.before[name])
        self.before = {name: table.rows for name, table in tables.items()}


DRY, PLAIN = {**OB, "dropout": 0.0}, {**GAS, "batch_norm": False}
JOINED = {**PNA, **{key: OB[key] for key in ("method", "start", "partial")}, "jump": True}
CHOICES = (
    Choice("first aggregate of IB", "sampled", "exact", IB, {"exact_first_hop": True}),
    Choice("first aggregate of OB", "of the past", "exact", OB, {"exact_first_hop": True}),
    Choice("IB starts from", "zero", "features", IB, {"start": "features"}),
    Choice("IB starts from", "zero", "the first fresh value", IB, {"start": "fresh"}),
    Choice(
        "IB averages", "neighbours", "neighbours and the node", IB,
        patches={"around": itself_in_the_average},
    ),
    Choice("beta of IB", "0.9", "0.7", IB, {"beta": (0.7,)}),
    Choice("IB's histories between seeds", "reset", "kept", IB, patches={"change": Inherited()}),
    Choice("features", "as given", "standardised", IB, patches={"prepare": standardise}),
    Choice("evaluation", "every 2nd epoch", "at the end", IB, {"eval_every": 1000}),
    Choice("halo update of OB", "partial sum", "rescaled", OB, {"partial": "rescaled"}),
    Choice("OB starts from", "zero", "the first fresh value", OB, {"start": "fresh"}),
    Choice("threshold c of OB", "0", "4", OB, {"threshold": 4}),
    Choice(
        "messages of OB", "without dropout", "after dropout", OB, patches={"change": with_dropout}
    ),
    Choice(
        "batch norm of the halo", "running statistics", "its own, which move them", DRY,
        patches={"around": own_statistics},
    ),
    Choice(
        "batch norm of GCN, unset", "nowhere", "in training alone", PLAIN, {"batch_norm": True},
        {"around": norm_in_training_only},
    ),
    Choice("batch norm of GCN", "unset", "set", PLAIN, {"batch_norm": True}),
    Choice(
        "residual of the halo", "applied", "left out", {**OB, "residual": True},
        patches={"around": no_residual_of_the_halo},
    ),
    Choice(
        "refresh after each epoch", "no", "yes", {**OB, "eval_every": 1},
        {"refresh_histories": True},
    ),
    Choice("edge dropping", "0", "0.8", OB, {"edge_drop": 0.8}),
    Choice(
        "edges dropped", "in the batch", "also towards the halo", {**OB, "edge_drop": 0.8},
        patches={"around": fewer_edges_to_the_halo},
    ),
    Choice("PNA aggregates", "rows", "a layer of the rows", PNA, {"transform": True}),
    Choice("PNA decodes", "the last layer", "all layers", PNA, {"jump": True}),
    Choice("momentum of that", "beta 0.3", "beta 0", JOINED, {"beta": (0.0,)}),
    Choice(
        "tuning of GNNAutoScale", "its own", "GraphFM-OB's", {**GAS, "layers": 2, "dropout": 0.3},
        {"hidden": 128, "dropout": 0.5, "clip": 2.0},
    ),
)  # fmt: skip


def measure(graph: Graph, setting: Setting, options: argparse.Namespace) -> list[float]:
    if isinstance(setting.change, Inherited):  # from a training before the first
        setting.score(graph, options.seeds, options.epochs)
    return [setting.score(graph, seed, options.epochs) for seed in range(options.seeds)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dataset", default="debian")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--only", default="", help="choices that hold this")
    options = parser.parse_args()
    graph, known = load(options.dataset), dict[str, list[float]]()
    print(
        "| choice | A | B | A, test | B, test | B - A |\n|---|---|---|---:|---:|---:|", flush=True
    )
    for choice in CHOICES:
        if options.only not in choice.what:
            continue
        pair = []
        for setting in choice.settings():
            key = repr(setting)
            known[key] = known.get(key) or measure(graph, setting, options)
            pair.append(known[key])
        print(json.dumps({"choice": choice.what, "tests": pair}), file=sys.stderr, flush=True)
        a, b = (statistics.mean(tests) for tests in pair)
        differences = [after - before for before, after in zip(*pair, strict=True)]  # by seed
        spread = [statistics.stdev(of) if len(of) > 1 else 0.0 for of in (*pair, differences)]
        print(
            f"| {choice.what} | {choice.first} | {choice.second} | {a:.4f} ± {spread[0]:.4f} "
            f"| {b:.4f} ± {spread[1]:.4f} | {b - a:+.4f} ± {spread[2]:.4f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
