"""Decides which trainings a comparison consists of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.experiments.cell import Cell, in_turns
from graphfm.experiments.compare.best import judged
from graphfm.experiments.compare.differences import common_settings, differences
from graphfm.experiments.compare.entries import (
    SET_ELSEWHERE,
    Entry,
    check_sweeps,
    make_entries,
    taken_by,
)
from graphfm.experiments.compare.row import Row
from graphfm.experiments.compare.sweep import Sweep
from graphfm.experiments.outcome import Outcome
from graphfm.methods import METHODS
from graphfm.options import options_in
from graphfm.runs.devices import kind_of
from graphfm.runs.named import BackboneLike, MethodLike, Named, choose_backbone, choose_method
from graphfm.runs.options import refusal
from graphfm.runs.provenance import machine, versions
from graphfm.runs.run import Run, pick_device
from graphfm.runs.settling import HISTORY_SETTINGS
from graphfm.training.settings import Training

ENDLESS = 10**6  # epochs of a training that ends by the clock


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Every method, value and seed, settled and checked before anything is trained."""

    shared: Run  # the graph, the device, the network and what was given to all; never trained
    entries: tuple[Entry, ...]
    seeds: int
    sweeps: tuple[Sweep, ...] = ()
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
        patience: int | None = None,
        sweep: Sweep | Sequence[Sweep] | None = None,
        own: Mapping[str, Mapping[str, Any]] | None = None,
        device: str = "auto",
        **options: Any,
    ) -> Plan:
        """Make a plan from names and flat options, as on the command line; None is not given.

        An option goes to every method that takes it; `own` has those of single methods, such as
        `{"graphsage": {"fanout": (2, 2)}}`. Several sweeps make a grid.
        """
        chosen, own = choose_methods(methods), own or {}
        if not 1 <= seeds <= 1000:
            raise InputError(f"seeds is {seeds}; expected 1 to 1000: it is how many, not which")
        options = {name: value for name, value in options.items() if value is not None}
        _check_given(options, own, [method.name for method in chosen])
        options = {**options, **_budget(budget_epochs, budget_seconds, options)}
        options |= {} if patience is None else {"patience": patience}
        place = {"dataset": dataset, "device": str(pick_device(device))}
        shared = _shared(chosen, backbone, place, options)
        sweeps = () if sweep is None else (sweep,) if isinstance(sweep, Sweep) else tuple(sweep)
        check_sweeps(sweeps, chosen, shared.named_backbone, [options, *own.values()])
        entries = make_entries(chosen, shared, sweeps, seeds, options, own)
        plan = cls(shared=shared, entries=entries, seeds=seeds, sweeps=sweeps, own=own)
        if len(metrics := sorted({run.training.metric for run in plan.runs})) > 1:
            raise InputError(f"metric is {', '.join(metrics)}; one table has one metric: give one")
        for run in plan.runs:
            run.code()  # refuses what a child process could not find
        return plan

    @property
    def cells(self) -> list[Cell]:
        """In the order to run them: each method once before any a second time."""
        return in_turns(self.entries)

    @property
    def runs(self) -> list[Run]:
        """The first training of each row."""
        return [entry.cells[0].run for entry in self.entries if entry.cells]

    @cached_property
    def common(self) -> dict[str, Any]:
        """The settings in which no two rows differ."""
        return common_settings(self.runs)

    def rows(self, outcomes: Mapping[str, Outcome]) -> list[Row]:
        """The table, as far as there are outcomes."""
        return judged([Row.make(e, outcomes, self._differences(e)) for e in self.entries])

    def _differences(self, entry: Entry) -> dict[str, Any]:
        if not entry.cells:
            return {}
        return differences(entry.cells[0].run, self.shared, self.common)

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
            "sweep": ",".join(sorted(sweep.name for sweep in self.sweeps)) or None,
            "device": kind_of(self.shared.device),
            "versions": versions(),
            "machine": machine(graph.device),
        }

    def defaults(self) -> dict[str, Any]:
        """What a folder means that does not mention a setting: the default of today."""
        training = asdict(Training())
        del training["seed"]
        options = self.shared.named_backbone.options.items()
        network = {name: option.default for name, option in options if option.has_default}
        return {"training": training, "network": network}

    def asked(self) -> dict[str, Any]:
        """What may change from one start to the next."""
        sweeps = {sweep.name: list(sweep.values) for sweep in self.sweeps}
        return {
            "dataset": self.shared.dataset,
            "methods": list(dict.fromkeys(entry.method for entry in self.entries)),
            "seeds": self.seeds,
            "values": next(iter(sweeps.values())) if len(sweeps) == 1 else None,
            "sweeps": sweeps,
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


def _check_given(
    options: Mapping[str, Any], own: Mapping[str, Mapping[str, Any]], methods: Sequence[str]
) -> None:
    """Refuse settings of methods that are not compared, and those that have a name of their own."""
    for name in own.keys() - set(methods):
        raise InputError(
            f"{name} has settings but is not compared; add it to the methods ({', '.join(methods)})"
        )
    for name in options.keys() & SET_ELSEWHERE.keys():
        raise InputError(f"{name} is not an option of a comparison; {SET_ELSEWHERE[name]} sets it")
    for method, settings in own.items():
        if "seed" in settings:
            raise InputError(f"{method} was given a seed; --seeds is how many all methods have")


def _shared(
    methods: Sequence[Named], backbone: Any, place: dict[str, Any], options: dict[str, Any]
) -> Run:
    """A run with what was given to all methods. Refuses an option that none of them takes."""
    network, training = choose_backbone(backbone or "sage"), options_in(Training)
    taken = {name for method in methods for name in taken_by(method, network)}
    for name in options.keys() - taken - network.options.keys():
        if name not in training:
            raise InputError(refusal(name, network, *methods))
        if options[name] != training[name].default:
            names = ", ".join(method.name for method in methods)
            raise InputError(
                f"{name} applies to histories, but none of the methods ({names}) keeps any; "
                "leave it out"
            )
    given = {n: v for n, v in options.items() if n in network.options or n in training}
    histories = {n: training[n].check(given.pop(n)) for n in HISTORY_SETTINGS if n in given}
    run = Run.make(backbone=backbone, **place, **given)  # of full, which keeps no histories
    return replace(run, training=replace(run.training, **histories))


def _budget(
    epochs: int | None, seconds: float | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings that limit every training. All that is known of budgets is here."""
    if seconds is None:
        return {} if epochs is None else {"epochs": epochs}  # else each method has its own
    if epochs is not None:
        raise InputError("there are two budgets, in epochs and in seconds; give only one of them")
    if not seconds > 0:
        raise InputError(f"budget_seconds is {seconds}; expected a number above 0")
    constant = {} if "schedule" in options else {"schedule": "constant"}  # no epoch is the last
    return {"epochs": ENDLESS, "max_seconds": float(seconds), **constant}
