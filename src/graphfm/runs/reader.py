"""Read the folder of a run, and check everything in it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file

from graphfm.backbones.input_rows import NONE
from graphfm.checkpointing.schedule import Interval
from graphfm.data.graph import names as naming
from graphfm.errors import InputError
from graphfm.files import read_json
from graphfm.metrics.names import CLASSES, REGRESSION, names_for, title
from graphfm.metrics.scores import LAST
from graphfm.runs.folder import CONFIG, RESULT, WEIGHTS
from graphfm.runs.model import Model
from graphfm.runs.named import (
    BackboneLike,
    MethodLike,
    NotTheSame,
    choose_backbone,
    choose_method,
)  # fmt: skip
from graphfm.runs.run import Run
from graphfm.training.callbacks import Score
from graphfm.training.own_parts import OwnParts

MALFORMED = (
    KeyError, TypeError, ValueError, AttributeError, RuntimeError, RecursionError, OverflowError,
    IndexError,
)  # fmt: skip
ADVICE = "restore it from a copy, or start a new run"
MOST_NUMBER = 1 << 40  # most features or classes; more would overflow


def read_run(
    path: Path, *, backbone: BackboneLike | None = None
) -> tuple[Run, Model, dict[str, Any]]:
    """Read a run: its settings, its model, and what its config says about the graph.

    A backbone of the user's own has to be given again; the method is not needed.
    """
    run, config = read_config(path, backbone=backbone)
    run.require("backbone")
    weights, graph = path / WEIGHTS, config["graph"]
    if not weights.is_file():
        raise InputError(f"{path} has no {WEIGHTS}; the run ended before its first evaluation")
    try:
        names = naming.as_names("class_names", graph["class_names"])
        least = int(run.training.node_features == NONE)  # without features the rows are made
        for name, lowest in (("num_features", least), ("num_classes", 1), ("num_nodes", 1)):
            if type(graph[name]) is not int or not lowest <= graph[name] < MOST_NUMBER:
                raise ValueError(f"{name} is {graph[name]!r}")
        naming.check_names("class_names", names, graph["num_classes"])
        sizes = graph["num_features"], graph["num_classes"], graph["num_nodes"]
        edges = graph.get("edge_data", {})
        question = _question(config.get("question", {}), graph["num_classes"])
        with torch.device("meta"):  # allocates nothing before the shapes are checked
            planned = run.new_backbone(*sizes, edges, planned=True)
    except MALFORMED as error:
        raise InputError(f"{path / CONFIG} is not the config of a run: {error}; {ADVICE}") from None
    try:
        _check_shapes(weights, {key: rows.shape for key, rows in planned.state_dict().items()})
        network = run.new_backbone(*sizes, edges)
        network.load_state_dict(load_file(weights))
    except (SafetensorError, RuntimeError, ValueError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{weights} is damaged or does not fit its config ({reason})") from None
    model = Model(
        backbone=network,
        num_features=graph["num_features"],
        num_classes=graph["num_classes"],
        multi_label=bool(graph["multi_label"]),
        class_names=names,
        **question,
    )
    return run, model, graph


def read_config(
    path: Path,
    *,
    method: MethodLike | None = None,
    backbone: BackboneLike | None = None,
    own_parts: OwnParts = OwnParts(),
) -> tuple[Run, dict[str, Any]]:
    """Read `config.json`: the run, and the whole record.

    The user's own code has to be given: what a file names is never imported.
    """
    config = _read_json(path / CONFIG)
    method = None if method is None else choose_method(method)
    backbone = None if backbone is None else choose_backbone(backbone)
    try:
        run = Run.from_json(config["run"], method=method, backbone=backbone, own_parts=own_parts)
        graph, machine = config["graph"], config["machine"]
        for key in ("class_names", "num_features", "num_classes", "multi_label"):
            graph[key]
        for value in (graph.get("path"), graph.get("fingerprint"), machine.get("kind")):
            if not isinstance(value, str | None):
                raise TypeError(f"{value!r} is not text")
        Interval.parse(config.get("checkpoint_every", "auto"))
    except NotTheSame:
        raise
    except MALFORMED as error:
        raise InputError(f"{path / CONFIG} is not the config of a run: {error}; {ADVICE}") from None
    return run, config


def read_score(path: Path) -> Score | None:
    """The result of a run; None if it is not finished."""
    if not (path / RESULT).exists() and not (path / RESULT).is_symlink():
        return None
    record = _read_json(path / RESULT)
    try:
        score = Score(**record)
        for name in ("val", "best_epoch", "epochs", "seconds_per_epoch", "peak_bytes"):
            float(getattr(score, name))
        title(score.metric)
        {split: {**found} for split, found in score.metrics.items()}
        for value in (score.test, score.train_bytes):
            if value is not None:
                float(value)
    except MALFORMED as error:
        raise InputError(f"{path / RESULT} is not the result of a run: {error}; {ADVICE}") from None
    return score


def _question(record: Mapping[str, Any], num_outputs: int) -> dict[str, Any]:
    """How the model's outputs are judged and scaled; a record of earlier versions says nothing."""
    units: list[Any] = [record.get("center"), record.get("scale")]
    task = CLASSES if units == [None, None] else REGRESSION
    metric, positive = record.get("metric", names_for(task)[0]), record.get("positive", LAST)
    if metric not in names_for(task) or type(positive) is not int or not -1 <= positive <= 1:
        raise ValueError(f"its question is {dict(record)!r}")
    if task == REGRESSION:
        units = [tuple(map(float, unit)) for unit in units if unit is not None]
        sizes = [len(unit) for unit in units]
        if sizes != [num_outputs] * 2 or not all(map(math.isfinite, sum(units, ()))):
            raise ValueError(f"its center and scale are not of {num_outputs} targets")
    return {"metric": metric, "positive": positive, "center": units[0], "scale": units[1]}


def _check_shapes(path: Path, shapes: Mapping[str, torch.Size]) -> None:
    """Refuse weights whose shapes differ from the network's; reads only the file's header."""
    with safe_open(path, framework="pt") as stream:
        if strange := set(stream.keys()) ^ shapes.keys():
            raise ValueError(f"{min(strange)} is missing or unknown")
        for name, shape in shapes.items():
            if stream.get_slice(name).get_shape() != list(shape):
                raise ValueError(f"{name} has shape {stream.get_slice(name).get_shape()}")


def _read_json(path: Path) -> dict[str, Any]:
    folder = path.parent
    if folder.exists() and not folder.is_dir():
        more = f"; give {folder.parent}" if (folder.parent / CONFIG).is_file() else ""
        raise InputError(f"{folder} is a file; expected the folder of a run{more}")
    if not path.is_file():
        missing = f"it has no {path.name}" if folder.is_dir() else "there is no such folder"
        raise InputError(f"{folder} is not a run: {missing}; give the folder of a training")
    try:
        record = read_json(path)
    except PermissionError:
        raise InputError(f"{path} cannot be read; check its permissions (chmod)") from None
    except (ValueError, OSError, RecursionError) as error:
        raise InputError(f"{path} is damaged ({error}); {ADVICE}") from None
    if not isinstance(record, dict):
        raise InputError(f"{path} is damaged: expected a JSON object; {ADVICE}")
    return record
