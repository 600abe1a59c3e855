"""How much longer a training takes beside other work that would fill the cores by itself.

python benchmarks/busy.py --repeats 5
python benchmarks/busy.py --beside 4 --ways graphfm-first,torch-first
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from graphfm.waiting import CHOICES

MOST = 3.0  # times as long beside one busy process as alone
OTHER_WORK = "import torch\na = torch.randn(400, 400)\nwhile True:\n    (a @ a).relu_()"
TRAINING = """
import json, sys
options = json.loads(sys.argv[1])
if options.pop("torch_first"):
    import torch
import graphfm
print(graphfm.train(**options).score.seconds_per_epoch)
"""
WAYS = {  # whether torch is imported before graphfm, and variables that the user has set
    "graphfm-first": (False, {}),
    "torch-first": (True, {}),
    "asleep": (False, {"OMP_WAIT_POLICY": "PASSIVE"}),
    "awake": (False, {"GOMP_SPINCOUNT": "300000"}),  # as torch's threads wait by default
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="debian")
    parser.add_argument("--method", default="graphfm-ib")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--beside", type=int, default=1, help="how many busy processes")
    parser.add_argument("--ways", default="graphfm-first,torch-first", help=", ".join(WAYS))
    given = parser.parse_args()
    options = {"graph": given.dataset, "method": given.method, "epochs": given.epochs}
    ways, alone, beside = given.ways.split(","), "alone", f"beside {given.beside}"
    times: dict[tuple[str, str], list[float]] = {}
    for _ in range(given.repeats):
        for way in ways:
            times.setdefault((way, alone), []).append(train(way, options))
        with other_work(given.beside):
            for way in ways:
                times.setdefault((way, beside), []).append(train(way, options))
    print(f"| threads | {alone}, s | min to max | {beside}, s | min to max | ratio |")
    print("|---|---:|---:|---:|---:|---:|")
    for way in ways:
        first, second = times[way, alone], times[way, beside]
        ratio = statistics.median(second) / statistics.median(first)
        print(f"| {way} | {spread(first)} | {spread(second)} | {ratio:.2f} |")
        if way == "graphfm-first" and given.beside == 1 and ratio > MOST:
            sys.exit(f"{way}: {ratio:.2f} times as long as alone; at most {MOST:g} is promised")


def train(way: str, options: dict[str, object]) -> float:
    """Seconds per epoch, the median, of a training in a process of its own."""
    torch_first, variables = WAYS[way]
    request = json.dumps({**options, "device": "cpu", "torch_first": torch_first})
    done = subprocess.run(
        [sys.executable, "-c", TRAINING, request],
        env={**plain(), **variables}, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return float(done.stdout)


@contextmanager
def other_work(num_processes: int) -> Iterator[None]:
    """Processes that multiply matrices, each with as many threads as there are cores."""
    command = [sys.executable, "-c", OTHER_WORK]
    busy = [subprocess.Popen(command, env=plain()) for _ in range(num_processes)]
    try:
        time.sleep(5)  # until torch is loaded
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def plain() -> dict[str, str]:
    """The environment as it was before graphfm was imported here."""
    return {name: value for name, value in os.environ.items() if name not in CHOICES}


def spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.3f} | {min(seconds):.3f} to {max(seconds):.3f}"


if __name__ == "__main__":
    main()
