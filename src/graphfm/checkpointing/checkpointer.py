"""When the state of a training is written, and how it is taken up again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from graphfm.checkpointing import schema as forms
from graphfm.checkpointing import state
from graphfm.checkpointing.errors import ForeignCheckpointError, TrainingStopped
from graphfm.checkpointing.gpu_sync import GpuSync
from graphfm.checkpointing.schedule import SECONDS, Interval
from graphfm.errors import InputError
from graphfm.training.errors import NonFiniteError
from graphfm.training.progress import FORM as PROGRESS
from graphfm.training.progress import Progress

if TYPE_CHECKING:
    from graphfm.checkpointing.store import Checkpoint, CheckpointStore
    from graphfm.training.trainer import Trainer

log = logging.getLogger("graphfm")
FORM: forms.Form = {  # of a record
    "format": forms.whole(),
    "tensors": {"bytes": forms.whole(), "sha256": forms.text},
    "identity": forms.each(forms.anything),
    "training": state.FORM,
    "progress": PROGRESS,
}


class Checkpointer:
    """Asked between steps: writes a checkpoint if it is time, and stops the training if it shall.

    `identity` is what must be the same for a checkpoint to be of this training. The clock is one
    that never jumps.
    """

    def __init__(
        self,
        checkpoints: CheckpointStore,
        identity: Mapping[str, Any],
        interval: Interval | None = None,
        shall_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.checkpoints, self.identity = checkpoints, identity
        self.interval, self.shall_stop = interval or Interval(), shall_stop
        self.cost, self._since, self._steps = 0.0, time.monotonic(), 0
        self._stopping, self._pace = False, GpuSync(torch.device("cpu"))

    def restore(self, trainer: Trainer, progress: Progress) -> None:
        """Go on from the newest checkpoint that is good; from the beginning where there is none."""
        found = self.checkpoints.newest(lambda checkpoint: self._check(checkpoint, trainer))
        if found is not None:
            past = found.record["training"]
            progress.restore(found.record["progress"])
            with found.opened() as stream:
                state.restore(trainer, stream.get_tensor, past)
                progress.best_weights = {
                    name: stream.get_tensor(f"best.{name}").to(rows.device, copy=True)
                    for name, rows in trainer.backbone.state_dict().items()
                    if progress.best
                }
            steps = past["touched"]["steps"]
            log.info("going on after epoch %d, step %d", len(progress.records), steps)
        self._since, self._steps = time.monotonic(), trainer.touched["steps"]
        self._pace = GpuSync(trainer.graph.device, self._steps)

    def is_due(self, trainer: Trainer) -> bool:
        """Is there something to do after a step or an epoch? If so, all steps have been taken."""
        steps = trainer.touched["steps"]
        self._pace.keep(steps)
        self._stopping, seconds = self.shall_stop(), time.monotonic() - self._since
        due = self.interval.is_due(seconds, steps - self._steps, self.cost)
        if due or self._stopping:
            self._pace.wait()
            return True
        return False

    def keep(self, trainer: Trainer, progress: Progress) -> None:
        """Write a checkpoint, and stop there if it is asked for."""
        kept = self._write(trainer, progress)
        if self._stopping:
            raise TrainingStopped(kept)

    def finish(self, trainer: Trainer, progress: Progress) -> None:
        """The state at the end is kept: histories are a part of what was learned."""
        if not self.interval.never:
            self._write(trainer, progress)
            self.checkpoints.keep_last()

    def _write(self, trainer: Trainer, progress: Progress) -> bool:
        """Was it written? Where the disk is full the one before stays, and training goes on."""
        started, tensors = time.monotonic(), state.tensors_of(trainer)
        tensors |= {f"best.{name}": rows for name, rows in progress.best_weights.items()}
        if broken := state.impossible(tensors):  # nothing good can come of it
            epoch = len(progress.records) + (trainer.position is not None)
            raise _not_finite(broken, epoch)
        record = {
            "identity": self.identity,
            "training": state.numbers_of(trainer),
            "progress": progress.to_json(),
        }
        try:
            self.checkpoints.write(tensors, record)
        except OSError as error:
            log.warning(
                "no checkpoint could be written to %s (%s); %s",
                self.checkpoints.folder, error.strerror or error,
                "there is none yet" if self.checkpoints.is_empty else "the one before is kept",
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

    def _check(self, checkpoint: Checkpoint, trainer: Trainer) -> None:
        """Refuse what this training cannot go on from; nothing is changed yet."""
        record = checkpoint.record
        forms.check(record, FORM, "state")
        _check_same(record["identity"], self.identity)
        before, past = Progress.checked(record["progress"], trainer.training), record["training"]
        with checkpoint.opened() as stream:
            evaluated = before.best is not None
            state.check(trainer, stream.keys(), stream.get_tensor, past, evaluated=evaluated)
        most = trainer.training.steps_per_epoch
        if len(before.records) != past["epochs"] or not _agree(past, most):
            raise InputError("its epochs and steps do not agree with each other")


def _agree(past: Mapping[str, Any], most: int) -> bool:
    """Can so many steps be of so many epochs, of at least one and at `most` (0: any) each?"""
    epochs, now = int(past["epochs"]), int(past["steps"] or 0)
    before = int(past["touched"]["steps"]) - now  # in epochs that ended
    if most and (now > most or before > epochs * most):
        return False
    return before >= epochs if epochs else before == 0


def _not_finite(name: str, epoch: int) -> NonFiniteError:
    """What is to be said of a training whose state is broken, by the tensor that shows it."""
    if name.endswith(".exp_avg_sq"):
        return NonFiniteError.squares(epoch)
    what = "weights or losses"
    if name.startswith("history."):
        what = "histories"
    elif name.startswith("optimizer."):
        what = "gradients"
    return NonFiniteError(f"{what} are not finite", epoch)


def _check_same(before: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    for name in {**before, **here}:
        if before.get(name) != here.get(name):
            raise ForeignCheckpointError(
                f"it is of another training: its {name} is not this one's; remove the folder of "
                "checkpoints to start from the beginning"
            )
