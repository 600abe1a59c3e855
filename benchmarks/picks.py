"""What independent picks cost beside picks at equal distances: a whole step, and the pick alone.

python benchmarks/picks.py [--device cpu|cuda] [--dataset debian] [--repeats 9] [--steps 20]

Both forms run in turns. A step is one of GraphSAGE, width 128, in an epoch of so many of them; on a
GPU it is captured where its shapes allow that, and so are the picks, all layers of a batch at once.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch

from graphfm import Graph, load
from graphfm.kernels.neighbor_pick import pick, pick_distinct
from graphfm.runs.run import Run, build

FANOUTS = ((25, 10), (5, 5), (1, 1, 1, 1), (10, 10, 10, 10))
FORMS = ("even", "independent")
BATCH, WARM_UP, PICKED = 512, 2, 10  # PICKED: batches in one timing of the picks


def trainer_of(graph: Graph, fanout: tuple[int, ...], picks: str, steps: int) -> Any:
    """A trainer of GraphSAGE."""
    run = Run.make(
        dataset="given", device=graph.device.type, method="graphsage", layers=len(fanout),
        hidden=128, batch_size=BATCH, fanout=fanout, picks=picks, steps_per_epoch=steps,
        dropout=0.0, precision="fp32",
    )  # fmt: skip
    return build(run, graph)


def picking(trainer: Any) -> Callable[[], None]:
    """Pick the neighbours in all layers of one batch, and nothing else."""
    sampler = trainer.method.sampler
    device, where = sampler.train_ids.device, sampler.adjacency.neighborhoods
    seeds = sampler.train_ids[:BATCH]
    blocks = sampler.sample(seeds, torch.Generator(device).manual_seed(0)).blocks
    layers = [
        (block.dst_ids, fanout) for block, fanout in zip(blocks, sampler.fanouts, strict=True)
    ]
    salt = torch.tensor([5 << 40], device=device)
    choose = pick_distinct if device.type == "cpu" or trainer.plan.crowded else pick

    def work() -> None:
        for ids, fanout in layers:
            choose(ids, salt, fanout, where, sampler.independent)

    if choose is pick_distinct:
        return work
    work()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def in_turns(works: Iterable[Callable[[], Any]], repeats: int, device: str) -> list[list[float]]:
    """The seconds of each call of each piece of work, after the calls that warm up."""
    times = [[] for _ in FORMS]
    for turn in range(WARM_UP + repeats):
        for kept, work in zip(times, works, strict=True):
            started = time.perf_counter()
            work()
            if device == "cuda":
                torch.cuda.synchronize()
            if turn >= WARM_UP:
                kept.append(time.perf_counter() - started)
    return times


def row(times: list[list[float]], number: int) -> str:
    """Milliseconds of one of `number` pieces in both forms, and their ratio with its spread."""
    even, free = (statistics.median(kept) / number * 1e3 for kept in times)
    ratios = sorted(b / a for a, b in zip(*times, strict=True))
    middle = statistics.median(ratios)
    return f"{even:.3g} | {free:.3g} | {middle:.2f} | {ratios[0]:.2f} to {ratios[-1]:.2f}"


def main() -> None:
    """One line for each list of fan-outs and each question."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dataset", default="debian")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--steps", type=int, default=20)
    given = parser.parse_args()
    graph = load(given.dataset, device=torch.device(given.device))
    print("| fan-out | what | even, ms | independent, ms | ratio | its spread |")
    print("|---|---|---:|---:|---:|---:|")
    for fanout in FANOUTS:
        name = ",".join(map(str, fanout))
        trainers = [trainer_of(graph, fanout, picks, given.steps) for picks in FORMS]
        epochs = in_turns([trainer.epoch for trainer in trainers], given.repeats, given.device)
        steps = min(given.steps, -(-int(graph.train_mask.sum()) // BATCH))
        print(f"| {name} | step | {row(epochs, steps)} |", flush=True)
        works = [picking(trainer) for trainer in trainers]
        many = [lambda work=work: [work() for _ in range(PICKED)] for work in works]
        print(f"| {name} | picks | {row(in_turns(many, given.repeats, given.device), PICKED)} |")


if __name__ == "__main__":
    main()
