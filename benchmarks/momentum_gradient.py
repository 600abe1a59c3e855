"""Which gradient does momentum estimate? Its error against full batch, layer by layer.

    python benchmarks/momentum_gradient.py [--layers 4] [--seeds 3] [--epochs 5]

After a few epochs, for each form of GraphFM-IB: the error of the remembered aggregates of training
nodes, the cosine of a batch's gradient with the full-batch one, and the bias, which is the error of
the mean gradient over an epoch. Dropout is off; SAGE of width 128; one neighbour per layer.
"""

import argparse
from collections import defaultdict
from statistics import fmean, stdev

import torch

from graphfm import load
from graphfm.diagnostics.gradient import gradient_error
from graphfm.layer import GraphLayer
from graphfm.norm import evaluating
from graphfm.runs.run import Run, build
from graphfm.training.trainer import Trainer

PAPER = {"whole_gradient": False, "correct_lag": False}
FORMS = {
    "beta 1 (no momentum)": {"beta": (1.0,)},
    "paper's gradient, beta 0.3": {**PAPER, "beta": (0.3,)},
    "paper's gradient, beta 0.1": {**PAPER, "beta": (0.1,)},
    "whole gradient, beta 0.1": {"correct_lag": False},
    "whole gradient, lag corrected, beta 0.1 (default)": {},
}


@torch.no_grad()
def history_errors(trainer: Trainer) -> dict[str, float]:
    """By layer, ||exact - remembered|| / ||exact|| over the training nodes."""
    ids = trainer.graph.train_mask.nonzero().squeeze(1)
    first, block = trainer.graph.x.float(), trainer.infer.adjacency.full_block()
    exact = list[torch.Tensor]()

    def output(depth: int, layer: GraphLayer, h: torch.Tensor) -> torch.Tensor:
        exact.append(layer.aggregate(h, block))
        return layer.update(exact[depth], block.targets(h, first))

    with evaluating(trainer.backbone):
        trainer.backbone.walk(first, output)
    return {
        f"layer {d + 1}": float((exact[d][ids] - table.pull(ids)).norm() / exact[d][ids].norm())
        for d, table in trainer.method.estimator.histories.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dataset", default="debian")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.002)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    graph = load(options.dataset)
    names = [f"layer {number + 1}" for number in range(options.layers)]
    print(f"| form | | {' | '.join(names)} |")
    print(f"|---|---|{'---|' * options.layers}")
    for form, settings in FORMS.items():
        found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for seed in range(options.seeds):
            run = Run.make(
                method="graphfm-ib", hidden=128, dropout=0.0, layers=options.layers, seed=seed,
                lr=options.lr, schedule="constant", epochs=options.epochs, **settings,
            )  # fmt: skip
            trainer = build(run, graph)
            for _ in range(options.epochs):
                trainer.epoch()
            for name, error in history_errors(trainer).items():
                found["history error"][name].append(error)
            for layer in gradient_error(trainer):
                found["cosine of a batch"][layer.name].append(layer.cosine)
                found["bias of the gradient"][layer.name].append(layer.bias)
        for what, by_layer in found.items():
            cells = [spread(by_layer[name]) if name in by_layer else "-" for name in names]
            print(f"| {form} | {what} | {' | '.join(cells)} |", flush=True)


def spread(values: list[float]) -> str:
    """Mean and standard deviation."""
    around = stdev(values) if len(values) > 1 else 0.0
    return f"{fmean(values):.2f} ± {around:.2f}"


if __name__ == "__main__":
    main()
