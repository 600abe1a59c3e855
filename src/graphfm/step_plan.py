"""The plan of a training step, made once before the first step and read by every part.

`training.plan_step` makes the plan. The sampler, the estimator, the trainer, the memory plan and
the bench's floor read it; it does not change while a training runs.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from graphfm.tables.base import TablePlan

# How the features of a batch reach the first layer.
GATHERED = "gathered by the first layer's kernel"
IN_PLACE = "read in place from the feature table"
UNREAD = "not read, because the first layer needs only their known aggregates"
COPIED = "copied row by row"
CPU = torch.device("cpu")


@dataclass(frozen=True, kw_only=True)
class StepPlan:
    """How a step runs. The defaults are a plain step: no kernels, no first hop, no tables."""

    num_layers: int = 0
    device: torch.device = CPU
    kernels: bool = False  # Triton kernels run wherever an operation has one
    first_hop: TablePlan | None = None  # the first layer's aggregates, computed once for all nodes
    features: str = COPIED  # how features reach the first layer
    fused: frozenset[int] = frozenset()  # layers that one kernel aggregates and blends
    first_layer_ahead: bool = False  # its aggregate needs no other step, so it is computed early
    # The largest fan-out beside which kernels read every neighbour from the graph; 0: never.
    whole_up_to: int = 0
    # Layers in which a full batch has more picks than the graph has nodes. Repeated nodes are then
    # removed, so the layer is not fused, except in a last batch that is much smaller.
    crowded: frozenset[int] = frozenset()
    recording_pass: bool = False  # a second pass without dropout writes the histories
    # Why a step is not captured as one CUDA graph; None if it is.
    not_captured: str | None = "nothing was planned"
    tables: Mapping[str, TablePlan] = field(default_factory=dict)  # histories by name
    # The rows that are trained with the network, and the moments that move them; empty: none are.
    learned: Mapping[str, TablePlan] = field(default_factory=dict)
    note: str | None = None  # what a user should know about it

    @property
    def exact_first_hop(self) -> bool:
        return self.first_hop is not None

    @property
    def captured(self) -> bool:
        return self.not_captured is None

    def tell(self, log: logging.Logger) -> None:
        """Log what a user should know before the first step."""
        if self.note is not None:
            log.warning(self.note)
        if not self.captured and self.device.type == "cuda":
            log.info("steps are not captured as CUDA graphs: %s", self.not_captured)

    def explain(self) -> list[str]:
        """Describe in words what runs where, and why a step is not captured if it is not."""
        return [
            f"device: {self.device.type}",
            f"kernels: {'Triton, where an operation has a kernel' if self.kernels else 'PyTorch'}",
            f"first hop: {self._first_hop()}",
            f"features: {self._features()}",
            *([f"learned rows: {self._learned()}"] if self.learned else []),
            f"fused layers: {self._fused()}",
            f"histories: {self._histories()}",
            f"CUDA graph: {'a step is captured' if self.captured else f'no; {self.not_captured}'}",
            *([] if self.note is None else [f"note: {self.note}"]),
        ]

    def _first_hop(self) -> str:
        if not self.num_layers:
            return "none; the network has no graph layers"
        if not self.exact_first_hop:
            return "aggregated in every step"
        ahead = ", looked up while the previous step runs" if self.first_layer_ahead else ""
        return f"aggregated once for all nodes before training, {self.first_hop}{ahead}"

    def _learned(self) -> str:
        how = "by lazy Adam" if len(self.learned) > 1 else "by plain steps"
        return f"{self.learned['rows']}; a step moves those that it has read, {how}"

    def _features(self) -> str:
        return COPIED if self.features == GATHERED and 0 in self.crowded else self.features

    def _fused(self) -> str:
        if not self.num_layers:
            return "none; the network has no graph layers"
        fused, crowded = self.fused - self.crowded, self.fused & self.crowded
        why = f"; not {_layers(crowded)}: more picks than nodes" if crowded else ""
        if not fused:
            return f"none{why or '; every layer runs its hooks one after the other'}"
        return f"{_layers(fused)} of {self.num_layers} (one kernel aggregates and blends){why}"

    def _histories(self) -> str:
        if not self.tables:
            return "none"
        listed = ", ".join(f"{name} {table}" for name, table in self.tables.items())
        second = "; a second pass without dropout writes them" if self.recording_pass else ""
        return f"{listed}{second}"


def _layers(depths: frozenset[int]) -> str:
    """Depths as the numbers of layers, from 1: 1, 2."""
    return ", ".join(str(depth + 1) for depth in sorted(depths))


@dataclass
class Clock:
    """How many steps and epochs a training has taken; estimators may read it.

    A captured step is replayed without Python, so an estimator that reads the clock must not be
    `capturable`.
    """

    step: int = 0
    epoch: int = 0
