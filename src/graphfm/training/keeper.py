"""When the state of a training is written, and how it is taken up again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from graphfm.errors import InputError
from graphfm.training import state
from graphfm.training.interval import SECONDS, Interval
from graphfm.training.not_finite import NotFinite
from graphfm.training.progress import Progress
from graphfm.training.stopped import Stopped

if TYPE_CHECKING:
    from graphfm.training.checkpoints import Checkpoint, Checkpoints
    from graphfm.training.trainer import Trainer

log = logging.getLogger("graphfm")


class Keeper:
    """Asked between steps: writes a checkpoint if it is time, and stops the training if it shall.

    `identity` is what must be the same for a checkpoint to be of this training. The clock is one
    that never jumps.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        identity: Mapping[str, Any],
        interval: Interval | None = None,
        shall_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.checkpoints, self.identity = checkpoints, identity
        self.interval, self.shall_stop = interval or Interval(), shall_stop
        self.cost, self._since, self._steps = 0.0, time.monotonic(), 0

    def restore(self, trainer: Trainer, progress: Progress) -> None:
        """Go on from the newest checkpoint; from the beginning where there is none."""
        checkpoint = self.checkpoints.newest()
        if checkpoint is not None:
            try:
                self._restore(checkpoint, trainer, progress)
            except InputError as error:
                raise InputError(f"{checkpoint.tensors}: {error}") from None
            except (RuntimeError, OSError, *MALFORMED) as error:
                reason = " ".join(str(error).split())[:200] or type(error).__name__
                raise InputError(f"{checkpoint.tensors} does not fit its run ({reason})") from None
        self._since, self._steps = time.monotonic(), trainer.touched["steps"]

    def between(self, trainer: Trainer, progress: Progress) -> None:
        """After a step or an epoch."""
        if self.shall_stop():
            raise Stopped(self._write(trainer, progress))
        steps, seconds = trainer.touched["steps"] - self._steps, time.monotonic() - self._since
        if self.interval.is_due(seconds, steps, self.cost):
            self._write(trainer, progress)

    def finish(self, trainer: Trainer, progress: Progress) -> None:
        """The state at the end is kept: histories are a part of what was learned."""
        if not self.interval.never:
            self._write(trainer, progress)
            self.checkpoints.keep_last()

    def _write(self, trainer: Trainer, progress: Progress) -> bool:
        """Was it written? Where the disk is full the one before stays, and training goes on."""
        _check_finite(trainer, progress)
        tensors = state.tensors_of(trainer)
        tensors |= {f"best.{name}": rows for name, rows in progress.best_weights.items()}
        record = {
            "identity": self.identity,
            "training": state.numbers_of(trainer),
            "progress": progress.to_json(),
        }
        started = time.monotonic()
        try:
            self.checkpoints.write(tensors, record)
        except OSError as error:
            log.warning(
                "no checkpoint could be written to %s (%s); the one before is kept",
                self.checkpoints.folder, error.strerror or error,
            )  # fmt: skip
            return False
        finally:
            self._since, self._steps = time.monotonic(), trainer.touched["steps"]
            self._learn_cost(self._since - started)
        return True

    def _learn_cost(self, seconds: float) -> None:
        before, self.cost = self.interval.wait(self.cost), seconds
        wait = self.interval.wait(seconds)
        if self.interval.seconds is None and wait > max(before, SECONDS) * 1.5:
            log.info(
                "a checkpoint takes %.1f s: one every %.0f s, so that it is less than 5 %% of the "
                "time (--checkpoint-every decides otherwise)", seconds, wait,
            )  # fmt: skip

    def _restore(self, checkpoint: Checkpoint, trainer: Trainer, progress: Progress) -> None:
        record = checkpoint.record
        _check_same(record["identity"], self.identity)
        progress.restore(record["progress"])
        numbers, past = [entry.epoch for entry in progress.records], record["training"]
        counted = numbers == list(range(1, len(numbers) + 1)) and len(numbers) == past["epochs"]
        if not counted or (past["steps"] or 1) < 1:
            raise InputError("its epochs are not counted from 1 to where it stands")
        with checkpoint.opened() as stream:
            best = {name for name in stream.keys() if name.startswith("best.")}  # noqa: SIM118
            names = set(stream.keys()) - best
            state.restore(trainer, names, stream.get_tensor, record["training"])
            weights = {name.removeprefix("best."): stream.get_tensor(name) for name in best}
        if weights.keys() != (trainer.backbone.state_dict().keys() if progress.best else set()):
            raise InputError("the best weights are not those of this network")
        progress.best_weights = {
            name: weights[name].to(rows.device, copy=True)
            for name, rows in trainer.backbone.state_dict().items()
            if progress.best
        }
        log.info("going on after epoch %d, step %d", len(progress.records), _steps(record))


MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)


def _steps(record: Mapping[str, Any]) -> int:
    return int(record["training"]["touched"].get("steps", 0))


def _check_same(before: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    for name in {**before, **here}:
        if before.get(name) != here.get(name):
            raise InputError(
                f"it is of another training: its {name} is not this one's; remove the folder of "
                "checkpoints to start from the beginning"
            )


def _check_finite(trainer: Trainer, progress: Progress) -> None:
    """Refuse to keep a state that nothing good can come of: the one before it is better."""
    numbers = [p.detach().isfinite().all() for p in trainer.backbone.parameters()]
    numbers.append(trainer.totals.isfinite().all())
    if not bool(torch.stack(numbers).all()):
        epoch = len(progress.records) + (trainer.position is not None)
        raise NotFinite("weights or losses are not finite", epoch)
