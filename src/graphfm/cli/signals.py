"""SIGTERM ends a command as Ctrl-C does, with a message on how to continue."""

import signal
import threading
from types import FrameType
from typing import Any, Self


class Terminated(KeyboardInterrupt):
    """SIGTERM was received."""

    code = 128 + signal.SIGTERM


class Heard:
    """Turns SIGTERM into `Terminated` while a command runs; `code` is the exit code after a signal.

    If SIGTERM was ignored before, it stays ignored. Python does the same for SIGINT.
    """

    code = 128 + signal.SIGINT

    def __enter__(self) -> Self:
        here = threading.current_thread() is threading.main_thread()  # only it may set handlers
        self._hears = here and signal.getsignal(signal.SIGTERM) != signal.SIG_IGN
        self._before: Any = signal.signal(signal.SIGTERM, self._note) if self._hears else None
        return self

    def __exit__(self, *error: object) -> None:
        if self._hears:
            signal.signal(signal.SIGTERM, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.code = Terminated.code
        raise Terminated
