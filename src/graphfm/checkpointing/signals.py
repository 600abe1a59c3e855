"""Ctrl-C and SIGTERM ask a training to stop; asked twice, it stops at once."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SAID = b"graphfm: stopping at the next step; once more stops at once\n"


class StopSignal:
    """While a block of code runs, says whether a signal came; the second one interrupts it.

    A signal that was ignored before, as `nohup` and scripts want it, stays ignored.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._before: dict[int, Any] = {}

    def __call__(self) -> bool:
        return self.number is not None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # nobody else gets signals
            heard = [n for n in SIGNALS if signal.getsignal(n) != signal.SIG_IGN]
            self._before = {number: signal.signal(number, self._note) for number in heard}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.number is not None:
            for each in self._before:  # a third would not even be heard
                signal.signal(each, signal.SIG_DFL)
            raise KeyboardInterrupt
        self.number = number
        shown = b"\n" if os.isatty(2) else b""  # behind the bar, or the ^C
        with suppress(OSError):  # whoever listened may have been interrupted too
            os.write(2, shown + SAID)  # not print: it may be what was interrupted
