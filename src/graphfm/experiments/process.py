"""Runs a cell in a process of its own, so that its peak memory and its crashes are its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import torch

from graphfm.experiments.cell import Cell
from graphfm.experiments.outcome import BROKEN, FAILED, Outcome

PROGRAM = (
    "import json, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "request = json.loads(sys.stdin.readline()); sys.path[:] = request['path']; "
    "from graphfm.experiments.child import main; main(request)"
)
MOST_DETAILS = 4000  # characters
EPOCH = b"epoch "  # how a line begins that reports an epoch; the answer is the last line


class Watch:
    """How a cell is to be run, what is told of its epochs, and a way to end it from any thread."""

    def __init__(
        self,
        on_epoch: Callable[[Mapping[str, Any]], None] | None = None,
        *,
        threads: int | None = None,
        folder: Path | None = None,
    ) -> None:
        self.on_epoch = on_epoch
        self.threads, self.folder = threads, folder  # `folder`: where to write the run
        self.ended = False
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def attach(self, process: subprocess.Popen[bytes]) -> None:
        """The cell runs in this process."""
        with self._lock:
            self._process = process
            if self.ended:
                process.kill()

    def end(self) -> None:
        """End the process, or let none begin."""
        with self._lock:
            self.ended = True
            if self._process is not None:
                self._process.kill()


def run_in_child(
    cell: Cell, fingerprint: str | None, scratch: Path, watch: Watch | None = None
) -> Outcome:
    """Train a cell; its caches go to `scratch`, which is removed.

    The graph must have the fingerprint; None takes whatever graph has the name.
    """
    watch = watch or Watch()
    request = {
        "path": _module_path(),
        "run": cell.run.to_json(),
        "measure": cell.measure,
        "code": cell.run.code(),
        "fingerprint": fingerprint,
        "threads": watch.threads or torch.get_num_threads(),
        "folder": None if watch.folder is None else str(watch.folder.resolve()),
        "report": watch.on_epoch is not None,
    }
    shutil.rmtree(scratch, ignore_errors=True)  # left by a process that was killed
    environment = {**os.environ, "GRAPHFM_CACHE": str(scratch.resolve())}
    with TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM],  # -P: not the modules of the current folder
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
        )
        watch.attach(process)
        try:
            answer = _ask(process, json.dumps(request).encode() + b"\n", watch)
            return _outcome(answer, process.wait(), errors)
        finally:
            process.kill()  # in case it still runs: after Ctrl-C
            with suppress(BrokenPipeError):
                process.communicate()
            shutil.rmtree(scratch, ignore_errors=True)


def _ask(process: subprocess.Popen[bytes], request: bytes, watch: Watch) -> bytes:
    """Send the request and wait for the answer. The pipe stays open: closing it ends the cell."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):  # it has died already, and its exit code says more
        process.stdin.write(request)
        process.stdin.flush()
    answer = b""
    for line in process.stdout:
        if watch.on_epoch is not None and line.startswith(EPOCH):
            watch.on_epoch(json.loads(line.removeprefix(EPOCH)))
        else:
            answer = line
    return answer


def _outcome(answer: bytes, code: int, errors: IO[bytes]) -> Outcome:
    """What the process answered; if it died without an answer, what its exit code says."""
    errors.seek(0)
    details = errors.read().decode(errors="replace").strip()[-MOST_DETAILS:]
    if answer.endswith(b"\n"):
        outcome = Outcome.from_json(json.loads(answer))
        if outcome.status not in (FAILED, BROKEN):
            return outcome
        return replace(outcome, details=details or None)
    reason = f"its process ended with code {code}"
    if code < 0:
        reason = f"its process was ended by {_signal_name(-code)}"
        if -code == signal.SIGKILL:
            reason += ", perhaps because memory ran out"
    elif details:
        reason += f": {details.splitlines()[-1]}"
    return Outcome(status=FAILED, error=reason, details=details or None)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no names
        return f"signal {number}"


def _module_path() -> list[str]:
    """The folders where this process finds modules, without the current folder."""
    root = str(Path(__file__).resolve().parents[2])
    here = os.path.realpath(os.getcwd())
    kept = [os.path.abspath(entry) for entry in sys.path if entry]
    kept = [entry for entry in kept if os.path.realpath(entry) != here]
    return kept if root in map(os.path.realpath, kept) else [root, *kept]
