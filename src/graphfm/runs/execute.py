"""Execute a run to its end, and explain why if it fails."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from graphfm.checkpointing.checkpointer import Checkpointer
from graphfm.checkpointing.nan_search import first_broken
from graphfm.checkpointing.schedule import Interval
from graphfm.checkpointing.signals import StopSignal
from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.memory import is_out_of_memory
from graphfm.runs.memory_plan import MemoryPlan, memory_plan
from graphfm.runs.run import Run, build
from graphfm.training.callbacks import Callback, Score
from graphfm.training.errors import NonFiniteError
from graphfm.training.loop import fit as train_to_end
from graphfm.training.trainer import Trainer

if TYPE_CHECKING:
    from graphfm.runs.folder import RunFolder

log = logging.getLogger("graphfm")
NEVER = Interval(seconds=0)
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NO_RIGHT = (errno.EACCES, errno.EPERM, errno.EROFS)


def fit(run: Run, trainer: Trainer, callbacks: Sequence[Callback] = ()) -> Score:
    """Train without writing any file."""
    try:
        return train_to_end(trainer, callbacks)
    except NonFiniteError as error:
        raise _located(error, run, trainer.graph) from None


def fit_in(
    folder: RunFolder,
    run: Run,
    trainer: Trainer,
    callbacks: Sequence[Callback],
    interval: Interval,
    stop_signal: StopSignal | None,
) -> Score:
    """Train in the folder of the run, from its newest checkpoint if it has one."""
    stop = stop_signal or (lambda: False)
    checkpointer = Checkpointer(folder.checkpoints, folder.identity, interval, stop)
    try:
        with stop_signal or nullcontext():
            try:
                score = train_to_end(trainer, [folder, *callbacks], checkpointer)
            except NonFiniteError as error:
                raise _located(error, run, trainer.graph, folder, stop) from None
            folder.on_best(trainer.backbone)  # again, in case the file was changed or removed
            folder.finish(score)
            if interval.never:  # a checkpoint that a signal left is no longer needed
                with suppress(OSError):
                    folder.checkpoints.remove()
        return score
    except OSError as error:
        raise InputError(_stopped_by(error, folder)) from None


@contextmanager
def explained(run: Run, graph: Graph, plan: MemoryPlan | None = None) -> Iterator[None]:
    """If memory runs out, say what takes it and what to reduce."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        plan = plan or memory_plan(run, graph)
    else:
        return
    raise InputError(f"memory ran out ({plan}); {plan.advice(run)}")


def _stopped_by(error: OSError, folder: RunFolder) -> str:
    """The error of the system, what to do about it, and how to continue."""
    reason = " ".join((error.strerror or str(error)).split()) or type(error).__name__
    where = f" ({error.filename})" if error.filename else ""
    advice = "resolve that"
    if error.errno in NO_ROOM:
        advice = f"make room for {folder.path}"
    elif error.errno in NO_RIGHT:
        advice = f"check the permissions of {folder.path}"
    then = f"; then continue: {folder.how_to_resume}" if folder.can_go_on else ""
    return f"the training was stopped by an error: {reason}{where}; {advice}{then}"


def _located(
    error: NonFiniteError,
    run: Run,
    graph: Graph,
    folder: RunFolder | None = None,
    shall_stop: Callable[[], bool] = lambda: False,
) -> NonFiniteError:
    """Add to the error which layer broke first, and that a checkpoint is kept if there is one."""
    checkpointer, found = None, ""
    if folder is not None:
        checkpointer = Checkpointer(folder.checkpoints, folder.identity, NEVER)
    try:
        if error.in_layers:
            log.info(
                "%s in epoch %d: repeating the steps up to there to find the layer that broke "
                "first", error.what, error.epoch,
            )  # fmt: skip
            # no CUDA graphs and no fused kernels, so that every layer's output can be checked
            plain = replace(run.training, capture="off", kernels="plain")
            again = build(replace(run, training=plain), graph)
            found = first_broken(again, checkpointer, error.epoch, shall_stop)
    except KeyboardInterrupt:
        pass  # the error is reported without the layer
    except Exception as second:
        if not is_out_of_memory(second):  # a second trainer may not fit beside the first
            raise
    if folder is not None and not folder.checkpoints.is_empty:
        found += " (the last checkpoint before that is kept)"
    return NonFiniteError(error.what, error.epoch, found, error.advice)
