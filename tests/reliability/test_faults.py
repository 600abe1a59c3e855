"""Memory, clocks, permissions and signals: none of them costs a run more than the last minute."""

import json
import os
import signal
import stat
import time
from pathlib import Path

import pytest
import torch

from graphfm import InputError, resume, train
from graphfm.api import start
from graphfm.checkpointing.errors import TrainingStopped
from graphfm.checkpointing.gpu_sync import GpuSync
from graphfm.checkpointing.schedule import Interval
from graphfm.checkpointing.signals import StopSignal
from graphfm.checkpointing.store import CheckpointStore
from graphfm.runs.run import Run
from graphfm.training.trainer import Trainer
from tests.reliability.runs import OPTIONS, StopAfter, differences

pytestmark = pytest.mark.usefixtures("no_picture")


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
