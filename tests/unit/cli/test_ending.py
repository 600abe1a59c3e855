"""The line with which a training ends, of its own accord or asked to."""

import errno

import pytest
import torch

from graphfm import InputError, Method
from graphfm.api import Result
from graphfm.checkpointing.errors import TrainingStopped
from graphfm.checkpointing.store import CheckpointStore
from graphfm.cli.ending import report, stoppable
from graphfm.cli.output import Interrupted
from graphfm.runs.run import Run
from graphfm.samplers.full import FullSampler
from graphfm.training.callbacks import Score


def result(tmp_path, test):
    score = Score(
        val=0.5, test=test, best_epoch=1, epochs=2, seconds_per_epoch=0.25, seconds_to_best=1.0,
        prepare_seconds=0.0, nodes_per_step=3.0, edges_per_step=4.0, peak_bytes=1 << 20,
    )  # fmt: skip
    return Result(run=Run.make(), score=score, model=None, out=tmp_path)


def line(out, kept, **options):
    with pytest.raises(Interrupted) as caught, stoppable(out, Run.make(**options)):
        raise TrainingStopped(kept)
    return str(caught.value)


def test_it_says_what_the_run_goes_on_from(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    way = f": graphfm train --resume {tmp_path}"
    assert line(tmp_path, kept=True) == f"interrupted; to continue{way}"
    assert line(tmp_path, kept=False) == f"interrupted; to continue from the beginning{way}"
    CheckpointStore(tmp_path / "checkpoints").write({"rows": torch.zeros(1)}, {})
    assert line(tmp_path, kept=False) == (
        f"interrupted; to continue from the checkpoint before{way}"
    )


def mine():
    return Method(FullSampler())


def test_it_says_that_code_of_ones_own_is_named_again(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    place = f"{mine.__module__}:mine"
    assert line(tmp_path, kept=True, method=mine).endswith(f"{tmp_path} --method {place}")


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (0.75, "test 0.7500 (micro-F1) at epoch 1 of 2, the best on validation with 0.5000"),
        (None, "no test nodes; best on validation with 0.5000 (micro-F1) at epoch 1 of 2"),
    ],
)
def test_it_says_how_good_the_best_epoch_was(tmp_path, capsys, test, said):
    report(result(tmp_path, test), json=False)
    assert capsys.readouterr().out == (
        f"{said}; 0.25 s an epoch, peak memory 1.0 MiB; run in {tmp_path}\n"
    )


@pytest.mark.parametrize("json", [True, False])
def test_a_result_that_cannot_be_printed_is_not_lost(tmp_path, monkeypatch, json):
    def full(*given, **named):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("typer.echo", full)
    with pytest.raises(InputError) as caught:
        report(result(tmp_path, 0.75), json)
    assert str(caught.value) == (
        f"the training is finished and its run is in {tmp_path}, but its result could not be "
        "printed: No space left on device"
    )
