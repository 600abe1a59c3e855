"""NaN, infinity and overflow stop a training, which names the layer they began in."""

import math
import os
import signal
from dataclasses import replace

import pytest
import torch

from graphfm import Graph, InputError, train
from graphfm.api import start
from graphfm.checkpointing.signals import StopSignal
from graphfm.checkpointing.store import CheckpointStore
from graphfm.training.trainer import Trainer
from tests.reliability.runs import OPTIONS

pytestmark = pytest.mark.usefixtures("no_picture")


def broken_at(step, monkeypatch):
    """A trainer whose second layer explodes at a step, as one with too high a rate would."""
    real = Trainer.step

    def step_and_break(self, seeds):
        if self.touched["steps"] == step:
            with torch.no_grad():
                next(self.backbone.layers[1].parameters()).fill_(math.inf)
        return real(self, seeds)

    monkeypatch.setattr(Trainer, "step", step_and_break)


def test_a_loss_that_is_none_stops_at_the_last_good_checkpoint(graph, tmp_path, monkeypatch):
    broken_at(7, monkeypatch)
    with pytest.raises(InputError) as caught:
        train(graph, out=tmp_path / "run", checkpoint_every="2steps", device="cpu", **OPTIONS)
    assert str(caught.value) == (
        "weights or losses are not finite in epoch 3, first in layer 2 of 3, step 8 (the last "
        "checkpoint before that is kept); lower lr, or set clip"
    )
    newest = CheckpointStore(tmp_path / "run" / "checkpoints").newest()
    assert newest.record["training"]["touched"]["steps"] == 6
    with newest.opened() as stream:
        for name in stream.keys():  # noqa: SIM118
            rows = stream.get_tensor(name)
            assert name.startswith("random") or rows.isfinite().all(), name


def test_the_search_for_the_layer_is_announced(graph, tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO", "graphfm")
    broken_at(7, monkeypatch)
    with pytest.raises(InputError):
        train(graph, out=tmp_path / "run", checkpoint_every="2steps", device="cpu", **OPTIONS)
    before, after = caplog.messages[-2:]
    assert before == (
        "weights or losses are not finite in epoch 3: repeating the steps up to there "
        "to find the layer that broke first"
    )
    assert after == "continuing after epoch 1, step 6"


def test_without_a_folder_the_layer_is_named_too(graph, monkeypatch):
    broken_at(7, monkeypatch)
    with pytest.raises(InputError, match="in epoch 3, first in layer 2 of 3, step 8; lower lr"):
        train(graph, device="cpu", **OPTIONS)


def test_an_encoder_is_named_as_such(graph, monkeypatch):
    real = Trainer.step

    def step(self, seeds):
        with torch.no_grad():
            next(self.backbone.encode.parameters()).fill_(math.nan)
        return real(self, seeds)

    monkeypatch.setattr(Trainer, "step", step)
    with pytest.raises(InputError, match="the loss is nan in epoch 1, first in the encoder, step"):
        train(graph, device="cpu", backbone="gcnii", epochs=2)


def test_a_layer_that_breaks_beyond_the_batch_is_named():
    """Only rows of a halo overflow in the first layer; the second reads them."""
    ids = torch.arange(60)
    torch.manual_seed(0)
    x = torch.randn(60, 400)
    x[1:25] = 7e37
    edges = torch.stack([torch.zeros(24, dtype=torch.int64), ids[1:25]])
    masks = {f"{split}_mask": ids % 3 == i for i, split in enumerate(("train", "val", "test"))}
    star = Graph.from_edges(edges, x, ids % 3, undirected=True, **masks)
    options = {"layers": 3, "hidden": 64, "dropout": 0.0, "parts": 6, "partition": "random"}
    options |= {"parts_per_batch": 4, "lr": 0.01, "schedule": "constant"}
    with pytest.raises(InputError, match="first in layer 1 of 3"):
        train(star, backbone="gcn", method="gas", epochs=3, device="cpu", **options)


def broken_once(monkeypatch, search=lambda: None):
    """A fault at step 5 that does not come again; `search` is called at every step after it."""
    real, taken = Trainer.step, []

    def step_and_break(self, seeds):
        taken.append(self.touched["steps"])
        if len(taken) == 6:
            with torch.no_grad():
                next(self.backbone.layers[1].parameters()).fill_(math.inf)
        elif len(taken) > 6:  # the second epoch has ended with the fault
            search()
        return real(self, seeds)

    monkeypatch.setattr(Trainer, "step", step_and_break)
    return taken


@pytest.mark.parametrize("out", ["run", None])
def test_the_search_for_the_layer_ends_with_the_epoch_of_the_fault(
    graph, tmp_path, monkeypatch, out
):
    taken, out = broken_once(monkeypatch), out and tmp_path / out
    with pytest.raises(InputError, match=r"in epoch 2; lower lr"):
        train(graph, out=out, device="cpu", **(OPTIONS | {"epochs": 1000, "patience": 0}))
    again = taken[taken.index(0, 1) :]
    assert again == list(range(len(again)))
    assert taken[: len(again)] == again  # as many steps as to the end of that epoch


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_search_for_the_layer(graph, settled, tmp_path, monkeypatch, number):
    taken = broken_once(monkeypatch, lambda: os.kill(os.getpid(), number))
    with pytest.raises(InputError, match=r"is nan in epoch 2; lower lr"):
        start(settled, graph, out=tmp_path / "run", stop_signal=StopSignal())
    assert taken[-2:] == [taken[-2], 0]  # not even its first step was finished


def test_a_search_without_a_folder_is_interrupted_too(graph, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    broken_once(monkeypatch, interrupt)
    with pytest.raises(InputError, match=r"is nan in epoch 2; lower lr"):
        train(graph, device="cpu", **OPTIONS)


OVERFLOW = "the squares of the gradients are too large for float32, so weights stop moving in epoch"


def scaled(graph, factor):
    return replace(graph, x=graph.x * factor)


@pytest.mark.parametrize("out", ["run", None])
@pytest.mark.parametrize("every", ["1steps", "auto"])
def test_squares_of_gradients_that_overflow_stop_the_training(graph, tmp_path, out, every):
    out, options = out and tmp_path / out, OPTIONS | {"checkpoint_every": every, "device": "cpu"}
    with pytest.raises(InputError) as caught:
        train(scaled(graph, 1e36), out=out, **options)
    assert str(caught.value) == (
        f"{OVERFLOW} 1; scale the features (to about 1; docs/reliability.md)"
    )
    assert list(tmp_path.iterdir()) == []  # there was nothing yet that is worth keeping


def test_no_checkpoint_is_written_of_squares_that_overflow(graph, tmp_path, monkeypatch):
    real = Trainer.step

    def step_and_overflow(self, seeds):
        loss = real(self, seeds)
        if self.touched["steps"] == 7:
            next(iter(self.optimizer.state.values()))["exp_avg_sq"].fill_(math.inf)
        return loss

    monkeypatch.setattr(Trainer, "step", step_and_overflow)
    with pytest.raises(InputError) as caught:
        train(graph, out=tmp_path / "run", checkpoint_every="1steps", device="cpu", **OPTIONS)
    assert str(caught.value).startswith(f"{OVERFLOW} 3 (the last checkpoint before that is kept")
    newest = CheckpointStore(tmp_path / "run" / "checkpoints").newest()
    assert newest.record["training"]["touched"]["steps"] == 6
