"""What the process of one cell does: train, and report how that ended."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import torch

from graphfm.data.datasets import load
from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.experiments.cell import SCORE
from graphfm.experiments.curve import CurveRecord
from graphfm.experiments.outcome import BROKEN, FAILED, FINISHED, UNDEFINED, Outcome, reason
from graphfm.experiments.staleness_record import STALENESS, StalenessRecord
from graphfm.runs.memory_plan import TooLarge
from graphfm.runs.named import unpacked
from graphfm.runs.run import Run, build, pick_device
from graphfm.training.loop import fit
from graphfm.training.trainer import Trainer

EXIT_CODES = {FINISHED: 0, FAILED: 1, UNDEFINED: 2, BROKEN: 3}


def main(request: Mapping[str, Any]) -> NoReturn:
    """Train the cell of a request, and print its outcome as one line of JSON."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this too
    threading.Thread(target=_end_with_parent, daemon=True).start()
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not get into the answer
    torch.set_num_threads(request["threads"])
    _warm_up(request["run"]["device"])
    outcome = train_cell(request)
    answer.write(json.dumps(outcome.to_json()) + "\n")
    answer.close()
    sys.exit(EXIT_CODES[outcome.status])


def train_cell(request: Mapping[str, Any]) -> Outcome:
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
            trainer = _build(run, request["fingerprint"])
            if isinstance(trainer, Outcome):
                return trainer
            return _fit(trainer, request.get("measure", SCORE), curve, warnings)
    except Exception as error:
        if not isinstance(error, InputError):  # an InputError here comes of training itself
            traceback.print_exc()
        status = BROKEN if isinstance(error, ImportError) else FAILED
        return Outcome(status=status, error=reason(error), curve=curve.to_json())


def _fit(trainer: Trainer, measure: str, curve: CurveRecord, warnings: list[str]) -> Outcome:
    record = StalenessRecord(trainer) if measure == STALENESS else None
    score = fit(trainer, [curve] if record is None else [curve, record])
    return Outcome(
        status=FINISHED,
        score=score,
        curve=curve.to_json(),
        warning=next(iter(warnings), None),
        measured=None if record is None else record.to_json(),
    )


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


def _build(run: Run, fingerprint: str | None) -> Trainer | Outcome:
    """The trainer; or the outcome of a method that this graph or network does not allow."""
    graph = load(run.dataset, device=pick_device(run.device))
    if fingerprint not in (None, graph.fingerprint):
        raise InputError(f"{run.dataset} has changed since the comparison began")
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
