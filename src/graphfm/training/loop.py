"""Train epoch by epoch to the end, then return to the best epoch."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Protocol

import torch

from graphfm.errors import InputError
from graphfm.training import whole_graph
from graphfm.training.callbacks import Callback, EpochRecord, Score
from graphfm.training.crowding import patient_if_crowded
from graphfm.training.errors import NonFiniteError
from graphfm.training.optimizers import overflowed
from graphfm.training.progress import Progress
from graphfm.training.setup import seeded
from graphfm.training.staleness import staleness
from graphfm.training.trainer import Trainer
from graphfm.training.warnings import warn_of_labels

Staleness = tuple[dict[str, float | None], ...] | None


class Checkpointing(Protocol):
    """What a training asks of its checkpointer between steps."""

    def restore(self, trainer: Trainer, progress: Progress) -> None:
        """Continue from the newest checkpoint, if there is one."""

    def is_due(self, trainer: Trainer) -> bool:
        """True if `keep` must be called now; the GPU has then finished all steps."""

    def keep(self, trainer: Trainer, progress: Progress) -> None:
        """Write a checkpoint, and stop the training if that was asked for."""

    def finish(self, trainer: Trainer, progress: Progress) -> None:
        """Write the state at the end."""


def fit(
    trainer: Trainer,
    callbacks: Sequence[Callback] = (),
    checkpointer: Checkpointing | None = None,
) -> Score:
    """Train to the end, return to the best epoch, and score the test nodes there."""
    device = trainer.graph.device
    for callback in callbacks:
        if not hasattr(callback, "on_begin"):
            raise InputError(
                f"callbacks holds a {type(callback).__name__}; expected objects of a subclass of "
                "graphfm.Callback"
            )
    warn_of_labels(trainer.graph, trainer.question)
    with seeded(trainer.training.seed, device), patient_if_crowded(device):
        return Loop(trainer, callbacks, checkpointer).run()


class Loop:
    """Trains to the end. Its only state is `progress`, which a checkpointer saves."""

    def __init__(
        self,
        trainer: Trainer,
        callbacks: Sequence[Callback] = (),
        checkpointer: Checkpointing | None = None,
    ) -> None:
        self.trainer, self.callbacks, self.checkpointer = trainer, callbacks, checkpointer
        self.progress = Progress(prepare_seconds=trainer.prepare_seconds)
        self.asked_to_stop = False
        trainer.memory.stop()  # the preparation has ended

    def run(self) -> Score:
        """Train, return to the best epoch, and score the test nodes there."""
        trainer, progress, checkpointer = self.trainer, self.progress, self.checkpointer
        if checkpointer is not None:
            checkpointer.restore(trainer, progress)
        for callback in self.callbacks:
            callback.on_begin(progress.records)
        stopped = False
        while not stopped and not progress.is_over(trainer.training):
            stopped = self._epoch(len(progress.records) + 1)
        if checkpointer is not None:
            checkpointer.finish(trainer, progress)
        trainer.backbone.load_state_dict(progress.best_weights)
        score = self._score()
        for callback in self.callbacks:
            callback.on_end(score)
        return score

    def _epoch(self, number: int) -> bool:
        """Train one epoch, and evaluate it; returns True if a callback ends the training."""
        trainer, progress = self.trainer, self.progress
        values, gain = [record.val for record in progress.records], trainer.training.gain
        trainer.schedule.look([None if value is None else gain(value) for value in values])
        lr = float(trainer.schedule.get_last_lr()[0])
        trainer.memory.start()
        loss, seconds = self._train()
        trainer.memory.stop()
        if not math.isfinite(loss):
            raise NonFiniteError(f"the loss is {loss}", number)
        if overflowed(trainer.optimizer):
            raise NonFiniteError.squares(number)
        val, stale = None, self._staleness(number)  # measured before a refresh
        last = progress.ends_with(number, progress.seconds + seconds, trainer.training)
        if number % trainer.training.eval_every == 0 or last:
            val = self._validate(number)
        record = EpochRecord(number, loss, val, lr, seconds, stale)
        if improved := progress.add(record, trainer.training):
            progress.keep(trainer.backbone)
        for callback in self.callbacks:
            self.asked_to_stop |= bool(callback.on_epoch(record, progress.best_value))
            if improved:
                callback.on_best(trainer.backbone)
        if self.checkpointer is not None and self.checkpointer.is_due(trainer):
            self.checkpointer.keep(trainer, progress)
        return self.asked_to_stop and progress.best is not None

    def _train(self) -> tuple[float, float]:
        """Train one epoch, or the rest of one: its loss, and its seconds without checkpoints."""
        trainer, progress, checkpointer = self.trainer, self.progress, self.checkpointer
        started = time.perf_counter() - progress.epoch_seconds
        if checkpointer is None:
            loss = trainer.epoch()
            return loss, time.perf_counter() - started

        def keep() -> None:
            nonlocal started
            if checkpointer.is_due(trainer):
                now = time.perf_counter()
                progress.epoch_seconds = now - started
                trainer.memory.stop()
                checkpointer.keep(trainer, progress)
                trainer.memory.start()
                started += time.perf_counter() - now

        loss = trainer.epoch(keep)
        return loss, time.perf_counter() - started

    def _validate(self, number: int) -> float | None:
        trainer = self.trainer
        logits, y = trainer.outputs("val")
        if not bool(torch.isfinite(logits).all()):
            raise NonFiniteError("the outputs are not finite", number)
        if trainer.training.refresh_histories:
            trainer.refresh_histories()
        return trainer.score(logits, y)

    def _staleness(self, number: int) -> Staleness:
        every = self.trainer.training.staleness_every
        if every == 0 or number % every:
            return None
        return tuple(
            {
                name: value if math.isfinite(value) else None
                for name, value in (asdict(layer) | self._age(layer.depth)).items()
            }
            for layer in staleness(self.trainer)
        )

    def _age(self, depth: int) -> dict[str, float]:
        assert self.trainer.ages is not None
        if depth == 1 and self.trainer.method.estimator.first_hop is not None:
            return {}  # known exactly, and never read from a history
        ages = self.trainer.ages.summary(depth - 1)
        return {"age": ages.mean, "oldest": ages.max, "never_written": ages.never}

    def _score(self) -> Score:
        trainer, progress = self.trainer, self.progress
        assert progress.best is not None  # the last epoch is always evaluated
        seconds = [record.seconds for record in progress.records]
        metrics = whole_graph.every_metric(trainer, ("val", "test"))
        return Score(
            val=progress.best_value,
            test=None if "test" not in metrics else metrics["test"][trainer.question.metric],
            best_epoch=progress.best.epoch,
            epochs=len(seconds),
            seconds_per_epoch=float(torch.tensor(seconds).median()),
            seconds_to_best=progress.prepare_seconds + sum(seconds[: progress.best.epoch]),
            prepare_seconds=progress.prepare_seconds,
            nodes_per_step=trainer.touched["nodes"] / trainer.touched["steps"],
            edges_per_step=trainer.touched["edges"] / trainer.touched["steps"],
            staleness=progress.best.staleness,
            peak_bytes=trainer.memory.peak(),
            train_bytes=trainer.memory.measured,
            metric=trainer.question.metric,
            metrics=metrics,
            positive=trainer.question.positive_name(trainer.graph),
        )
