"""How the user's own code reaches the processes that a comparison starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from graphfm.errors import InputError
from graphfm.methods import Method
from graphfm.runs.named import Named, as_tuples
from graphfm.runs.own_code import directions_to, follow
from graphfm.runs.own_model import choose_model


def carried(method: Named, backbone: Named) -> dict[str, Any]:
    """What a child process needs to find the user's own code."""
    found = dict[str, Any]()
    if isinstance(method.code, Method):
        parts = (method.code.sampler, method.code.estimator)
        found["parts"] = [directions_to(type(part)) for part in parts]
    elif method.is_own:
        found["method"] = directions_to(method.code)
    if backbone.is_model:
        if isinstance(backbone.code.model, nn.Module):
            raise InputError(
                "a model that is made already cannot be sent to the processes of a comparison; "
                "give the function or class that makes it, with model_options"
            )
        found["model"] = directions_to(backbone.code.model)
    elif backbone.is_own:
        found["backbone"] = directions_to(backbone.code)
    return found


def unpacked(carried: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, Any]:
    """The user's own `method` and `backbone` in a child, from what the parent process sent."""
    own = [what for what in ("method", "backbone") if what in carried]
    found = {what: follow(what, carried[what]) for what in own}
    if "model" in carried:
        options = run["backbone_settings"]["model_options"]
        found["backbone"] = choose_model(follow("model", carried["model"]), options)
    if "parts" in carried:
        kinds = [follow("method", directions) for directions in carried["parts"]]
        records = [run["method_settings"][part]["settings"] for part in ("sampler", "estimator")]
        made = [kind(**as_tuples(record)) for kind, record in zip(kinds, records, strict=True)]
        found["method"] = Method(*made)
    return found
