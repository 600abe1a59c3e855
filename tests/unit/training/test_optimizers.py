"""Adam, AdamW and SGD: torch's steps, and the same bits after a stop."""

import json

import pytest
import torch

from graphfm import InputError, resume
from graphfm.api import start
from graphfm.checkpointing.errors import TrainingStopped
from graphfm.runs.run import Run
from graphfm.training.optimizers import make_optimizer
from graphfm.training.settings import Training
from tests.reliability.runs import StopAfter, differences

CHOICES = {
    "adam": {},
    "adamw": {},
    "sgd": {},
    "heavy": {"optimizer": "sgd", "momentum": 0.9},
}
TORCHS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


@pytest.fixture(autouse=True)
def _no_picture(monkeypatch):
    """Pictures take longer than these trainings."""
    monkeypatch.setattr("graphfm.runs.curves.draw_curves", lambda *given: given[2].touch())


def chosen(name, **settings):
    return {"optimizer": name, **CHOICES[name], **settings}


@pytest.mark.parametrize("name", CHOICES)
def test_steps_are_torchs(name):
    training = Training(**chosen(name, lr=0.1, weight_decay=0.3))
    ours, theirs = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
    theirs.load_state_dict(ours.state_dict())
    mine = make_optimizer(ours, training, torch.device("cpu"))
    kind, more = TORCHS.get(name, torch.optim.SGD), {}
    if training.optimizer == "sgd":
        more = {"momentum": training.momentum}
    other = kind(theirs.parameters(), lr=0.1, weight_decay=0.3, **more)
    for seed in range(5):
        x = torch.randn(6, 4, generator=torch.Generator().manual_seed(seed))
        for network, optimizer in ((ours, mine), (theirs, other)):
            optimizer.zero_grad()
            network(x).square().sum().backward()
            optimizer.step()
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("schedule", ["plateau", "step"])
@pytest.mark.parametrize("method", ["graphfm-ib", "graphfm-ob"])
@pytest.mark.parametrize("name", CHOICES)
def test_stopped_anywhere_it_ends_the_same(make_graph, tmp_path, name, method, schedule):
    small = {"batch_size": 7, "fanout": (2,)} if method == "graphfm-ib" else {"parts": 6}
    slow = {"lr_patience": 1} if schedule == "plateau" else {"lr_every": 2}
    run = Run.make(
        dataset="in-memory", method=method, hidden=6, epochs=6, lr=0.02, weight_decay=1e-3,
        device="cpu", warmup=1, lr_factor=0.3, schedule=schedule, **slow, **small, **chosen(name),
    )  # fmt: skip
    graph, whole, parts = make_graph(), tmp_path / "whole", tmp_path / "parts"
    counter = StopAfter(10**9)
    start(run, graph, out=whole, stop_signal=counter)
    looks = 10**9 - counter.left
    with pytest.raises(TrainingStopped):
        start(run, graph, out=parts, stop_signal=StopAfter(looks // 3))
    with pytest.raises(TrainingStopped):
        resume(parts, graph, stop_signal=StopAfter(looks // 2))
    resume(parts, graph)
    assert differences(whole, parts) == []
    rates = [json.loads(line)["lr"] for line in (parts / "metrics.jsonl").read_text().splitlines()]
    assert rates[0] == pytest.approx(0.01)
    assert min(rates) < 0.01  # it was lowered on the way


def test_the_optimizer_changes_the_weights(make_graph, tmp_path):
    for name in CHOICES:
        run = Run.make(
            dataset="in-memory", hidden=4, epochs=2, device="cpu", weight_decay=0.1, **chosen(name)
        )
        start(run, make_graph(), out=tmp_path / name)
    names = list(CHOICES)
    for number, one in enumerate(names):
        for other in names[number + 1 :]:
            found = differences(tmp_path / one, tmp_path / other)
            assert "weights.layers.0.weight" in found, (one, other)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"momentum": 0.9}, "momentum belongs to optimizer sgd, but optimizer is adam"),
        ({"optimizer": "sgd", "momentum": 1.0}, "momentum is 1.0; expected 0 or more, and below 1"),
        ({"optimizer": "rmsprop"}, "optimizer is rmsprop; expected adam, adamw or sgd"),
    ],
)
def test_an_optimizer_that_makes_no_sense_is_refused(given, words):
    with pytest.raises(InputError, match=words):
        Training(**given)
