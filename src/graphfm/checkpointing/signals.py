"""Ctrl-C and SIGTERM stop a training at the next step; a second signal stops it immediately."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from types import FrameType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SAID = (
    b"graphfm: stopping at the next step; press Ctrl-C again to stop immediately (the last "
    b"checkpoint is kept)\n"
)


class StopSignal:
    """True after a signal came while the context was active; a second signal interrupts it.

    A signal that was ignored before, for instance by `nohup`, stays ignored.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._before: dict[int, Any] = {}

    def __call__(self) -> bool:
        return self.number is not None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # only it may set handlers
            heard = [n for n in SIGNALS if signal.getsignal(n) != signal.SIG_IGN]
            self._before = {number: signal.signal(number, self._note) for number in heard}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.number is not None:
            for each in self._before:  # a third signal ends the process
                signal.signal(each, signal.SIG_DFL)
            raise KeyboardInterrupt
        self.number = number
        shown = b"\n" if os.isatty(2) else b""  # after the progress bar or ^C
        with suppress(OSError):  # the reader of stderr may be gone
            os.write(2, shown + SAID)  # `print` may be what was interrupted
