"""Trainers of every method with histories, and how one is made to continue another."""

import torch

from graphfm import methods
from graphfm.backbones import make_backbone
from graphfm.training.settings import Training
from graphfm.training.trainer import Trainer

NEIGHBOR = {"fanout": (2,), "batch_size": 8}
CLUSTER = {"parts": 5, "parts_per_batch": 2}
CASES = {
    "graphfm-ib": NEIGHBOR,
    "vr-gcn": NEIGHBOR,
    "vr-gcn, split dropout": NEIGHBOR | {"split_dropout": True},
    "gas": CLUSTER,
    "graphfm-ob": CLUSTER,
    "graphfm-delta": CLUSTER,
    "gas, compensated": CLUSTER | {"compensate": True},
    "graphfm-ob, compensated": CLUSTER | {"compensate": True},
    "graphfm-delta, compensated": CLUSTER | {"compensate": True},
}
CLUSTER_CASES = [case for case, options in CASES.items() if "parts" in options]


def trainer_of(graph, case, *, backbone="gcn", first_hop=True, seed=1, training=None, **network):
    torch.manual_seed(seed)
    options = {"layers": 3, "hidden": 8, "dropout": 0.0} | network
    net = make_backbone(backbone, graph.num_features, graph.num_classes, **options)
    net.calibrate(graph)
    make = methods.METHODS[case.split(",")[0]]
    method = make(**CASES[case], exact_first_hop=first_hop)
    return Trainer(graph, net, method, training or Training(seed=seed))


def tables_of(trainer):
    return trainer.method.estimator.histories_by_name()


def rows_of(trainer):
    """Without the sink, which holds nothing."""
    return {name: table.rows[:-1].clone() for name, table in tables_of(trainer).items()}


def copy_state(source, target):
    """Weights, histories, and what the next sample is drawn from; not Adam's moments."""
    target.backbone.load_state_dict(source.backbone.state_dict())
    ours, theirs = tables_of(source), tables_of(target)
    assert ours.keys() == theirs.keys()
    for name, table in ours.items():
        theirs[name].rows.copy_(table.rows)
    target.rng.set_state(source.rng.get_state())


def batch_of(trainer):
    """What a step is given: the same for the same state of the generator."""
    state = trainer.rng.get_state()
    seeds = next(iter(trainer.method.sampler.epoch(trainer.rng)))
    trainer.rng.set_state(state)
    return seeds


def step(trainer, seeds, noise=7):
    trainer.backbone.train()
    torch.manual_seed(noise)
    return trainer.step(seeds)
