"""One option, several values."""

from __future__ import annotations

import math
from dataclasses import dataclass

from graphfm.errors import InputError

Value = bool | int | float | str


@dataclass(frozen=True)
class Sweep:
    """An option by name, and the values that a comparison gives to it."""

    name: str
    values: tuple[Value, ...]

    @classmethod
    def parse(cls, text: str) -> Sweep:
        """`fanout=1,2,4` -> Sweep("fanout", (1, 2, 4))."""
        name, _, values = text.partition("=")
        parts = [part.strip() for part in values.split(",")]
        if not name.strip() or not all(parts):
            raise InputError(
                f"sweep is {text!r}; expected a name and its values, such as fanout=1,2,4"
            )
        found = tuple(dict.fromkeys(_value(part) for part in parts))
        return cls(name.strip().removeprefix("--").replace("-", "_"), found)


def _value(text: str) -> Value:
    if text.lower() in ("true", "yes", "false", "no"):
        return text.lower() in ("true", "yes")
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if math.isfinite(number):  # no option takes "inf", and as a name it is refused as such
            return number
    return text
