"""`--model` and `--model-option`: a network of PyG on the command line."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphfm.errors import InputError
from graphfm.runs.named import BackboneLike, Named, choose_backbone
from graphfm.runs.own_model import choose_model, network_again


def choose_network(
    backbone: str | None, model: str | None, texts: Sequence[str] | None, usual: str = "sage"
) -> Named:
    """The backbone or the model that a command line names."""
    options = model_options(texts or ())
    if model is None:
        if options:
            raise InputError("--model-option is an argument of a model; give --model as well")
        return choose_backbone(backbone or usual)
    if backbone is not None:
        raise InputError("--backbone and --model were both given; give one of them")
    return choose_model(model, options)


def network_of_run(run: Path, backbone: str | None, model: str | None) -> BackboneLike | None:
    """The backbone or model that is named again to read a run."""
    if backbone is not None and model is not None:
        raise InputError("--backbone and --model were both given; give one of them")
    return network_again(run, backbone, model)


def model_options(texts: Sequence[str]) -> dict[str, Any]:
    """The arguments of a model's function: numbers, true, false, null, lists, or else texts."""
    found = dict[str, Any]()
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise InputError(f"--model-option is {text!r}; expected NAME=VALUE, as in hidden=64")
        if name in found:
            raise InputError(f"--model-option {name} is given twice; leave out one of them")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found
