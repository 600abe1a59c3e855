"""The folder of a run: what was asked, what happened, what came out."""

from __future__ import annotations

import itertools
import json
import platform
import re
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from graphfm.backbones import make_backbone
from graphfm.backbones.base import Backbone
from graphfm.data import naming
from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.files import atomic_path
from graphfm.model import Model
from graphfm.run import Run
from graphfm.training.watcher import EpochRecord, Score, Watcher
from graphfm.version import VERSION

CONFIG, METRICS, WEIGHTS, RESULT, PICTURE = (
    "config.json", "metrics.jsonl", "model.safetensors", "result.json", "curves.png",
)  # fmt: skip


class RunFolder(Watcher):
    """Writes `config.json` at the start, a line per epoch, the weights at every best epoch."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._records: list[EpochRecord] = []

    @classmethod
    def create(cls, path: Path, run: Run, graph: Graph) -> RunFolder:
        """Make a folder at `path`, which must be new or empty."""
        check_free(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            folder = cls(path)
            folder._write_json(CONFIG, _describe(run, graph))
        except OSError as error:
            raise InputError(f"cannot write to {path}: {error.strerror or error}") from None
        return folder

    def on_epoch(self, record: EpochRecord, best: float) -> None:
        self._records.append(record)
        with (self.path / METRICS).open("a") as stream:
            stream.write(json.dumps(asdict(record)) + "\n")

    def on_best(self, backbone: Backbone) -> None:
        with atomic_path(self.path / WEIGHTS) as unfinished:
            save_file(backbone.state_dict(), unfinished)

    def finish(self, score: Score) -> None:
        """Write the result and the picture of the curves."""
        self._write_json(RESULT, asdict(score))
        from graphfm.training.curves import draw_curves

        with atomic_path(self.path / PICTURE) as unfinished:
            draw_curves(self._records, score, unfinished)

    def discard(self) -> None:
        """Leave nothing of a run that failed before it had a model."""
        if not (self.path / WEIGHTS).exists():
            with suppress(OSError):
                for name in (CONFIG, METRICS):
                    (self.path / name).unlink(missing_ok=True)
                self.path.rmdir()

    def _write_json(self, name: str, record: dict[str, Any]) -> None:
        with atomic_path(self.path / name) as unfinished:
            unfinished.write_text(json.dumps(record, indent=2) + "\n")


def check_free(path: Path) -> None:
    """Refuse a place where no run can be written; leaves it as it was."""
    missing: list[Path] = []
    if path.exists() and not path.is_dir():
        raise InputError(f"cannot write to {path}: it is a file, and a run is a folder")
    try:
        missing = [place for place in (path, *path.parents) if not place.exists()]
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise InputError(f"{path} is not empty; choose another folder (--out), or remove it")
        with TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise InputError(f"cannot write to {path}: {error.strerror or error}") from None
    finally:
        for place in missing:
            with suppress(OSError):
                place.rmdir()


def read_run(path: Path) -> tuple[Run, Model, dict[str, Any]]:
    """The run, its model, and what its config says of the graph."""
    config = _read_config(path / CONFIG)
    weights = path / WEIGHTS
    if not weights.is_file():
        raise InputError(f"{path} has no {WEIGHTS}; the run ended before its first evaluation")
    try:
        run, graph = Run.from_json(config["run"]), config["graph"]
        names = naming.as_names("class_names", graph["class_names"])
        naming.check_names("class_names", names, graph["num_classes"])
        backbone = make_backbone(
            run.backbone, graph["num_features"], graph["num_classes"], **run.backbone_settings
        )
        model = Model(
            backbone=backbone,
            num_features=graph["num_features"],
            num_classes=graph["num_classes"],
            multi_label=graph["multi_label"],
            class_names=names,
        )
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise InputError(f"{path / CONFIG} is not the config of a run: {error}") from None
    try:
        backbone.load_state_dict(load_file(weights))
    except (SafetensorError, RuntimeError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{weights} is damaged or does not fit its config ({reason})") from None
    return run, model, graph


def _read_config(path: Path) -> dict[str, Any]:
    if not path.is_file():
        missing = f"it has no {path.name}" if path.parent.is_dir() else "there is no such folder"
        raise InputError(f"{path.parent} is no run: {missing}; give the folder of a training")
    try:
        config = json.loads(path.read_text())
    except (ValueError, OSError, RecursionError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    if not isinstance(config, dict):
        raise InputError(f"{path} is not the config of a run: expected a JSON object")
    return config


def versions() -> dict[str, str]:
    """Of the programs that decide the numbers."""
    return {
        "graphfm": VERSION,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def machine(device: torch.device) -> dict[str, Any]:
    """What decides the times."""
    return {"device": _device_name(device), "threads": torch.get_num_threads()}


def _describe(run: Run, graph: Graph) -> dict[str, Any]:
    return {
        "run": run.to_json(),
        "graph": {
            "num_nodes": graph.num_nodes,
            "num_edges": graph.num_edges,
            "num_features": graph.num_features,
            "num_classes": graph.num_classes,
            "multi_label": graph.multi_label,
            "class_names": None if graph.class_names is None else list(graph.class_names),
            "fingerprint": graph.fingerprint,
            "path": str(Path(run.dataset).resolve()) if run.dataset.endswith(".npz") else None,
        },
        "versions": versions(),
        "machine": machine(graph.device),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()


def as_file_name(dataset: str) -> str:
    """synthetic:small:0.1 -> synthetic-small-0.1, data/mine.npz -> mine."""
    return re.sub(r"[^\w.-]+", "-", Path(dataset).name.removesuffix(".npz"))[:100]


def new_path(run: Run) -> Path:
    """Make runs/debian-full-sage, or the same with the first free number behind it."""
    name = f"{as_file_name(run.dataset)}-{run.method}-{run.backbone}"
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    for path in map(Path("runs").joinpath, itertools.chain([name], numbered)):
        try:
            path.mkdir(parents=True)  # taken at once: other runs may look for a name too
        except FileExistsError:
            continue
        except OSError as error:
            raise InputError(f"cannot write to {path}: {error.strerror or error}") from None
        return path
    raise AssertionError("there are always more numbers")
