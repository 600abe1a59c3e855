"""Ctrl-C and SIGTERM: a checkpoint, and a line that says how to go on."""

import signal

import pytest

from tests.reliability.processes import Command
from tests.reliability.runs import differences, files

LONG = ("train", "--dataset", "synthetic:small:0.05", "--device", "cpu", "--method", "graphfm-ib",
        "--hidden", 8, "--batch-size", 64, "--epochs", 25)  # fmt: skip
UNENDING = (*LONG[:-1], 10**6, "--patience", 0)


def running(folder, *arguments):
    """A training that has begun."""
    command = Command(folder, *arguments, "--out", "run")
    assert command.until(lambda: (folder / "run" / "model.safetensors").exists()), command.err
    return command


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_one_signal_leaves_a_checkpoint_to_go_on_from(tmp_path, number, code):
    assert Command(tmp_path, *LONG, "--out", "whole").wait() == 0
    command = running(tmp_path, *LONG)
    command.kill(number)
    assert command.wait() == code, command.err
    assert command.err.splitlines()[-1] == (
        "graphfm: interrupted; to continue: graphfm train --resume run; its best model so far: "
        "graphfm evaluate run"
    )
    assert command.out == ""
    resumed = Command(tmp_path, "train", "--resume", "run")
    assert resumed.wait() == 0, resumed.err
    assert "continuing after epoch" in resumed.err
    assert resumed.out.startswith("test 0.")
    assert differences(tmp_path / "whole", tmp_path / "run") == []


def test_a_second_signal_ends_at_once_and_the_last_checkpoint_is_whole(tmp_path):
    """The first checkpoint is there; of the one being written nothing is taken for one."""
    command = running(tmp_path, *UNENDING, "--checkpoint-every", "1steps")
    run = tmp_path / "run"
    assert command.until(lambda: len(list(run.glob("checkpoints/*.json"))) == 2)
    command.kill(signal.SIGINT)
    command.kill(signal.SIGINT)
    assert command.wait() == 130, command.err
    assert "to continue: graphfm train --resume run" in command.err.splitlines()[-1]
    resumed = Command(tmp_path, "train", "--resume", "run", "--checkpoint-every", "0")
    assert resumed.until(lambda: "continuing after epoch" in resumed.err)
    resumed.kill(signal.SIGTERM)
    assert resumed.wait() == 143
    assert [name for name in files(run) if "unfinished" in name] == []


def test_a_run_is_for_one_process_at_a_time(tmp_path):
    command = running(tmp_path, *UNENDING)
    second = tmp_path / "second"
    second.mkdir()
    other = Command(second, "train", "--resume", tmp_path / "run")
    assert other.wait() == 2
    assert f"another process uses {tmp_path / 'run'}; wait" in other.err
    assert command.process.is_alive()
    command.kill()
    command.process.join()
    freed = Command(second, "train", "--resume", tmp_path / "run")
    assert freed.until(lambda: len((tmp_path / "run" / "metrics.jsonl").read_text()) > 0)
    freed.kill()
    freed.process.join()
