"""A trained network, ready for any graph with the same features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from graphfm.backbones.base import Backbone
from graphfm.data.graph import Graph
from graphfm.errors import InputError
from graphfm.training.inference import LayerwiseInference
from graphfm.training.objective import probabilities, scores


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A trained network with the meaning of its outputs."""

    backbone: Backbone
    num_features: int
    num_classes: int
    multi_label: bool
    class_names: tuple[str, ...] | None = None

    def predict(self, graph: Graph) -> Tensor:
        """[num_nodes, num_classes] exact probabilities of every node, on the graph's device."""
        return probabilities(self._logits(graph), self.multi_label)

    def evaluate(
        self, graph: Graph, splits: Sequence[str] = ("train", "val", "test")
    ) -> dict[str, float | None]:
        """Micro-F1 of each split; None where a split is empty."""
        if graph.num_classes == 0:
            raise InputError("the graph has no labels to score by; use predict")
        if (graph.num_classes, graph.multi_label) != (self.num_classes, self.multi_label):
            raise InputError(
                f"the graph has {_labels(graph.num_classes, graph.multi_label)}, but "
                f"the model was trained on {_labels(self.num_classes, self.multi_label)}"
            )
        if None not in (names := (graph.class_names, self.class_names)) and names[0] != names[1]:
            raise InputError("the graph's classes have other names than those of the model")
        return scores(self._logits(graph), graph, tuple(splits))

    def _logits(self, graph: Graph) -> Tensor:
        if graph.num_features != self.num_features:
            raise InputError(
                f"the graph has {graph.num_features} features per node, but "
                f"the model was trained on {self.num_features}"
            )
        backbone = self.backbone.to(graph.device)
        return LayerwiseInference(backbone.adjacency(graph))(backbone)


def _labels(num_classes: int, multi_label: bool) -> str:
    return f"{num_classes} {'labels' if multi_label else 'classes'}"
