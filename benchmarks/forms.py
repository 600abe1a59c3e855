"""What a step of GraphFM-IB costs: the default form against the published one, in turns.

python benchmarks/forms.py [--dataset debian] [--layers 2,4] [--dropout 0,0.4] [--rounds 5]
"""

import argparse
import statistics
import time

import torch

from graphfm import load
from graphfm.runs.run import Run, build, pick_device
from graphfm.training.setup import seeded

FORMS = {"published": {"as_published": True}, "default": {}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dataset", default="debian")
    parser.add_argument("--layers", default="2,4")
    parser.add_argument("--dropout", default="0,0.4")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    graph = load(options.dataset, device=pick_device(options.device))
    print("| layers | dropout | published, ms a step | default, ms a step | ratio |")
    print("|---|---|---|---|---|")
    for layers in map(int, options.layers.split(",")):
        for dropout in map(float, options.dropout.split(",")):
            times = {form: list[float]() for form in FORMS}
            given = {"layers": layers, "dropout": dropout, "device": options.device}
            with seeded(0, graph.device):
                trainers = {
                    form: build(Run.make(method="graphfm-ib", **given, **settings), graph)
                    for form, settings in FORMS.items()
                }
                for trainer in trainers.values():
                    trainer.epoch()  # warm up, capture
                for _ in range(options.rounds):
                    for form, trainer in trainers.items():
                        before, began = trainer.touched["steps"], time.perf_counter()
                        trainer.epoch()
                        if graph.device.type == "cuda":
                            torch.cuda.synchronize()
                        steps = trainer.touched["steps"] - before
                        times[form].append(1000 * (time.perf_counter() - began) / steps)
            there, here = (statistics.median(times[form]) for form in FORMS)
            print(f"| {layers} | {dropout:g} | {there:.3f} | {here:.3f} | {here / there:.3f} |")


if __name__ == "__main__":
    main()
