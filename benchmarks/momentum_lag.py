"""How much of a history's error is lag, and how much noise of sampling?

python benchmarks/momentum_lag.py [--beta 0.3] [--layers 4] [--seeds 3]

Trains GraphFM-IB for a few epochs and compares the aggregates that it remembers of training nodes
with exact ones. Then weights stand still while sampling goes on: what is left is noise, and what
has gone is lag.
"""

import argparse
import math
from statistics import fmean

import torch

from graphfm import Graph, load
from graphfm.layer import GraphLayer
from graphfm.norm import evaluating
from graphfm.runs.run import Run, build
from graphfm.training.trainer import Trainer


@torch.no_grad()
def errors(trainer: Trainer) -> dict[int, float]:
    """By layer, ||exact - remembered|| / ||exact|| over the training nodes."""
    ids = trainer.graph.train_mask.nonzero().squeeze(1)
    first, block = trainer.graph.x.float(), trainer.infer.adjacency.full_block()
    exact = list[torch.Tensor]()

    def output(depth: int, layer: GraphLayer, h: torch.Tensor) -> torch.Tensor:
        exact.append(layer.aggregate(h, block))
        return layer.update(exact[depth], block.targets(h, first))

    with evaluating(trainer.backbone):
        trainer.backbone.walk(first, output)
    histories = trainer.method.estimator.histories
    return {
        depth + 1: float((exact[depth][ids] - table.pull(ids)).norm() / exact[depth][ids].norm())
        for depth, table in histories.items()
    }


def measure(graph: Graph, options: argparse.Namespace, seed: int) -> dict[int, tuple[float, float]]:
    run = Run.make(
        method="graphfm-ib", fanout=(1,), beta=(options.beta,), dropout=0.0, lr=0.003,
        layers=options.layers, epochs=options.epochs, seed=seed,
    )  # fmt: skip
    trainer = build(run, graph)
    for _ in range(options.epochs):
        trainer.epoch()
    total = errors(trainer)
    trainer.optimizer.step = lambda *args: None  # type: ignore[method-assign]
    for _ in range(math.ceil(4 / options.beta)):  # what was there before is forgotten to 2 per cent
        trainer.epoch()
    noise = errors(trainer)
    return {layer: (total[layer], noise[layer]) for layer in total}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dataset", default="debian")
    parser.add_argument("--beta", type=float, default=0.3)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    graph = load(options.dataset)
    found = [measure(graph, options, seed) for seed in range(options.seeds)]
    for layer in found[0]:
        total, noise = (fmean(seed[layer][i] for seed in found) for i in (0, 1))
        lag = math.sqrt(max(total**2 - noise**2, 0.0))
        print(f"layer {layer}: error {total:.3f}, noise {noise:.3f}, lag {lag:.3f}")


if __name__ == "__main__":
    main()
