"""Trainers of the neighbour methods, one pass of them, and what their histories hold."""

import copy
import inspect

import torch

from graphfm import methods
from graphfm.backbones import BACKBONES, make_backbone
from graphfm.training.settings import Training
from graphfm.training.trainer import Trainer

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
GRAPH_BACKBONES = sorted(set(BACKBONES) - {"mlp", "sign", "sgc"})
HISTORY = ["graphfm-ib", "vr-gcn"]


def make_method(name, **options):
    """The method without the exact first hop: every layer is sampled, every layer has a past."""
    function = methods.METHODS[name]
    if "exact_first_hop" in inspect.signature(function).parameters:
        options["exact_first_hop"] = False
    return function(**options)


def network(graph, name, **options):
    torch.manual_seed(1)
    settings = {"hidden": 8, "layers": 2, "dropout": 0.0} | options
    known = BACKBONES[name].Settings.__dataclass_fields__
    settings = {key: value for key, value in settings.items() if key in known}
    backbone = make_backbone(name, graph.num_features, graph.num_classes, **settings)
    backbone.calibrate(graph)
    return backbone


def make_trainer(graph, backbone, name, **options):
    options = {"batch_size": 8} | options
    training, method = Training(lr=0.02, seed=4), make_method(name, **options)
    method.sampler.starts_at_training_nodes = False  # these steps begin anywhere
    return Trainer(graph, copy.deepcopy(backbone), method, training)


def history(trainer, depth):
    """Every node's row of one layer's history."""
    return trainer.method.estimator.histories[depth].pull(torch.arange(trainer.graph.num_nodes))


def fill(trainer, depth, values):
    ids = torch.arange(trainer.graph.num_nodes)
    trainer.method.estimator.histories[depth].push(ids, values)


def forward(trainer, seeds, seed=0, x=None):
    x = trainer.x if x is None else x
    batch = trainer.method.sampler.sample(seeds, torch.Generator().manual_seed(seed))
    return trainer.backbone(x[batch.input_ids], batch, trainer.method.estimator)
