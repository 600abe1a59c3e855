"""A small run: whole, and stopped on its way."""

import pytest

from graphfm import resume
from graphfm.api import start
from graphfm.checkpointing.errors import TrainingStopped
from graphfm.runs.run import Run
from tests.reliability.runs import OPTIONS, StopAfter


@pytest.fixture
def no_picture(monkeypatch):
    """Pictures take longer than these trainings."""
    monkeypatch.setattr("graphfm.runs.curves.draw_curves", lambda *given: given[2].touch())


@pytest.fixture
def graph(make_graph):
    return make_graph()


@pytest.fixture
def settled():
    return Run.make(dataset="in-memory", device="cpu", **OPTIONS)


@pytest.fixture
def stopped(graph, settled, tmp_path):
    """A run that was stopped, went on and was stopped again: it has two checkpoints."""
    run = tmp_path / "run"
    with pytest.raises(TrainingStopped):
        start(settled, graph, out=run, stop_signal=StopAfter(4))
    with pytest.raises(TrainingStopped):
        resume(run, graph, stop_signal=StopAfter(2))
    return run


@pytest.fixture
def whole(graph, settled, tmp_path):
    start(settled, graph, out=tmp_path / "whole")
    return tmp_path / "whole"
