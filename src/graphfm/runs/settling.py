"""Settles the options of a run: those that stand for others, and those that suit its method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphfm.backbones import BACKBONES
from graphfm.backbones.base import Backbone
from graphfm.backbones.input_rows import LEARNED
from graphfm.errors import InputError
from graphfm.method_forms import AS_PUBLISHED
from graphfm.methods import Method
from graphfm.options import options_in
from graphfm.runs.named import BackboneLike, Named, choose_backbone
from graphfm.training.settings import Training

OWN_NETWORK: Mapping[str, str] = {"sign": "sign", "sgc": "sgc"}  # methods with their own network
HISTORY_SETTINGS = ("history", "fill_histories", "refresh_histories", "staleness_every")


def published(method: Named, given: dict[str, Any]) -> dict[str, Any]:
    """The given settings, with those that `as_published` stands for."""
    if AS_PUBLISHED not in given or not method.published:
        return given
    asked = method.options[AS_PUBLISHED].check(given[AS_PUBLISHED])
    rest = {name: value for name, value in given.items() if name != AS_PUBLISHED}
    return {**method.published, **rest} if asked else rest


def suited(method: Named, backbone: Named) -> dict[str, Any]:
    """The settings that the method declares for its training, as far as the network has them."""
    known = {*backbone.options, *options_in(Training)}
    everywhere = {
        *known,
        *(name for kind in BACKBONES.values() for name in options_in(kind.Settings)),
    }
    if wrong := method.trains_with.keys() - everywhere:
        raise InputError(
            f"method {method.name} declares a default for {min(wrong)}, which is a setting of no "
            "network and no training; correct trains_with"
        )
    return {name: value for name, value in method.trains_with.items() if name in known}


def check_apart(method: Named, backbone: Named) -> None:
    """Refuse a setting that both the method and the backbone declare, or every training has."""
    owners = [method, backbone, Named(name="", options=options_in(Training))]
    for number, one in enumerate(owners):
        for other in owners[number + 1 :]:
            if both := one.options.keys() & other.options.keys():
                where = f"backbone {other.name}" if other.name else "every training"
                raise InputError(
                    f"{min(both)} is a setting of {one.name} and of {where}; rename one of them"
                )


def refuse_history_settings(method: str, made: Method | None, training: Training) -> None:
    """Refuse settings of histories for a method that keeps none."""
    if made is None or made.estimator.keeps_history:
        return
    for name in HISTORY_SETTINGS:
        if getattr(training, name) != getattr(Training(), name):
            raise InputError(
                f"{name} applies to histories, but method {method} keeps none; leave it out"
            )


def refuse_learned_rows(method: str, backbone: Named, training: Training) -> None:
    """Refuse to learn the input of a network that computes its own from it before training."""
    if training.node_features != LEARNED or backbone.is_model:
        return
    if backbone.code.features is not Backbone.features:
        raise InputError(
            f"node_features is learned, but method {method} on backbone {backbone.name} computes "
            "its input once, before training; use degree or random, or another method"
        )


def backbone_of(method: object) -> str | None:
    """The network that a method needs; None if it works with any."""
    name = method.name if isinstance(method, Named) else method
    return OWN_NETWORK.get(name) if isinstance(name, str) else None


def network_for(method: Named, backbone: BackboneLike | None) -> Named:
    """The backbone of a run: as given, or the method's own, or the default."""
    own = backbone_of(method)
    chosen = choose_backbone(backbone or own or "sage")
    if own is not None and chosen.name != own:
        raise InputError(
            f"method {own} has its own network and cannot train {chosen.name}; leave out the "
            "backbone"
        )
    return chosen
