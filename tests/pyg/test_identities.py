"""Two methods that are the same with some setting give the same bits on every network."""

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn
from torch.utils.checkpoint import checkpoint

from graphfm.training.settings import Training
from tests.pyg.graphs import make_graph
from tests.pyg.harness import fresh, trainer_of, wrapped
from tests.pyg.test_exact import UNKNOWN_WEIGHTS
from tests.pyg.zoo import HIDDEN, IN, OUT, ZOO

NEIGHBORS = {"fanout": (2,), "batch_size": 24}
PARTS = {"parts": 6, "parts_per_batch": 2, "exact_first_hop": False}
local = pytest.mark.parametrize("name", [name for name in ZOO if name not in UNKNOWN_WEIGHTS])


def two_steps(name, method, **options):
    """Losses and gradients of two steps, and all that the network holds afterwards."""
    model, graph = fresh(name)
    trainer = trainer_of(model, graph, method, Training(lr=0.01), **options)
    torch.manual_seed(1)
    found = {}
    for number, seeds in enumerate(list(trainer.method.sampler.epoch(trainer.rng))[:2]):
        found[f"loss {number}"] = trainer.step(seeds)
        for name, parameter in model.net.named_parameters():
            if parameter.grad is not None:
                found[f"gradient {number} {name}"] = parameter.grad.clone()
    return found | model.net.state_dict()


def assert_same_bits(name, one, two):
    first = two_steps(name, one[0], **one[1])
    second = two_steps(name, two[0], **two[1])
    assert first.keys() == second.keys()
    different = [key for key in first if not torch.equal(first[key], second[key])]
    assert different == []
    assert all(value.isfinite().all() for value in first.values() if value.is_floating_point())


@local
def test_with_beta_1_graphfm_ib_is_graphsage(name):
    ib = {"beta": (1.0,), "exact_first_hop": False}
    assert_same_bits(name, ("graphsage", NEIGHBORS), ("graphfm-ib", NEIGHBORS | ib))


@local
def test_with_beta_0_graphfm_ob_is_gas(name):
    assert_same_bits(name, ("gas", PARTS), ("graphfm-ob", PARTS | {"beta": (0.0,)}))


class Recomputing(nn.Module):
    """PyG's own way to save memory, and torch's: convolutions run again in the backward pass."""

    def __init__(self, again):
        super().__init__()
        self.again, self.encode = again, nn.Linear(IN, HIDDEN)
        conv, norm = pyg.GENConv(HIDDEN, HIDDEN, aggr="add"), nn.LayerNorm(HIDDEN)
        self.deep = pyg.DeepGCNLayer(conv, norm, nn.ReLU(), dropout=0.0, ckpt_grad=again)
        self.last = pyg.GCNConv(HIDDEN, OUT)

    def forward(self, x, edge_index):
        x = self.deep(self.encode(x), edge_index)
        if self.again:
            return checkpoint(self.last, x, edge_index=edge_index, use_reentrant=False)
        return self.last(x, edge_index)


@pytest.mark.parametrize(("method", "options"), [("graphsage", NEIGHBORS), ("gas", PARTS)])
def test_convolutions_that_are_recomputed_have_the_same_gradients(method, options):
    graph, found = make_graph(), []
    for again in (False, True):
        torch.manual_seed(0)
        net = Recomputing(again)
        trainer = trainer_of(wrapped(net, graph), graph, method, **options)
        trainer.step(next(iter(trainer.method.sampler.epoch(trainer.rng))))
        found.append([p.grad for p in net.parameters()])
    assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))
