"""Decides which trainings a comparison consists of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.experiments.cell import Cell, in_turns
from graphfm.experiments.compare.row import Entry, Row
from graphfm.experiments.compare.sweep import Sweep, Value, as_words
from graphfm.experiments.outcome import Outcome
from graphfm.methods import METHODS
from graphfm.options import options_in
from graphfm.runs.named import BackboneLike, MethodLike, Named, choose_backbone, choose_method
from graphfm.runs.options import refusal
from graphfm.runs.provenance import machine, versions
from graphfm.runs.run import Run, backbone_of, options_of, pick_device
from graphfm.training.settings import Training

ENDLESS = 10**6  # epochs of a training that ends by the clock
SET_ELSEWHERE = {
    "seed": "--seeds",
    "epochs": "--budget-epochs",
    "max_seconds": "--budget-seconds",
    "patience": "--patience",
}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Every method, value and seed, settled and checked before anything is trained."""

    shared: Run  # full batch, with the settings that all methods have in common
    entries: tuple[Entry, ...]
    seeds: int
    sweep: Sweep | None
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by method

    @classmethod
    def make(
        cls,
        *,
        dataset: str = "debian",
        backbone: BackboneLike | None = None,
        methods: str | Sequence[MethodLike] = "all",
        seeds: int = 3,
        budget_epochs: int | None = None,
        budget_seconds: float | None = None,
        patience: int = 10,
        sweep: Sweep | None = None,
        own: Mapping[str, Mapping[str, Any]] | None = None,
        device: str = "auto",
        **options: Any,
    ) -> Plan:
        """Make a plan from names and flat options, as on the command line; None is not given.

        An option goes to every method that takes it; `own` has those of single methods, such as
        `{"graphsage": {"fanout": (2, 2)}}`.
        """
        chosen = choose_methods(methods)
        own = own or {}
        for name in own.keys() - {method.name for method in chosen}:
            names = ", ".join(method.name for method in chosen)
            raise InputError(
                f"{name} has settings but is not compared; add it to the methods ({names})"
            )
        if not 1 <= seeds <= 1000:
            raise InputError(f"seeds is {seeds}; expected 1 to 1000: it is how many, not which")
        options = {name: value for name, value in options.items() if value is not None}
        options |= _budget(budget_epochs, budget_seconds) | {"patience": patience}
        place = {"dataset": dataset, "device": pick_device(device).type}
        shared = _shared(chosen, backbone, place, options)
        if sweep is not None:
            _check_sweep(sweep, chosen, shared.named_backbone, [options, *own.values()])
        entries = tuple(
            _entry(method, value, shared, sweep, seeds, options, own.get(method.name, {}))
            for method in chosen
            for value in _values(method, shared.named_backbone, sweep)
        )
        _check_values(entries)
        for run in (entry.cells[0].run for entry in entries if entry.cells):
            run.code()  # refuses what a child process could not find
        return cls(shared=shared, entries=entries, seeds=seeds, sweep=sweep, own=own)

    @property
    def cells(self) -> list[Cell]:
        """In the order to run them: each method once before any a second time."""
        return in_turns(self.entries)

    def rows(self, outcomes: Mapping[str, Outcome]) -> list[Row]:
        """The table, as far as there are outcomes."""
        return [Row.make(entry, outcomes, self.shared) for entry in self.entries]

    def settings(self, graph: Graph) -> dict[str, Any]:
        """All that must be the same for cells to stand in one table."""
        training = asdict(self.shared.training)
        del training["seed"]
        return {
            "graph": {
                "fingerprint": graph.fingerprint,
                "nodes": graph.num_nodes,
                "edges": graph.num_edges,
            },
            "backbone": self.shared.backbone,
            "network": dict(self.shared.backbone_settings),
            "training": training,
            "sweep": None if self.sweep is None else self.sweep.name,
            "device": self.shared.device,
            "versions": versions(),
            "machine": machine(graph.device),
        }

    def defaults(self) -> dict[str, Any]:
        """What a folder means that does not mention a training setting: the default of today."""
        training = asdict(Training())
        del training["seed"]
        return {"training": training}

    def asked(self) -> dict[str, Any]:
        """What may change from one start to the next."""
        return {
            "dataset": self.shared.dataset,
            "methods": list(dict.fromkeys(entry.method for entry in self.entries)),
            "seeds": self.seeds,
            "values": None if self.sweep is None else list(self.sweep.values),
        }


def choose_methods(methods: str | Sequence[MethodLike]) -> list[Named]:
    """The methods of a comparison, each once; "all" are those of this package."""
    given = methods.split(",") if isinstance(methods, str) else list(methods)
    if given == ["all"]:
        given = list(METHODS)
    chosen = [choose_method(item.strip() if isinstance(item, str) else item) for item in given]
    if not chosen:
        raise InputError("no method was given; name some, or write all")
    distinct = list({(method.name, str(method.fixed)): method for method in chosen}.values())
    if len({method.name for method in distinct}) < len(distinct):
        raise InputError(
            "two Method objects are made of the same classes, and a table could not tell them "
            "apart; give functions that return them instead"
        )
    return distinct


def _shared(
    methods: Sequence[Named], backbone: Any, place: dict[str, Any], options: dict[str, Any]
) -> Run:
    """Full batch with the settings that all have in common. Refuses one that no method takes."""
    network = choose_backbone(backbone or "sage")
    of_methods = {name for method in methods for name in method.options}
    common = {n: v for n, v in options.items() if n not in of_methods}
    for name in options.keys() - of_methods - network.options.keys() - options_in(Training).keys():
        raise InputError(refusal(name, network, *methods))
    return Run.make(backbone=backbone, **place, **common)


def _budget(epochs: int | None, seconds: float | None) -> dict[str, Any]:
    if seconds is None:
        return {"epochs": 100 if epochs is None else epochs}
    if epochs is not None:
        raise InputError("there are two budgets, in epochs and in seconds; give only one of them")
    if not seconds > 0:
        raise InputError(f"budget_seconds is {seconds}; expected a number above 0")
    return {"epochs": ENDLESS, "max_seconds": float(seconds)}


def _check_sweep(
    sweep: Sweep,
    methods: Iterable[Named],
    backbone: Named,
    given: Iterable[Mapping[str, Any]],
) -> None:
    if sweep.name in SET_ELSEWHERE:
        raise InputError(f"{sweep.name} cannot be swept; {SET_ELSEWHERE[sweep.name]} sets it")
    for settings in given:
        if sweep.name in settings:
            value = as_words(settings[sweep.name])
            raise InputError(
                f"{sweep.name} is swept and also set to {value}; give only one of the two"
            )
    if not any(_takes(method, backbone, sweep.name) for method in methods):
        names = ", ".join(method.name for method in methods)
        raise InputError(
            f"{sweep.name} is not a setting of backbone {backbone.name} or of {names}; "
            "sweep one that 'graphfm train --help' lists for them"
        )


def _takes(method: Named, backbone: Named, option: str) -> bool:
    return option in options_of(method, backbone_of(method) or backbone)


def _values(method: Named, backbone: Named, sweep: Sweep | None) -> tuple[Value | None, ...]:
    if sweep is None or not _takes(method, backbone, sweep.name):
        return (None,)
    return sweep.values


def _entry(
    method: Named,
    value: Value | None,
    shared: Run,
    sweep: Sweep | None,
    seeds: int,
    options: dict[str, Any],
    single: Mapping[str, Any],
) -> Entry:
    own, shared_network = backbone_of(method), shared.named_backbone
    network = own or shared.backbone
    place: dict[str, Any] = {"dataset": shared.dataset, "device": shared.device, "method": method}
    given = {n: v for n, v in options.items() if _takes(method, shared_network, n)}
    given |= single
    what = method.name
    if sweep is not None and value is not None:
        given[sweep.name] = value
        what = f"{method.name}, {sweep.name} {value}"
    try:
        runs = [
            Run.make(backbone=None if own else shared_network, **place, **given, seed=seed)
            for seed in range(seeds)
        ]
    except InputError as error:
        return Entry(method=method.name, backbone=network, value=value, refusal=str(error))
    cells = tuple(Cell(run, f"{what}, seed {run.training.seed}") for run in runs)
    return Entry(method=method.name, backbone=network, value=value, cells=cells)


def _check_values(entries: Iterable[Entry]) -> None:
    """Refuse a value that no method takes; one that only some refuse becomes a row with a note."""
    by_value: dict[str, list[Entry]] = {}
    for entry in entries:
        by_value.setdefault(repr(entry.value), []).append(entry)
    for same in by_value.values():
        if all(entry.refusal is not None for entry in same):
            raise InputError(same[0].refusal)
