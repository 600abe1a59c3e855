"""What momentum does to the gradient: its cosine with the full-batch gradient, layer by layer.

python benchmarks/momentum_gradient.py [--beta 0.3] [--whole-gradient] [--layers 4]
"""

import argparse

from graphfm import load, train
from graphfm.diagnostics.gradient import gradient_error
from graphfm.run import Run, build


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dataset", default="debian")
    parser.add_argument("--beta", type=float, default=0.3)
    parser.add_argument("--whole-gradient", action="store_true")
    parser.add_argument("--layers", type=int, default=4)
    options = parser.parse_args()
    graph = load(options.dataset)
    settings = {
        "method": "graphfm-ib", "fanout": (1,), "beta": (options.beta,), "dropout": 0.0,
        "whole_gradient": options.whole_gradient, "layers": options.layers, "lr": 0.003,
        "patience": 0,
    }  # fmt: skip
    score = train(graph, epochs=10, **settings).score
    print(f"beta {options.beta}: validation {score.val:.4f}, test {score.test:.4f} after 10 epochs")
    trainer = build(Run.make(epochs=3, **settings), graph)
    for _ in range(3):
        trainer.epoch()
    for layer in gradient_error(trainer, batches=12):
        print(f"{layer.name}: relative error {layer.relative:.3f}, cosine {layer.cosine:.3f}")


if __name__ == "__main__":
    main()
