"""Whatever runs long ends with a line after a signal, and with the code of that signal."""

import os
import signal
import sys

import pytest

from graphfm.cli import main

SMALL = "synthetic:small:0.02"
COMMANDS = {  # where a command is in its work when the signal comes, and how it ends then
    "compare": (
        ("compare", "--dataset", SMALL, "--methods", "full"),
        "experiments.compare.run.run_in_child",
        "interrupted before a training ended; the same command starts again",
    ),
    "reproduce": (
        ("reproduce", "table3", "--substitute", "synthetic"), "cli.reproduce.run_reproduction",
        "interrupted; the same command continues from runs/reproduce-table3-synthetic",
    ),
    "bench": (("bench",), "cli.bench.run_suite", "interrupted; 0 of "),
    "train": (
        ("train", "--dataset", SMALL), "cli.train.start_run",
        "interrupted before training began; nothing was written",
    ),
    "load": (("train", "--dataset", SMALL), "cli.train.load", "interrupted"),
    "fetch": (("datasets", "fetch", "flickr"), "cli.datasets.fetch", "interrupted"),
}  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("arguments", "place", "line"), COMMANDS.values(), ids=COMMANDS)
def test_a_signal_ends_a_command_with_its_own_code(
    tmp_path, monkeypatch, capsys, arguments, place, line, number
):
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["graphfm", *arguments])
    monkeypatch.setattr(f"graphfm.{place}", lambda *given, **named: os.kill(os.getpid(), number))
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 128 + number
    said = capsys.readouterr().err.splitlines()
    assert said[-1].startswith(f"graphfm: {line}")
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_was_ignored_stays_ignored(monkeypatch, number):
    """As in a job that a script runs in the background, or under `nohup`."""
    before = signal.signal(number, signal.SIG_IGN)
    monkeypatch.setattr(sys, "argv", ["graphfm", "methods"])
    end = lambda arguments: (lambda **named: os.kill(os.getpid(), number), [])  # noqa: E731
    monkeypatch.setattr("graphfm.cli.app.make_app", end)
    try:
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 0
        assert signal.getsignal(number) == signal.SIG_IGN
    finally:
        signal.signal(number, before)
