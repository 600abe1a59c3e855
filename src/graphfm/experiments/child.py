"""What the process of one cell does: train, and say how it ended."""

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
from graphfm.experiments.outcome import FAILED, FINISHED, UNDEFINED, Outcome
from graphfm.memory import is_out_of_memory
from graphfm.runs.memory_plan import TooLarge
from graphfm.runs.named import unpacked
from graphfm.runs.run import Run, build, pick_device
from graphfm.training.trainer import Trainer

EXIT_CODES = {FINISHED: 0, FAILED: 1, UNDEFINED: 2}


def main(request: Mapping[str, Any]) -> NoReturn:
    """Train the cell of a request, and print its outcome as a line of JSON."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this too
    threading.Thread(target=_end_with_parent, daemon=True).start()
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not get into the answer
    torch.set_num_threads(request["threads"])
    try:
        own = unpacked(request["code"], request["run"])
    except InputError as error:
        answer.write(json.dumps({"not_importable": " ".join(str(error).split())}) + "\n")
        answer.close()
        sys.exit(EXIT_CODES[FAILED])
    _warm_up(request["run"]["device"])
    outcome = train_cell(request, own)
    answer.write(json.dumps(outcome.to_json()) + "\n")
    answer.close()
    sys.exit(EXIT_CODES[outcome.status])


def train_cell(request: Mapping[str, Any], own: Mapping[str, Any] | None = None) -> Outcome:
    """The outcome, whatever goes wrong; `own` is a method or backbone of the user's own."""
    try:
        with _warnings() as warnings:
            trainer = _build(request, own or {})
            if isinstance(trainer, Outcome):
                return trainer
            score = trainer.fit()
        return Outcome(status=FINISHED, score=score, warning=next(iter(warnings), None))
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, InputError):  # one that only training brings about
            reason = str(error)
        else:
            traceback.print_exc()
        if is_out_of_memory(error):
            reason = "there is not enough memory"
        return Outcome(status=FAILED, error=" ".join(reason.split()))


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """What the package warns of, as it comes."""
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
    build(Run.make(device=device, hidden=2, epochs=1), graph).fit()


def _build(request: Mapping[str, Any], own: Mapping[str, Any]) -> Trainer | Outcome:
    run = Run.from_json(request["run"], **own)
    graph = load(run.dataset, device=pick_device(run.device))
    if request["fingerprint"] not in (None, graph.fingerprint):
        raise InputError(f"{run.dataset} has changed since the comparison began")
    try:
        return build(run, graph)
    except TooLarge:
        raise  # now: there may be more memory when it is tried again
    except InputError as error:
        return Outcome(status=UNDEFINED, error=" ".join(str(error).split()))


def _end_with_parent() -> None:
    """The parent never closes this pipe: when it ends, the parent has, even by SIGKILL."""
    while os.read(0, 1 << 16):
        pass
    os._exit(EXIT_CODES[FAILED])
