"""graphfm bench goes on where a case or a rival fails, and ends with what it measured."""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest

from graphfm.cli import main
from graphfm.experiments.bench.case import Case
from graphfm.experiments.bench.contender import Ours
from graphfm.experiments.bench.rival import NumpyRival
from tests.unit.cli.benching import SMALL, TINY, bench

pytestmark = pytest.mark.usefixtures("tiny_suites")


def test_a_case_that_fails_is_a_line_and_the_others_go_on():
    code, out, err = bench("--suite", "broken", "--repeats", "1", "--json")
    assert code == 1
    records = [json.loads(line) for line in out.splitlines()]
    assert [record["status"] for record in records] == ["measured", "failed", "measured"]
    assert records[1]["reason"].startswith("graphfm-delta adds up differences")
    failed = "broken: failed: graphfm-delta adds up differences"
    assert sum(failed in line for line in err.splitlines()) == 1


def test_running_out_of_memory_is_a_line_too(monkeypatch):
    def epoch(self):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 99 bytes")

    monkeypatch.setattr(Ours, "epoch", epoch)
    code, out, err = bench("--suite", "tiny")
    assert (code, out) == (1, "")
    assert err.count("failed: there is not enough memory") == 3


def test_ctrl_c_ends_with_what_was_measured(monkeypatch):
    def rival(self, graph):
        if self.name == "delta":
            raise KeyboardInterrupt

    monkeypatch.setattr(Case, "make_rival", rival)
    code, out, err = bench("--suite", "tiny", "--repeats", "1")
    assert code == 130
    assert [row.split()[1] for row in out.splitlines()[1:3]] == ["sage", "ib"]
    assert err.splitlines()[-1] == "graphfm: interrupted; 2 of 3 cases were measured"


# Rivals


def main_with(*arguments: str) -> None:
    """The command where it is expected to raise."""
    before, sys.argv = sys.argv, ["graphfm", "bench", *arguments]
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            main()
    finally:
        sys.argv = before


@pytest.mark.parametrize("after", [0, 3])  # epochs; one in the warm-up, one later
def test_a_rival_that_is_too_slow_is_left_out_and_closed(monkeypatch, after):
    epochs, closed = [], []
    epoch = NumpyRival.epoch

    def slow(self):
        epochs.append(self)
        self.limit = 0.0 if len(epochs) > after else 300.0
        return epoch(self)

    monkeypatch.setattr(NumpyRival, "epoch", slow)
    monkeypatch.setattr(NumpyRival, "close", lambda self: closed.append(self))
    code, out, err = bench("--suite", "tiny", "--case", "sage", "--repeats", "3", "--json")
    record = json.loads(out)
    assert (code, record["status"], record["rival"]) == (0, "measured", None), err
    assert record["repeats"] == 3
    assert record["note"].startswith("no rival: NumPy neighbour loader")
    assert record["note"].endswith("gave up: an epoch took more than 0 s")
    assert len(epochs) == after + 1
    assert closed == epochs[:1]


def test_the_rival_is_closed_when_a_case_ends(monkeypatch):
    closed = []
    monkeypatch.setattr(NumpyRival, "close", lambda self: closed.append(self))
    assert bench("--suite", "tiny", "--case", "sage", "--repeats", "1", "--json")[0] == 0
    assert len(closed) == 1
    monkeypatch.setattr(Ours, "epoch", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main_with("--suite", "tiny", "--case", "sage")
    assert len(closed) == 2


def test_a_rival_that_is_not_there_is_said(monkeypatch):
    case = Case(name="sage", dataset=SMALL, options=TINY[0].options, rival="pyg", device="cpu")
    monkeypatch.setattr("graphfm.cli.bench.SUITES", {"tiny": (case,)})
    monkeypatch.setattr("graphfm.experiments.bench.pyg_rival.has_pyg", lambda: False)
    code, out, _ = bench("--suite", "tiny", "--repeats", "1", "--json")
    record = json.loads(out)
    assert (code, record["rival"], record["ratio"]) == (0, None, None)
    assert "install torch_geometric" in record["no_rival"]
