"""Gradients of several steps in one, and callbacks that end a training."""

import pytest
import torch

import graphfm
from graphfm import Callback
from graphfm.api import start
from graphfm.checkpointing.errors import TrainingStopped
from graphfm.runs.run import Run, build
from tests.reliability.runs import StopAfter, differences

SMALL = {"hidden": 8, "epochs": 4, "eval_every": 1, "lr": 0.01}


def weights(result):
    return list(result.model.backbone.parameters())


@pytest.mark.parametrize("every", [2, 3, 100])
def test_gathered_steps_are_one_step_on_all_their_nodes(make_graph, every):
    """With all neighbours, `every` batches of 5 nodes have the gradient of one large batch."""
    graph, all_of_them = make_graph(), {"method": "graphsage", "fanout": (100,), "dropout": 0.0}
    settings = {**SMALL, **all_of_them, "optimizer": "sgd", "lr": 0.5, "clip": 0.2}
    small = graphfm.train(graph, batch_size=5, accumulate=every, **settings)
    large = graphfm.train(graph, batch_size=min(5 * every, 20), **settings)
    for p, q in zip(weights(small), weights(large), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)


def test_weights_rest_while_gradients_are_gathered(make_graph):
    run = Run.make(method="graphsage", batch_size=5, accumulate=3, **SMALL)
    trainer = build(run, make_graph())
    batches = iter(trainer.method.sampler.epoch(trainer.rng))
    before = [p.detach().clone() for p in trainer.backbone.parameters()]
    for number in range(1, 4):
        trainer.step(next(batches))
        same = [torch.equal(p, q) for p, q in zip(before, trainer.backbone.parameters())]  # noqa: B905
        assert all(same) == (number < 3)


def test_an_unused_parameter_does_not_move(make_graph):
    class Unused(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = torch.nn.Linear(7, 4), torch.nn.Linear(7, 4)

        def forward(self, x, edge_index):
            return self.used(x)

    network = Unused()
    before = network.unused.weight.detach().clone()
    settings = {"epochs": 2, "optimizer": "adamw", "weight_decay": 0.5, "accumulate": 2}
    graphfm.train(make_graph(), model=network, method="graphsage", batch_size=5, **settings)
    assert torch.equal(network.unused.weight, before)


def test_callbacks_are_told_of_begin_and_end_and_may_stop(make_graph):
    told = []

    class Told(Callback):
        def on_begin(self, records):
            told.append(len(records))

        def on_epoch(self, record, best):
            told.append(record.val)
            return record.epoch == 2

        def on_end(self, score):
            told.append(score.epochs)

    result = graphfm.train(make_graph(), callbacks=[Told()], **{**SMALL, "epochs": 9})
    assert (told[0], told[-1], len(told), result.score.epochs) == (0, 2, 4, 2)


def test_a_training_is_not_stopped_before_its_first_evaluation(make_graph):
    class AtOnce(Callback):
        def on_epoch(self, record, best):
            return True

    settings = {**SMALL, "epochs": 9, "eval_every": 3}
    assert graphfm.train(make_graph(), callbacks=[AtOnce()], **settings).score.epochs == 3


class Counting(torch.optim.SGD):
    """Keeps a number and not a tensor."""

    def step(self, closure=None):
        super().step(closure)
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                state["count"] = state.get("count", 0) + 1
                assert isinstance(state["count"], int)


def counting(parameters):
    return Counting(parameters, lr=0.1)


def test_numbers_of_an_optimizer_are_kept(make_graph, tmp_path):
    run = Run.make(dataset="in-memory", optimizer=counting, hidden=8, epochs=4)
    start(run, make_graph(), out=tmp_path / "whole")
    with pytest.raises(TrainingStopped):
        start(run, make_graph(), out=tmp_path / "cut", stop_signal=StopAfter(4))
    graphfm.resume(tmp_path / "cut", make_graph(), optimizer=counting)
    assert differences(tmp_path / "whole", tmp_path / "cut") == []
