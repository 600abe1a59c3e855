"""What the process of one cell does: train, and report how that ended."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NoReturn

import torch

from graphfm.checkpointing.schedule import Interval
from graphfm.data.datasets import load
from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.experiments.cell import VALIDATION
from graphfm.experiments.curve import CurveRecord
from graphfm.experiments.outcome import BROKEN, FAILED, FINISHED, UNDEFINED, Outcome, reason
from graphfm.experiments.staleness_record import STALENESS, StalenessRecord
from graphfm.runs.carried import unpacked
from graphfm.runs.execute import fit_in
from graphfm.runs.folder import RunFolder
from graphfm.runs.memory_plan import TooLarge
from graphfm.runs.run import Run, build, pick_device
from graphfm.training.callbacks import Callback, EpochRecord, Score
from graphfm.training.loop import fit
from graphfm.training.trainer import Trainer

EXIT_CODES = {FINISHED: 0, FAILED: 1, UNDEFINED: 2, BROKEN: 3}
NO_CHECKPOINTS = Interval(seconds=0)  # a cell that is lost starts again


class EpochReport(Callback):
    """Tells the parent of every epoch that was evaluated, in a line that is no answer."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def on_epoch(self, record: EpochRecord, best: float) -> None:
        if record.val is not None:
            told = {"epoch": record.epoch, "val": record.val, "best": best}
            self.stream.write(f"epoch {json.dumps(told)}\n")
            self.stream.flush()


def main(request: Mapping[str, Any]) -> NoReturn:
    """Train the cell of a request, and print its outcome as one line of JSON."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this too
    threading.Thread(target=_end_with_parent, daemon=True).start()
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not get into the answer
    torch.set_num_threads(request["threads"])
    _warm_up(request["run"]["device"])
    outcome = train_cell(request, [EpochReport(answer)] if request.get("report") else [])
    answer.write(json.dumps(outcome.to_json()) + "\n")
    answer.close()
    sys.exit(EXIT_CODES[outcome.status])


def train_cell(request: Mapping[str, Any], callbacks: Sequence[Callback] = ()) -> Outcome:
    """Train, and turn whatever goes wrong into an outcome."""
    try:
        own = unpacked(request.get("code", {}), request["run"])  # the user's own method or backbone
        run = Run.from_json(request["run"], **own)
        run.require("method", "backbone")
    except Exception as error:  # the parent could build it: this process lacks something
        if not isinstance(error, InputError):
            traceback.print_exc()
        return Outcome(status=BROKEN, error=reason(error))
    curve = CurveRecord()
    try:
        with _warnings() as warnings:
            trainer = _build(run, request)
            if isinstance(trainer, Outcome):
                return trainer
            outcome = _fit(run, trainer, request, [curve, *callbacks], warnings)
            return replace(outcome, curve=curve.to_json())
    except Exception as error:
        if not isinstance(error, InputError):  # an InputError here comes of training itself
            traceback.print_exc()
        status = BROKEN if isinstance(error, ImportError) else FAILED
        return Outcome(status=status, error=reason(error), curve=curve.to_json())


def _fit(
    run: Run,
    trainer: Trainer,
    request: Mapping[str, Any],
    callbacks: Sequence[Callback],
    warnings: list[str],
) -> Outcome:
    record = StalenessRecord(trainer) if request.get("measure") == STALENESS else None
    told = [*callbacks, *([] if record is None else [record])]
    folder = request.get("folder")
    score = fit(trainer, told) if folder is None else _fit_in(Path(folder), run, trainer, told)
    return Outcome(
        status=FINISHED,
        score=score,
        warning=next(iter(warnings), None),
        measured=None if record is None else record.to_json(),
    )


def _fit_in(path: Path, run: Run, trainer: Trainer, callbacks: Sequence[Callback]) -> Score:
    """Train, and write the folder of the run."""
    with RunFolder.create(path, run, trainer.graph, NO_CHECKPOINTS) as folder:
        return fit_in(folder, run, trainer, callbacks, NO_CHECKPOINTS, None)


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """Collect the warnings of the package, as they come."""
    found = list[str]()
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("graphfm")
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)


def _warm_up(device: str) -> None:
    """Train on three nodes: what torch loads at its first step is not the time of any method."""
    edges, x, y = [[0, 1], [1, 2]], [[0.0], [1.0], [2.0]], [0, 1, 0]
    graph = Graph.from_edges(edges, x, y, train_mask=[1, 0, 0], val_mask=[0, 1, 0])
    fit(build(Run.make(device=device, hidden=2, epochs=1), graph))


def _build(run: Run, request: Mapping[str, Any]) -> Trainer | Outcome:
    """The trainer; or the outcome of a method that this graph or network does not allow."""
    graph = load(run.dataset, device=pick_device(run.device))
    if request["fingerprint"] not in (None, graph.fingerprint):
        raise InputError(f"{run.dataset} has changed since the comparison began")
    if request.get("measure") == VALIDATION:  # then nothing can look at the test nodes
        graph = replace(graph, test_mask=torch.zeros_like(graph.test_mask), trusted=True)
    try:
        return build(run, graph)
    except TooLarge:
        raise  # a failure: there may be more memory when it is tried again
    except InputError as error:
        return Outcome(status=UNDEFINED, error=" ".join(str(error).split()))


def _end_with_parent() -> None:
    """End when the parent does, even by SIGKILL: only then is this pipe closed."""
    while os.read(0, 1 << 16):
        pass
    os._exit(EXIT_CODES[FAILED])
