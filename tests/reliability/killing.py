"""A training that is killed again and again, against one that nobody touched."""

import random
import time
from pathlib import Path

from tests.reliability.processes import Command
from tests.reliability.runs import differences, files

METHODS = {
    "graphfm-ib": ("--batch-size", 64, "--fanout", 1),
    "graphfm-ob": ("--parts", 12, "--parts-per-batch", 2, "--no-exact-first-hop"),
}


class Killing:
    """Trains on one graph with one method, in the folder it is given."""

    def __init__(self, folder: Path, method: str, dataset: str, epochs: int) -> None:
        self.folder, self.random = folder, random.Random(method)
        self.train = (
            "train", "--dataset", dataset, "--method", method, "--device", "cpu", "--layers", 3,
            "--hidden", 16, "--epochs", epochs, "--batch-norm", "--staleness-every", 2,
            *METHODS[method],
        )  # fmt: skip
        self.whole = folder / "whole"
        started = time.monotonic()
        assert self._command(*self.train, "--out", self.whole).wait() == 0, self._said()
        self.seconds = time.monotonic() - started

    def trial(self, number: int) -> str:
        """Kill it once or more, let it end, compare. Where was it killed?"""
        run = self.folder / f"run-{number}"
        every = self.random.choice(["1steps", "3steps", "0.2s", "auto"])
        command = self._command(*self.train, "--out", run, "--checkpoint-every", every)
        places = [self._kill(command, run, number % 2 == 0)]
        while self.random.random() < 0.3:
            places.append(self._kill(self._go_on(run), run, self.random.random() < 0.5))
        assert self._go_on(run).wait() == 0, (places, self._said())
        assert differences(self.whole, run) == [], (every, places)
        assert files(run) == files(self.whole), places
        return f"{every}: {', '.join(places)}"

    def _go_on(self, run: Path) -> Command:
        if (run / "config.json").exists():
            return self._command("train", "--resume", run)
        return self._command(*self.train, "--out", run)  # it was killed before there was a run

    def _kill(self, command: Command, run: Path, writing: bool) -> str:
        """At a random moment, or while it writes a checkpoint."""
        wait = self.random.uniform(0, self.seconds)
        if writing:
            time.sleep(wait / 2)
            command.until(lambda: bool(_unfinished(run)), self.seconds)
        else:
            command.until(lambda: False, wait)
        command.kill()
        command.process.join()
        ended = (run / "result.json").exists()
        half = _unfinished(run)
        return "after the end" if ended else f"writing {half[0].name}" if half else "between"

    def _command(self, *arguments: object) -> Command:
        return Command(self.folder, *arguments)

    def _said(self) -> str:
        return (self.folder / "err").read_text()


def _unfinished(run: Path) -> list[Path]:
    """What is being written, by us or by safetensors."""
    return [*run.glob("checkpoints/.*"), *run.glob(".*")]
