"""All options of a training: their owners, defaults and help texts."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graphfm.backbones import BACKBONES
from graphfm.errors import did_you_mean
from graphfm.methods import METHODS
from graphfm.options import Option, as_text, one_of, options_in
from graphfm.runs.named import Named, choose_backbone, choose_method
from graphfm.training.settings import Training

NETWORK, METHOD, TRAINING = "Network", "Method", "Training"
CHOSEN = ("dataset", "backbone", "method", "device")  # named beside the settings


@dataclass(frozen=True)
class TrainOption:
    """One option by name. Several methods, or several backbones, may declare it."""

    name: str
    panel: str  # NETWORK, METHOD or TRAINING
    owners: Mapping[str, Option]  # by the name of the method or backbone; the user's own is first
    others: tuple[str, ...] = ()  # methods or backbones that do not take it
    by_method: Mapping[str, Any] = field(default_factory=dict)  # defaults that methods declare

    @property
    def first(self) -> Option:
        """The declaration that decides how the command line shows the option."""
        return next(iter(self.owners.values()))

    @property
    def help(self) -> str:
        """The help text, by owner if they differ, and the owners if not all have it."""
        texts: dict[str, list[str]] = {}
        for owner, option in self.owners.items():
            texts.setdefault(_with_choices(option), []).append(owner)
        if len(texts) > 1:
            return " ".join(f"{', '.join(owners)}: {text}" for text, owners in texts.items())
        (text,) = texts
        if not self.others or len(self._defaults()) > 1:  # else the defaults name them
            return text
        few = len(self.others) <= 2 < len(self.owners)
        who = f"not for {', '.join(self.others)}" if few else ", ".join(self.owners)
        return f"{text} ({who})"

    @property
    def default(self) -> str:
        """The default as text, by owner if they differ: "2; gcnii 4"."""
        return "; ".join([self._own_default(), *self._method_defaults()])

    def _own_default(self) -> str:
        groups = self._defaults()
        if len(groups) == 1:
            return next(iter(groups))
        parts = {text: f"{', '.join(owners)} {text}" for text, owners in groups.items()}
        if not self.others:  # the most common default comes first, without names
            most = max(groups, key=lambda text: len(groups[text]))
            parts = {most: most, **{text: part for text, part in parts.items() if text != most}}
        return "; ".join(parts.values())

    @property
    def value(self) -> Any:
        """The default that all owners share; None if they differ."""
        values = {repr(option.default) for option in self.owners.values()}
        shared = len(values) == 1 and self.first.has_default and not self.by_method
        return self.first.default if shared else None

    def with_default(self, default: Any) -> TrainOption:
        """The same option, with one default for all owners."""
        owners = {owner: replace(option, default=default) for owner, option in self.owners.items()}
        return replace(self, owners=owners, by_method={})

    def _method_defaults(self) -> list[str]:
        groups: dict[str, list[str]] = {}
        for method, value in self.by_method.items():
            groups.setdefault(as_text(value), []).append(method)
        return [f"{', '.join(methods)} {text}" for text, methods in groups.items()]

    def _defaults(self) -> dict[str, list[str]]:
        groups: dict[str, list[str]] = {}
        for owner, option in self.owners.items():
            text = as_text(option.default) if option.has_default else "required"
            groups.setdefault(text, []).append(owner)
        return groups


def train_options(*own: Named) -> dict[str, TrainOption]:
    """All options by name; `own` are the user's own methods and backbones."""
    own_methods = [named for named in own if not isinstance(named.code, type)]
    own_backbones = [named for named in own if isinstance(named.code, type)]
    return collect(
        [*own_methods, *map(choose_method, METHODS)],
        [*own_backbones, *map(choose_backbone, BACKBONES)],
    )


def collect(methods: Sequence[Named], backbones: Sequence[Named]) -> dict[str, TrainOption]:
    """The options of these methods, of these backbones and of every training, by name."""
    training = Named(name="", options=options_in(Training))
    found: dict[str, TrainOption] = {}
    for panel, owners in ((NETWORK, backbones), (METHOD, methods), (TRAINING, [training])):
        for name in dict.fromkeys(name for owner in owners for name in owner.options):
            takers = {o.name: o.options[name] for o in owners if name in o.options}
            others = tuple(owner.name for owner in owners if name not in owner.options)
            suited = {m.name: m.trains_with[name] for m in methods if name in m.trains_with}
            by_method = {} if panel == METHOD else suited
            found.setdefault(name, TrainOption(name, panel, takers, others, by_method))
    return found


def refusal(option: str, backbone: Named, *methods: Named) -> str:
    """The error text for an option that neither the backbone nor one of the methods has."""
    options = train_options(*(named for named in (backbone, *methods) if named.is_own))
    known = options.get(option)
    kind = "backbone" if known is not None and known.panel == NETWORK else "method"
    takers = [f"{kind} {name}" for name in known.owners] if known is not None else []
    if takers:
        advice = f"it belongs to {', '.join(takers)}"
    else:
        advice = f"there is no such option{did_you_mean(option, [*CHOSEN, *options])}"
    names = ", ".join(method.name for method in methods)
    return f"{option} is not a setting of backbone {backbone.name} or method {names}; {advice}"


def show_options(function: Callable[..., Any], without: Container[str] = ()) -> None:
    """Give a function with `**options` a signature and a docstring that list every option.

    It does not take those named in `without`, and those that it declares itself are not repeated.
    """
    signature = inspect.signature(function)
    kept = {n: p for n, p in signature.parameters.items() if p.kind is not p.VAR_KEYWORD}
    options = {n: o for n, o in train_options().items() if n not in without and n not in kept}
    more = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.value,
            annotation=option.first.annotation if option.value is not None else _either(option),
        )
        for name, option in options.items()
    ]
    shown = signature.replace(parameters=[*kept.values(), *more])
    function.__signature__ = shown  # type: ignore[attr-defined]
    about = inspect.getdoc(function) or ""
    function.__doc__ = f"{about}\n\n" + "\n".join(_lines(options.values()))


def _lines(options: Iterable[TrainOption]) -> list[str]:
    """The options under the names of their panels, with help and default."""
    lines, panel = list[str](), ""
    for option in options:
        if option.panel != panel:
            panel = option.panel
            lines += [*([""] if lines else []), f"{panel} options:"]
        text = f"{option.name}: {option.help} Default: {option.default}."
        wrapped = textwrap.wrap(text, 88, subsequent_indent="    ", break_on_hyphens=False)
        lines += [f"    {line}" for line in wrapped]
    return lines


def _with_choices(option: Option) -> str:
    choices = option.kind.choices
    missing = choices and not all(str(choice) in option.about.help for choice in choices)
    return f"{option.about.help} One of {one_of(choices)}." if missing else option.about.help


def _either(option: TrainOption) -> Any:
    """The types of all owners, and None for the default of the method or backbone."""
    found: Any = None
    for annotation in dict.fromkeys(item.annotation for item in option.owners.values()):
        found = annotation if found is None else found | annotation
    return found | None
