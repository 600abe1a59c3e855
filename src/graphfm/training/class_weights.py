"""Weights of classes in the loss: as they are written, and as a tensor."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from graphfm.data.graph import Graph
from graphfm.errors import InputError, did_you_mean

BALANCED = "balanced"
FILES = (".json", ".csv")
MOST_BYTES = 1 << 26  # of a file of weights


def as_weights(given: tuple[str, ...]) -> tuple[str, ...]:
    """The weights as CLASS=WEIGHT each, read from a file if one is given; or "balanced"."""
    if given == (BALANCED,):
        return given
    if len(given) == 1 and Path(given[0]).suffix.lower() in FILES:
        try:
            pairs = _read(Path(given[0]))
        except (OSError, ValueError, RecursionError, csv.Error) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"class_weights: cannot read {given[0]}: {reason}") from None
    else:
        pairs = [(name, weight) for name, _, weight in (part.rpartition("=") for part in given)]
    if not pairs or any(not name for name, _ in pairs):
        raise InputError(
            f"class_weights is {','.join(given)!r}; expected balanced, CLASS=WEIGHT,..., or a "
            ".json or .csv file of classes and weights"
        )
    name, count = Counter(name for name, _ in pairs).most_common(1)[0]
    if count > 1:
        raise InputError(f"class_weights gives class {name} twice; give it once")
    return tuple(f"{name}={_number(name, weight)}" for name, weight in pairs)


def weights_of(graph: Graph, given: tuple[str, ...]) -> Tensor:
    """[num_classes] weight of each class; [2, num_labels] of not having and having each label."""
    if given == (BALANCED,):
        return _balanced(graph)
    names = graph.class_names or tuple(str(number) for number in range(graph.num_classes))
    found = dict(part.rpartition("=")[::2] for part in given)
    if unknown := found.keys() - {*names}:
        name = min(unknown)
        raise InputError(
            f"class_weights names class {name!r}, which the graph does not have"
            f"{did_you_mean(name, names)}"
        )
    weights = torch.tensor([float(found.get(name, 1.0)) for name in names], device=graph.device)
    return torch.stack([torch.ones_like(weights), weights]) if graph.multi_label else weights


def _balanced(graph: Graph) -> Tensor:
    """Weights by which all classes count alike, with a mean of 1 over the training nodes."""
    y = graph.y[graph.train_mask]
    if graph.multi_label:
        counts = torch.stack([(y == side).sum(dim=0) for side in (0, 1)])
    else:
        counts = torch.bincount(y, minlength=graph.num_classes)
    present = (counts > 0).sum(dim=0)
    shares = counts / counts.sum(dim=0).clamp(min=1)
    return torch.where(counts > 0, 1 / (present * shares).clamp(min=1e-30), 0.0)


def _read(path: Path) -> list[tuple[str, str]]:
    if path.stat().st_size > MOST_BYTES:
        raise ValueError("the file is too large")
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix.lower() == ".json":
        record = json.loads(text)
        if not isinstance(record, Mapping):
            raise ValueError('expected an object such as {"fraud": 20, "other": 1}')
        return [(str(name), str(weight)) for name, weight in record.items()]
    rows = [row for row in csv.reader(text.splitlines()) if row]
    if any(len(row) != 2 for row in rows):
        raise ValueError("expected two columns in every line, class and weight")
    pairs = [(name.strip(), weight.strip()) for name, weight in rows]
    return pairs[1:] if pairs and not _is_number(pairs[0][1]) else pairs  # without a header


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(name: str, text: str) -> str:
    """A weight as a text: short where that is exact."""
    value = float(text) if _is_number(text) else math.nan
    if not 0 <= value <= 1e6:
        raise InputError(
            f"class_weights gives class {name} the weight {text}; expected 0 to a million"
        )
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
