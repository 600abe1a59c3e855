"""What the records of earlier versions mean: they are turned into records of today when read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from graphfm.backbones import BACKBONES
from graphfm.errors import InputError
from graphfm.method_forms import AS_PUBLISHED, declared
from graphfm.methods import METHODS, Method
from graphfm.options import options_in
from graphfm.runs.named import Named, make_method
from graphfm.samplers.layerwise import LayerSampler
from graphfm.samplers.neighbor import NeighborSampler

# Of a run's record. In 1, which was not written down, the lists below began with the input layer;
# since 2 they begin with the targets.
FORMAT = 2
PER_LAYER = ("fanout", "nodes_per_layer")
ALWAYS_OUTWARD = ("shadow",)  # methods whose lists began with the targets in every version
# What a record means that does not name a setting whose default was another when it was written.
EARLIER: Mapping[str, Mapping[str, Any]] = {
    "graphfm-ib": {"whole_gradient": False, "correct_lag": False, "drop_average": False}
}


def updated(record: Mapping[str, Any]) -> dict[str, Any]:
    """A run's record as this version writes it, with every setting that its own version lacked.

    Only a user's own method stays as it is, and of its format: which of its lists are per layer is
    known only to its code (`own_updated`).
    """
    written, method, backbone = record.get("format", 1), record["method"], record["backbone"]
    if written not in (1, FORMAT):
        raise InputError(
            f"its format is {written!r}, and this version reads up to {FORMAT}; use the version of "
            "graphfm that wrote it"
        )
    if method not in METHODS:
        return dict(record)
    settings = dict(record["method_settings"])
    if written == 1 and method not in ALWAYS_OUTWARD:
        settings = _turned(settings)
    network = _defaults_of_backbone(backbone) if backbone in BACKBONES else {}
    return {
        **record,
        "format": FORMAT,
        "method_settings": {**_defaults_of_method(method), **settings},
        "backbone_settings": {**network, **record["backbone_settings"]},
    }


def own_updated(method: Named, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a user's own method in a record of format 1, as they are written today.

    Lists are turned round where the method's sampler is one of ours, and reads them.
    """
    sampler: Any = make_method(method, {} if method.fixed else settings).sampler
    if not isinstance(sampler, NeighborSampler | LayerSampler):
        return settings
    if isinstance(method.code, Method):
        part = settings["sampler"]
        return {**settings, "sampler": {**part, "settings": _turned(part["settings"])}}
    read = {name for name in PER_LAYER if settings.get(name) == getattr(sampler, name, None)}
    return {**settings, **_turned({name: settings[name] for name in read & settings.keys()})}


def _turned(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with every list per layer turned round."""
    lists = {
        name: value[::-1]
        for name, value in settings.items()
        if name in PER_LAYER and isinstance(value, list | tuple)
    }
    return {**settings, **lists}


@cache
def _defaults_of_method(name: str) -> Mapping[str, Any]:
    """What a record means that lacks settings of a method."""
    known, (_, published) = options_in(METHODS[name]), declared(METHODS[name])
    given = {option: found.default for option, found in known.items()}
    if published:
        del given[AS_PUBLISHED]  # it is recorded as the settings that it stands for
    return {**given, **EARLIER.get(name, {})}


@cache
def _defaults_of_backbone(name: str) -> Mapping[str, Any]:
    return {o: found.default for o, found in options_in(BACKBONES[name].Settings).items()}
