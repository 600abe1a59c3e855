"""The same small grid for every method, the best on validation, then several seeds of it.

    python benchmarks/equal_tuning.py --datasets debian,wordnet.npz [--layers 2] [--workers 16]

Trainings of one network (SAGE of width 256) share the device, so that a GPU is busy with small
ones. Full batch takes 800 steps, the others their default epochs. The test score of a trial that
was not chosen is never used. Time and memory are those of the chosen setting alone, measured
afterwards. `--defaults` skips the grid, and trains every method with its defaults.
"""

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Iterator

import torch
import torch.multiprocessing as mp

from graphfm import load, train
from graphfm.runs.run import Run, build, pick_device
from graphfm.training.setup import seeded

METHODS: dict[str, dict[str, object]] = {
    "full batch": {"method": "full", "epochs": 800, "patience": 0, "eval_every": 10},
    "GraphSAGE, 1 neighbour": {"method": "graphsage", "fanout": (1,)},
    "GraphSAGE, 5 neighbours": {"method": "graphsage", "fanout": (5,)},
    "VR-GCN, 1 neighbour": {"method": "vr-gcn", "fanout": (1,)},
    "GNNAutoScale": {"method": "gas", "eval_every": 2},
    "GraphFM-IB as published, 1 neighbour, beta 0.3": {
        "method": "graphfm-ib", "fanout": (1,), "as_published": True, "beta": (0.3,)
    },
    "GraphFM-IB, 1 neighbour": {"method": "graphfm-ib", "fanout": (1,)},
}  # fmt: skip
GRID = {"lr": (0.001, 0.003, 0.01), "dropout": (0.3, 0.5)}
Job = tuple[str, int, str, dict[str, object], int]  # dataset, layers, row, settings, seed
GRAPHS: dict[str, object] = {}


def run(job: Job) -> tuple[Job, dict[str, float]]:
    """Train once, in a process that keeps the graphs it has loaded."""
    torch.set_num_threads(1)
    dataset, layers, row, settings, seed = job
    if dataset not in GRAPHS:
        GRAPHS[dataset] = load(dataset, device=pick_device("auto"))
    options = {**METHODS[row], **settings, "layers": layers, "seed": seed}
    score = train(GRAPHS[dataset], deterministic=False, **options).score
    return job, {"val": score.val, "test": score.test, "epoch": score.best_epoch}


def alone(job: Job, epochs: int = 4) -> dict[str, float]:
    """Seconds of an epoch and peak memory of a training that has the device for itself."""
    dataset, layers, row, settings, _ = job
    graph = load(dataset, device=pick_device("auto"))
    options = {**METHODS[row], **settings, "layers": layers}
    made = Run.make(dataset=dataset, deterministic=False, **options)
    trainer, seconds = build(made, graph), []
    with seeded(0, graph.device):
        for _ in range(epochs):
            began = time.perf_counter()
            trainer.epoch()
            seconds.append(time.perf_counter() - began)
    peak = torch.cuda.max_memory_allocated() if graph.device.type == "cuda" else 0
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats() if peak else None
    return {"seconds": statistics.median(seconds[1:]), "mebibytes": peak / 2**20}


def jobs(options: argparse.Namespace, rows: list[str]) -> Iterator[Job]:
    points = [dict(zip(GRID, values, strict=True)) for values in itertools.product(*GRID.values())]
    for layers, dataset in itertools.product(options.layers, options.datasets):
        for row, point in itertools.product(rows, [{}] if options.defaults else points):
            yield dataset, layers, row, point, 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--datasets", default="debian", type=lambda text: text.split(","))
    parser.add_argument("--layers", default=[2], type=lambda t: [int(n) for n in t.split(",")])
    parser.add_argument("--rows", default="", help="rows whose name starts with one of these (;)")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--defaults", action="store_true", help="no grid")
    parser.add_argument("--records", help="file for one line of JSON per training")
    options = parser.parse_args()
    rows = [row for row in METHODS if row.startswith(tuple(options.rows.split(";")))]
    found: dict[tuple[int, str, str], list[tuple[Job, dict[str, float]]]] = {}
    with mp.get_context("spawn").Pool(options.workers) as pool:

        def work(todo: list[Job]) -> None:
            for job, score in pool.imap_unordered(run, todo, 1):
                found.setdefault((job[1], job[0], job[2]), []).append((job, score))
                if options.records:
                    with open(options.records, "a") as stream:
                        stream.write(json.dumps([job, score]) + "\n")

        work(sorted(jobs(options, rows), key=lambda job: -job[1]))
        best = {key: max(tried, key=lambda one: one[1]["val"]) for key, tried in found.items()}
        tried, found = {key: len(value) for key, value in found.items()}, {}
        more = [(*job[:4], seed) for job, _ in best.values() for seed in range(1, options.seeds)]
        work(sorted(more, key=lambda job: -job[1]))
    print(
        "| layers | dataset | method | test | validation | looks | epoch, s | to best, s | MiB | "
        "settings |"
    )
    print("|" + "---|" * 10)
    for key, one in best.items():
        scores = [one[1], *(score for _, score in found.get(key, []))]
        tests, vals = [s["test"] for s in scores], [s["val"] for s in scores]
        spread = f" ± {statistics.stdev(tests):.4f}" if len(tests) > 1 else ""
        cost, settings = alone(one[0]), ", ".join(f"{n} {v}" for n, v in one[0][3].items())
        print(
            f"| {key[0]} | {key[1]} | {key[2]} | {statistics.mean(tests):.4f}{spread} | "
            f"{statistics.mean(vals):.4f} | {tried[key]} | {cost['seconds']:.3f} | "
            f"{cost['seconds'] * statistics.mean(s['epoch'] for s in scores):.2g} | "
            f"{cost['mebibytes']:,.0f} | {settings} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
