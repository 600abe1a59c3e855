"""A run whose files or graph have changed continues from what is whole, or is refused."""

import errno
import json
import os
import shutil

import pytest
import torch

from graphfm import InputError, resume
from graphfm.api import start
from graphfm.checkpointing.errors import TrainingStopped
from graphfm.runs.run import Run
from tests.reliability.runs import OPTIONS, StopAfter, differences, files

pytestmark = pytest.mark.usefixtures("no_picture")


# Checkpoints that are not what they were


@pytest.mark.parametrize("name", ["2.json", "2.safetensors"])
@pytest.mark.parametrize("how", ["cut", "edited", "gone"])
def test_a_damaged_checkpoint_is_passed_over(stopped, whole, graph, caplog, name, how):
    path = stopped / "checkpoints" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content if how == "edited" else content[:-5])
    if how == "gone":
        path.unlink()
    resume(stopped, graph)
    assert differences(whole, stopped) == []
    assert ("2.json cannot be used" in caplog.text) == (how != "gone" or name != "2.json")


def test_what_a_killed_process_left_in_the_run_is_removed(stopped, whole, graph):
    for name in (".tmpyLhSwA", ".model.safetensors.123.unfinished", "checkpoints/.tmpAb12Cd"):
        (stopped / name).write_bytes(b"half")
    resume(stopped, graph)
    assert files(stopped) == files(whole)


def test_without_a_checkpoint_a_run_starts_from_the_beginning(stopped, whole, graph, caplog):
    shutil.rmtree(stopped / "checkpoints")
    resume(stopped, graph)
    assert caplog.messages == [
        f"there is no usable checkpoint in {stopped}; training starts from the beginning"
    ]
    assert differences(whole, stopped) == []


def test_metrics_that_were_written_after_the_checkpoint_are_written_again(stopped, whole, graph):
    with (stopped / "metrics.jsonl").open("a") as stream:
        stream.write('{"epoch": 99, "loss": 1.0}\n{"epo')
    resume(stopped, graph)
    assert differences(whole, stopped) == []


@pytest.mark.parametrize("content", [None, b"", b"half a model"])
def test_a_model_that_was_lost_meanwhile_is_written_again(stopped, whole, graph, content):
    path = stopped / "model.safetensors"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    resume(stopped, graph)
    assert differences(whole, stopped) == []


def test_a_checkpoint_of_another_run_is_refused(stopped, graph, tmp_path):
    other = tmp_path / "other"
    run = Run.make(dataset="in-memory", device="cpu", **{**OPTIONS, "lr": 0.5})
    with pytest.raises(TrainingStopped):
        start(run, graph, out=other, stop_signal=StopAfter(3))
    shutil.rmtree(stopped / "checkpoints")
    shutil.copytree(other / "checkpoints", stopped / "checkpoints")
    with pytest.raises(InputError, match="it belongs to another training: its run differs"):
        resume(stopped, graph)


# Graphs that are not what they were


def test_a_graph_that_changed_is_refused_and_the_run_left_alone(make_graph, tmp_path):
    make_graph().save(tmp_path / "graph.npz")
    run = Run.make(dataset=str(tmp_path / "graph.npz"), device="cpu", **OPTIONS)
    from graphfm.data.datasets import load

    with pytest.raises(TrainingStopped):
        start(run, load(run.dataset), out=tmp_path / "run", stop_signal=StopAfter(4))
    before = files(tmp_path / "run")
    make_graph(seed=1).save(tmp_path / "graph.npz")
    with pytest.raises(InputError, match="is not the graph that the run began with"):
        resume(tmp_path / "run")
    assert files(tmp_path / "run") == before
    make_graph().save(tmp_path / "graph.npz")
    resume(tmp_path / "run")


def test_a_run_of_a_graph_in_memory_asks_for_it(stopped):
    with pytest.raises(InputError, match="in memory; continue in Python: resume"):
        resume(stopped)


def test_other_versions_and_threads_are_said(stopped, graph, caplog):
    path = stopped / "config.json"
    config = json.loads(path.read_text())
    config["versions"]["torch"], config["machine"]["threads"] = "1.0", 64
    path.write_text(json.dumps(config))
    resume(stopped, graph)
    assert f"began with torch 1.0 and continues with {torch.__version__}" in caplog.text
    assert "began with threads 64 and continues with 1: last bits may differ" in caplog.text


def test_a_run_that_is_finished_is_read(whole, graph):
    before = files(whole)
    result = resume(whole, graph)
    assert result.score.epochs == 4
    assert files(whole) == before


def read_only(monkeypatch):
    """Nothing can be removed any more."""

    def refuse(folder):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(folder))

    monkeypatch.setattr("graphfm.runs.folder.remove_unfinished", refuse)


def test_a_run_that_is_finished_is_read_where_nothing_can_be_written(whole, graph, monkeypatch):
    left = whole / ".model.safetensors.123.unfinished"
    left.write_bytes(b"half")
    read_only(monkeypatch)
    assert resume(whole, graph).out == whole
    assert left.exists()


def test_a_run_that_is_not_is_refused_there_without_talk_of_another_folder(
    stopped, graph, monkeypatch
):
    read_only(monkeypatch)
    with pytest.raises(InputError) as caught:
        resume(stopped, graph)
    assert str(caught.value) == (
        f"cannot write to {stopped}: Read-only file system; check its permissions"
    )


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="is not a run: it has no config.json"):
        resume(tmp_path)
