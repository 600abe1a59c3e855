"""Everything that reads a file: what good files look like, and how they are read.

A reader may refuse with an `InputError` and leaves a folder as it found it. Those of caches refuse
nothing: what is damaged they make again.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from graphfm import Graph, InputError, resume
from graphfm.api import start
from graphfm.checkpointing.checkpointer import Checkpointer
from graphfm.checkpointing.errors import TrainingStopped
from graphfm.checkpointing.schedule import Interval
from graphfm.checkpointing.state import tensors_of
from graphfm.checkpointing.store import CheckpointStore, _digest, _sha256
from graphfm.data.matrix import partition
from graphfm.data.matrix.hop_files import HopFiles
from graphfm.data.sources import build as building
from graphfm.data.sources import fetch as fetching
from graphfm.data.sources import mapped_folder as stored
from graphfm.data.sources.catalog import CATALOG
from graphfm.experiments.store import Store
from graphfm.runs.execute import explained
from graphfm.runs.folder import identity_of
from graphfm.runs.reader import read_config, read_run, read_score
from graphfm.runs.run import Run, build
from graphfm.training.loop import fit
from graphfm.training.progress import Progress
from tests.fuzz import tables
from tests.fuzz.foreign import FOREIGN, read_foreign_graph
from tests.reliability.runs import StopAfter, as_bytes
from tests.unit.data.conftest import FORMS, WRITERS, make_example, zipped

RUN = {"dataset": "in-memory", "device": "cpu", "hidden": 4, "epochs": 2, "method": "graphfm-ib"}


@dataclass(frozen=True)
class Reader:
    make: Callable[[Path], None]
    read: Callable[[Path], object]
    mend: Callable[[Path], None] = lambda folder: None  # after a change, so that it goes unnoticed


def small_graph() -> Graph:
    rng = torch.Generator().manual_seed(0)
    part = torch.arange(12) % 3
    return Graph.from_edges(
        torch.randint(12, (2, 30), generator=rng),
        torch.randn(12, 3, generator=rng),
        torch.randint(3, (12,), generator=rng),
        train_mask=part == 0,
        val_mask=part == 1,
        edge_weight=torch.rand(30, generator=rng) + 0.1,
        class_names=["a", "b", "c"],
        node_names=[str(node) for node in range(12)],
        meta={"source": "a test"},
    )


# A graph in an .npz file


def read_npz(folder: Path) -> None:
    Graph.from_npz(folder / "graph.npz").save(folder / "again.npz")
    (folder / "again.npz").unlink()


# Files as others publish them, the archives they come in, and the folder made of them


def raw(form: str) -> Reader:
    source = CATALOG[FORMS[form]]

    def read(folder: Path) -> None:
        shutil.rmtree(building.build(source, folder))

    return Reader(lambda folder: WRITERS[form](folder, make_example()), read)


def make_archive(folder: Path) -> None:
    WRITERS["ogb-tables"](folder / "files", make_example())
    (folder / "arxiv.zip").write_bytes(zipped(folder / "files", "arxiv"))
    shutil.rmtree(folder / "files")


def read_archive(folder: Path) -> None:
    try:
        fetching._unpack(CATALOG["arxiv"], folder)
    finally:  # files that came out whole may stay for the next attempt, and no others
        assert not list(folder.rglob("*.unfinished"))
        for name in ("raw", "split"):
            shutil.rmtree(folder / name, ignore_errors=True)


def make_stored(folder: Path) -> None:
    WRITERS["graphsaint"](folder, make_example())
    target = building.build(CATALOG["flickr"], folder)
    shutil.rmtree(folder / "raw")
    for path in target.iterdir():
        path.rename(folder / path.name)
    target.rmdir()


def read_stored(folder: Path) -> None:
    graph = stored.open_graph(folder)
    assert graph.num_nodes > 0
    stored.check_digests(folder, lambda *told: None)


# Runs, their models and checkpoints


def make_run(folder: Path) -> None:
    start(Run.make(**RUN), small_graph(), out=folder / "run")


def read_whole_run(folder: Path) -> None:
    run = folder / "run"
    read_config(run)
    read_score(run)
    graph = small_graph()
    _, model, _ = read_run(run)
    if (model.num_features, model.num_classes) == (graph.num_features, graph.num_classes):
        model.predict(graph)


def make_stopped(folder: Path) -> None:
    """In the second epoch: with a record, a best epoch and a place in the epoch."""
    try:
        start(Run.make(**RUN), small_graph(), out=folder / "run", stop_signal=StopAfter(3))
    except TrainingStopped:
        (folder / "run" / "metrics.jsonl").unlink()


def read_checkpoint(folder: Path) -> None:
    """Go on from it to the end; one that is passed over leaves a new trainer as it is."""
    run, config = read_config(folder / "run")
    graph, kept = small_graph(), CheckpointStore(folder / "run" / "checkpoints")
    if config["graph"].get("fingerprint") != graph.fingerprint:
        return
    with explained(run, graph):
        trainer = build(run, graph)
    before = {name: rows.clone() for name, rows in tensors_of(trainer).items()}
    checkpointer = Checkpointer(kept, identity_of(config), Interval(seconds=0))
    checkpointer.restore(trainer, Progress(prepare_seconds=0.0))
    if passed_over := kept.is_empty:
        after = tensors_of(trainer)
        assert all(as_bytes(after[name]) == as_bytes(rows) for name, rows in before.items())
    if run == Run.make(**RUN):  # and not one that asks for all the memory there is
        fit(build(run, graph), checkpointer=checkpointer)
    if passed_over:
        raise InputError("it was passed over")


def sign(folder: Path) -> None:
    """Make the digests of a changed checkpoint right: what comes behind them is to be tried."""
    path = folder / "run" / "checkpoints" / "1.json"
    tensors = path.with_suffix(".safetensors")
    whole = json.loads(path.read_text())
    about = {"bytes": tensors.stat().st_size, "sha256": _sha256(tensors)}
    whole["state"]["tensors"] = about
    whole["sha256"] = _digest(whole["state"])
    path.write_text(json.dumps(whole))


def read_finished(folder: Path) -> None:
    resume(folder / "run", small_graph())


# Comparisons and caches


def make_comparison(folder: Path) -> None:
    run = Run.make(**RUN)
    score = {
        "val": 0.5, "test": None, "best_epoch": 1, "epochs": 2, "seconds_per_epoch": 0.1,
        "seconds_to_best": 0.1, "prepare_seconds": 0.1, "nodes_per_step": 1.0,
        "edges_per_step": 1.0, "staleness": None, "peak_bytes": 5,
    }  # fmt: skip
    with Store.open(folder / "store", {"dataset": "x"}, {}):
        pass
    line = {"cell": "a", "status": "finished", "score": score, "error": None, "details": None}
    record = {**line, "warning": None, "run": run.to_json()}
    (folder / "store" / "cells.jsonl").write_text(json.dumps(record) + "\n")


def read_comparison(folder: Path) -> None:
    with Store.open(folder / "store", {"dataset": "x"}, {}):
        pass


def make_caches(folder: Path) -> None:
    partition.partition(small_graph(), 3, cache=folder / "parts")
    hops = HopFiles(folder / "hops", "key", (4, 2))
    (folder / "hops").mkdir()
    hops.append(1, torch.ones(4, 2))


def read_caches(folder: Path) -> None:
    found = partition.partition(small_graph(), 3, cache=folder / "parts")
    assert np.unique(found).tolist() == [0, 1, 2]
    hops = HopFiles(folder / "hops", "key", (4, 2))
    hops.look()
    assert hops.num_rows(1) in (0, 4)


READERS = {
    "npz": Reader(lambda folder: small_graph().save(folder / "graph.npz"), read_npz),
    "graphsaint": raw("graphsaint"),
    "ogb-tables": raw("ogb-tables"),
    "ogb-arrays": raw("ogb-arrays"),
    "archive": Reader(make_archive, read_archive),
    "stored": Reader(make_stored, read_stored),
    "run": Reader(make_run, read_whole_run),
    "finished": Reader(make_run, read_finished),
    "checkpoint": Reader(make_stopped, read_checkpoint),
    "signed checkpoint": Reader(make_stopped, read_checkpoint, sign),
    "comparison": Reader(make_comparison, read_comparison),
    "caches": Reader(make_caches, read_caches),
    "tables": Reader(tables.make_texts, tables.read_tables),
    "parquet": Reader(tables.make_parquet, tables.read_tables),
    "joining": Reader(tables.make_joining, tables.read_joining),
    **{kind: Reader(make, read_foreign_graph) for kind, make in FOREIGN.items()},
}
