"""The method and the backbone of a run: by name, by import path, or as objects."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any, NoReturn

from torch import nn

from graphfm.backbones import BACKBONES
from graphfm.backbones.base import Backbone, DepthSettings
from graphfm.errors import InputError, did_you_mean
from graphfm.method_forms import declared
from graphfm.methods import METHODS, Method
from graphfm.options import Option, options_in
from graphfm.runs.own_code import digest_of, import_place, is_place, place_of

RESERVED = {
    "graph", "dataset", "method", "backbone", "model", "model_option", "model_options", "call",
    "device", "out", "callbacks", "checkpoint_every", "json", "recipe", "resume", "explain",
    "quiet", "verbose", "help", "methods", "seeds", "own", "sweep", "settings_of",
    "budget_epochs", "budget_seconds", "minutes", "trials", "jobs",
}  # fmt: skip
OBJECT = "Method("  # how the name of a method begins that was given as an object
MODEL = "model="  # how the name of a backbone begins that is a model of the user's own


class NotTheSame(InputError):  # noqa: N818
    """The given method or backbone is not the one that the run was made with."""


@dataclass(frozen=True, kw_only=True)
class Named:
    """The name of a method or backbone, as in config.json, and its code."""

    name: str
    code: Any = field(default=None, repr=False)  # a function, class or Method; None: not named
    options: Mapping[str, Option] = field(default_factory=dict, repr=False)
    fixed: Mapping[str, Any] = field(default_factory=dict, repr=False)  # settings without options
    trains_with: Mapping[str, Any] = field(default_factory=dict, repr=False)  # see method_forms
    published: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_own(self) -> bool:
        """True for code that is not part of this package."""
        return ":" in self.name or self.name.startswith((OBJECT, MODEL))

    @property
    def is_model(self) -> bool:
        """True for a network of PyG that the user brings."""
        return self.name.startswith(MODEL)

    def flag(self, what: str) -> str:
        """The option that names it on the command line: --backbone, --method or --model."""
        name = self.name.removeprefix(MODEL)
        return f"--model {name}" if self.is_model else f"--{what} {name}"

    @cached_property
    def digest(self) -> str | None:
        """A hash of the user's own code as it is at the start; None for ours."""
        if self.code is None or not self.is_own:
            return None
        if self.is_model:
            given = self.code.model
            return digest_of([type(given) if isinstance(given, nn.Module) else given])
        if not isinstance(self.code, Method):
            return digest_of([self.code])
        kinds = [type(part) for part in (self.code.sampler, self.code.estimator)]
        return digest_of(kind for kind in kinds if not kind.__module__.startswith("graphfm."))


MethodLike = str | Callable[..., Method] | Method | Named
BackboneLike = str | type[Backbone] | Named


def choose_method(given: MethodLike) -> Named:
    """Find a method by name, import path, function or object."""
    if isinstance(given, Named):
        return given
    if isinstance(given, Method):
        parts = {"sampler": _described(given.sampler), "estimator": _described(given.estimator)}
        kinds = (type(given.sampler).__name__, type(given.estimator).__name__)
        return Named(name=f"{OBJECT}{', '.join(kinds)})", code=given, fixed=parts)
    if isinstance(given, str):
        if given in METHODS:
            return _named(given, METHODS[given], options_in(METHODS[given]))
        given = _imported("method", given, METHODS)
        if isinstance(given, Method):
            return choose_method(given)
    if isinstance(given, type) and issubclass(given, Backbone):
        raise InputError(f"method is {given.__name__}, a backbone; give it as the backbone instead")
    if not callable(given) or not hasattr(given, "__qualname__"):
        raise InputError(
            f"method is {_a(given)}; expected a name, 'package.module:function', a function that "
            "returns a graphfm.Method, or a graphfm.Method"
        )
    name = next((key for key, known in METHODS.items() if known is given), place_of(given))
    return _named(name, given, _own_options(given, name))


def choose_backbone(given: BackboneLike) -> Named:
    """Find a backbone by name, import path or class."""
    if isinstance(given, Named):
        return given
    kind: Any = given
    if isinstance(given, str):
        kind = BACKBONES.get(given) or _imported("backbone", given, BACKBONES)
    if not isinstance(kind, type) or not issubclass(kind, Backbone):
        raise InputError(
            f"backbone is {_a(kind)}; expected a name, 'package.module:Class' or a subclass of "
            "graphfm.backbones.Backbone"
        )
    name = next((key for key, known in BACKBONES.items() if known is kind), place_of(kind))
    settings = kind.Settings
    if not is_dataclass(settings) or not issubclass(settings, DepthSettings):
        raise InputError(
            f"{name}.Settings is {_a(settings)}; expected a dataclass derived from "
            "graphfm.backbones.base.DepthSettings, HiddenSettings or Settings"
        )
    options = options_in(settings) if kind in BACKBONES.values() else _own_options(settings, name)
    return Named(name=name, code=kind, options=options)


def choose_again(what: str, recorded: Any, given: Any, settings: Mapping[str, Any]) -> Named:
    """Find what a record names. A user's own code is taken from `given`, never imported."""
    if not isinstance(recorded, str):
        raise InputError(f"{what} is {recorded!r}; expected a name")
    choose: Callable[[Any], Named] = choose_method if what == "method" else choose_backbone
    if given is None:
        own = Named(name=recorded, fixed=settings)
        return own if own.is_own else choose(recorded)
    named = choose(given)
    if named.name != recorded:
        raise NotTheSame(
            f"the run was made with {what} {recorded}, but {named.name} was given; give {recorded}"
        )
    if named.fixed and named.fixed != _completed(settings, named.code):
        expected = json.dumps(settings)
        text = f"the given {what} has other settings than that of the run; expected {expected}"
        raise NotTheSame(text)
    return named


def _completed(recorded: Mapping[str, Any], parts: Any) -> Mapping[str, Any]:
    """A record of a method object, with the defaults of settings that its version lacked."""
    if not isinstance(parts, Method):
        return recorded

    def whole(part: Any, record: Mapping[str, Any]) -> dict[str, Any]:
        known = fields(part) if is_dataclass(part) else ()
        unsaid = {f.name: as_tuples(f.default) for f in known if f.default is not MISSING}
        return {**record, "settings": {**unsaid, **record["settings"]}}

    return {name: whole(getattr(parts, name), record) for name, record in recorded.items()}


def make_method(named: Named, settings: Mapping[str, Any]) -> Method:
    """Make a method with these settings; a given one is copied, so that runs share no state."""
    if isinstance(named.code, Method):
        return copy.deepcopy(named.code)
    try:
        method = named.code(**settings)
    except InputError:
        raise
    except ValueError as error:  # a sampler and an estimator that do not fit together
        raise InputError(f"method {named.name}: {error}") from error
    if not isinstance(method, Method):
        raise InputError(f"{named.name} returned {_a(method)}; expected a graphfm.Method")
    return method


def refuse_unnamed(what: str, name: str) -> NoReturn:
    """Raise an error that says how to give the user's own code again."""
    if name.startswith(OBJECT):
        raise InputError(
            f"the run was made with a method object, {name}; give an equal one again, in Python: "
            "resume(path, method=...)"
        )
    if name.startswith(MODEL):
        what, name = "model", name.removeprefix(MODEL)
        if not is_place(name):
            raise InputError(
                f"the run was made with a module of class {name}; give one with the same arguments "
                f"again, in Python: model={name}(...)"
            )
    option = f"add --{what} {name}, or " if is_place(name) else ""
    raise InputError(
        f"the run was made with {what} {name}, which is code of your own and runs only where you "
        f"name it; {option}in Python give {what}={name.rpartition(':')[2]}"
    )


def as_tuples(value: Any) -> Any:
    """Turn the lists of a JSON record back into tuples."""
    if isinstance(value, dict):
        return {key: as_tuples(item) for key, item in value.items()}
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


def _named(name: str, function: Any, options: Mapping[str, Option]) -> Named:
    suits, published = declared(function)
    return Named(name=name, code=function, options=options, trains_with=suits, published=published)


def _imported(what: str, path: str, known: Mapping[str, Any]) -> Any:
    if not is_place(path):
        kind = "function" if what == "method" else "Class"
        raise InputError(
            f"unknown {what} {path!r}; choose one of {', '.join(known)}, or name your own: "
            f"package.module:{kind}{did_you_mean(path, known)}"
        )
    return import_place(what, path)


def _own_options(owner: Callable[..., Any], name: str) -> dict[str, Option]:
    options = options_in(owner)
    if taken := RESERVED & options.keys():
        raise InputError(f"{name} has a setting {min(taken)}, a name that train uses; rename it")
    return options


def _described(part: Any) -> dict[str, Any]:
    """The class and the settings of a sampler or an estimator, for config.json."""
    kind = type(part)
    if is_dataclass(part):
        names = [item.name for item in fields(part) if item.init]
    else:
        skipped = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        parameters = inspect.signature(kind).parameters.values()
        names = [item.name for item in parameters if item.kind not in skipped]
    settings = {name: getattr(part, name, part) for name in names}  # `part`: not kept, refused
    for name, value in settings.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            raise InputError(
                f"{name} of {kind.__name__} cannot be written to config.json; keep plain values "
                "under the names of the parameters, or give a function that returns the Method"
            ) from None
    return {"class": place_of(kind), "settings": as_tuples(settings)}


def _a(thing: Any) -> str:
    name = thing.__name__ if isinstance(thing, type) else type(thing).__name__
    return f"the class {name}" if isinstance(thing, type) else f"a {name}"
