"""The folder of a run: its settings, metrics, weights, checkpoints and result."""

from __future__ import annotations

import itertools
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import torch

from graphfm.backbones.base import Backbone
from graphfm.checkpointing.errors import TrainingStopped
from graphfm.checkpointing.schedule import Interval
from graphfm.checkpointing.store import CheckpointStore
from graphfm.checkpointing.tensor_file import write_tensors
from graphfm.data.datasets import path_of
from graphfm.data.graph import Graph
from graphfm.data.graph.edge_columns import edge_columns
from graphfm.errors import InputError
from graphfm.files import (
    UNFINISHED,
    atomic_path,
    folder_for,
    make_folder,
    remove_unfinished,
    sole_user,
)
from graphfm.runs.provenance import machine, versions
from graphfm.runs.run import Run
from graphfm.training.callbacks import Callback, EpochRecord, Score
from graphfm.training.question import Question

CONFIG, METRICS, WEIGHTS, RESULT, PICTURE, CHECKPOINTS = (
    "config.json", "metrics.jsonl", "model.safetensors", "result.json", "curves.png", "checkpoints",
)  # fmt: skip
log = logging.getLogger("graphfm")


class RunFolder(Callback):
    """Writes `config.json` at the start, a line per epoch, the weights at every best epoch."""

    def __init__(self, path: Path, identity: Mapping[str, Any]) -> None:
        self.path, self.identity = path, identity
        self.checkpoints = CheckpointStore(path / CHECKPOINTS)
        self._records: list[EpochRecord] = []

    @classmethod
    @contextmanager
    def create(cls, path: Path, run: Run, graph: Graph, interval: Interval) -> Iterator[RunFolder]:
        """Create a folder at `path`, which must be new or empty, and lock it for this process."""
        check_free(path)
        config = _describe(run, graph, interval)
        folder = cls(path, identity_of(config))
        try:
            make_folder(path)
        except OSError as error:
            raise _cannot_write(path, error) from None
        with sole_user(path):
            check_free(path)  # again: another process may have been faster
            remove_unfinished(path)
            try:
                folder._write(CONFIG, json.dumps(config, indent=2) + "\n")
            except OSError as error:
                raise _cannot_write(path, error) from None
            try:
                yield folder
            except TrainingStopped:
                raise
            except Exception:
                folder.discard()
                raise

    @classmethod
    @contextmanager
    def reopen(cls, path: Path, run: Run, config: Mapping[str, Any]) -> Iterator[RunFolder]:
        """Open the folder of a run that is to continue, and lock it for this process."""
        with sole_user(path):
            folder = cls(path, identity_of(config))
            _warn_of_changes(run, config)
            try:
                remove_unfinished(path)
                folder.checkpoints.clean()
            except OSError as error:
                if not (path / RESULT).exists():  # a finished run writes nothing
                    raise _cannot_write(path, error, "check its permissions") from None
            yield folder

    def on_begin(self, records: Sequence[EpochRecord]) -> None:
        self._records = list(records)
        self._write(METRICS, "".join(map(_line, records)))

    def on_epoch(self, record: EpochRecord, best: float) -> None:
        self._records.append(record)
        with (self.path / METRICS).open("a") as stream:
            stream.write(_line(record))

    def on_best(self, backbone: Backbone) -> None:
        with atomic_path(self.path / WEIGHTS) as unfinished:
            write_tensors(unfinished, backbone.state_dict())

    def finish(self, score: Score) -> None:
        """Write the plot and, last, the result: a run is finished if it has a result."""
        from graphfm.runs.curves import draw_curves

        self._write(METRICS, "".join(map(_line, self._records)))  # again: lines may have been lost
        with atomic_path(self.path / PICTURE) as unfinished:
            draw_curves(self._records, score, unfinished)
        self._write(RESULT, json.dumps(asdict(score), indent=2) + "\n")

    @property
    def can_go_on(self) -> bool:
        """True if the run has a model or a checkpoint."""
        return (self.path / WEIGHTS).exists() or not self.checkpoints.is_empty

    @property
    def how_to_resume(self) -> str:
        """The command that resumes the run, and the call in Python."""
        return _how_to_resume(self.path)

    def discard(self) -> None:
        """Remove a run that failed before it had a model or a checkpoint."""
        if not self.can_go_on:
            with suppress(OSError):
                self.checkpoints.remove()
                for name in (CONFIG, METRICS):
                    (self.path / name).unlink(missing_ok=True)
                self.path.rmdir()

    def _write(self, name: str, text: str) -> None:
        with atomic_path(self.path / name) as unfinished:
            unfinished.write_text(text)


def identity_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """What must be equal for a checkpoint to belong to this run."""
    graph, device = config["graph"].get("fingerprint"), config["machine"].get("kind")
    known: dict[str, Any] = json.loads(
        json.dumps({"run": config["run"], "graph": graph, "device": device})
    )
    return known


def _warn_of_changes(run: Run, config: Mapping[str, Any]) -> None:
    """Warn of own code, versions and threads that are not those of the run's start."""
    for what, digest in run.digests().items():
        if config.get(f"{what}_digest", digest) != digest:
            name = getattr(run, what)
            log.warning("%s has changed since the run began, which continues with the new", name)
    before = config.get("versions")
    now: dict[str, Any] = {**versions(), "threads": torch.get_num_threads()}
    if not isinstance(before, dict):
        return
    for name, value in {**before, "threads": config["machine"].get("threads")}.items():
        if value != now.get(name):
            log.warning(
                "the run began with %s %s and continues with %s: last bits may differ",
                name, value, now.get(name),
            )  # fmt: skip


def _line(record: EpochRecord) -> str:
    return json.dumps(asdict(record)) + "\n"


def check_free(path: Path) -> None:
    """Refuse a path where no run can be written. Nothing is changed."""
    if path.exists() and not path.is_dir():
        raise InputError(
            f"cannot write to {path}: it is a file, but a run is a folder; choose another path"
        )
    try:
        with folder_for(path):
            if any(not UNFINISHED.fullmatch(item.name) for item in path.iterdir()):
                found = (path / CONFIG).is_file()
                more = f"; to continue its run: {_how_to_resume(path)}" if found else ""
                raise InputError(f"{path} is not empty; choose another folder, or remove it{more}")
            with TemporaryFile(dir=path):
                pass
    except OSError as error:
        raise _cannot_write(path, error) from None


def _cannot_write(
    path: Path,
    error: OSError,
    advice: str = "choose another folder, or check its permissions",
) -> InputError:
    return InputError(f"cannot write to {path}: {error.strerror or error}; {advice}")


def _describe(run: Run, graph: Graph, interval: Interval) -> dict[str, Any]:
    certificate = getattr(run.named_backbone.code, "certificate", None)
    return {
        "run": run.to_json(),
        **{f"{what}_digest": digest for what, digest in run.digests().items()},
        "graph": {
            "num_nodes": graph.num_nodes,
            "num_edges": graph.num_edges,
            "num_features": graph.num_features,
            "num_classes": graph.num_classes,
            "multi_label": graph.multi_label,
            "class_names": None if graph.class_names is None else list(graph.class_names),
            **({} if certificate is None else {"edge_data": edge_columns(graph)}),
            "fingerprint": graph.fingerprint,
            "path": None if (path := path_of(run.dataset)) is None else str(path),
        },
        **({} if certificate is None else {"model": run.named_backbone.code.to_json()}),
        "question": Question.of(graph, run.training).to_json(),
        "checkpoint_every": str(interval),
        "versions": versions(),
        "machine": {**machine(graph.device), "kind": graph.device.type},
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _how_to_resume(path: Path) -> str:
    return f"graphfm train --resume {path}, or in Python resume('{path}')"


def as_file_name(dataset: str) -> str:
    """Turn a dataset into a file name: synthetic:small:0.1 -> synthetic-small-0.1."""
    return re.sub(r"[^\w.-]+", "-", Path(dataset).name.removesuffix(".npz"))[:100]


def new_path(run: Run) -> Path:
    """Make the folder runs/debian-full-sage, or the same with the first free number appended."""
    name = "-".join(map(as_file_name, (run.dataset, run.method, run.backbone)))
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    for path in map(Path("runs").joinpath, itertools.chain([name], numbered)):
        try:
            make_folder(path, exist_ok=False)  # at once: another run may want the name
        except FileExistsError:
            continue
        except OSError as error:
            raise _cannot_write(path, error) from None
        return path
    raise AssertionError("numbers never run out")
