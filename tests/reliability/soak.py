"""Train, kill, resume, evaluate, predict, over and over in one process: does anything grow?

    python -m tests.reliability.soak --minutes 30

Prints a line of JSON; ends with 0 where nothing grew and nothing was left behind.
"""

import argparse
import gc
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from graphfm import Graph, load_model, resume
from graphfm.api import start
from graphfm.checkpointing.errors import TrainingStopped
from graphfm.data.synthetic import synthetic
from graphfm.methods import METHODS
from graphfm.runs.run import Run
from tests.reliability.processes import Command
from tests.reliability.runs import StopAfter, differences

WARM_UP = 0.3  # share of the rounds in which allocators and caches find their size
GROWTH = 12 << 20  # bytes that the later rounds may differ by: the noise of an allocator
EXPECTED = {"config.json", "metrics.jsonl", "model.safetensors", "result.json", "curves.png",
            "checkpoints"}  # fmt: skip


@dataclass
class Report:
    rounds: int = 0
    kills: int = 0
    resident: list[int] = field(default_factory=list)  # bytes after each round
    open_files: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def growth(self) -> int:
        """How much more memory the last third of the rounds took than those after the warm-up."""
        later = self.resident[int(len(self.resident) * WARM_UP) :]
        third = max(len(later) // 3, 1)
        return min(later[-third:]) - min(later[:third])


class Soak:
    def __init__(self, place: Path) -> None:
        self.place, self.report, self.dice = place, Report(), random.Random(0)
        synthetic("small", scale=0.05).save(place / "graph.npz")
        self.graph = Graph.from_npz(place / "graph.npz")

    def round(self) -> None:
        """One run that is stopped on its way, one that is killed, and the use of both."""
        before = set(self.place.rglob("*"))
        self._stopped_here(self.dice.choice(sorted(METHODS)))
        if self.report.rounds % 5 == 0:
            self._killed_elsewhere(self.dice.choice(["graphfm-ib", "graphfm-ob"]))
        if left := set(self.place.rglob("*")) - before:
            self.report.problems.append(f"round {self.report.rounds} left {sorted(left)[:3]}")
        self._measure()

    def _stopped_here(self, method: str) -> None:
        out = self.place / "run"
        run = Run.make(
            dataset=str(self.place / "graph.npz"), method=method, epochs=3, device="cpu",
            layers=3, **({} if method == "sgc" else {"hidden": 16}),
        )  # fmt: skip
        with suppress(TrainingStopped):
            start(run, self.graph, out=out, stop_signal=StopAfter(self.dice.randrange(1, 9)))
        resume(out)
        self._use(out)

    def _killed_elsewhere(self, method: str) -> None:
        folder = self.place / "elsewhere"
        folder.mkdir()
        train = ("train", "--dataset", self.place / "graph.npz", "--method", method, "--epochs", 6,
                 "--hidden", 16, "--layers", 3, "--device", "cpu")  # fmt: skip
        cache = self.place / "cache"
        whole = Command(folder, *train, "--out", "whole", cache=cache)
        if whole.wait():
            self.report.problems.append(whole.err)
        every = ("--checkpoint-every", "2steps")
        command = Command(folder, *train, "--out", "run", *every, cache=cache)
        command.until((folder / "run" / "checkpoints").exists)
        time.sleep(self.dice.random() * 0.3)
        command.kill()
        command.process.join()
        self.report.kills += 1
        resumed = Command(folder, "train", "--resume", "run", cache=cache)
        if resumed.wait():
            self.report.problems.append(resumed.err)
        elif found := differences(folder / "whole", folder / "run"):
            self.report.problems.append(f"{method}: {found[:3]} differ after a kill")
        self._use(folder / "run")
        shutil.rmtree(folder)

    def _use(self, out: Path) -> None:
        """Evaluate, predict, and take the run away."""
        names = {path.name for path in out.iterdir()}
        if names != EXPECTED:
            self.report.problems.append(f"a run holds {sorted(names ^ EXPECTED)}")
        model, graph = load_model(out), Graph.from_npz(self.place / "graph.npz")
        model.evaluate(graph)
        model.predict(graph)
        shutil.rmtree(out)

    def _measure(self) -> None:
        gc.collect()
        status = Path("/proc/self/status").read_text()
        report = self.report
        report.rounds += 1
        report.resident.append(int(status.split("VmRSS:")[1].split()[0]) * 1024)
        report.open_files.append(len(os.listdir("/proc/self/fd")))
        report.threads.append(threading.active_count())


def soak(place: Path, seconds: float, rounds: int = 1) -> Report:
    """Rounds for so many seconds, and so many at least; with a first one that does not count."""
    runner = Soak(place)
    runner._stopped_here("full")
    (place / "cache").mkdir(exist_ok=True)
    runner._killed_elsewhere("graphfm-ob")
    for method in METHODS:  # partitions are kept, and are no leftovers
        runner._stopped_here(method)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends or runner.report.rounds < rounds:
        runner.round()
    return runner.report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=1, help="at least so many")
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        os.environ["GRAPHFM_CACHE"] = str(Path(name, "cache"))
        report = soak(Path(name), 60 * given.minutes, given.rounds)
    files = report.open_files
    said = asdict(report) | {"growth": report.growth, "resident": report.resident[::50]}
    said |= {"open_files": [files[0], files[-1]], "threads": sorted(set(report.threads))}
    sys.stdout.write(json.dumps(said) + "\n")
    sys.exit(bool(report.problems) or report.growth > GROWTH or files[-1] > files[0])


if __name__ == "__main__":
    main()
