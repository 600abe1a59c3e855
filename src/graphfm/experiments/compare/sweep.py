"""Options as they are typed: one option with several values, and options of one method."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from graphfm.errors import InputError

Value = bool | int | float | str
Values = Mapping[str, Value | None]  # by swept option; None where a method does not take it


@dataclass(frozen=True)
class Sweep:
    """An option by name, and the values that a comparison tries for it."""

    name: str
    values: tuple[Value, ...]

    @classmethod
    def parse(cls, text: str) -> Sweep:
        """Read `fanout=1,2,4` as Sweep("fanout", (1, 2, 4))."""
        name, _, values = text.partition("=")
        parts = [part.strip() for part in values.split(",")]
        if not name.strip() or not all(parts):
            raise InputError(
                f"sweep is {text!r}; expected a name and its values, such as fanout=1,2,4"
            )
        values_of = (_value(part) for part in parts)
        found = tuple({(type(v) is bool, v): v for v in values_of}.values())  # True == 1
        return cls(name.strip().removeprefix("--").replace("-", "_"), found)


def own_settings(texts: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Read ["graphsage.fanout=2,2"] as {"graphsage": {"fanout": (2, 2)}}."""
    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        place, _, values = text.partition("=")
        method, _, name = place.rpartition(".")  # "package.module:function" has dots
        parts = [part.strip() for part in values.split(",")]
        if not method.strip() or not name.strip() or not all(parts):
            raise InputError(
                f"set is {text!r}; expected a method, its option and a value, such as "
                "graphsage.fanout=2,2"
            )
        value = tuple(_value(part) for part in parts)
        option = name.strip().replace("-", "_")
        found.setdefault(method.strip(), {})[option] = value if len(value) > 1 else value[0]
    return found


def only_value(values: Values) -> Value | None:
    """The value of the one swept option; None if there are none or several."""
    return next(iter(values.values())) if len(values) == 1 else None


def in_words(method: str, values: Values) -> str:
    """The name of a row: "graphsage, fanout 4, lr 0.01"."""
    swept = [f"{name} {as_words(value)}" for name, value in values.items() if value is not None]
    return ", ".join([method, *swept])


def as_words(value: Any) -> str:
    """A value as it would be typed."""
    if isinstance(value, list | tuple):
        return ",".join(map(as_words, value))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _value(text: str) -> Value:
    """A number or a truth value if it looks like one, else the text itself."""
    if text.lower() in ("true", "yes", "false", "no"):
        return text.lower() in ("true", "yes")
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if math.isfinite(number):  # no option takes "inf": as a name it will be refused
            return number
    return text
