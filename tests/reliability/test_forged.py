"""Checkpoints whose digests are right and whose contents cannot be: damaged, and passed over."""

import copy
import math

import pytest
import torch

from graphfm import resume
from graphfm.checkpointing import state
from graphfm.checkpointing.checkpointer import Checkpointer
from graphfm.checkpointing.store import CheckpointStore
from graphfm.runs.folder import identity_of
from graphfm.runs.reader import read_config
from graphfm.runs.run import Run, build
from graphfm.training.progress import Progress
from tests.reliability.runs import OPTIONS, as_bytes, differences

pytestmark = pytest.mark.usefixtures("no_picture")
NAN, INF = math.nan, math.inf
BEST, WEIGHTS = "best.layers.0.weight", "weights.layers.0.weight"
STRANGE = ("optimizer.99.exp_avg", "best.other", "")
BYTES = {"dtype": torch.uint8}

# the name of a tensor, and what is put in its place: None is nothing, a number fills it
TENSORS = [
    (WEIGHTS, torch.zeros(2, 2)), (WEIGHTS, NAN), (WEIGHTS, None),
    ("history.aggregate.1", torch.zeros(3)), ("history.aggregate.1", None),
    ("history.aggregate.1", NAN), ("history.aggregate.1", INF), ("history.aggregate.1", -INF),
    ("history.inputs.1", torch.zeros(3)), ("history.inputs.1", None),
    ("optimizer.0.exp_avg", NAN), ("optimizer.0.exp_avg", -INF), ("optimizer.0.exp_avg_sq", NAN),
    ("optimizer.0.exp_avg_sq", INF), ("optimizer.0.exp_avg_sq", -1.0), ("optimizer.0.step", 1.5),
    ("optimizer.0.step", 1.0), ("optimizer.0.step", 99.0), ("optimizer.0.step", INF),
    ("optimizer.0.exp_avg", None), ("optimizer.0.step", None), ("optimizer.99.exp_avg", 0.0),
    ("optimizer.0.exp_avg_sq", torch.zeros(3)), ("optimizer.0.step", torch.ones(3)),
    ("optimizer.0.step", torch.tensor(4)), ("optimizer.0.step", NAN), ("optimizer.0.step", 0.0),
    ("totals", NAN), ("totals", INF), ("totals", torch.zeros(5)),
    (BEST, torch.zeros(2, 2)), (BEST, NAN), (BEST, None), ("best.other", 0.0),
    ("random.sampler", torch.zeros(5, **BYTES)), ("random.sampler", torch.zeros(5056, **BYTES)),
    ("random.epoch", torch.full((5056,), 255, **BYTES)), ("random.epoch", None),
    ("random.model", torch.zeros(3)), ("random.model", None), ("", 0.0),
]  # fmt: skip

# where in the JSON, and what is put there
NUMBERS = [
    ("training", None), ("training", []), ("training", "x"), ("training.epochs", 1 << 62),
    ("training.epochs", -1), ("training.epochs", True), ("training.epochs", "1"),
    ("training.steps", -4), ("training.steps", 0), ("training.steps", 1.5),
    ("training.steps", 1 << 62), ("training.steps", None), ("training.lr", [NAN]),
    ("training.lr", []), ("training.lr", [0.1, 0.1]), ("training.lr", "0.1"),
    ("training.lr", [-1.0]), ("training.lr", [INF]), ("training.touched", {}),
    ("training.touched.steps", 0), ("training.touched.nodes", NAN), ("training.age", 5),
    ("training.touched.steps", 99), ("training.steps", 5), ("training.lr", [-INF]),
    ("training.touched.edges", -1), ("training.touched.nodes", 1 << 70), ("training.other", 1),
    ("progress", None), ("progress.records", {}), ("progress.records", [[]]),
    ("progress.records", [None]), ("progress.records", []), ("progress.records.0", {}),
    ("progress.records.0.val", 5), ("progress.records.0.val", None),
    ("progress.records.0.val", "x"), ("progress.records.0.loss", "abc"),
    ("progress.records.0.loss", NAN), ("progress.records.0.epoch", 2),
    ("progress.records.0.epoch", 1.0), ("progress.records.0.lr", None),
    ("progress.records.0.seconds", -1), ("progress.records.0.seconds", INF),
    ("progress.records.0.staleness", 5), ("progress.records.0.staleness", [1]),
    ("progress.records.0.staleness", [{"depth": "x"}]), ("progress.records.0.other", 1),
    ("progress.prepare_seconds", "x"), ("progress.prepare_seconds", NAN),
    ("progress.epoch_seconds", None), ("identity", None), ("identity", [1]), ("other", 1),
]  # fmt: skip


def read(kept):
    """The newest state, to be changed."""
    newest = kept.newest()
    with newest.opened() as stream:
        tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
    record = {k: v for k, v in newest.record.items() if k not in ("tensors", "format")}
    return tensors, copy.deepcopy(record)


def forge_tensor(run, name, value):
    tensors, record = read(CheckpointStore(run / "checkpoints"))
    assert name in tensors or name in STRANGE
    if isinstance(value, float):
        value = torch.full_like(tensors.get(name, torch.zeros(3)), value)
    tensors[name] = value
    write(run, {name: rows for name, rows in tensors.items() if rows is not None}, record)


def forge_number(run, place, value):
    tensors, record = read(CheckpointStore(run / "checkpoints"))
    *path, last = [int(key) if key.isdecimal() else key for key in place.split(".")]
    holder = record
    for key in path:
        holder = holder[key]
    holder[last] = value
    write(run, tensors, record)


def write(run, tensors, record):
    kept = CheckpointStore(run / "checkpoints")
    kept.write(tensors, record)
    assert kept.newest() is not None  # its digests are right


def check_passed_over(run, whole, graph, caplog):
    resume(run, graph)
    assert "3.json cannot be used" in caplog.text
    assert "trying the previous one" in caplog.text
    assert differences(whole, run) == []


@pytest.mark.parametrize(("name", "value"), TENSORS)
def test_tensors_that_cannot_be_are_passed_over(stopped, whole, graph, caplog, name, value):
    forge_tensor(stopped, name, value)
    check_passed_over(stopped, whole, graph, caplog)


@pytest.mark.parametrize(("place", "value"), NUMBERS)
def test_numbers_that_cannot_be_are_passed_over(stopped, whole, graph, caplog, place, value):
    forge_number(stopped, place, value)
    check_passed_over(stopped, whole, graph, caplog)


@pytest.mark.parametrize("vals", [[None] * 4, [0.5] * 5])
def test_an_end_that_cannot_be_is_passed_over(stopped, whole, graph, caplog, vals):
    """Without a best epoch, or after more epochs than there are."""
    tensors, record = read(CheckpointStore(stopped / "checkpoints"))
    first = record["progress"]["records"][0]
    epochs = [first | {"epoch": n, "val": val} for n, val in enumerate(vals, start=1)]
    record["progress"]["records"], record["training"]["epochs"] = epochs, len(epochs)
    if None in vals:
        tensors = {name: rows for name, rows in tensors.items() if not name.startswith("best.")}
    write(stopped, tensors, record)
    check_passed_over(stopped, whole, graph, caplog)


def test_what_is_not_used_leaves_no_trace(stopped, graph, caplog):
    """Where no other is left, the training that starts from the beginning is a new one."""
    config = read_config(stopped)[1]
    forge_tensor(stopped, "totals", NAN)  # read after the weights
    kept = CheckpointStore(stopped / "checkpoints")
    for path in kept.folder.glob("2.*"):
        path.unlink()
    run = Run.make(dataset="in-memory", device="cpu", **OPTIONS)
    trainer, new = build(run, graph), build(run, graph)
    Checkpointer(kept, identity_of(config)).restore(trainer, Progress(prepare_seconds=0.0))
    assert "3.json cannot be used" in caplog.text
    assert "starting from the beginning" in caplog.text
    assert "the previous one" not in caplog.text
    here, there = state.tensors_of(trainer), state.tensors_of(new)
    assert here.keys() == there.keys()
    assert all(as_bytes(here[name]) == as_bytes(there[name]) for name in here)
    assert trainer.numbers() == new.numbers()
