"""Does momentum make one sampled neighbour enough? A table for one graph and depth.

    python benchmarks/momentum.py [--dataset debian] [--layers 2] [--dropout 0] [--seeds 3]

SAGE, one neighbour per node and layer, exact evaluation with all neighbours. Every method takes the
same number of optimiser steps; the best epoch, and beta, are chosen on validation.
"""

import argparse
import json
import math
import statistics
import sys

from graphfm import Graph, load, train
from graphfm.runs.run import pick_device

BETAS = (0.1, 0.3, 0.5, 0.7, 0.9)


def rows(options: argparse.Namespace) -> dict[str, dict[str, object]]:
    """Name of a row -> what is trained for it."""
    one = {"fanout": (1,), "batch_size": options.batch_size}
    table: dict[str, dict[str, object]] = {
        "MLP": {"backbone": "mlp", "method": "graphsage", **one},
        "GraphSAGE [1]": {"method": "graphsage", **one},
        "GraphSAGE [10]": {"method": "graphsage", **one, "fanout": (10,)},
    }
    for hop, name in ((False, "GraphFM-IB [1], as published"), (True, "GraphFM-IB [1]")):
        start = "fresh" if hop else "zero"
        for beta in BETAS:
            table[f"{name}, beta {beta}"] = {
                "method": "graphfm-ib", **one, "beta": (beta,), "exact_first_hop": hop,
                "start": start,
            }  # fmt: skip
    grown = tuple(min(1.0, 0.3 + 0.2 * depth) for depth in range(options.layers))
    table["GraphFM-IB [1], beta growing by layer"] = {"method": "graphfm-ib", **one, "beta": grown}
    table["GraphFM-IB [1], first hop only"] = {"method": "graphfm-ib", **one, "beta": (1.0,)}
    table["VR-GCN [1]"] = {"method": "vr-gcn", **one}
    table["full batch"] = {"method": "full"}
    return {k: v for k, v in table.items() if options.only in k}


def measure(graph: Graph, name: str, what: dict[str, object], options: argparse.Namespace) -> None:
    steps = math.ceil(int(graph.train_mask.sum()) / options.batch_size)
    common = {
        "layers": options.layers, "hidden": 128, "dropout": options.dropout, "lr": options.lr,
        "patience": 0, "device": options.device, "deterministic": False,
    }  # fmt: skip
    epochs = options.epochs * steps if what["method"] == "full" else options.epochs
    scores = [
        train(
            graph, seed=seed, epochs=epochs, eval_every=max(epochs // options.epochs, 1),
            **common, **what,
        ).score
        for seed in range(options.seeds)
    ]  # fmt: skip
    tests, vals = [s.test for s in scores], [s.val for s in scores]
    record = {
        "dataset": options.dataset, "layers": options.layers, "dropout": options.dropout,
        "row": name, "test": statistics.mean(tests), "val": statistics.mean(vals),
        "std": statistics.stdev(tests) if len(tests) > 1 else 0.0,
        "seconds_per_epoch": statistics.median(s.seconds_per_epoch for s in scores),
    }  # fmt: skip
    print(json.dumps(record), file=sys.stderr, flush=True)
    print(
        f"| {name} | {record['test']:.4f} ± {record['std']:.4f} | {record['val']:.4f} |", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dataset", default="debian")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--lr", type=float, default=0.003)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose name holds this")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    graph = load(options.dataset, device=pick_device(options.device))
    print("| method | test | validation |\n|---|---|---|")
    for name, what in rows(options).items():
        measure(graph, name, what, options)


if __name__ == "__main__":
    main()
