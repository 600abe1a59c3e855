"""What is said of a training where no terminal is."""

import time

from graphfm.cli.output import set_verbosity
from graphfm.cli.progress import ProgressLines
from graphfm.training.callbacks import EpochRecord
from graphfm.training.settings import Training


def record(epoch: int, val: float | None = 0.5) -> EpochRecord:
    return EpochRecord(epoch, loss=1.25, val=val, lr=0.1, seconds=0.1)


def test_the_first_and_the_last_epoch_are_said(capsys):
    with ProgressLines(Training(epochs=9), every=3600) as lines:
        lines.on_begin([])
        for epoch in range(1, 6):  # patience ended it
            lines.on_epoch(record(epoch), 0.75)
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("epoch 1 of 9: loss 1.2500, validation 0.5000 (best 0.7500), at most ")
    assert last.startswith("epoch 5 of 9: ")


def test_lines_in_between_are_as_far_apart_as_asked(capsys):
    with ProgressLines(Training(epochs=3), every=0) as lines:
        lines.on_begin([])
        for epoch in (1, 2, 3):
            lines.on_epoch(record(epoch), 0.75)
    said = capsys.readouterr().err
    assert all(f"epoch {epoch} of 3: " in said for epoch in (1, 2, 3))


def test_a_long_epoch_and_a_long_preparation_are_not_silent(capsys):
    with ProgressLines(Training(epochs=3), every=0.05) as lines:
        time.sleep(0.2)
        lines.on_begin([])
        lines.on_epoch(record(1), 0.75)
        time.sleep(0.2)
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("preparing; ")
    assert said[-1].startswith("epoch 1 of 3: ")
    assert said[-1].endswith(" so far")


def test_the_time_left_is_counted_from_where_a_run_goes_on(capsys, monkeypatch):
    with ProgressLines(Training(epochs=10), every=3600) as lines:
        lines.on_begin([record(epoch) for epoch in range(1, 6)])
        lines.started -= 60
        lines.on_epoch(record(6), 0.75)
    (line,) = capsys.readouterr().err.splitlines()
    assert "at most 4 min left" in line


def test_an_epoch_without_evaluation_shows_the_last_score(capsys):
    with ProgressLines(Training(epochs=2), every=0) as lines:
        lines.on_begin([])
        lines.on_epoch(record(1), 0.75)
        lines.on_epoch(record(2, val=None), 0.75)
    assert "epoch 2 of 2: loss 1.2500, validation 0.5000 (best 0.7500)" in capsys.readouterr().err


def test_quiet_says_nothing(capsys):
    set_verbosity(quiet=True)
    try:
        with ProgressLines(Training(epochs=1), every=0) as lines:
            lines.on_begin([])
            lines.on_epoch(record(1), 0.75)
    finally:
        set_verbosity()
    assert capsys.readouterr().err == ""
