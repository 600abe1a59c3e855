"""Disks that are full or fail cost a checkpoint, or end the training with one line."""

import errno
import os
from pathlib import Path

import pytest

from graphfm import InputError, resume, train
from graphfm.checkpointing.store import CheckpointStore
from graphfm.runs.folder import RunFolder
from graphfm.training.trainer import Trainer
from tests.reliability.runs import OPTIONS, differences

pytestmark = pytest.mark.usefixtures("no_picture")


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
    def full(path, tensors):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("graphfm.runs.folder.write_tensors", full)
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
