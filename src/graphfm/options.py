"""Settings are declared once, by an annotation with type and help text, and a default.

    Fanout = Annotated[tuple[int, ...], Setting("Neighbours sampled per node.")]

    def graphsage(*, fanout: Fanout = (5,)) -> Method: ...

Fields of a settings dataclass are declared in the same way. The command line, the signature of
`graphfm.train`, the checks of values and `config.json` follow from these declarations.
"""

from __future__ import annotations

import csv
import inspect
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from graphfm.errors import InputError

Scalar = bool | int | float | str
ONE = {int: "a whole number", float: "a number", bool: "true or false", str: "a name"}
SEVERAL = {int: "whole numbers", float: "numbers", bool: "true or false", str: "names"}
TRUE, FALSE = ("true", "yes", "1"), ("false", "no", "0")
SUPPORTED = "int, float, str, bool, Literal, a tuple of one of them, or one of them with None"


@dataclass(frozen=True)
class Setting:
    """The help text and the upper limit that an annotation gives a setting."""

    help: str
    most: int | None = None  # a larger value is refused as a typing mistake
    rare: bool = False  # help lists the name alone, and --help-all the text


@dataclass(frozen=True)
class Kind:
    """The values that a setting takes."""

    base: type[Any]  # int, float, str or bool
    many: bool = False
    optional: bool = False
    choices: tuple[Scalar, ...] = ()

    @property
    def expected(self) -> str:
        """Describe the values in words."""
        if self.choices and not self.many:
            return one_of(self.choices)
        return f"{SEVERAL[self.base]} separated by commas" if self.many else ONE[self.base]


@dataclass(frozen=True)
class Option:
    """One setting of a method, a backbone or a training."""

    name: str
    kind: Kind
    annotation: Any  # the plain type, for signatures
    default: Any = MISSING
    about: Setting = field(default=Setting(""))

    @property
    def has_default(self) -> bool:
        """False if a value has to be given."""
        return self.default is not MISSING

    def check(self, value: Any) -> Any:
        """The value in the declared type; a value of another type is refused."""
        if value is None and self.kind.optional:
            return None
        if self.kind.many:
            values = value if isinstance(value, list | tuple) else [value]
            return tuple(self._check_one(item) for item in values)
        value = self._check_one(value)
        if self.kind.choices and value not in self.kind.choices:
            raise InputError(f"{self.name} is {value}; expected {self.kind.expected}")
        return value

    def parse(self, text: str) -> Any:
        """Parse a text from the command line; raises ValueError if it is not a value."""
        if self.kind.optional and text == "auto":
            return None
        if self.kind.many:
            return tuple(self._parse_one(part.strip()) for part in split(text))
        return self._parse_one(text)

    def _check_one(self, value: Any) -> Any:
        base = self.kind.base
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if base is float and is_whole:
            value = float(value)
        if not isinstance(value, base) or (base is int and not is_whole):
            raise InputError(f"{self.name} is {value!r}; expected {ONE[base]}")
        if base is float and not math.isfinite(value):
            raise InputError(f"{self.name} is {value}; expected a finite number")
        if self.about.most is not None and abs(value) > self.about.most:
            raise InputError(f"{self.name} is {value}; expected at most {self.about.most}")
        return value

    def _parse_one(self, text: str) -> Any:
        if self.kind.base is not bool:
            return self.kind.base(text)
        if text.lower() not in (*TRUE, *FALSE):
            raise ValueError(text)
        return text.lower() in TRUE


def options_in(owner: Callable[..., Any]) -> dict[str, Option]:
    """The settings that a settings dataclass or a function declares, by name."""
    try:
        hints = get_type_hints(owner, include_extras=True)
    except (NameError, TypeError) as error:
        raise InputError(f"the annotations of {_name(owner)} cannot be read: {error}") from None
    if isinstance(owner, type) and is_dataclass(owner):
        defaults = {
            item.name: item.default if item.default_factory is MISSING else item.default_factory()
            for item in fields(owner)
            if item.init
        }
    else:
        defaults = _parameters(owner)
    return {
        name: _option(owner, name, hints.get(name), default) for name, default in defaults.items()
    }


def check_choices(settings: Any) -> None:
    """Refuse a settings dataclass with a field whose value is not among its choices."""
    for name, option in options_in(type(settings)).items():
        if option.kind.choices and not option.kind.many:
            option.check(getattr(settings, name))


def settle(given: dict[str, Any], options: Mapping[str, Option], owner: str) -> dict[str, Any]:
    """Take the values of `options` out of `given`, checked, with defaults for the others."""
    settled = {}
    for name, option in options.items():
        if name in given:
            settled[name] = option.check(given.pop(name))
        elif not option.has_default:
            raise InputError(f"{owner} needs a value for {name}, which has no default; give {name}")
        elif option.default is None:
            settled[name] = None
        else:
            settled[name] = option.check(option.default)  # a default is held to the same rules
    return settled


def split(text: str) -> list[str]:
    """The parts of a text between commas. A part that has commas of its own stands in quotes."""
    try:
        return next(csv.reader([text], skipinitialspace=True)) or [""]
    except csv.Error as error:
        raise ValueError(str(error)) from None


def join(parts: Iterable[str]) -> str:
    """Put commas between parts, so that `split` gives them back."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(parts)
    return text.getvalue()


def one_of(names: Sequence[object]) -> str:
    """Join names for a sentence: a, b or c."""
    *others, last = map(str, names)
    return f"{', '.join(others)} or {last}" if others else last


def as_text(value: Any) -> str:
    """Format a default value for a help text."""
    if value is None:
        return "auto"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(map(as_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _parameters(function: Callable[..., Any]) -> dict[str, Any]:
    defaults = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise InputError(
                f"{name} of {_name(function)} can only be given by position; settings are given by "
                "name, so make it a keyword parameter"
            )
        defaults[name] = MISSING if parameter.default is parameter.empty else parameter.default
    return defaults


def _option(owner: Callable[..., Any], name: str, annotation: Any, default: Any) -> Option:
    about = Setting("")
    if get_origin(annotation) is Annotated:
        annotation, *extras = get_args(annotation)
        about = next((item for item in extras if isinstance(item, Setting)), about)
    if annotation is None and default is not MISSING:  # no annotation: the default has a type
        annotation = type(default)
        if isinstance(default, tuple | list) and default:
            annotation = GenericAlias(tuple, (type(default[0]), ...))
    kind = _kind(annotation)
    if kind is None:
        got = "no type" if annotation is None else f"the type {annotation}"
        raise InputError(f"{name} of {_name(owner)} has {got}; expected {SUPPORTED}")
    if isinstance(default, list):
        default = tuple(default)
    return Option(name, kind, annotation, default, about)


def _kind(annotation: Any) -> Kind | None:
    """The kind of values of a type; None if a setting cannot have it."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(inner[0])
    if origin in (Union, UnionType):
        kinds = {_kind(item) for item in inner if item is not NoneType}
        if kinds == {Kind(int), Kind(float)}:
            kinds = {Kind(float)}
        kind = kinds.pop()
        return None if kinds or kind is None else replace(kind, optional=NoneType in inner)
    if origin is Literal:
        base = type(inner[0])
        same = base in ONE and all(type(item) is base for item in inner)
        return Kind(base, choices=inner) if same else None
    if origin in (tuple, list, Sequence):
        kinds = {_kind(item) for item in inner if item is not Ellipsis}
        kind = kinds.pop() if kinds else None
        nested = kind is None or kind.many or kind.optional
        return None if kinds or nested or kind is None else replace(kind, many=True)
    return Kind(annotation) if annotation in ONE else None


def _name(owner: Callable[..., Any]) -> str:
    return getattr(owner, "__qualname__", type(owner).__name__)
