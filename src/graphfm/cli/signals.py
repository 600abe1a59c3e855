"""SIGTERM ends a command as Ctrl-C does, tidily and with a word on how to go on."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""

    code = 128 + signal.SIGTERM


class Heard:
    """While a command runs; `code` is the one to end with after a signal.

    A SIGTERM that was ignored before stays ignored; so does a SIGINT, which Python sees to.
    """

    code = 128 + signal.SIGINT

    def __enter__(self) -> Self:
        here = threading.current_thread() is threading.main_thread()  # nobody else may ask
        self._hears = here and signal.getsignal(signal.SIGTERM) != signal.SIG_IGN
        self._before: Any = signal.signal(signal.SIGTERM, self._note) if self._hears else None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._hears:
            signal.signal(signal.SIGTERM, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.code = Terminated.code
        raise Terminated
