"""Passes over the whole graph that training makes between its steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from graphfm.metrics.scores import Metrics
from graphfm.norm import evaluating

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
    backbone, estimator = trainer.backbone, trainer.method.estimator
    with trainer.executing(), evaluating(backbone):
        rows = backbone.whole_pass(trainer.x, trainer.infer.adjacency, estimator.record)
    if trainer.ages is not None:
        trainer.ages.refreshed()
    return rows


def fill_histories(trainer: Trainer) -> None:
    """Refresh the histories before the first step; that is not in the memory of training."""
    trainer.memory.stop()
    trainer.refresh_histories()
    trainer.memory.start()


@torch.no_grad()
def snapshot_gradients(trainer: Trainer) -> None:
    """Give the sampler the training nodes' gradient norms, and rewrite the histories."""
    mask = trainer.graph.train_mask
    rows = refresh_histories(trainer)[mask]
    with evaluating(trainer.backbone):
        logits = trainer.backbone.decode(rows)
    norms = trainer.question.loss.gradient_norms(logits, trainer.graph.y[mask])
    trainer.method.sampler.snapshot(norms)


def evaluate(
    trainer: Trainer, splits: Iterable[str] = ("train", "val", "test")
) -> dict[str, float | None]:
    """Exact scores of the current weights, by split."""
    filled = {split: bool(trainer.graph.mask(split).any()) for split in splits}
    return {s: trainer.score(*trainer.outputs(s)) if filled[s] else None for s in filled}


def every_metric(trainer: Trainer, splits: Iterable[str]) -> dict[str, Metrics]:
    """All metrics of the current weights, of the splits that have nodes."""
    filled = [split for split in splits if bool(trainer.graph.mask(split).any())]
    return {split: trainer.question.all_scores(*trainer.outputs(split)) for split in filled}


def outputs(trainer: Trainer, split: str) -> tuple[Tensor, Tensor]:
    """Exact outputs of the nodes of a split, and their labels."""
    ids = trainer.graph.mask(split).nonzero().squeeze(1)
    with trainer.executing():
        return trainer.infer(trainer.backbone, trainer.x, ids), trainer.graph.y[ids]


def score(trainer: Trainer, logits: Tensor, y: Tensor) -> float | None:
    """The chosen metric; None if there are no nodes or it is not defined for them."""
    return trainer.question.score(logits, y)
