"""Runs networks of the zoo by our samplers and estimators, and by PyG alone."""

import copy
from functools import cache

import torch
from torch_geometric.data import Data

from graphfm.estimators.layer_step import ForwardPass
from graphfm.methods import METHODS
from graphfm.pyg.given import default_call
from graphfm.pyg.guards import uncached
from graphfm.pyg.model import own_model
from graphfm.pyg.watching import Watcher, watching
from graphfm.training.settings import Training
from graphfm.training.trainer import Trainer
from tests.pyg.graphs import make_graph
from tests.pyg.zoo import ZOO

TOLERANCE = 1e-5


@cache
def examined(name):
    """A network of the zoo in evaluation mode, as a backbone, and its graph; examined once."""
    torch.manual_seed(0)
    graph = make_graph(*ZOO[name].data)
    model = wrapped(ZOO[name].make(), graph, ZOO[name].call)
    _stir(model.net)
    return model.eval(), graph


def fresh(name):
    """A copy of a network of the zoo, in training mode, and its graph."""
    model, graph = examined(name)
    model.whole = None
    again = copy.deepcopy(model).train()
    for one in (model, again):
        one.calibrate(graph)
    return again, graph


def _stir(net):
    """Give norms running statistics and weights that are not 0 and 1."""
    for part in net.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
            part.running_mean.uniform_(-0.5, 0.5)
            part.running_var.uniform_(0.5, 2.0)
            torch.nn.init.uniform_(part.weight, 0.5, 1.5)
            torch.nn.init.uniform_(part.bias, -0.5, 0.5)


def wrapped(net, graph, call=None):
    """The network as a backbone for a graph."""
    names = ("edge_weight", "edge_attr", "edge_type")
    data = {n: getattr(graph, n)[:64] for n in names if getattr(graph, n) is not None}
    model = own_model(net, graph.num_features, data, call)
    model.calibrate(graph)
    return model


def trainer_of(model, graph, method, training=None, **options):
    return Trainer(graph, model, METHODS[method](**options), training or Training())


def by_pyg(model, graph, name=None):
    """The outputs of all nodes, by the network alone."""
    call = (ZOO[name].call if name else None) or default_call(model.net)
    data = {n: getattr(graph, n) for n in ("edge_weight", "edge_attr", "edge_type")}
    data = {n: values for n, values in data.items() if values is not None}
    batch = Data(x=graph.x, edge_index=graph.edge_index, num_nodes=graph.num_nodes, **data)
    with uncached(model.net):
        return call(model.net, batch)


def batch_outputs(trainer, seeds, records=True):
    """A batch of these seeds, and its outputs under the trainer's estimator."""
    batch = trainer.method.sampler.sample(seeds, trainer.rng)
    given = trainer.inputs(batch)
    out = trainer.backbone(given.x, given.batch, trainer.method.estimator, ForwardPass(records))
    return batch, out


def gradients(net, out, ids):
    """Gradients of a weighted sum of the outputs of some nodes."""
    weight = torch.cos(torch.arange(out.size(1)) + 0.37 * ids.unsqueeze(1))
    parameters = [p for p in net.parameters() if p.requires_grad]
    found = torch.autograd.grad((out * weight).sum(), parameters, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)]


def gradient_distance(net, out, exact, ids):
    return distance(gradients(net, out, ids), gradients(net, exact, ids))


def distance(found, exact):
    """The largest difference, in units of the largest number above 1."""
    found, exact = ([t] if torch.is_tensor(t) else t for t in (found, exact))
    worst = 0.0
    for one, two in zip(found, exact, strict=True):
        one, two = one.detach(), two.detach()
        assert one.shape == two.shape
        assert one.isfinite().all()
        if two.numel():
            scale = max(1.0, float(two.abs().max()))
            worst = max(worst, float((one - two).abs().max()) / scale)
    return worst


class OnlyInside(Watcher):
    """Stops gradients at rows outside of some nodes, where a history would be read."""

    def __init__(self, findings, inside):
        self.inside = inside
        self.cuts = {cut.place: cut for cut in findings.cuts if cut.deep}

    def enter(self, place, arguments):
        cut = self.cuts.get(place._replace(hop=1))
        if cut is not None and not cut.inner:
            self._detach(cut, arguments)

    def propagate(self, place, arguments):
        cut = self.cuts.get(place)
        if cut is not None and cut.inner:
            self._detach(cut, arguments)

    def _detach(self, cut, arguments):
        for name in cut.deep:
            arguments[name] = self._stopped(arguments[name])

    def _stopped(self, value):
        if not torch.is_tensor(value):
            return tuple(self._stopped(one) for one in value)
        shape = (-1, *[1] * (value.dim() - 1))
        return torch.where(self.inside.view(shape), value, value.detach())


def by_pyg_inside(model, graph, ids, name=None):
    """Outputs of all nodes whose gradients stay inside the nodes `ids`."""
    inside = torch.zeros(graph.num_nodes, dtype=torch.bool).index_fill(0, ids, True)
    with watching(model.net, OnlyInside(model.findings, inside)):
        return by_pyg(model, graph, name)
