"""A run: everything that decides what a training does, and the function that builds it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

import torch

from graphfm.backbones import BACKBONES, make_backbone
from graphfm.data.datasets import load
from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.methods import METHODS
from graphfm.runs.memory_plan import foresee, memory_plan
from graphfm.training.settings import Training
from graphfm.training.setup import check_capture, check_trainable, seeded
from graphfm.training.trainer import Trainer

DEVICES = ("auto", "cpu", "cuda")
OWN_NETWORK: Mapping[str, str] = {"sign": "sign", "sgc": "sgc"}  # methods that are one network
HISTORY_SETTINGS = ("history", "refresh_histories", "staleness_every")
MOST = {"layers": 1000, "hidden": 1 << 20, "seed": (1 << 63) - 1}  # more is a slip of the keyboard


@dataclass(frozen=True, kw_only=True)
class Run:
    """One training, settled: nothing is left to a default that may change."""

    dataset: str
    backbone: str
    method: str
    device: str
    backbone_settings: Mapping[str, Any] = field(default_factory=dict)
    method_settings: Mapping[str, Any] = field(default_factory=dict)
    training: Training = field(default_factory=Training)

    @classmethod
    def make(
        cls,
        *,
        dataset: str = "debian",
        backbone: str | None = None,
        method: str = "full",
        device: str = "auto",
        **options: Any,
    ) -> Run:
        """Sort flat options (`hidden=64, lr=0.01, ...`) to whom they belong; None is not given."""
        known_name("method", method, METHODS)
        own = backbone_of(method)
        if own is not None and backbone not in (None, own):
            raise InputError(
                f"method {method} is a network of its own and does not train {backbone}; leave out "
                "--backbone"
            )
        backbone = backbone or own or "sage"
        known_name("backbone", backbone, BACKBONES)
        known_name("device", device, DEVICES)
        given = {name: value for name, value in options.items() if value is not None}
        network = _take(given, _backbone_options(backbone))
        how = _take(given, _method_options(method))
        training = Training(**_take(given, _defaults(Training)))
        _check_sizes({**network, **how, **vars(training)})
        if given:
            raise InputError(_refusal(next(iter(given)), backbone, method))
        BACKBONES[backbone].Settings(**network)  # a bad value is refused here, not at step 1
        if not METHODS[method](**how).estimator.keeps_history:
            _refuse_history_settings(method, training)
        return cls(
            dataset=dataset,
            backbone=backbone,
            method=method,
            device=device,
            backbone_settings=network,
            method_settings=how,
            training=training,
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Run:
        """The inverse of `to_json`, through the same checks as `make`."""
        flat = dict(record)
        known_name("backbone", flat["backbone"], BACKBONES)  # here none may be left out
        for group in ("backbone_settings", "method_settings", "training"):
            flat |= {
                key: tuple(value) if isinstance(value, list) else value
                for key, value in flat.pop(group).items()
            }
        return cls.make(**flat)


def load_graph(run: Run) -> Graph:
    """The graph of a run, on its device; not read where it is known that it would not fit."""
    device = pick_device(run.device)
    check_capture(run.training, device)
    if plan := foresee(run, device):
        plan.check(run)
    return load(run.dataset, device=device, dtype=run.training.feature_type)


def build(run: Run, graph: Graph) -> Trainer:
    """The trainer of `run` on `graph`, which is moved to the run's device."""
    check_trainable(graph)
    graph = graph.with_features(run.training.feature_type or graph.x.dtype)
    graph = graph.to(pick_device(run.device))
    memory_plan(run, graph).check(run)
    with seeded(run.training.seed, graph.device):
        backbone = make_backbone(
            run.backbone, graph.num_features, graph.num_classes, **run.backbone_settings
        )
    backbone.calibrate(graph)
    method = METHODS[run.method](**run.method_settings)
    return Trainer(graph, backbone, method, run.training)


def backbone_of(method: str) -> str | None:
    """The network a method brings along; None where any will do."""
    return OWN_NETWORK.get(method)


def options_of(method: str, backbone: str) -> frozenset[str]:
    """What a run of this method on this network can be told, by name."""
    names = {*_method_options(method), *_backbone_options(backbone), *_defaults(Training)}
    keeps_history = METHODS[method]().estimator.keeps_history
    return frozenset(names if keeps_history else names.difference(HISTORY_SETTINGS))


def pick_device(name: str) -> torch.device:
    """ "auto" is the GPU where there is one."""
    known_name("device", name, DEVICES)
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("device is cuda, but torch sees no GPU; use --device cpu or auto")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


def known_name(what: str, name: str, known: Mapping[str, Any] | tuple[str, ...]) -> None:
    if name not in known:
        raise InputError(f"there is no {what} {name!r}; there is {', '.join(known)}")


def _refuse_history_settings(method: str, training: Training) -> None:
    for name in HISTORY_SETTINGS:
        if getattr(training, name) != getattr(Training(), name):
            raise InputError(f"{name} is about histories, and method {method} keeps none")


def _check_sizes(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{name} is {value}; expected a finite number")
        if name in MOST and abs(value) > MOST[name]:
            raise InputError(f"{name} is {value}; expected at most {MOST[name]}")


def _backbone_options(name: str) -> dict[str, Any]:
    return _defaults(BACKBONES[name].Settings)


def _method_options(name: str) -> dict[str, Any]:
    parameters = inspect.signature(METHODS[name]).parameters
    return {key: parameter.default for key, parameter in parameters.items()}


def _defaults(kind: type[Any]) -> dict[str, Any]:
    assert all(item.default is not MISSING for item in fields(kind))
    return {item.name: item.default for item in fields(kind)}


def _take(given: dict[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Every option, with the value given for it where there is one, of the default's type."""
    return {
        name: _as_type(name, given.pop(name), default) if name in given else default
        for name, default in options.items()
    }


def _as_type(name: str, value: Any, default: Any) -> Any:
    kind = type(default)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is tuple:
        values = value if isinstance(value, list | tuple) else [value]
        return tuple(_as_type(name, item, default[0]) for item in values)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        words = {int: "a whole number", float: "a number", bool: "true or false", str: "a name"}
        raise InputError(f"{name} is {value!r}; expected {words[kind]}")
    return value


def _refusal(option: str, backbone: str, method: str) -> str:
    """Why `option` was not taken, and who would take it."""
    takers = [f"backbone {name}" for name in BACKBONES if option in _backbone_options(name)]
    takers += [f"method {name}" for name in METHODS if option in _method_options(name)]
    advice = f"it belongs to {', '.join(takers)}" if takers else "nothing here takes it"
    return f"{option} is no setting of backbone {backbone} or method {method}; {advice}"
