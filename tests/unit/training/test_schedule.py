"""Learning rates by epoch: warm-up, steps and plateaus."""

import pytest
import torch

from graphfm import Callback, InputError
from graphfm.api import start
from graphfm.runs.run import Run
from graphfm.training.schedule import Schedule, plateaus
from graphfm.training.settings import Training


def test_a_warm_up_grows_evenly_and_the_schedule_begins_after_it():
    for schedule in ("constant", "cosine", "step", "plateau"):
        whole = Training(epochs=13, schedule=schedule, warmup=3)
        plain = Training(epochs=10, schedule=schedule)
        assert [whole.factor(epoch) for epoch in range(3)] == [0.25, 0.5, 0.75]
        assert [whole.factor(epoch + 3) for epoch in range(11)] == [
            plain.factor(epoch) for epoch in range(11)
        ]


def test_step_has_its_own_length_and_factor():
    step = Training(schedule="step", lr_every=4, lr_factor=0.1)
    assert [step.factor(epoch) for epoch in (0, 3, 4, 8)] == pytest.approx([1, 1, 0.1, 0.01])


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([], 0),
        ([0.1, 0.2, 0.3, 0.4], 0),
        ([0.5, 0.5], 0),
        ([0.5, 0.5, 0.5], 1),  # equal is not better
        ([0.5, 0.4, 0.4, 0.4, 0.4], 2),  # each reduction is given as many epochs again
        ([0.5, 0.4, 0.6, 0.5], 0),  # a better score starts the count again
        ([0.5, None, 0.4], 1),  # epochs without an evaluation pass
        ([0.5, None, None], 0),  # but nothing is decided in them
    ],
)
def test_plateaus_are_counted(scores, expected):
    assert plateaus(scores, Training(schedule="plateau", lr_patience=2)) == expected


def test_no_plateau_is_seen_in_the_warm_up():
    training = Training(schedule="plateau", lr_patience=2, warmup=4)
    assert plateaus([0.5] * 5, training) == 0
    assert plateaus([0.5] * 6, training) == 1


def test_plateaus_reduce_as_torch_does():
    """Torch waits for one epoch more than its patience, and counts evaluations."""
    scores = torch.rand(60, generator=torch.Generator().manual_seed(1)).tolist()
    training = Training(schedule="plateau", lr_patience=4, lr_factor=0.3, lr=0.1)
    rates = []
    for kind in ("ours", "torch"):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
        ours = Schedule(optimizer, training) if kind == "ours" else None
        theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, "max", factor=0.3, patience=3, threshold=0
        )
        found = []
        for number, score in enumerate(scores, start=1):
            theirs.step(score) if ours is None else ours.look(scores[:number])
            found.append(optimizer.param_groups[0]["lr"])
        rates.append(found)
    assert rates[0] == pytest.approx(rates[1])
    assert rates[0][-1] < 0.01


def test_a_training_on_a_plateau_lowers_its_rate(make_graph, tmp_path):
    run = Run.make(
        dataset="in-memory", epochs=8, schedule="plateau", lr_patience=1, lr=1e-9, hidden=4,
        device="cpu", warmup=2,
    )  # fmt: skip
    start(run, make_graph(), callbacks=[seen := Rates()], out=tmp_path / "run")
    assert seen.rates[:2] == pytest.approx([1e-9 / 3, 2e-9 / 3])
    assert seen.rates[2:] == pytest.approx([1e-9 * 0.5**n for n in range(6)])  # no score improves


class Rates(Callback):
    """Keeps the learning rate of each epoch."""

    def __init__(self):
        self.rates = []

    def on_epoch(self, record, best):
        self.rates.append(record.lr)

    def on_best(self, backbone):
        pass


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"warmup": -1}, "warmup is -1; expected 0 or more"),
        ({"warmup": 5, "epochs": 5}, "warmup is 5; expected fewer than the 5 epochs"),
        ({"schedule": "step", "lr_every": 0}, "lr_every is 0; expected 1 or more"),
        ({"schedule": "plateau", "lr_patience": 0}, "lr_patience is 0; expected 1 or more"),
        ({"schedule": "step", "lr_factor": 1.0}, "lr_factor is 1.0; expected above 0 and below 1"),
        ({"lr_every": 5}, "lr_every belongs to schedule step, but schedule is cosine"),
        ({"schedule": "step", "lr_patience": 5}, "lr_patience belongs to schedule plateau"),
        ({"schedule": "constant", "lr_factor": 0.1}, "belongs to schedule step or plateau"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(given, words):
    with pytest.raises(InputError, match=words):
        Training(**given)
