"""What was tried to close the gap to full batch: variants of GraphFM-IB with one neighbour.

    python benchmarks/momentum_variants.py --dataset wordnet.npz [--layers 4] [--only lag]

All rows train SAGE of width 256 with the same budget, by default 100 epochs at learning rate 0.001
with dropout 0.3 on a cosine schedule, and print the best validation score and the test score there.
The starting point is the whole gradient with beta 0.1, without lag correction and without dropout
of the average.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.multiprocessing as mp
from torch import Tensor

from graphfm import Method, load, train
from graphfm.estimators.aggregate_momentum import AggregateMomentum
from graphfm.estimators.layer_step import LayerStep
from graphfm.layer import GraphLayer
from graphfm.runs.run import Run, build, pick_device
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.tables.base import TableSpec
from graphfm.training.setup import seeded
from graphfm.training.trainer import Trainer

BASE = {"fanout": (1,), "correct_lag": False, "drop_average": False}
ROWS: dict[str, dict[str, Any]] = {
    "start": {},
    "paper's gradient": {"whole_gradient": False},
    "paper's gradient, beta 0.3": {"whole_gradient": False, "beta": (0.3,)},
    "beta 0.05": {"beta": (0.05,)},
    "beta 0.2": {"beta": (0.2,)},
    "beta 0.5": {"beta": (0.5,)},
    "beta growing from the input up": {"beta": "up"},
    "beta falling from the input up": {"beta": "down"},
    "beta falls with the learning rate": {"variant": "falling"},
    "momentum on the targets' inputs too": {"variant": "both"},
    "averaged weights (0.999)": {"averaged": 0.999},
    "two neighbours in the top layer": {"fanout": "top"},
    "histories refreshed at each evaluation": {"refresh_histories": True},
    "twice the epochs": {"epochs": 2},
    "half the batch": {"batch_size": 256},
    "twice the batch": {"batch_size": 1024},
    "weight decay 1e-4": {"weight_decay": 1e-4},
    "clipped gradient (0.5)": {"clip": 0.5},
    "lag corrected": {"correct_lag": True},
    "lag corrected, dropout of the average (default)": {"correct_lag": True, "drop_average": True},
}


@dataclass(kw_only=True)
class Falling(AggregateMomentum):
    """Beta falls with the learning rate, to a fifth of it at least."""

    def prepare(self, setup: Any) -> None:
        super().prepare(setup)
        self.factor = torch.ones((), device=setup.plan.device)

    def aggregate(self, step: LayerStep) -> Tensor:
        depth, ids = step.depth, step.block.dst_ids
        past, visits = self.histories[depth].pull(ids), self.visits[depth].pull(ids)
        share = self.betas[depth] * self.factor.clamp(min=0.2)
        share = torch.maximum(share.expand_as(visits), (visits < 10) / (visits + 1))
        fresh = step.layer.aggregate(step.h, step.block).float()
        blended = torch.lerp(past, fresh, share.expand_as(fresh))
        return blended.detach() + (fresh - fresh.detach())


@dataclass(kw_only=True)
class Both(AggregateMomentum):
    """The targets' own rows are averaged too, with a beta of 0.5."""

    def declare(self, layers: Sequence[GraphLayer], first: int) -> dict[str, TableSpec]:
        own = {f"own.{d}": TableSpec(width=layers[d].in_width) for d in range(first, len(layers))}
        return super().declare(layers, first) | own

    def sources(self, step: LayerStep) -> Tensor:
        if step.depth not in self.histories:
            return step.h
        number, ids = step.block.num_dst, step.block.dst_ids
        visits, own = self.visits[step.depth].pull(ids), step.h[:number]
        share = 0.5 / -torch.expm1((visits + 1) * math.log(0.5))
        past = self.tables[f"own.{step.depth}"].pull(ids)
        mean = torch.lerp(past, own.float(), share.expand_as(past)).detach()
        return torch.cat([mean + (own - own.detach()), step.h[number:]])

    def record(self, step: LayerStep, agg: Tensor, out: Tensor) -> None:
        if step.depth in self.histories:
            rows = step.h[: step.block.num_dst].float()
            self.tables[f"own.{step.depth}"].push(step.block.dst_ids, rows)
        super().record(step, agg, out)


def run(job: tuple[str, argparse.Namespace]) -> tuple[str, float, float]:
    """Train one row: name, best validation score, test score there."""
    torch.set_num_threads(1)
    row, options = job
    given = {**BASE, **ROWS[row]}
    layers, graph = options.layers, load(options.dataset, device=pick_device("auto"))
    if isinstance(given.get("beta"), str):
        spread = [0.05 * 2**depth for depth in range(layers)]
        given["beta"] = tuple(spread if given["beta"] == "up" else spread[::-1])
    if given["fanout"] == "top":
        given["fanout"] = (2, *(1,) * (layers - 1))
    training = {
        "layers": layers, "lr": options.lr, "dropout": options.dropout, "patience": 0,
        "epochs": options.epochs * given.pop("epochs", 1), "deterministic": False,
    }  # fmt: skip
    variant, averaged = given.pop("variant", None), given.pop("averaged", 0.0)
    if variant is None and not averaged:
        score = train(graph, method="graphfm-ib", **training, **given).score
        return row, score.val, score.test or 0.0
    method: Any = "graphfm-ib"
    if variant is not None:
        kind = {"falling": Falling, "both": Both}[variant]
        estimator = kind(beta=(0.1,), correct_lag=False, drop_average=False)
        method, given = Method(NeighborSampler(fanout=(1,), batch_size=512), estimator), {}
    made = Run.make(method=method, **training, **given)
    return (row, *fit(build(made, graph), averaged))


def fit(trainer: Trainer, averaged: float) -> tuple[float, float]:
    """Train with a changing beta, or evaluate a moving average of the weights."""
    parameters = [p.data for p in trainer.backbone.parameters()]
    mean, best = [p.clone() for p in parameters], (-1.0, -1.0)
    with seeded(trainer.training.seed, trainer.graph.device):
        for epoch in range(trainer.training.epochs):
            if isinstance(trainer.method.estimator, Falling):
                trainer.method.estimator.factor.fill_(trainer.training.factor(epoch))
            before = trainer.touched["steps"]
            trainer.epoch()
            keep = averaged ** (trainer.touched["steps"] - before)
            kept = [p.clone() for p in parameters]
            for ours, new in zip(mean, parameters, strict=True):
                ours.lerp_(new, 1 - keep if averaged else 1.0)
                new.copy_(ours)
            val = trainer.evaluate(("val",))["val"] or 0.0
            if val > best[0]:
                best = (val, trainer.evaluate(("test",))["test"] or 0.0)
            for new, old in zip(parameters, kept, strict=True):
                new.copy_(old)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dataset", default="debian")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", default="", help="rows whose name holds this")
    options = parser.parse_args()
    jobs = [(row, options) for row in ROWS if options.only in row]
    print("| variant | validation | test |\n|---|---|---|")
    with mp.get_context("spawn").Pool(options.workers) as pool:
        for row, val, test in pool.imap(run, jobs, 1):
            print(f"| {row} | {val:.4f} | {test:.4f} |", flush=True)


if __name__ == "__main__":
    main()
