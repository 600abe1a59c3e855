"""The end of a training on the command line: its score, or how to continue it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from graphfm.api import Result
from graphfm.checkpointing.errors import TrainingStopped
from graphfm.checkpointing.signals import StopSignal
from graphfm.checkpointing.store import CheckpointStore
from graphfm.cli.output import Interrupted, print_json
from graphfm.errors import InputError
from graphfm.memory import size
from graphfm.metrics.names import rounded, title
from graphfm.runs.folder import CHECKPOINTS
from graphfm.runs.run import Run


@contextmanager
def stoppable(out: Path, run: Run) -> Iterator[StopSignal]:
    """Let signals stop a training in the folder `out`, and say how to continue it."""
    stop_signal = StopSignal()
    try:
        yield stop_signal
    except (TrainingStopped, KeyboardInterrupt) as stop:
        lost = isinstance(stop, TrainingStopped) and not stop.kept
        code = None if stop_signal.number is None else 128 + stop_signal.number
        raise Interrupted(_how_to_continue(out, run, _before(out) if lost else ""), code) from None


def report(result: Result, json: bool) -> None:
    """Print the score, for a person or as JSON."""
    try:
        if json:
            print_json(result.to_json())
        else:
            typer.echo(_line(result))
    except OSError as error:
        raise InputError(
            f"the training is finished and its run is in {result.out}, but its result could not be "
            f"printed: {error.strerror or error}"
        ) from None


def _line(result: Result) -> str:
    score = result.score
    metric = title(score.metric, score.positive)
    when, val = f"at epoch {score.best_epoch} of {score.epochs}", f"with {rounded(score.val)}"
    if score.test is None:
        found = f"no test nodes; best on validation {val} ({metric}) {when}"
    else:
        found = f"test {rounded(score.test)} ({metric}) {when}, the best on validation {val}"
    return (
        f"{found}; {score.seconds_per_epoch:.3g} s an epoch, "
        f"peak memory {size(score.peak_bytes)}; run in {result.out}"
    )


def _before(out: Path) -> str:
    """Where a run continues from whose last checkpoint could not be written."""
    if CheckpointStore(out / CHECKPOINTS).is_empty:
        return " from the beginning"
    return " from the checkpoint before"


def _how_to_continue(out: Path, run: Run, remark: str = "") -> str:
    if not (out / "config.json").is_file():
        return "interrupted before training began; nothing was written"
    method, backbone = run.named_method, run.named_backbone
    network = f" {backbone.flag('backbone')}" if backbone.is_own else ""
    again = f" --method {method.name}{network}" if method.is_own else network
    model = (out / "model.safetensors").is_file()
    evaluate = f"; its best model so far: graphfm evaluate {out}{network}" if model else ""
    return f"interrupted; to continue{remark}: graphfm train --resume {out}{again}{evaluate}"
