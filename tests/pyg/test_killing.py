"""A training of a user's network that SIGKILL ends anywhere is taken up again, bit for bit."""

import os
import random
import signal

import pytest
import torch
import torch_geometric.nn as pyg

import graphfm
from graphfm import resume
from graphfm.api import start
from graphfm.checkpointing.errors import TrainingStopped
from graphfm.checkpointing.schedule import Interval
from graphfm.checkpointing.signals import StopSignal
from graphfm.runs.own_model import choose_model
from tests.pyg.graphs import make_graph
from tests.pyg.zoo import HIDDEN
from tests.reliability.processes import CONTEXT, PATIENCE
from tests.reliability.runs import StopAfter, differences, files

OPTIONS = {
    "graphfm-ib": {"batch_size": 16, "fanout": (1,)},
    "gas": {"parts": 6, "parts_per_batch": 2, "exact_first_hop": False},
}

EVERY_STEP = Interval.parse("1steps")


def make(in_channels, out_channels, hidden=HIDDEN):
    """What a user writes: batch norm and dropout, so that all random numbers matter."""
    return pyg.GraphSAGE(
        in_channels, hidden, 3, out_channels, dropout=0.4, norm="batch_norm", jk="cat"
    )


class KillAfter(StopSignal):
    """Kills its own process when it was looked at so often: after a step, or after an epoch."""

    def __init__(self, looks):
        super().__init__()
        self.left = looks

    def __call__(self):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return False


def settled(method, epochs, net=make):
    return graphfm.Run.make(
        dataset="in-memory", backbone=choose_model(net), method=method, epochs=epochs,
        device="cpu", staleness_every=2, **OPTIONS[method],
    )  # fmt: skip


def go_on(method, epochs, out, looks):
    """Resume the run, or begin it; it may kill itself."""
    torch.set_num_threads(1)
    if (out / "config.json").exists():
        resume(out, make_graph(), model=make, interval=EVERY_STEP, stop_signal=KillAfter(looks))
    else:
        run = settled(method, epochs)
        start(run, make_graph(), out=out, interval=EVERY_STEP, stop_signal=KillAfter(looks))


def kill_and_go_on(folder, method, epochs, kills, seed):
    whole, parts, rng = folder / "whole", folder / "parts", random.Random(seed)
    go_on(method, epochs, whole, 0)
    for number in range(kills):
        # Between two steps; or, every other time, wherever it is when a checkpoint appears.
        looks = rng.randint(2, 5) if number % 2 == 0 else 0
        process = CONTEXT.Process(target=go_on, args=(method, epochs, parts, looks), daemon=True)
        process.start()
        seen = {path.name for path in parts.glob("checkpoints/*")}
        while not looks and process.is_alive():
            if not seen >= {path.name for path in parts.glob("checkpoints/*")}:
                process.kill()
        process.join(PATIENCE)
        assert process.exitcode == -signal.SIGKILL
    go_on(method, epochs, parts, 0)
    assert differences(whole, parts) == []
    assert files(parts) == files(whole)


@pytest.mark.parametrize("method", OPTIONS)
def test_killed_and_resumed_it_ends_the_same(tmp_path, method):
    kill_and_go_on(tmp_path, method, epochs=4, kills=2, seed=0)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("method", OPTIONS)
def test_killed_often_and_resumed_it_ends_the_same(tmp_path, method, seed):
    kill_and_go_on(tmp_path, method, epochs=12, kills=5, seed=seed)


def test_resumed_with_the_module_itself_it_ends_the_same(tmp_path):
    """A module that was made before the run is given again as it was made."""
    graph = make_graph()

    def module():
        torch.manual_seed(5)
        return make(graph.num_features, graph.num_classes)

    start(settled("gas", 3, module()), graph, out=tmp_path / "whole")
    run = settled("gas", 3, module())
    with pytest.raises(TrainingStopped):
        start(run, graph, out=tmp_path / "parts", stop_signal=StopAfter(4))
    result = resume(tmp_path / "parts", graph, model=module())
    assert differences(tmp_path / "whole", tmp_path / "parts") == []
    assert type(result.module) is pyg.GraphSAGE
