"""A run that was stopped anywhere and taken up again ends with the same bits, by every method."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch

from graphfm import InputError, Method, resume
from graphfm.api import start
from graphfm.backbones.sage import SAGE
from graphfm.checkpointing.errors import TrainingStopped
from graphfm.methods import METHODS
from graphfm.runs.run import Run, backbone_of
from graphfm.samplers.neighbor import NeighborSampler
from tests.reliability.runs import StopAfter, differences

SMALL = {
    "batch_size": 7, "parts": 6, "parts_per_batch": 1, "budget": 20, "coverage": 5, "fanout": (2,),
    "nodes_per_layer": (12,), "compensate": True, "edge_drop": 0.1,
}  # fmt: skip
NETWORK = {"hidden": 6, "layers": 3, "dropout": 0.3, "batch_norm": True}
HISTORIES = {"staleness_every": 2, "history": "bf16"}


@pytest.fixture(autouse=True)
def _no_picture(monkeypatch):
    """Pictures take longer than these trainings."""
    monkeypatch.setattr("graphfm.runs.curves.draw_curves", lambda *given: given[2].touch())


def settled(method, **options):
    """A small run by a method, with all that has a state of its own."""
    takes = Run.make(method=method)
    options = {k: v for k, v in SMALL.items() if k in takes.method_settings} | options
    options |= {k: v for k, v in NETWORK.items() if k in takes.backbone_settings}
    if METHODS[method]().estimator.keeps_history:
        options |= HISTORIES
    return Run.make(
        dataset="in-memory", method=method, backbone=backbone_of(method), device="cpu", epochs=4,
        schedule="cosine", lr=0.05, weight_decay=1e-3, clip=1.0, eval_every=2, **options,
    )  # fmt: skip


def looks(run, graph, out):
    """How often a run may be stopped."""
    counter = StopAfter(10**9)
    start(run, graph, out=out, stop_signal=counter)
    return 10**9 - counter.left


@pytest.mark.parametrize("method", METHODS)
def test_stopped_twice_it_ends_the_same(make_graph, tmp_path, caplog, method):
    graph, run = make_graph(undirected=True), settled(method)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    number = looks(run, graph, whole)
    assert differences(whole, whole) == []
    with pytest.raises(TrainingStopped):
        start(run, graph, out=parts, stop_signal=StopAfter(max(number // 3, 1)))
    with pytest.raises(TrainingStopped):
        resume(parts, graph, stop_signal=StopAfter(max(number // 3, 1)))
    resume(parts, graph)
    assert differences(whole, parts) == []
    assert "the beginning" not in caplog.text  # which would end the same too


@pytest.mark.parametrize("method", ["graphfm-ib", "graphfm-ob", "mvs-gcn"])
def test_stopped_after_every_single_step_it_ends_the_same(make_graph, tmp_path, method):
    graph, run = make_graph(), settled(method, refresh_histories=True, fill_histories=True)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    number = looks(run, graph, whole)
    stops = 0
    try:
        start(run, graph, out=parts, stop_signal=StopAfter(1))
    except TrainingStopped:
        stops = 1
    while not (parts / "result.json").exists():
        try:
            resume(parts, graph, stop_signal=StopAfter(1))
        except TrainingStopped:
            stops += 1
    assert stops == number
    assert differences(whole, parts) == []


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_bits(make_graph, tmp_path, method):
    graph, run = make_graph(), settled(method)
    for name in ("one", "other"):
        start(run, graph, out=tmp_path / name)
    assert differences(tmp_path / "one", tmp_path / "other") == []


@pytest.mark.parametrize("method", ["graphsage", "graphfm-ob"])
def test_another_seed_gives_other_bits(make_graph, tmp_path, method):
    for seed in (0, 1):
        start(settled(method, seed=seed), make_graph(), out=tmp_path / str(seed))
    found = differences(tmp_path / "0", tmp_path / "1")
    assert {"model", "metrics", "random.sampler"} <= set(found)


def test_patience_and_best_epoch_survive(make_graph, tmp_path):
    graph = make_graph()
    run = Run.make(dataset="in-memory", epochs=500, patience=4, lr=0.05, hidden=8, device="cpu")
    start(run, graph, out=tmp_path / "whole")
    epochs = json.loads((tmp_path / "whole" / "result.json").read_text())["epochs"]
    assert epochs < 500
    with pytest.raises(TrainingStopped):
        start(run, graph, out=tmp_path / "parts", stop_signal=StopAfter(2 * (epochs - 2)))
    resume(tmp_path / "parts", graph)
    assert differences(tmp_path / "whole", tmp_path / "parts") == []


@pytest.fixture
def decaying(monkeypatch):
    """The method of `examples/your_own_method.py`: its beta depends on the step number."""
    path = Path(__file__).parents[2] / "examples" / "your_own_method.py"
    spec = importlib.util.spec_from_file_location("your_own_method", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "your_own_method", module)
    spec.loader.exec_module(module)
    return module.decaying


@pytest.mark.parametrize("looks", [1, 6, 14])
def test_an_estimator_of_ones_own_keeps_its_clock_and_its_numbers(
    make_graph, tmp_path, decaying, looks
):
    graph, options = make_graph(undirected=True), {"half_life": 3, "batch_size": 7, "epochs": 4}
    run = Run.make(dataset="in-memory", method=decaying, device="cpu", hidden=6, **options)
    start(run, graph, out=tmp_path / "whole")
    with pytest.raises(TrainingStopped):
        start(run, graph, out=tmp_path / "stopped", stop_signal=StopAfter(looks))
    resume(tmp_path / "stopped", graph, method=decaying)
    assert differences(tmp_path / "whole", tmp_path / "stopped") == []
    (saved,) = (tmp_path / "whole" / "checkpoints").glob("*.json")
    numbers = json.loads(saved.read_text())["state"]["training"]["estimator"]
    assert numbers == {"smallest_beta": 0.1}


class Unused(SAGE):
    """A weight that no output depends on, a frozen one, and a shared, transposed matrix."""

    def __init__(self, in_width, out_width, settings=SAGE.Settings()):
        super().__init__(in_width, out_width, settings)
        self.extra = torch.nn.Parameter(torch.zeros(3))
        self.also = torch.nn.Parameter(torch.randn(4, 3).t())
        self.again = self.also
        self.layers[0].bias.requires_grad_(False)


@pytest.mark.parametrize("looks", [2, 7])
def test_weights_without_a_gradient_are_resumed_too(make_graph, tmp_path, looks):
    options = {"method": "graphfm-ib", "batch_size": 7, "epochs": 3, "hidden": 6, "device": "cpu"}
    run, graph = Run.make(dataset="in-memory", backbone=Unused, **options), make_graph()
    start(run, graph, out=tmp_path / "whole")
    with pytest.raises(TrainingStopped):
        start(run, graph, out=tmp_path / "stopped", stop_signal=StopAfter(looks))
    resume(tmp_path / "stopped", graph, backbone=Unused)
    assert differences(tmp_path / "whole", tmp_path / "stopped") == []


@pytest.mark.parametrize("number", [float("nan"), float("inf"), True, torch.ones(2), "many"])
def test_a_number_that_no_checkpoint_can_hold_is_refused_when_it_is_written(
    make_graph, tmp_path, decaying, number, monkeypatch
):
    estimator = sys.modules["your_own_method"].DecayingMomentum
    monkeypatch.setattr(estimator, "current_beta", lambda self: 0.5)
    record = estimator.record

    def spoil(self, *given):
        record(self, *given)
        self.numbers["mine"] = number

    monkeypatch.setattr(estimator, "record", spoil)
    run = Run.make(dataset="in-memory", method=decaying, device="cpu", hidden=6, epochs=1)
    with pytest.raises(InputError, match="the estimator's number 'mine' is .*expected a finite"):
        start(run, make_graph(), out=tmp_path / "run")


def test_a_sampler_of_ones_own_may_keep_any_finite_numbers(make_graph, tmp_path):
    class Counting(NeighborSampler):
        def prepare(self, adjacency, plan):
            super().prepare(adjacency, plan)
            self.counts = torch.zeros(adjacency.graph.num_nodes)

        def sample(self, seeds, rng):
            self.counts[seeds] += 3
            return super().sample(seeds, rng)

        def state_dict(self):
            return {"counts": self.counts}

    def method():
        return Method(Counting(fanout=(2,), batch_size=7))

    run = Run.make(dataset="in-memory", method=method(), device="cpu", hidden=6, epochs=3)
    start(run, make_graph(), out=tmp_path / "whole")
    with pytest.raises(TrainingStopped):
        start(run, make_graph(), out=tmp_path / "stopped", stop_signal=StopAfter(5))
    resume(tmp_path / "stopped", make_graph(), method=method())
    assert differences(tmp_path / "whole", tmp_path / "stopped") == []
