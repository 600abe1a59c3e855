"""Folders, graphs, memory and disks that fail end a training with one line."""

import errno
import os
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from graphfm import Graph, load
from graphfm.runs.folder import RunFolder
from graphfm.training.trainer import Trainer
from tests.unit.cli.commands import SMALL, TRAIN, graphfm, other_graph, refused, tree

pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize(
    ("out", "reason"),
    [
        ("full", "full is not empty; choose another folder"),
        ("file", "cannot write to file"),
        ("file/run", "cannot write to file/run"),
        ("new/" + "n" * 300, "cannot write to new/n+: File name too long"),
    ],
)
def test_out_where_no_run_can_be_is_refused(here, out, reason):
    (here / "full").mkdir()
    (here / "full" / "mine.txt").write_text("mine")
    (here / "file").write_text("mine")
    before = tree(here)
    refused(graphfm(*TRAIN, "--out", out), reason)
    assert tree(here) == before


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_out_in_a_place_that_cannot_be_written_is_refused(here, monkeypatch, code):
    def refuse(self, *_, **__):
        raise OSError(code, os.strerror(code), str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    refused(graphfm(*TRAIN, "--out", "run"), f"cannot write to run: {os.strerror(code)}")
    monkeypatch.undo()
    assert tree(here) == set()


def test_an_existing_folder_that_cannot_be_written_is_refused(here, monkeypatch):
    (here / "run").mkdir()

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("graphfm.runs.folder.TemporaryFile", refuse)
    refused(graphfm(*TRAIN, "--out", "run"), "cannot write to run: Permission denied")
    assert tree(here) == {"run"}


@pytest.mark.parametrize("name", ["train", "info", "predict", "evaluate"])
@pytest.mark.parametrize("cut", [0, 10, 500])
def test_a_damaged_graph_gets_one_line_and_leaves_nothing(trained, here, name, cut):
    other_graph(here / "g.npz")
    (here / "g.npz").write_bytes((here / "g.npz").read_bytes()[:cut])
    arguments = {
        "train": ("train", "--dataset", "g.npz"),
        "info": ("info", "g.npz"),
        "predict": ("predict", trained[0], "--dataset", "g.npz", "--out", "p.csv"),
        "evaluate": ("evaluate", trained[0], "--dataset", "g.npz"),
    }[name]
    refused(graphfm(*arguments), "g.npz: damaged, or not an .npz file")
    assert tree(here) == {"g.npz"}


def test_a_graph_without_splits_cannot_be_trained_on(here):
    other_graph(here / "g.npz", y=[0, 1, 0, 1, 0])
    refused(graphfm("train", "--dataset", "g.npz"), "the graph has no train_mask")
    assert tree(here) == {"g.npz"}


def test_features_too_large_to_compute_with_leave_no_run(here):
    masks = {"train_mask": [1, 1, 0, 0, 0], "val_mask": [0, 0, 1, 0, 0]}
    x = np.full((5, 4), 3e38, dtype=np.float32)
    Graph.from_edges([[0], [1]], x, [0, 1, 0, 1, 0], **masks).save(here / "g.npz")
    ended = graphfm("train", "--dataset", "g.npz", "--out", "run")
    assert (ended.code, ended.out) == (2, "")
    assert re.search(r"graphfm: the loss is \S+ in epoch 1", ended.err)
    assert tree(here) == {"g.npz"}


def test_too_little_memory_gets_one_line_and_leaves_nothing(here, monkeypatch):
    monkeypatch.setattr(Trainer, "step", lambda *_: torch.empty(1 << 50))
    ended = graphfm(*TRAIN, "--out", "run")
    assert ended.code == 2
    (line,) = ended.err.splitlines()[2:]
    assert line.startswith("graphfm: memory ran out (memory on cpu, about: graph ")
    assert "); use a method that samples, such as graphfm-ib, or lower hidden" in line
    assert tree(here) == set()


def test_a_full_disk_gets_one_line(here, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "run/metrics.jsonl")

    monkeypatch.setattr(RunFolder, "on_epoch", fail)
    ended = graphfm(*TRAIN, "--out", "run")
    assert ended.code == 2
    assert ended.err.splitlines()[2:] == [
        "graphfm: the training was stopped by an error: No space left on device "
        "(run/metrics.jsonl); make room for run"
    ]
    assert tree(here) == set()


def test_a_run_that_another_process_began_meanwhile_is_left_alone(here, monkeypatch):
    def load_slowly(*_, **__):
        (here / "run").mkdir()
        (here / "run" / "config.json").write_text("{}")
        return load(SMALL)

    monkeypatch.setattr("graphfm.cli.train.load", load_slowly)
    ended = graphfm(*TRAIN, "--out", "run")
    assert ended.code == 2
    assert "run is not empty" in ended.err
    assert tree(here / "run") == {"config.json"}


def test_a_mistake_of_ours_is_not_hidden(monkeypatch):
    monkeypatch.setattr(Trainer, "step", lambda *_: [][0])
    with pytest.raises(IndexError):
        graphfm(*TRAIN)
