"""A network is as it was before, but for its weights: also after an error, and after Ctrl-C."""

import copy
import sys

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import degree

from graphfm.pyg.certificate import certify
from graphfm.pyg.given import default_call
from graphfm.training.staleness import staleness
from graphfm.training.whole_graph import refresh_histories
from tests.pyg.graphs import make_graph
from tests.pyg.harness import by_pyg, trainer_of, wrapped
from tests.pyg.zoo import HIDDEN, IN, OUT, ZOO

PICKED = {"fanout": (2,), "batch_size": 24, "exact_first_hop": False}
PARTS = {"parts": 6, "parts_per_batch": 2, "exact_first_hop": False}


FUNCTIONS = {"gcn_norm": gcn_norm, "degree": degree, "checkpoint": checkpoint}


def shape_of(net):
    """All that is on a network except the values of its weights and buffers."""
    found = {}
    for name, part in net.named_modules():
        for key, value in vars(part).items():
            if key.startswith("_flat_weight"):  # of an LSTM: its weights once more
                continue
            if key in ("_parameters", "_buffers"):
                value = {k: None if v is None else (id(v), v.shape) for k, v in value.items()}
            elif isinstance(value, dict):
                value = {k: id(v) for k, v in value.items()}
            elif torch.is_tensor(value):
                value = id(value), value.shape
            found[name, key] = value if isinstance(value, dict | bool | tuple) else repr(value)
    places = [
        (place, name)
        for place, module in sorted(sys.modules.items())
        for name, original in FUNCTIONS.items()
        if getattr(module, "__dict__", {}).get(name) is original
    ]
    return found | {"functions": places}


@pytest.mark.parametrize("name", ZOO)
def test_training_leaves_only_other_weights(name):
    torch.manual_seed(0)
    graph, net = make_graph(*ZOO[name].data), ZOO[name].make()
    run_once(net.eval(), graph)  # fills in lazy widths, and what RGCN finds out when it first runs
    before = shape_of(net.train())
    model = wrapped(net, graph, ZOO[name].call)
    certify(model, IN, {n: getattr(graph, n)[:64] for n in ZOO[name].data})
    model.calibrate(graph)
    trainer = trainer_of(model, graph, "graphfm-ib", **PICKED)
    trainer.step(next(iter(trainer.method.sampler.epoch(trainer.rng))))
    trainer.evaluate()
    assert shape_of(net) == before
    copy.deepcopy(net)  # no tensor of a pass is left in it


def run_once(net, graph):
    with torch.no_grad():
        default_call(net)(net, graph.to_pyg())


class Bomb(pyg.MessagePassing):
    """A convolution that raises an error in the middle of its messages, once it is told to."""

    def __init__(self):
        super().__init__(aggr="mean")
        self.error, self.fuse_after = None, 0

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def message(self, x_j):
        if self.error is not None:
            self.fuse_after -= 1
            if self.fuse_after < 0:
                raise self.error
        return x_j


class Mined(nn.Module):
    """Caches, attention, batch norm and dropout around a convolution that fails."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = pyg.GCNConv(IN, HIDDEN, cached=True), nn.BatchNorm1d(HIDDEN)
        self.bomb, self.second = Bomb(), pyg.TransformerConv(HIDDEN, HIDDEN)
        self.frozen = nn.BatchNorm1d(HIDDEN).eval()
        self.last = pyg.SGConv(HIDDEN, OUT, K=2, cached=True)

    def forward(self, x, edge_index):
        x = nn.functional.dropout(self.norm(self.first(x, edge_index)), 0.3, self.training)
        x = self.second(x, edge_index).relu()
        return self.last(self.frozen(self.bomb(x, edge_index)), edge_index)


ACTIONS = {
    "a step": lambda trainer: trainer.epoch(),
    "evaluation": lambda trainer: trainer.evaluate(),
    "chunks": lambda trainer: trainer.backbone.infer(
        trainer.infer.adjacency, trainer.x, len(trainer.backbone.layers), 20
    ),
    "a refresh": refresh_histories,
    "staleness": staleness,
}  # fmt: skip
METHODS = {
    "graphsage": {"fanout": (2,), "batch_size": 24}, "graphfm-ib": PICKED, "gas": PARTS,
    "graphfm-ob": PARTS,
}  # fmt: skip


@pytest.mark.parametrize("error", [RuntimeError("boom"), KeyboardInterrupt()])
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("method", METHODS)
def test_an_interruption_leaves_no_trace(method, action, error):
    graph, net = make_graph(plain=True), Mined()
    model = wrapped(net, graph)
    trainer = trainer_of(model, graph, method, **METHODS[method])
    trainer.epoch()
    before = shape_of(net)
    net.bomb.error, net.bomb.fuse_after = error, int(action in ("a step", "chunks"))
    kept = action in ("a refresh", "staleness") and not trainer.method.estimator.keeps_history
    if not kept:
        with pytest.raises(type(error)):
            ACTIONS[action](trainer)
    net.bomb.error, net.bomb.fuse_after = None, 0
    assert shape_of(net) == before
    copy.deepcopy(net)
    trainer.epoch()
    trainer.evaluate()


def test_a_probe_that_fails_leaves_no_trace():
    net = Mined()
    before, weights = shape_of(net), copy.deepcopy(net.state_dict())
    net.bomb.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        wrapped(net, make_graph())
    net.bomb.error, net.bomb.fuse_after = None, 0
    assert shape_of(net) == before
    assert all(torch.equal(weights[key], value) for key, value in net.state_dict().items())


def test_a_probe_and_a_certificate_change_no_weight_and_no_random_number():
    net, graph = Mined(), make_graph()
    net.train()
    weights = copy.deepcopy(net.state_dict())
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    model = wrapped(net, graph)
    certify(model, IN, {})
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(weights[key], value) for key, value in net.state_dict().items())


def test_caches_of_the_user_survive():
    net, graph = Mined(), make_graph()
    run_once(net.eval(), graph)
    cache, rows = net.first._cached_edge_index, net.last._cached_x
    assert cache is not None
    model = wrapped(net, graph)
    trainer_of(model, graph, "gas", **PARTS).epoch()
    assert net.first._cached_edge_index is cache
    assert net.last._cached_x is rows
    assert net.first.cached
    assert by_pyg(model, graph).isfinite().all()


def test_hooks_of_the_user_stay_and_run():
    graph, calls = make_graph(), []
    net = Mined()
    net.second.register_forward_hook(lambda part, given, out: calls.append(out.size(0)))
    net.bomb.register_message_forward_hook(lambda part, given, out: None)
    model = wrapped(net, graph)
    calls.clear()
    trainer_of(model, graph, "gas", **PARTS).epoch()
    assert len(calls) >= 3
    assert len(net.second._forward_hooks) == len(net.bomb._message_forward_hooks) == 1


def test_nested_modes_stay():
    """A part that the user has set to evaluation is so again after a probe."""
    net, graph = Mined(), make_graph()
    net.train()
    net.frozen.eval()
    wrapped(net, graph)
    assert net.norm.training
    assert not net.frozen.training
