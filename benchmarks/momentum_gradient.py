"""What momentum does to the gradient: its cosine with the full-batch gradient, layer by layer.

python benchmarks/momentum_gradient.py [--beta 0.3] [--whole-gradient] [--layers 4] [--seeds 3]
"""

import argparse
from collections import defaultdict
from statistics import fmean, stdev

from graphfm import load, train
from graphfm.diagnostics.gradient import gradient_error
from graphfm.runs.run import Run, build


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dataset", default="debian")
    parser.add_argument("--beta", type=float, default=0.3)
    parser.add_argument("--whole-gradient", action="store_true")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    graph = load(options.dataset)
    settings = {
        "method": "graphfm-ib", "fanout": (1,), "beta": (options.beta,), "dropout": 0.0,
        "whole_gradient": options.whole_gradient, "layers": options.layers, "lr": 0.003,
        "patience": 0,
    }  # fmt: skip
    vals, cosines = [], defaultdict(list)
    for seed in range(options.seeds):
        vals.append(train(graph, epochs=10, seed=seed, **settings).score.val)
        trainer = build(Run.make(epochs=3, seed=seed, **settings), graph)
        for _ in range(3):
            trainer.epoch()
        for layer in gradient_error(trainer, batches=12):
            cosines[layer.name].append(layer.cosine)
    name = f"beta {options.beta}{', whole gradient' if options.whole_gradient else ''}"
    print(f"{name}: " + ", ".join(f"{k} {spread(v, 2)}" for k, v in cosines.items()))
    print(f"{name}: validation {spread(vals, 4)} after 10 epochs")


def spread(values: list[float], digits: int) -> str:
    """Mean and standard deviation."""
    around = stdev(values) if len(values) > 1 else 0.0
    return f"{fmean(values):.{digits}f} ± {around:.{digits}f}"


if __name__ == "__main__":
    main()
