"""Passes over the whole graph that training makes between its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from graphfm.estimators.layer_step import ForwardPass, LayerStep
from graphfm.layer import GraphLayer
from graphfm.norm import evaluating
from graphfm.training.objective import gradient_norms

if TYPE_CHECKING:  # the trainer imports this module
    from graphfm.training.trainer import Trainer


@torch.no_grad()
def encode_all(trainer: Trainer) -> Tensor:
    """The encoder's output for all nodes, in evaluation mode."""
    with evaluating(trainer.backbone):
        rows: Tensor = trainer.backbone.encode(trainer.x.float())
    return rows


@torch.no_grad()
def refresh_histories(trainer: Trainer) -> Tensor:
    """Rewrite every history with the current weights, from the whole graph.

    Returns the rows that the decoder reads.
    """
    backbone, estimator, forward = trainer.backbone, trainer.method.estimator, ForwardPass()
    block = trainer.infer.adjacency.full_block()

    def output(depth: int, layer: GraphLayer, h: Tensor) -> Tensor:
        agg = layer.aggregate(h, block)
        out = layer.update(agg, block.targets(h, first))
        estimator.record(LayerStep(depth, layer, block, h, first, forward), agg, out)
        return out

    with trainer.executing(), evaluating(backbone):
        first = encode_all(trainer)
        rows = backbone.joined(backbone.walk(first, output))
    if trainer.ages is not None:
        trainer.ages.refreshed()
    return rows


@torch.no_grad()
def snapshot_gradients(trainer: Trainer) -> None:
    """Give the sampler the training nodes' gradient norms, and rewrite the histories."""
    mask = trainer.graph.train_mask
    rows = refresh_histories(trainer)[mask]
    with evaluating(trainer.backbone):
        logits = trainer.backbone.decode(rows)
    trainer.method.sampler.snapshot(gradient_norms(logits, trainer.graph.y[mask]))
