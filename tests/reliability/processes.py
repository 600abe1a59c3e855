"""Commands in processes of their own, which may be killed; torch is loaded once for all of them."""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "graphfm.cli.app",
        "graphfm.cli.train",
        "graphfm.cli.compare",
        "graphfm.cli.results",
        "torch._dynamo",
        "matplotlib.figure",
        "matplotlib.backends.backend_agg",
    ]
)
PATIENCE = 120.0  # seconds after which a process hangs


class Command:
    """`graphfm` with arguments, in a folder; what it prints is in `out` and `err` there."""

    def __init__(self, folder: Path, *arguments: object, cache: Path | None = None) -> None:
        given = [str(argument) for argument in arguments]
        self.folder = folder
        self.process = CONTEXT.Process(
            target=_run, args=(str(folder), given, str(cache or folder / "cache")), daemon=True
        )
        self.process.start()

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal, if there is anybody left to get it."""
        if self.process.is_alive():
            os.kill(self.process.pid, number)

    def until(self, ready: Callable[[], bool], seconds: float = PATIENCE) -> bool:
        """Wait for something, or for the end. Did it come?"""
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up:
            if ready():
                return True
            if not self.process.is_alive():
                return ready()
            time.sleep(0.001)
        return False

    def wait(self) -> int:
        """The exit code; that of a signal is negative."""
        self.process.join(PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            raise AssertionError(f"it hangs; it said: {self.err}")
        return self.process.exitcode

    @property
    def out(self) -> str:
        return (self.folder / "out").read_text()

    @property
    def err(self) -> str:
        return (self.folder / "err").read_text()


def _run(folder: str, arguments: list[str], cache: str) -> None:
    import torch

    from graphfm.cli import main

    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.chdir(folder)
    os.environ["GRAPHFM_CACHE"] = cache
    for place, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), place)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    sys.argv = ["graphfm", *arguments]
    main()
