"""When a checkpoint is written, and how a training continues from one."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from graphfm.checkpointing import schema, state
from graphfm.checkpointing.errors import ForeignCheckpointError, TrainingStopped
from graphfm.checkpointing.gpu_sync import GpuSync
from graphfm.checkpointing.schedule import SECONDS, Interval
from graphfm.errors import InputError
from graphfm.metrics.names import bounds
from graphfm.training.errors import NonFiniteError
from graphfm.training.progress import Progress
from graphfm.training.trainer import Trainer

if TYPE_CHECKING:  # it needs safetensors, which `import graphfm` does without
    from graphfm.checkpointing.store import Checkpoint, CheckpointStore

log = logging.getLogger("graphfm")
DURATION = schema.real(0, 1e12)
EPOCH: schema.Form = {
    "epoch": schema.whole(1),
    "loss": schema.real(),
    "val": schema.maybe(schema.real()),  # within the bounds of its metric
    "lr": schema.real(0),
    "seconds": DURATION,
    "staleness": schema.maybe([schema.each(schema.maybe(schema.real()))]),
}
FORM: schema.Form = {  # of the record beside a checkpoint's tensors
    "format": schema.whole(),
    "tensors": {"bytes": schema.whole(), "sha256": schema.text},
    "identity": schema.each(schema.anything),
    "training": state.FORM,
    "progress": {"prepare_seconds": DURATION, "epoch_seconds": DURATION, "records": [EPOCH]},
}


class Checkpointer:
    """Writes a checkpoint between two steps when one is due, and stops the training on request.

    A checkpoint belongs to this training only if its `identity` is equal. Times are taken from the
    monotonic clock.
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
        self._stopping, self._gpu_sync = False, GpuSync(torch.device("cpu"))

    def restore(self, trainer: Trainer, progress: Progress) -> None:
        """Continue from the newest usable checkpoint, or start from the beginning."""
        found = self.checkpoints.newest(lambda checkpoint: self._check(checkpoint, trainer))
        if found is not None:
            past = _with_defaults(found.record["training"])
            progress.restore(found.record["progress"], trainer.training)
            with found.opened() as stream:
                state.restore(trainer, stream.keys(), stream.get_tensor, past)
                progress.best_weights = {
                    name: stream.get_tensor(f"best.{name}").to(rows.device, copy=True)
                    for name, rows in trainer.backbone.state_dict().items()
                    if progress.best
                }
            steps = past["touched"]["steps"]
            log.info("continuing after epoch %d, step %d", len(progress.records), steps)
        self._since, self._steps = time.monotonic(), trainer.touched["steps"]
        self._gpu_sync = GpuSync(trainer.graph.device, self._steps)

    def is_due(self, trainer: Trainer) -> bool:
        """True if a checkpoint is due or a stop was requested. The GPU then has no step pending."""
        steps = trainer.touched["steps"]
        self._gpu_sync.keep(steps)
        self._stopping, seconds = self.shall_stop(), time.monotonic() - self._since
        due = self.interval.is_due(seconds, steps - self._steps, self.cost)
        if due or self._stopping:
            self._gpu_sync.wait()
            return True
        return False

    def keep(self, trainer: Trainer, progress: Progress) -> None:
        """Write a checkpoint, and stop the training if that was requested."""
        kept = self._write(trainer, progress)
        if self._stopping:
            raise TrainingStopped(kept)

    def finish(self, trainer: Trainer, progress: Progress) -> None:
        """Write the final state: the histories are part of what was learned."""
        if not self.interval.never:
            self._write(trainer, progress)
            self.checkpoints.keep_last()

    def _write(self, trainer: Trainer, progress: Progress) -> bool:
        """Write a checkpoint. On a full disk the previous one stays, and training continues."""
        started, tensors = time.monotonic(), state.tensors_of(trainer)
        tensors |= {f"best.{name}": rows for name, rows in progress.best_weights.items()}
        if broken := state.impossible(trainer, tensors):  # training cannot recover from it
            epoch = len(progress.records) + (trainer.position is not None)
            raise _not_finite(broken, epoch)
        record = {
            "identity": self.identity,
            "training": trainer.numbers(),
            "progress": progress.to_json(),
        }
        try:
            self.checkpoints.write(tensors, record)
        except OSError as error:
            log.warning(
                "cannot write a checkpoint to %s (%s); %s",
                self.checkpoints.folder, error.strerror or error,
                "there is none yet" if self.checkpoints.is_empty else "the previous one is kept",
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
                "a checkpoint takes %.1f s, so one is written every %.0f s: less than 5 %% of the "
                "time (--checkpoint-every overrides this)", seconds, wait,
            )  # fmt: skip

    def _check(self, checkpoint: Checkpoint, trainer: Trainer) -> None:
        """Refuse a checkpoint that this training cannot continue from. Nothing is changed yet."""
        record = {**checkpoint.record, "training": _with_defaults(checkpoint.record["training"])}
        schema.check(record, FORM, "state")
        _check_same(record["identity"], self.identity)
        before, past = checked_progress(record["progress"], trainer), record["training"]
        with checkpoint.opened() as stream:
            evaluated = before.best is not None
            state.check(trainer, stream.keys(), stream.get_tensor, past, evaluated=evaluated)
        most = trainer.training.steps_per_epoch
        if len(before.records) != past["epochs"] or not _agree(past, most):
            raise InputError("its epochs and steps do not agree with each other")


def _agree(past: Mapping[str, Any], most: int) -> bool:
    """True if the steps fit the epochs, each of 1 to `most` steps (0: no limit)."""
    epochs, now = int(past["epochs"]), int(past["steps"] or 0)
    before = int(past["touched"]["steps"]) - now  # in epochs that ended
    if most and (now > most or before > epochs * most):
        return False
    return before >= epochs if epochs else before == 0


def _not_finite(name: str, epoch: int) -> NonFiniteError:
    """The error for a training whose state is broken, given the name of a tensor that shows it."""
    if name.endswith(".exp_avg_sq"):
        return NonFiniteError.squares(epoch)
    what = "weights or losses"
    if name.startswith("history."):
        what = "histories"
    elif name.startswith("sampler."):
        what = "the sampler's numbers"
    elif name.startswith("optimizer."):
        what = "gradients"
    return NonFiniteError(f"{what} are not finite", epoch)


def _with_defaults(training: Any) -> Any:
    """Add what the records of earlier versions lack: the numbers of the estimator."""
    return {"estimator": {}, **training} if isinstance(training, dict) else training


def checked_progress(saved: Mapping[str, Any], trainer: Trainer) -> Progress:
    """The progress in a checkpoint. Refuses one that no training can have written."""
    settings, found = trainer.training, Progress(prepare_seconds=0.0)
    found.restore(saved, settings)
    low, high = bounds(trainer.question.metric)
    if any(record.val is not None and not low <= record.val <= high for record in found.records):
        raise ValueError("a validation score is outside the range of its metric")
    numbers = [record.epoch for record in found.records]
    if numbers != list(range(1, min(len(numbers), settings.epochs) + 1)):
        raise ValueError("its epochs are not numbered from 1 without gaps")
    due = [record for record in found.records if record.epoch % settings.eval_every == 0]
    if any(record.val is None for record in due):
        raise ValueError("an epoch that was due for evaluation has no validation score")
    if found.best is None and found.is_over(settings):
        raise ValueError("its training is finished, but it has no best epoch")
    return found


def _check_same(before: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    for name in {**before, **here}:
        if before.get(name) != here.get(name):
            raise ForeignCheckpointError(
                f"it belongs to another training: its {name} differs; remove the folder of "
                "checkpoints to start from the beginning"
            )
