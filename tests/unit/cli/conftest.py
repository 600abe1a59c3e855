"""A folder to work in, a run that several tests read, and work that takes no time."""

import logging
import shutil
from pathlib import Path

import pytest

from graphfm.experiments.bench.case import Case
from graphfm.experiments.bench.machine import COPIED
from graphfm.experiments.outcome import FINISHED, Outcome
from graphfm.training.callbacks import Score
from tests.unit.cli.benching import BROKEN, SMALL, TINY
from tests.unit.cli.commands import TRAIN, Ended, graphfm


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    return tmp_path


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> tuple[Path, Ended]:
    """A run, and what the command that made it printed."""
    out = tmp_path_factory.mktemp("trained") / "run"
    return out, graphfm(*TRAIN, "--out", out, "--json")


@pytest.fixture
def run(trained, here) -> Path:
    """A copy of the run that a test may damage."""
    return shutil.copytree(trained[0], here / "run")


@pytest.fixture
def fake(monkeypatch) -> dict[str, str | BaseException]:
    """No training: cells end as this says, by label."""
    ends: dict[str, str | BaseException] = {}

    def run_cell(cell, fingerprint, scratch) -> Outcome:
        end = ends.get(cell.label, FINISHED)
        if isinstance(end, BaseException):
            raise end
        if end != FINISHED:
            return Outcome(status=end, error="it does not fit; take another")
        test = 0.5 + cell.run.training.seed / 10
        return Outcome(
            status=FINISHED,
            score=Score(
                val=0.6, test=test, best_epoch=1, epochs=2, seconds_per_epoch=0.1,
                seconds_to_best=0.2, prepare_seconds=0.1, nodes_per_step=10.0,
                edges_per_step=20.0, peak_bytes=2**28,
            ),
        )  # fmt: skip

    monkeypatch.setattr("graphfm.experiments.compare.run.run_in_child", run_cell)
    return ends


@pytest.fixture(autouse=True)
def level_of_the_log():
    """A command sets it for its process, and here other tests follow."""
    yield
    logging.getLogger("graphfm").setLevel(logging.NOTSET)


@pytest.fixture
def tiny_suites(monkeypatch):
    """A suite of seconds, a small copy for the bandwidth, and no PyG whatever is installed."""
    suites = {"tiny": TINY, "broken": (TINY[1], BROKEN, TINY[2])}
    suites["gpu"] = (Case(name="gpu", dataset=SMALL, device="cuda"),)
    monkeypatch.setattr("graphfm.cli.bench.SUITES", suites)
    monkeypatch.setitem(COPIED, "cpu", 1 << 20)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr("graphfm.experiments.bench.case.has_pyg", lambda: False)
