"""Check that JSON has an expected form before it is used.

A form is a function that returns True for valid values; a list of one form, for a list of any
length; or forms by name, for an object with exactly these names.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any

Form = Callable[[Any], bool] | list[Any] | Mapping[str, Any]
MOST = sys.float_info.max
MOST_WHOLE = (1 << 63) - 1


def anything(value: Any) -> bool:
    """Accept any value."""
    return True


def text(value: Any) -> bool:
    """Accept a string."""
    return isinstance(value, str)


def whole(least: int = 0) -> Form:
    """Accept a whole number, but not true or false."""
    return lambda value: type(value) is int and least <= value <= MOST_WHOLE


def real(low: float = -MOST, high: float = MOST) -> Form:
    """Accept a finite number."""
    return lambda value: type(value) in (int, float) and low <= value <= high


def maybe(form: Form) -> Form:
    """Accept what `form` accepts, or null."""
    return lambda value: value is None or fits(value, form)


def each(form: Form) -> Form:
    """Accept an object with any names whose values have the form."""
    return lambda value: isinstance(value, dict) and all(fits(v, form) for v in value.values())


def fits(value: Any, form: Form) -> bool:
    """True if the value has the form."""
    try:
        check(value, form, "it")
    except ValueError:
        return False
    return True


def check(value: Any, form: Form, name: str) -> None:
    """Raise ValueError if the value does not have the form."""
    if isinstance(form, list) and isinstance(value, list):
        for number, item in enumerate(value):
            check(item, form[0], f"{name}.{number}")
    elif isinstance(form, Mapping) and isinstance(value, dict):
        if strange := value.keys() ^ form.keys():
            raise ValueError(f"{name}.{min(strange)} is missing or unknown")
        for key, item in form.items():
            check(value[key], item, f"{name}.{key}")
    elif not callable(form) or not form(value):
        raise ValueError(f"{name} has the invalid value {repr(value)[:40]}")
