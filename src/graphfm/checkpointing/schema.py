"""What JSON that was read must look like, said once.

A form is a function that takes a value or not; a list of one form, for a list of any length; or
forms by name, for an object with these names and no others.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any

Form = Callable[[Any], bool] | list[Any] | Mapping[str, Any]
MOST = sys.float_info.max
MOST_WHOLE = (1 << 63) - 1


def anything(value: Any) -> bool:
    """Whatever it is."""
    return True


def text(value: Any) -> bool:
    """A string."""
    return isinstance(value, str)


def whole(least: int = 0) -> Form:
    """A whole number; true and false are none."""
    return lambda value: type(value) is int and least <= value <= MOST_WHOLE


def real(low: float = -MOST, high: float = MOST) -> Form:
    """A finite number."""
    return lambda value: type(value) in (int, float) and low <= value <= high


def maybe(form: Form) -> Form:
    """That, or null."""
    return lambda value: value is None or fits(value, form)


def each(form: Form) -> Form:
    """An object with any names."""
    return lambda value: isinstance(value, dict) and all(fits(v, form) for v in value.values())


def fits(value: Any, form: Form) -> bool:
    try:
        check(value, form, "it")
    except ValueError:
        return False
    return True


def check(value: Any, form: Form, name: str) -> None:
    """Refuse a value that has not the form."""
    if isinstance(form, list) and isinstance(value, list):
        for number, item in enumerate(value):
            check(item, form[0], f"{name}.{number}")
    elif isinstance(form, Mapping) and isinstance(value, dict):
        if strange := value.keys() ^ form.keys():
            raise ValueError(f"{name}.{min(strange)} is missing, or not known")
        for key, item in form.items():
            check(value[key], item, f"{name}.{key}")
    elif not callable(form) or not form(value):
        raise ValueError(f"{name} is {repr(value)[:40]}")
