"""Measure how far mini-batch gradients are from the full-batch gradient."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice, repeat
from statistics import fmean

import torch
from torch import Tensor, nn

from graphfm.backbones.base import Backbone
from graphfm.batch import Batch
from graphfm.errors import InputError
from graphfm.estimators.exact import Exact
from graphfm.norm import without_noise
from graphfm.samplers.full import FullSampler
from graphfm.step_plan import StepPlan
from graphfm.training.objective import as_mean, weighted_loss
from graphfm.training.staleness import ratio
from graphfm.training.trainer import Trainer


@dataclass(frozen=True)
class LayerGradient:
    """The gradient error of one part of the network, as means over batches."""

    name: str  # "encode", "layer 1", ..., "decode"
    relative: float  # ||batch - full|| / ||full||
    cosine: float  # of the angle between the two; 0 where either is zero
    bias: float  # ||mean of the batches - full|| / ||full||: what averaging does not remove


def gradient_error(trainer: Trainer, batches: int | None = None) -> list[LayerGradient]:
    """Compare the gradients of an epoch's batches, or of `batches` batches, with the exact one.

    Every batch reads the current histories, and dropout is off on both sides. No state is changed:
    weights, their `.grad`, histories, batch norm and random states are as before.
    """
    if batches is not None and batches < 1:
        raise InputError(f"batches is {batches}; expected 1 or more")
    groups = _parameters(trainer.backbone)
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in groups}
    sums = dict[str, Tensor]()
    with _as_in_training(trainer):
        exact = _gradients(_full_loss(trainer), groups)
        for batch in _batches(trainer, batches):
            with _histories_kept(trainer):
                totals = trainer.totals.clone()
                found = _gradients(trainer.batch_loss(batch), groups)
                trainer.totals.copy_(totals)
            for name, values in measured.items():
                values.append(_compare(found[name], exact[name]))
                sums[name] = sums[name] + found[name] if name in sums else found[name]
    return [
        LayerGradient(
            name,
            relative=fmean(error for error, _ in values),
            cosine=fmean(cos for _, cos in values),
            bias=_compare(sums[name] / len(values), exact[name])[0],
        )
        for name, values in measured.items()
    ]


def exact_gradient(trainer: Trainer) -> Tensor:
    """The full-batch gradient at the current weights, as one vector in double precision.

    Dropout is off. No state is changed.
    """
    groups = _parameters(trainer.backbone)
    with _as_in_training(trainer):
        return torch.cat(list(_gradients(_full_loss(trainer), groups).values()))


def _parameters(backbone: Backbone) -> dict[str, Sequence[nn.Parameter]]:
    """The parameters of each part of the network that has any."""
    named: list[tuple[str, nn.Module]] = [("encode", backbone.encode)]
    named += [(f"layer {number}", layer) for number, layer in enumerate(backbone.layers, 1)]
    named += [("decode", backbone.decode)]
    groups = {name: [p for p in part.parameters() if p.requires_grad] for name, part in named}
    return {name: group for name, group in groups.items() if group}


def _full_loss(trainer: Trainer) -> Tensor:
    graph, sampler = trainer.graph, FullSampler()
    sampler.prepare(trainer.infer.adjacency, StepPlan(num_layers=len(trainer.backbone.layers)))
    logits = trainer.backbone(trainer.x.float(), sampler.batch, Exact())
    weight = as_mean(graph.train_mask.float())
    return weighted_loss(logits, graph.y, weight, trainer.question.loss)


def _batches(trainer: Trainer, number: int | None) -> Iterator[Batch]:
    sampler, rng = trainer.method.sampler, trainer.rng
    epochs = chain.from_iterable(sampler.epoch(rng) for _ in repeat(None))
    for seeds in sampler.epoch(rng) if number is None else islice(epochs, number):
        yield sampler.sample(seeds, rng)


def _gradients(loss: Tensor, groups: dict[str, Sequence[nn.Parameter]]) -> dict[str, Tensor]:
    """The gradient of each group of parameters, as one vector in double precision."""
    parameters = list(chain.from_iterable(groups.values()))
    found = iter(torch.autograd.grad(loss, parameters, materialize_grads=True))
    return {
        name: torch.cat([next(found).double().flatten() for _ in group])
        for name, group in groups.items()
    }


def _compare(found: Tensor, exact: Tensor) -> tuple[float, float]:
    """Relative error and cosine of a gradient against the exact one."""
    size, sizes = float(exact.norm()), float(exact.norm() * found.norm())
    return ratio(float((found - exact).norm()), size), float(found @ exact) / sizes if sizes else 0


@contextmanager
def _as_in_training(trainer: Trainer) -> Iterator[None]:
    """Set training mode without noise; afterwards restore modes and random states."""
    modes = [(part, part.training) for part in trainer.backbone.modules()]
    state, device = trainer.rng.get_state(), trainer.graph.device
    trainer.backbone.train()
    try:
        with (
            trainer.executing(),
            torch.random.fork_rng([device] if device.type == "cuda" else []),
            without_noise(trainer.backbone),
        ):
            yield
    finally:
        trainer.rng.set_state(state)
        for part, training in modes:
            part.training = training


@contextmanager
def _histories_kept(trainer: Trainer) -> Iterator[None]:
    """Undo whatever a pass writes to the histories."""
    tables = trainer.method.estimator.tables.values()
    before = [table.rows.clone() for table in tables]
    try:
        yield
    finally:
        for table, rows in zip(tables, before, strict=True):
            table.rows.copy_(rows)
