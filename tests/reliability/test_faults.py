"""What goes wrong around a training is one clear line, and costs at most the last minute."""

import errno
import json
import math
import os
import shutil
import signal
import stat
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

from graphfm import Graph, InputError, resume, train
from graphfm.api import start
from graphfm.checkpointing.errors import TrainingStopped
from graphfm.checkpointing.gpu_sync import GpuSync
from graphfm.checkpointing.schedule import Interval
from graphfm.checkpointing.signals import StopSignal
from graphfm.checkpointing.store import CheckpointStore
from graphfm.runs.folder import RunFolder
from graphfm.runs.run import Run
from graphfm.training.trainer import Trainer
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


# Disks


def test_a_full_disk_costs_a_checkpoint_and_not_the_training(
    graph, settled, whole, tmp_path, monkeypatch, caplog
):
    real, times = CheckpointStore.write, iter(range(100))

    def full_once(self, *given):
        if next(times) == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(self, *given)

    monkeypatch.setattr(CheckpointStore, "write", full_once)
    train(graph, out=tmp_path / "run", checkpoint_every="3steps", device="cpu", **OPTIONS)
    assert "cannot write a checkpoint" in caplog.text
    assert "No space left on device" in caplog.text
    assert differences(whole, tmp_path / "run") == []


def test_where_no_checkpoint_can_be_written_training_goes_on(graph, whole, tmp_path, monkeypatch):
    """A file in the place of the folder: nobody can write there, not even root."""
    begin = RunFolder.on_begin

    def occupied(self, records):
        begin(self, records)
        (self.path / "checkpoints").write_text("")

    monkeypatch.setattr(RunFolder, "on_begin", occupied)
    train(graph, out=tmp_path / "run", checkpoint_every="3steps", device="cpu", **OPTIONS)
    model = "model.safetensors"
    assert (tmp_path / "run" / model).read_bytes() == (whole / model).read_bytes()


def test_a_disk_that_is_full_for_good_ends_with_a_line_and_a_way_on(
    graph, settled, whole, tmp_path, monkeypatch
):
    real = RunFolder.on_epoch

    def full(self, record, best):
        if record.epoch == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(self, record, best)

    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "on_epoch", full)
        with pytest.raises(
            InputError, match="No space left.*then continue: graphfm train --resume"
        ):
            train(graph, out=tmp_path / "run", checkpoint_every="3steps", device="cpu", **OPTIONS)
    resume(tmp_path / "run", graph)
    assert differences(whole, tmp_path / "run") == []


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EROFS, os.strerror(errno.EROFS)), "Read-only file system; check the perm"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "features.bin"),
         "No such file or directory \\(features.bin\\); resolve that"),
        (OSError(errno.EIO, os.strerror(errno.EIO)), "Input/output error; resolve that"),
        (TimeoutError("the disk is away"), "the disk is away; resolve that"),
    ],
)  # fmt: skip
def test_an_error_of_the_system_is_reported_as_what_it_was(
    graph, tmp_path, monkeypatch, error, said
):
    real = Trainer.step

    def fail(self, seeds):
        if self.touched["steps"] == 5:
            raise error
        return real(self, seeds)

    monkeypatch.setattr(Trainer, "step", fail)
    with pytest.raises(
        InputError, match=said + ".*; then continue: graphfm train --resume"
    ) as caught:
        train(graph, out=tmp_path / "run", checkpoint_every="2steps", device="cpu", **OPTIONS)
    assert "cannot write" not in str(caught.value)


def test_a_model_for_which_there_is_no_room_is_an_error_of_the_disk(graph, tmp_path, monkeypatch):
    def full(tensors, path):
        raise SafetensorError("Error: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("graphfm.runs.folder.save_file", full)
    with pytest.raises(InputError, match="error: No space left on device; make room for .*run$"):
        train(graph, out=tmp_path / "run", device="cpu", **OPTIONS)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="nobody tells what is synchronised")
def test_every_file_of_a_run_is_on_the_disk_before_it_has_its_name(graph, tmp_path, monkeypatch):
    """And the folder behind it, and the folders above: what was there outlives a loss of power."""
    done, sync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(
        os, "fsync", lambda fd: (done.append(os.readlink(f"/proc/self/fd/{fd}")), sync(fd))
    )
    monkeypatch.setattr(
        os, "replace", lambda old, new: (done.append((str(old), str(new))), replace(old, new))
    )
    run = tmp_path / "new" / "run"
    train(graph, out=run, device="cpu", checkpoint_every="3steps", **OPTIONS)
    for path in filter(Path.is_file, run.rglob("*")):
        at, (beside, _) = max((at, entry) for at, entry in enumerate(done) if entry[1] == str(path))
        assert done[at - 1] == beside, path
        assert done[at + 1] == str(path.parent), path
    config = next(at for at, entry in enumerate(done) if entry[1] == str(run / "config.json"))
    assert {str(tmp_path), str(tmp_path / "new")} <= set(done[:config])
    assert done[-2][1] == str(run / "result.json")  # the last: it vouches for the others


# Numbers that are none


def broken_at(step, monkeypatch):
    """A trainer whose second layer explodes at a step, as one with too high a rate would."""
    real = Trainer.step

    def step_and_break(self, seeds):
        if self.touched["steps"] == step:
            with torch.no_grad():
                next(self.backbone.layers[1].parameters()).fill_(math.inf)
        return real(self, seeds)

    monkeypatch.setattr(Trainer, "step", step_and_break)


def test_a_loss_that_is_none_stops_at_the_last_good_checkpoint(graph, tmp_path, monkeypatch):
    broken_at(7, monkeypatch)
    with pytest.raises(InputError) as caught:
        train(graph, out=tmp_path / "run", checkpoint_every="2steps", device="cpu", **OPTIONS)
    assert str(caught.value) == (
        "weights or losses are not finite in epoch 3, first in layer 2 of 3, step 8 (the last "
        "checkpoint before that is kept); lower lr, or set clip"
    )
    newest = CheckpointStore(tmp_path / "run" / "checkpoints").newest()
    assert newest.record["training"]["touched"]["steps"] == 6
    with newest.opened() as stream:
        assert all(
            stream.get_tensor(name).isfinite().all()
            for name in stream.keys()  # noqa: SIM118
            if not name.startswith("random")
        )


def test_the_search_for_the_layer_is_announced(graph, tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO", "graphfm")
    broken_at(7, monkeypatch)
    with pytest.raises(InputError):
        train(graph, out=tmp_path / "run", checkpoint_every="2steps", device="cpu", **OPTIONS)
    before, after = caplog.messages[-2:]
    assert before == (
        "weights or losses are not finite in epoch 3: repeating the steps up to there "
        "to find the layer that broke first"
    )
    assert after == "continuing after epoch 1, step 6"


def test_without_a_folder_the_layer_is_named_too(graph, monkeypatch):
    broken_at(7, monkeypatch)
    with pytest.raises(InputError, match="in epoch 3, first in layer 2 of 3, step 8; lower lr"):
        train(graph, device="cpu", **OPTIONS)


def test_an_encoder_is_named_as_such(graph, monkeypatch):
    real = Trainer.step

    def step(self, seeds):
        with torch.no_grad():
            next(self.backbone.encode.parameters()).fill_(math.nan)
        return real(self, seeds)

    monkeypatch.setattr(Trainer, "step", step)
    with pytest.raises(InputError, match="the loss is nan in epoch 1, first in the encoder, step"):
        train(graph, device="cpu", backbone="gcnii", epochs=2)


def test_a_layer_that_breaks_beyond_the_batch_is_named():
    """Only rows of a halo overflow in the first layer; the second reads them."""
    ids = torch.arange(60)
    torch.manual_seed(0)
    x = torch.randn(60, 400)
    x[1:25] = 7e37
    edges = torch.stack([torch.zeros(24, dtype=torch.int64), ids[1:25]])
    masks = {f"{split}_mask": ids % 3 == i for i, split in enumerate(("train", "val", "test"))}
    star = Graph.from_edges(edges, x, ids % 3, undirected=True, **masks)
    options = {"layers": 3, "hidden": 64, "dropout": 0.0, "parts": 6, "partition": "random"}
    with pytest.raises(InputError, match="first in layer 1 of 3"):
        train(star, backbone="gcn", method="gas", epochs=3, device="cpu", **options)


def broken_once(monkeypatch, search=lambda: None):
    """A fault at step 5 that does not come again; `search` is called at every step after it."""
    real, taken = Trainer.step, []

    def step_and_break(self, seeds):
        taken.append(self.touched["steps"])
        if len(taken) == 6:
            with torch.no_grad():
                next(self.backbone.layers[1].parameters()).fill_(math.inf)
        elif len(taken) > 6:  # the second epoch has ended with the fault
            search()
        return real(self, seeds)

    monkeypatch.setattr(Trainer, "step", step_and_break)
    return taken


@pytest.mark.parametrize("out", ["run", None])
def test_the_search_for_the_layer_ends_with_the_epoch_of_the_fault(
    graph, tmp_path, monkeypatch, out
):
    taken, out = broken_once(monkeypatch), out and tmp_path / out
    with pytest.raises(InputError, match=r"in epoch 2; lower lr"):
        train(graph, out=out, device="cpu", **(OPTIONS | {"epochs": 1000, "patience": 0}))
    again = taken[taken.index(0, 1) :]
    assert again == list(range(len(again)))
    assert taken[: len(again)] == again  # as many steps as to the end of that epoch


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_search_for_the_layer(graph, settled, tmp_path, monkeypatch, number):
    taken = broken_once(monkeypatch, lambda: os.kill(os.getpid(), number))
    with pytest.raises(InputError, match=r"is nan in epoch 2; lower lr"):
        start(settled, graph, out=tmp_path / "run", stop_signal=StopSignal())
    assert taken[-2:] == [taken[-2], 0]  # not even its first step was finished


def test_a_search_without_a_folder_is_interrupted_too(graph, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    broken_once(monkeypatch, interrupt)
    with pytest.raises(InputError, match=r"is nan in epoch 2; lower lr"):
        train(graph, device="cpu", **OPTIONS)


OVERFLOW = "the squares of the gradients are too large for float32, so weights stop moving in epoch"


def scaled(graph, factor):
    return replace(graph, x=graph.x * factor)


@pytest.mark.parametrize("out", ["run", None])
@pytest.mark.parametrize("every", ["1steps", "auto"])
def test_squares_of_gradients_that_overflow_stop_the_training(graph, tmp_path, out, every):
    out, options = out and tmp_path / out, OPTIONS | {"checkpoint_every": every, "device": "cpu"}
    with pytest.raises(InputError) as caught:
        train(scaled(graph, 1e36), out=out, **options)
    assert str(caught.value) == (
        f"{OVERFLOW} 1; scale the features (to about 1; docs/reliability.md)"
    )
    assert list(tmp_path.iterdir()) == []  # there was nothing yet that is worth keeping


def test_no_checkpoint_is_written_of_squares_that_overflow(graph, tmp_path, monkeypatch):
    real = Trainer.step

    def step_and_overflow(self, seeds):
        loss = real(self, seeds)
        if self.touched["steps"] == 7:
            next(iter(self.optimizer.state.values()))["exp_avg_sq"].fill_(math.inf)
        return loss

    monkeypatch.setattr(Trainer, "step", step_and_overflow)
    with pytest.raises(InputError) as caught:
        train(graph, out=tmp_path / "run", checkpoint_every="1steps", device="cpu", **OPTIONS)
    assert str(caught.value).startswith(f"{OVERFLOW} 3 (the last checkpoint before that is kept")
    newest = CheckpointStore(tmp_path / "run" / "checkpoints").newest()
    assert newest.record["training"]["touched"]["steps"] == 6


# Memory, clocks, permissions


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory. Tried to allocate"), MemoryError()]
)
def test_memory_that_runs_out_says_what_to_reduce(graph, tmp_path, monkeypatch, error):
    real, steps = Trainer.step, iter(range(100))

    def fail(self, seeds):
        if next(steps) == 5:
            raise error
        return real(self, seeds)

    monkeypatch.setattr(Trainer, "step", fail)
    with pytest.raises(InputError, match=r"memory ran out \(memory on cpu, .*\); lower hidden"):
        train(graph, out=tmp_path / "run", checkpoint_every="2steps", device="cpu", **OPTIONS)
    assert not CheckpointStore(tmp_path / "run" / "checkpoints").is_empty


def test_a_clock_that_jumps_changes_nothing(graph, whole, tmp_path, monkeypatch):
    jumps = iter([1e9, 0.0, -1e9, 5e9] * 1000)
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    train(graph, out=tmp_path / "run", device="cpu", **OPTIONS)
    assert differences(whole, tmp_path / "run") == []
    assert len(list((tmp_path / "run" / "checkpoints").iterdir())) == 2  # no more were due


def test_steps_are_waited_for_before_they_are_timed_and_kept(graph, tmp_path, monkeypatch):
    """As on a GPU: 10 seconds of a step come at the wait for it, and writing takes 1,000."""
    clock, done, write = [0.0], [], CheckpointStore.write

    def wait(self):
        if done[-1:] != ["wait"]:
            clock[0] += 10
        done.append("wait")

    def slow(self, *given):
        clock[0] += 1000
        done.append("write")
        write(self, *given)

    monkeypatch.setattr(GpuSync, "wait", wait)
    monkeypatch.setattr(GpuSync, "keep", lambda self, steps: done.append("step"))
    monkeypatch.setattr(CheckpointStore, "write", slow)
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    options = OPTIONS | {"batch_size": 100, "patience": 0}  # a step is an epoch
    train(graph, out=tmp_path / "run", checkpoint_every="1steps", device="cpu", **options)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["seconds"] for line in lines] == [10, 10, 10, 10]
    assert done == ["step", "wait", "write", "step"] * 4 + ["write"]


def test_nobody_reads_a_clock_that_jumps():
    for path in Path("src/graphfm").rglob("*.py"):
        assert "time.time()" not in path.read_text(), path


@pytest.mark.skipif(os.name != "posix", reason="no such permissions here")
@pytest.mark.parametrize(("mask", "most"), [(0o022, 0o644), (0o077, 0o600)])
def test_files_are_for_those_whom_the_user_lets(graph, tmp_path, mask, most):
    before = os.umask(mask)
    try:
        train(graph, out=tmp_path / "run", device="cpu", **OPTIONS)
    finally:
        os.umask(before)
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "run").rglob("*")}
    assert {mode for path, mode in found.items() if path.is_file()} == {most}
    assert {mode for path, mode in found.items() if path.is_dir()} == {0o777 & ~mask}


def test_a_run_says_how_often_it_keeps_its_state(graph, tmp_path):
    train(graph, out=tmp_path / "run", checkpoint_every="7 steps", device="cpu", **OPTIONS)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["checkpoint_every"] == (
        "7steps"
    )
    train(graph, out=tmp_path / "none", checkpoint_every="0", device="cpu", **OPTIONS)
    assert not (tmp_path / "none" / "checkpoints").exists()


def test_without_checkpoints_one_is_kept_for_a_signal_until_the_run_is_finished(
    graph, settled, tmp_path
):
    never, kept = Interval.parse("0"), tmp_path / "run" / "checkpoints"
    with pytest.raises(TrainingStopped) as caught:
        start(settled, graph, out=tmp_path / "run", interval=never, stop_signal=StopAfter(4))
    assert caught.value.kept
    assert len(list(kept.iterdir())) == 2
    resume(tmp_path / "run", graph)
    assert not kept.exists()


def test_a_graph_in_memory_with_half_features_goes_on(graph, tmp_path):
    run = Run.make(dataset="in-memory", device="cpu", features="bf16", **OPTIONS)
    with pytest.raises(TrainingStopped):
        start(run, graph, out=tmp_path / "run", stop_signal=StopAfter(4))
    assert resume(tmp_path / "run", graph).score.epochs > 0


def test_a_signal_that_nobody_hears_of_is_still_obeyed(monkeypatch):
    """The other end of a pipe may have gone with the same Ctrl-C."""

    def gone(*given):
        raise BrokenPipeError

    monkeypatch.setattr("graphfm.checkpointing.signals.os.write", gone)
    with StopSignal() as stop_signal:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop_signal()
