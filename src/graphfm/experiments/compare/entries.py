"""The rows of a comparison before they are trained: every method with every swept value."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphfm.errors import InputError
from graphfm.experiments.cell import Cell, PlannedRow
from graphfm.experiments.compare.sweep import Sweep, Values, as_words, in_words, only_value
from graphfm.runs.named import Named
from graphfm.runs.run import Run, backbone_of, options_of

Settings = Mapping[str, Any]
SET_ELSEWHERE = {
    "seed": "--seeds",
    "epochs": "--budget-epochs",
    "max_seconds": "--budget-seconds",
    "patience": "--patience",
}


@dataclass(frozen=True, kw_only=True)
class Entry(PlannedRow):
    """One method with one value of each swept option, before it is trained."""

    method: str
    backbone: str
    values: Values

    @property
    def value(self) -> Any:
        """The value of the one swept option; None if there are none or several."""
        return only_value(self.values)


def make_entries(
    methods: Sequence[Named],
    shared: Run,
    sweeps: Sequence[Sweep],
    seeds: int,
    options: Settings,
    own: Mapping[str, Settings],
) -> tuple[Entry, ...]:
    """An entry for each method and each combination of the swept values that it takes."""
    entries = list[Entry]()
    for method in methods:
        known = taken_by(method, shared.named_backbone)
        given = {name: value for name, value in options.items() if name in known}
        given |= own.get(method.name, {})
        _check_types(method, given)
        tried = [sweep.values if sweep.name in known else (None,) for sweep in sweeps]
        for combination in itertools.product(*tried):
            values = {s.name: value for s, value in zip(sweeps, combination, strict=True)}
            entries.append(_entry(method, values, shared, seeds, given))
    _check_values(entries)
    return tuple(entries)


def _check_types(method: Named, given: Settings) -> None:
    """Refuse a value that the setting of a method cannot have, whatever the network and graph."""
    for name, value in given.items():
        if name in method.options:
            try:
                method.options[name].check(value)
            except InputError as error:
                raise InputError(f"{method.name}: {error}") from None


def taken_by(method: Named, backbone: Named) -> frozenset[str]:
    """The options of a method, on this network unless it brings its own."""
    return options_of(method, backbone_of(method) or backbone)


def check_sweeps(
    sweeps: Sequence[Sweep],
    methods: Sequence[Named],
    backbone: Named,
    given: Sequence[Settings],
) -> None:
    """Refuse a sweep that no method takes, or of what is set elsewhere or was given too."""
    names = [sweep.name for sweep in sweeps]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{name} is swept {names.count(name)} times; give all values at once")
        if name in SET_ELSEWHERE:
            raise InputError(f"{name} cannot be swept; {SET_ELSEWHERE[name]} sets it")
        for settings in given:
            if name in settings:
                value = as_words(settings[name])
                raise InputError(
                    f"{name} is swept and also set to {value}; give only one of the two"
                )
        if not any(name in taken_by(method, backbone) for method in methods):
            compared = ", ".join(method.name for method in methods)
            raise InputError(
                f"{name} is not a setting of backbone {backbone.name} or of {compared}; "
                "sweep one that 'graphfm train --help' lists for them"
            )


def _entry(method: Named, values: Values, shared: Run, seeds: int, given: Settings) -> Entry:
    own = backbone_of(method)
    what: dict[str, Any] = {"method": method.name, "backbone": own or shared.backbone}
    place: dict[str, Any] = {"dataset": shared.dataset, "device": shared.device, "method": method}
    swept = {name: value for name, value in values.items() if value is not None}
    network = None if own else shared.named_backbone
    try:
        runs = [
            Run.make(backbone=network, **place, **{**given, **swept, "seed": seed})
            for seed in range(seeds)
        ]
    except InputError as error:
        return Entry(**what, values=values, refusal=str(error))
    label = in_words(method.name, values)
    cells = tuple(Cell(run, f"{label}, seed {run.training.seed}") for run in runs)
    return Entry(**what, values=values, cells=cells)


def _check_values(entries: Iterable[Entry]) -> None:
    """Refuse a value that no method takes; one that only some refuse becomes a row with a note."""
    by_value: dict[str, list[Entry]] = {}
    for entry in entries:
        for name, value in entry.values.items() or [("", None)]:
            by_value.setdefault(f"{name}={value!r}", []).append(entry)
    for same in by_value.values():
        if all(entry.refusal is not None for entry in same):
            raise InputError(same[0].refusal)
