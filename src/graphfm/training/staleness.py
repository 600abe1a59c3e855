"""Measure how stale histories are: the paper's staleness score, and the age of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from graphfm.batch import Batch
from graphfm.estimators.base import Estimator
from graphfm.estimators.layer_step import LayerStep
from graphfm.norm import evaluating

if TYPE_CHECKING:  # the trainer imports this module
    from graphfm.training.trainer import Trainer


@dataclass(frozen=True)
class LayerStaleness:
    """The distance of one layer's history from the exact rows of the whole graph."""

    depth: int  # counted from 1
    score: float  # S^k: mean over nodes of ||exact - believed||
    relative: float  # ||exact - believed||_F / ||exact||_F


@torch.no_grad()
def staleness(trainer: Trainer) -> list[LayerStaleness]:
    """S^k of each layer that has a history, with today's weights in evaluation mode.

    Compared are the rows that the method keeps (`Estimator.history_of`): outputs, aggregates or
    inputs of layers. No state is changed.
    """
    estimator, backbone = trainer.method.estimator, trainer.backbone
    if not estimator.keeps_history:
        return []
    found = list[LayerStaleness]()
    with evaluating(backbone):
        first = backbone.encode(trainer.x.float())
        believed = estimator.believed(first, trainer.graph.degree.float())

        def see(step: LayerStep, agg: Tensor, out: Tensor) -> None:
            depth = step.depth
            if depth in believed:
                exact = {"input": step.h, "aggregate": agg, "output": out}[estimator.history_of]
                kept = estimator.kept_ids(depth)
                rows = slice(None) if kept is None else kept
                found.append(compare(depth, exact[rows], believed[depth][rows]))

        backbone.whole_pass(trainer.x, trainer.infer.adjacency, see)
    return found


def compare(depth: int, exact: Tensor, believed: Tensor) -> LayerStaleness:
    """The staleness of one layer, from its depth (counted from 0), exact and past rows."""
    distance = (exact - believed).norm(dim=1).double()
    return LayerStaleness(
        depth + 1, float(distance.mean()), ratio(float(distance.norm()), float(exact.norm()))
    )


def ratio(error: float, size: float) -> float:
    """error / size, with 0 / 0 = 0."""
    if size == 0:
        return 0.0 if error == 0 else float("inf")
    return error / size


@dataclass(frozen=True)
class Ages:
    """Steps since the rows of one layer's history were last written."""

    mean: float  # over the rows written so far; 0 means the latest step
    max: int
    never: float  # share of the rows that no step has written yet


class AgeMeter:
    """Tracks when each node's row in each layer was last written. Call `saw` after each step."""

    def __init__(
        self,
        estimator: Estimator,
        num_layers: int,
        num_nodes: int,
        device: torch.device | str = "cpu",
        depths: Sequence[int] | None = None,
    ) -> None:
        self.estimator, self.step = estimator, 0
        self.depths = range(num_layers) if depths is None else depths  # the block of each layer
        self.written = torch.zeros(num_layers, num_nodes, dtype=torch.int64, device=device)

    def saw(self, batch: Batch) -> None:
        """Count a step that was taken with this batch."""
        self.step += 1
        for layer, depth in enumerate(self.depths):
            written = self.estimator.written_ids(layer, batch.blocks[depth])
            self.written[layer, written] = self.step

    def refreshed(self) -> None:
        """Mark every row as written by the latest step."""
        self.written.fill_(self.step)

    def state_dict(self) -> dict[str, Tensor]:
        return {"written": self.written}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.written.copy_(state["written"])

    def summary(self, depth: int) -> Ages:
        """The ages of one layer's rows (depth counted from 0) after the last step."""
        kept = self.estimator.kept_ids(depth)
        written = self.written[depth] if kept is None else self.written[depth, kept]
        ages = self.step - written[written > 0]
        if ages.numel() == 0:
            return Ages(0.0, 0, 1.0)
        never = 1 - ages.numel() / written.numel()
        return Ages(float(ages.double().mean()), int(ages.max()), never)
