"""How often a checkpoint is written."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from graphfm.errors import InputError

SECONDS = 45.0  # with the writing and a slow step, less than a minute is lost
SHARE = 0.04  # largest share of the time that goes into checkpoints
SHORT, LONG = 1e-3, 1e9  # less or more is taken for a typing mistake
FORM = re.compile(r"(\d+(?:\.\d+)?(?:e\+?\d+)?) *(s|seconds?|steps?)?")


@dataclass(frozen=True)
class Interval:
    """Seconds or steps between checkpoints; by default 45 seconds, more if writing takes long."""

    seconds: float | None = None
    steps: int | None = None

    @classmethod
    def parse(cls, text: str) -> Interval:
        """Parse 'auto', '30' or '30s' (seconds), '500 steps', or '0' (only when interrupted)."""
        if text == "auto":
            return cls()
        found = FORM.fullmatch(text.strip())
        if found is None:
            raise InputError(
                f"checkpoint-every is {text!r}; expected seconds (30), steps (500steps), auto, or "
                "0 (write one only when interrupted)"
            )
        if not float(found[1]) < LONG:
            raise InputError(
                f"checkpoint-every is {text!r}; expected less than a billion; 0 writes one only "
                "when interrupted"
            )
        number, unit = float(found[1]), found[2] or "s"
        if not unit.startswith("step"):
            if 0 < number < SHORT:
                raise InputError(
                    f"checkpoint-every is {text!r}; expected a millisecond (0.001) or more; 0 "
                    "writes one only when interrupted"
                )
            return cls(seconds=number)
        if number != int(number):
            raise InputError(f"checkpoint-every is {text!r}; expected a whole number of steps")
        return cls(steps=int(number))

    def __str__(self) -> str:
        if self.steps is not None:
            return f"{self.steps}steps"
        return "auto" if self.seconds is None else f"{float(self.seconds)}s"  # with every digit

    @property
    def never(self) -> bool:
        """True if a checkpoint is written only when the training is interrupted."""
        return self.seconds == 0 or self.steps == 0

    def is_due(self, seconds: float, steps: int, cost: float) -> bool:
        """True if a checkpoint is due, `seconds` and `steps` after the last, which took `cost`."""
        if self.never:
            return False
        if self.steps is not None:
            return steps >= self.steps
        return seconds >= self.wait(cost)

    def wait(self, cost: float) -> float:
        """Seconds between checkpoints if writing one takes `cost` seconds."""
        if self.steps is not None:
            return math.inf
        return max(SECONDS, cost / SHARE) if self.seconds is None else self.seconds
