"""Long lines are folded for a terminal; files, pipes and JSON get them whole."""

import io
import json
import re
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest

from graphfm.cli import main
from tests.unit.cli.commands import SMALL

EXPLAIN = ("train", "--dataset", SMALL, "--device", "cpu", "--method", "graphfm-ib", "--explain")


class Stream(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def lines(tmp_path, monkeypatch):
    """What a command prints to stdout and stderr, with a terminal of 80 columns or without."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")

    def printed(*arguments, terminal: bool) -> tuple[list[str], list[str]]:
        monkeypatch.setattr(sys, "argv", ["graphfm", *arguments])
        out, err = Stream(terminal), Stream(terminal)
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit):
            main()
        return out.getvalue().splitlines(), err.getvalue().splitlines()

    return printed


def items(lines: list[str]) -> list[str]:
    """Lines with what is folded put together, without numbers: free memory changes."""
    whole = "\n".join(lines).replace("\n  ", " ").splitlines()
    return [line.split("; ")[0] for line in whole]


def test_an_explanation_fits_the_terminal(lines):
    shown, whole = (lines(*EXPLAIN, terminal=terminal)[0] for terminal in (True, False))
    assert max(map(len, shown)) <= 80 < max(map(len, whole))
    assert len(shown) > len(whole)
    assert items(shown) == items(whole)
    ((line,), _) = lines(*EXPLAIN, "--json", terminal=True)
    assert items(json.loads(line)) == items(whole)


def test_the_memory_of_a_training_fits_the_terminal(lines):
    command = ("train", "--dataset", SMALL, "--device", "cpu", "--epochs", "1")
    shown, whole = (lines(*command, terminal=terminal)[1] for terminal in (True, False))
    assert whole[0].startswith("memory on cpu, about: graph ")
    assert len(whole[0]) > 80
    first = shown[: next(n for n, line in enumerate(shown) if line.startswith(SMALL))]
    assert max(map(len, first)) <= 80
    assert items(first) == items(whole[:1])


def test_the_memory_of_a_comparison_fits_the_terminal(lines, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("graphfm.experiments.compare.run.run_in_child", interrupt)
    command = ("compare", "--dataset", SMALL, "--device", "cpu")
    raw = "\n".join(lines(*command, terminal=True)[1]).replace("\r", "\n")
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", raw).splitlines()
    memory = next(n for n, line in enumerate(shown) if line.startswith("memory on cpu"))
    assert max(map(len, shown[: memory + 2])) <= 80
    assert shown[memory + 1].startswith("  ")
