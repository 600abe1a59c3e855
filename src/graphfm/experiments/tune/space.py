"""What is searched: the one place that says which settings are tried, and between which values.

A setting is searched if the method, its network or the training has it and the user has not fixed
it. What makes a step cheaper or dearer by design (fanout, layers, hidden, parts) is never searched:
methods are compared at the cost that the user gave them, or at their defaults.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphfm.errors import InputError
from graphfm.runs.run import Run

Value = bool | int | float | str | None


@dataclass(frozen=True)
class Range:
    """A number between two others, by its logarithm if `log`."""

    low: float
    high: float
    log: bool = False

    def holding(self, default: float) -> Range:
        return replace(self, low=min(self.low, default), high=max(self.high, default))


@dataclass(frozen=True)
class Choice:
    """One of some values."""

    values: tuple[Value, ...]

    def holding(self, default: Value) -> Choice:
        return self if default in self.values else Choice((default, *self.values))


Dimension = Range | Choice
Space = Mapping[str, Dimension]

TRAINING: Space = {
    "lr": Range(5e-4, 2e-2, log=True),
    "weight_decay": Choice((0.0, 1e-5, 1e-4, 1e-3)),
    "schedule": Choice(("constant", "cosine")),
}
NETWORK: Space = {"dropout": Range(0.0, 0.7)}
BACKBONES: Mapping[str, Space] = {
    "gcnii": {"alpha": Range(0.05, 0.5), "theta": Range(0.2, 1.5)},
}
BATCH: Space = {"batch_size": Choice((256, 512, 1024))}
PARTS: Space = {"parts_per_batch": Choice((10, 40))}  # beside the default, a tenth
METHODS: Mapping[str, Space] = {
    "graphsage": BATCH,
    "graphfm-ib": {**BATCH, "beta": Range(0.05, 1.0, log=True)},
    "vr-gcn": BATCH,
    "fastgcn": BATCH,
    "ladies": BATCH,
    "mvs-gcn": BATCH,
    "graphsaint": {"budget": Choice((1000, 2000, 4000))},
    "shadow": BATCH,
    "cluster-gcn": PARTS,
    "gas": PARTS,
    "graphfm-ob": {**PARTS, "beta": Range(0.0, 1.0)},
    "graphfm-delta": PARTS,
    "sign": BATCH,
    "sgc": BATCH,
}


def space_of(run: Run, fixed: Container[str]) -> dict[str, Dimension]:
    """What is searched for the method of `run`, without what is fixed.

    The space always holds the run's own settings, and no value that a run would refuse.
    """
    declared = {
        **TRAINING, **NETWORK, **BACKBONES.get(run.backbone, {}), **METHODS.get(run.method, {}),
    }  # fmt: skip
    known, found = settings_of(run), dict[str, Dimension]()
    for name, dimension in declared.items():
        if name not in known or name in fixed:
            continue
        default = known[name]
        if isinstance(dimension, Range):
            if isinstance(default, int | float):
                found[name] = dimension.holding(default)
            continue
        allowed = Choice(tuple(v for v in dimension.values if _allows(run, name, v)))
        if len((allowed := allowed.holding(default)).values) > 1:
            found[name] = allowed
    return found


def size_of(space: Space) -> float:
    """How many settings there are to try; infinite where one of them is any number."""
    return math.prod(
        len(dimension.values) if isinstance(dimension, Choice) else math.inf
        for dimension in space.values()
    )


def settings_of(run: Run) -> dict[str, Any]:
    """All settings of a run by name; a tuple of one value is that value."""
    flat = {**run.backbone_settings, **run.method_settings, **vars(run.training)}
    return {
        name: value[0] if isinstance(value, tuple) and len(value) == 1 else value
        for name, value in flat.items()
    }


def rounded(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as they are trained with: numbers of three digits, which a table can show."""
    return {
        name: float(f"{value:.3g}") if isinstance(value, float) else value
        for name, value in settings.items()
    }


def with_settings(run: Run, settings: Mapping[str, Any]) -> Run:
    """The same run with some settings changed, through the same checks."""
    record = run.to_json()
    for part in ("backbone_settings", "method_settings", "training"):
        own = record[part]
        record[part] = {**own, **{n: v for n, v in settings.items() if n in own}}
    return Run.from_json(record, method=run.named_method, backbone=run.named_backbone)


def _allows(run: Run, name: str, value: Value) -> bool:
    try:
        with_settings(run, {name: value})
    except InputError:
        return False
    return True
