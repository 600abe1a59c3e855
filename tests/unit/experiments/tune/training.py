"""Trials that are trained in this process: a process of its own takes seconds to begin."""

import time
from pathlib import Path

from graphfm.experiments.cell import Cell
from graphfm.experiments.child import train_cell
from graphfm.experiments.outcome import Outcome
from graphfm.experiments.process import Watch
from graphfm.training.callbacks import Callback

PICTURES = (
    "graphfm.experiments.compare.picture.draw_comparison",
    "graphfm.experiments.compare.curve_picture.draw_curves",
    "graphfm.experiments.tune.picture.draw_trials",
    "graphfm.runs.curves.draw_curves",
)
SMALL = {"dataset": "synthetic:small:0.02", "device": "cpu", "hidden": 8}


def draw_nothing(monkeypatch) -> None:
    """Pictures take most of the time, and have tests of their own."""
    for place in PICTURES:
        monkeypatch.setattr(place, lambda *a: a[-1].touch())


class EndedError(Exception):
    """The process would have been killed."""


class Tell(Callback):
    """What a child tells its parent, without a pipe."""

    def __init__(self, watch: Watch, pause: float) -> None:
        self.watch, self.pause = watch, pause

    def on_epoch(self, record, best) -> None:
        time.sleep(self.pause)
        if self.watch.on_epoch is not None:
            self.watch.on_epoch({"epoch": record.epoch, "val": record.val, "best": best})
        if self.watch.ended:
            raise EndedError


class Here:
    """Trains in this process, and knows what it trained."""

    def __init__(self, pause: float = 0.0) -> None:
        self.pause, self.cells = pause, list[Cell]()
        self.ends: dict[str, Outcome | BaseException] = {}  # by label: an end without training

    def __call__(self, cell: Cell, fingerprint: str, scratch: Path, watch: Watch) -> Outcome:
        self.cells.append(cell)
        end = self.ends.get(cell.label)
        if isinstance(end, BaseException):
            raise end
        if end is not None:
            return end
        request = {
            "run": cell.run.to_json(),
            "measure": cell.measure,
            "code": cell.run.code(),
            "fingerprint": fingerprint,
            "folder": None if watch.folder is None else str(watch.folder),
        }
        return train_cell(request, [Tell(watch, self.pause)])

    @property
    def labels(self) -> list[str]:
        return [cell.label for cell in self.cells]
