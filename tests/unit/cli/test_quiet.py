"""With -q nothing but results and errors appears, also on a terminal, wherever -q stands."""

import io
import logging
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest

from graphfm.cli import main
from graphfm.experiments.outcome import FAILED, Outcome
from tests.own_module import write_module
from tests.unit.cli.commands import TRAIN, graphfm, refused

SMALL = ("--dataset", "synthetic:small:0.02", "--device", "cpu")
EXPERIMENTS = {
    "compare": ("compare", *SMALL, "--methods", "full,graphsage", "--seeds", "1"),
    "staleness": ("staleness", *SMALL, "--parts", "4", "--parts-per-batch", "2"),
    "reproduce": ("reproduce", "table2", "--substitute", "synthetic", "--datasets", "flickr"),
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "path", [*sys.path])  # code of the user's own adds to it
    yield
    logging.getLogger("graphfm").setLevel(logging.NOTSET)  # which a command sets for its process


def on_a_terminal(monkeypatch, *arguments) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["graphfm", *arguments])
    out, err = io.StringIO(), Terminal()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as end:
        main()
    return end.value.code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("quiet", [True, False])
def test_an_experiment_on_a_terminal(monkeypatch, name, quiet):
    def fail(*_, **__):
        return Outcome(status=FAILED, error="nothing is trained here")

    for place in ("compare.run", "reproduce.run", "staleness"):
        monkeypatch.setattr(f"graphfm.experiments.{place}.run_in_child", fail)
    flags = ("-q",) if quiet else ()
    code, out, err = on_a_terminal(monkeypatch, *EXPERIMENTS[name], *flags)
    assert (code, bool(out), not err) == (1, True, quiet)


@pytest.mark.parametrize("flags", [("-q",), ("--quiet",)])
def test_a_training_on_a_terminal(monkeypatch, flags):
    code, out, err = on_a_terminal(monkeypatch, *flags, *TRAIN)
    assert (code, err) == (0, "")
    assert out.startswith("test 0.")


def test_flags_before_the_command_count():
    assert graphfm("-q", *TRAIN, "--out", "quiet").err == ""
    assert graphfm(*TRAIN, "--out", "plain").err != ""  # it was not kept
    graphfm("-v", "methods")
    assert logging.getLogger("graphfm").level == logging.DEBUG
    graphfm("datasets", "-q", "check", "nothing")
    assert logging.getLogger("graphfm").level == logging.ERROR
    refused(graphfm("-q", *TRAIN, "-v"), "--quiet and --verbose were both given")


def test_own_code_is_found_behind_such_a_flag(tmp_path):
    write_module(tmp_path, "users_quiet")
    shown = graphfm("-q", "train", "--method", "users_quiet:smoothed", "--help").out
    assert "--decay X" in shown
