"""A settled run from its first step to its last, with an explanation where it ends before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.memory import is_out_of_memory
from graphfm.memory_plan import memory_plan
from graphfm.run import Run, build
from graphfm.training.blame import first_broken
from graphfm.training.interruption import Interruption
from graphfm.training.interval import Interval
from graphfm.training.keeper import Keeper
from graphfm.training.not_finite import NotFinite
from graphfm.training.trainer import Trainer
from graphfm.training.watcher import Score, Watcher

if TYPE_CHECKING:
    from graphfm.training.folder import RunFolder

NEVER = Interval(seconds=0)


def fit(run: Run, trainer: Trainer, watchers: Sequence[Watcher] = ()) -> Score:
    """Train; nothing is written."""
    try:
        return trainer.fit(watchers)
    except NotFinite as error:
        where = _where(run, trainer.graph, None)
        raise NotFinite(error.what, error.epoch, where) from None


def fit_in(
    folder: RunFolder,
    run: Run,
    trainer: Trainer,
    watchers: Sequence[Watcher],
    interval: Interval,
    interruption: Interruption | None,
) -> Score:
    """Train in the folder of the run, from its newest checkpoint where it has one."""
    stop = interruption or (lambda: False)
    keeper = Keeper(folder.checkpoints, folder.identity, interval, stop)
    try:
        with interruption or nullcontext():
            score = trainer.fit([folder, *watchers], keeper)
            folder.on_best(trainer.backbone)  # whatever became of the file meanwhile
            folder.finish(score)
        return score
    except NotFinite as error:
        where = _where(run, trainer.graph, folder)
        raise NotFinite(error.what, error.epoch, where) from None
    except OSError as error:
        reason = error.strerror or " ".join(str(error).split())
        more = f"; then: graphfm train --resume {folder.path}" if folder.can_go_on else ""
        raise InputError(
            f"cannot write to {folder.path}: {reason}; make room, or see who may write there{more}"
        ) from None


@contextmanager
def explained(run: Run, graph: Graph) -> Iterator[None]:
    """Where memory runs out, say what takes it and what to reduce."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        plan = memory_plan(run, graph)
    else:
        return
    raise InputError(f"memory ran out ({plan}); {plan.advice(run)}")


def _where(run: Run, graph: Graph, folder: RunFolder | None) -> str:
    """The layer that broke first, and what is left."""
    keeper = None
    if folder is not None:
        keeper = Keeper(folder.checkpoints, folder.identity, NEVER)
    try:
        # nothing recorded, nothing fused: layers that can be looked at
        plain = replace(run.training, capture="off", kernels="plain")
        found = first_broken(build(replace(run, training=plain), graph), keeper)
    except Exception as error:
        if not is_out_of_memory(error):  # two of them are too many
            raise
        found = ""
    if folder is None or folder.checkpoints.is_empty:
        return found
    return f"{found} (the run is kept as it was at its last checkpoint before that)"
