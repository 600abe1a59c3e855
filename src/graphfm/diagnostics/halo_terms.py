"""Proposition 2: what a halo's history row consists of, and the terms that bound its error."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import torch
from torch import Tensor

from graphfm.batch import Targets
from graphfm.errors import InputError
from graphfm.estimators.halo_history import HaloHistory
from graphfm.training.trainer import Trainer


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms of one row of the halo; norms, but for the three rows.

    `staleness` and `bias` weigh the i-th of T updates by beta (1 - beta)^(T - i), `as_printed` by
    the paper's beta (1 - beta)^(i - 1), with its last term.
    """

    node: int
    updates: int  # T: updates since the node was in a batch
    row: Tensor  # the history after the step
    rebuilt: Tensor  # the same from the last row in a batch and the updates since
    rebuilt_as_printed: Tensor
    error: float  # ||history - exact||
    stale_error: float  # ||last row in a batch - exact||: GNNAutoScale's error
    staleness: float
    bias: float
    as_printed: float  # the whole right side

    @property
    def bound(self) -> float:
        return self.staleness + self.bias


@dataclass(frozen=True)
class _Update:
    """One update of a halo's row."""

    row: Tensor  # what the layer makes of the neighbours in the batch
    exact: Tensor  # what it would make of all neighbours
    bias: float  # C_sigma C ||A(in the batch) - A(all)||


class HaloTerms:
    """Watches the first layer's history of GraphFM-OB, whose inputs are features, and so exact.

    The layer must be `update(aggregate)` with a 1-Lipschitz activation, its aggregate a mean, and
    `partial` rescaled (the paper's mean over the neighbours in the batch). Take steps with `step`.
    """

    def __init__(self, trainer: Trainer) -> None:
        estimator = trainer.method.estimator
        if not isinstance(estimator, HaloHistory) or estimator.partial != "rescaled":
            raise InputError(
                f"got a trainer of {type(estimator).__name__}; expected graphfm-ob (HaloHistory) "
                "with partial rescaled"
            )
        if estimator.first_hop is not None:
            raise InputError("the first hop is exact, so nothing is blended; turn it off")
        self.trainer, self.estimator = trainer, estimator
        self.last = dict[int, Tensor]()  # row of each node when it was last in a batch
        self.updates: dict[int, list[_Update]] = defaultdict(list)
        block, nodes = trainer.infer.adjacency.full_block(), trainer.graph.num_nodes
        self.matrix = torch.zeros(nodes, nodes)
        self.matrix.index_put_((block.edges.row, block.edges.col), block.edges.weight, True)
        if block.self_weight is not None:
            self.matrix.diagonal().add_(block.self_weight)

    def step(self, seeds: Tensor) -> list[Terms]:
        """Take a training step; returns the terms of each halo row that a batch has held before."""
        trainer = self.trainer
        block = trainer.method.sampler.sample(seeds, trainer.rng).blocks[0]
        exact = self._outputs(self.matrix)  # with the weights of this step
        inside = torch.zeros(trainer.graph.num_nodes)
        inside[block.dst_ids] = 1
        self._note_updates(block.halo_ids, inside, exact)
        trainer.step(seeds)
        rows = self.estimator.histories[0].pull(torch.arange(exact.size(0)))
        for node in block.dst_ids.tolist():
            self.last[node] = rows[node]
            self.updates[node].clear()
        known = [node for node in block.halo_ids.tolist() if node in self.last]
        return [self._terms(node, rows[node], exact[node]) for node in known]

    @torch.no_grad()
    def _outputs(self, matrix: Tensor) -> Tensor:
        """The first layer's outputs for aggregates by this matrix."""
        x = self.trainer.backbone.encode(self.trainer.x.float())
        targets = Targets(x, x, self.trainer.graph.degree.float())
        return self.trainer.backbone.layers[0].update(matrix @ x, targets)

    @torch.no_grad()
    def _note_updates(self, halo_ids: Tensor, inside: Tensor, exact: Tensor) -> None:
        part = self.matrix * inside
        share = part.sum(dim=1) / self.matrix.sum(dim=1)
        part = torch.where(share > 0, 1 / share, 0.0).unsqueeze(1) * part
        rows = self._outputs(part)
        x = self.trainer.backbone.encode(self.trainer.x.float())
        bias = ((part - self.matrix) @ x).norm(dim=1) * self._largest()
        for node in halo_ids.tolist():
            if int((part[node] > 0).sum()) > self.estimator.threshold:
                self.updates[node].append(_Update(rows[node], exact[node], float(bias[node])))

    def _largest(self) -> Tensor:
        """C_k: the spectral norm of the layer's weight."""
        affine = self.trainer.backbone.layers[0].affine()
        if affine is None:
            raise InputError("the layer's update is not a matrix of the aggregate; use GCN layers")
        largest: Tensor = torch.linalg.matrix_norm(affine.weight, 2)
        return largest

    def _terms(self, node: int, row: Tensor, exact: Tensor) -> Terms:
        beta, updates, last = self.estimator.betas[0], self.updates[node], self.last[node]
        number = len(updates)
        weights = [beta * (1 - beta) ** (number - i) for i in range(1, number + 1)]
        printed = [beta * (1 - beta) ** (i - 1) for i in range(1, number + 1)]
        kept, stale = (1 - beta) ** number, float((last - exact).norm())
        drift = [float((update.exact - exact).norm()) for update in updates]
        bias = [update.bias for update in updates]
        rows = [update.row for update in updates]

        def total(weights: list[float], values: list[float]) -> float:
            return sum(w * value for w, value in zip(weights, values, strict=True))

        def rebuilt(weights: list[float]) -> Tensor:
            return sum((w * r for w, r in zip(weights, rows, strict=True)), start=kept * last)

        final = beta * bias[-1] if number else 0.0  # this step's, in the paper for the second time
        return Terms(
            node=node, updates=number, row=row, rebuilt=rebuilt(weights),
            rebuilt_as_printed=rebuilt(printed), error=float((row - exact).norm()),
            stale_error=stale, staleness=kept * stale + total(weights, drift),
            bias=total(weights, bias),
            as_printed=kept * stale + total(printed, drift) + total(printed, bias) + final,
        )  # fmt: skip
