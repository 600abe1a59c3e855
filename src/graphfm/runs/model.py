"""A trained network, ready for any graph with the same features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from graphfm.backbones.base import Backbone, Tell, tell_nobody
from graphfm.backbones.ending import Ending, embedding, outputs
from graphfm.data.graph import SPLITS, Graph
from graphfm.data.graph.labels import labelled
from graphfm.errors import InputError, known_name
from graphfm.metrics.names import CLASSES, LABELS, REGRESSION, names_for
from graphfm.metrics.report import report
from graphfm.metrics.scores import LAST, Metrics, all_scores
from graphfm.runs.node_choice import Nodes, by_number, num_rows
from graphfm.training.inference import LayerwiseInference, gathered
from graphfm.training.objective import probabilities
from graphfm.training.trainer import Trainer

WORDS = {CLASSES: "classes", LABELS: "labels", REGRESSION: "targets"}
ALL = "all"  # every node with a label


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A trained network with the meaning of its outputs."""

    backbone: Backbone
    num_features: int
    num_classes: int  # or labels, or targets of a regression
    multi_label: bool
    class_names: tuple[str, ...] | None = None
    metric: str = "micro-f1"  # by which its epoch was chosen
    positive: int = LAST  # of two classes the one that rankings look for
    # Of a regression: mean and deviation of each target, in which the network's outputs are.
    center: tuple[float, ...] | None = None
    scale: tuple[float, ...] | None = None

    @classmethod
    def of(cls, trainer: Trainer) -> Model:
        """The model of a training that has ended."""
        graph, question = trainer.graph, trainer.question
        return cls(
            backbone=trainer.backbone,
            num_features=graph.num_features,
            num_classes=graph.num_classes,
            multi_label=graph.multi_label,
            class_names=graph.class_names,
            **question.to_json(),
        )

    @property
    def task(self) -> str:
        """What it was trained for: "classes" (one per node), "labels" (many) or "regression"."""
        if self.center is not None:
            return REGRESSION
        return LABELS if self.multi_label else CLASSES

    @property
    def node_rows(self) -> str | None:
        """The kind of rows that its network reads beside features; None without any."""
        rows = self.backbone.node_rows
        return None if rows is None else rows.kind

    @property
    def module(self) -> nn.Module:
        """The network itself: the user's own module, if it was trained as a model."""
        own = getattr(self.backbone, "net", None)
        return own if isinstance(own, nn.Module) else self.backbone

    def predict(self, graph: Graph, nodes: Nodes = None) -> Tensor:
        """[num_nodes, num_classes] exact probabilities, on the graph's device.

        Of a regression: [num_nodes, num_targets] values, on the scale of the targets. `nodes` are
        the numbers of the nodes to predict; without them all nodes are.
        """
        ids = by_number(graph, nodes)
        return gathered(self.predictions(graph, ids), num_rows(graph, ids))

    def embed(self, graph: Graph, layer: int | None = None, nodes: Nodes = None) -> Tensor:
        """[num_nodes, width] exact rows of a layer, on the graph's device.

        Layer 0 is what the first graph layer reads (features, or those that an encoder has made of
        them), k is the output of the k-th graph layer, and negative numbers count from the last.
        Without one they are the last hidden rows, which the network's last matrix reads.
        """
        ids = by_number(graph, nodes)
        return gathered(self.embeddings(graph, layer, ids), num_rows(graph, ids))

    def predictions(
        self, graph: Graph, ids: Tensor | None = None, tell: Tell = tell_nobody
    ) -> Iterator[Tensor]:
        """Yield what `predict` returns, one chunk of nodes at a time."""
        parts = self._parts(graph, outputs(self.backbone), ids, tell)
        if self.task == REGRESSION:
            return map(self._scaled, parts)
        return (probabilities(logits, self.multi_label) for logits in parts)

    def embeddings(
        self,
        graph: Graph,
        layer: int | None = None,
        ids: Tensor | None = None,
        tell: Tell = tell_nobody,
    ) -> Iterator[Tensor]:
        """Yield what `embed` returns, one chunk of nodes at a time."""
        return self._parts(graph, embedding(self.backbone, layer), ids, tell)

    def evaluate(self, graph: Graph, splits: Sequence[str] = SPLITS) -> dict[str, float | None]:
        """The metric of the training in each split; None where a split is empty."""
        found = self.metrics(graph, splits)
        return {s: None if not found[s] else found[s][self.metric] for s in splits}

    def metrics(self, graph: Graph, splits: Sequence[str] = SPLITS) -> dict[str, Metrics]:
        """Every metric of the task, by split; empty where a split is."""
        outputs = self._scored(graph)
        return {split: self._metrics(outputs, graph, graph.mask(split)) for split in splits}

    def report(self, graph: Graph, split: str | None = None) -> dict[str, Any]:
        """All metrics of all splits, and of one: by class, by degree, confusion, calibration.

        `split` is "train", "val", "test" or "all" (every node with a label); without one it is the
        last of the three that has nodes, or else all.
        """
        outputs = self._scored(graph)
        if split is None:
            filled = [name for name in SPLITS if bool(graph.mask(name).any())]
            split = filled[-1] if filled else ALL
        known_name("split", split, (*SPLITS, ALL))
        chosen = labelled(graph.y) if split == ALL else graph.mask(split)
        if not bool(chosen.any()):
            raise InputError(f"the graph has no {split} nodes; choose another split, or all")
        metrics = {name: self._metrics(outputs, graph, graph.mask(name)) for name in SPLITS}
        if split == ALL:
            metrics[ALL] = self._metrics(outputs, graph, chosen)
        y, degree = graph.y[chosen], graph.degree[chosen]
        detail = report(self.task, outputs[chosen], y, degree, self.positive)
        positive = None
        if self.task == CLASSES and self.num_classes == 2:
            positive = (self.class_names or ("0", "1"))[self.positive]
        chosen_by = {"metric": self.metric, "positive": positive}
        return {**chosen_by, "metrics": metrics, "split": split, **detail}

    def _metrics(self, outputs: Tensor, graph: Graph, mask: Tensor) -> Metrics:
        if not bool(mask.any()):
            return {}
        names = names_for(self.task)
        return all_scores(names, self.task, outputs[mask], graph.y[mask], self.positive)

    def _scored(self, graph: Graph) -> Tensor:
        """The outputs for a graph whose labels are of the same kind as those of the training."""
        if graph.num_classes == 0:
            raise InputError("the graph has no labels to score by; use predict")
        if (graph.num_classes, graph.task) != (self.num_classes, self.task):
            raise InputError(
                f"the graph has {graph.num_classes} {WORDS[graph.task]}, but the model was "
                f"trained on {self.num_classes} {WORDS[self.task]}"
            )
        if None not in (names := (graph.class_names, self.class_names)) and names[0] != names[1]:
            raise InputError("the graph's classes have other names than those of the model")
        return self._outputs(graph)

    def _outputs(self, graph: Graph) -> Tensor:
        """Logits of classes, or values of a regression."""
        parts = self._parts(graph, outputs(self.backbone))
        return gathered(map(self._scaled, parts), graph.num_nodes)

    def _parts(
        self,
        graph: Graph,
        ending: Ending,
        ids: Tensor | None = None,
        tell: Tell = tell_nobody,
    ) -> Iterator[Tensor]:
        if graph.num_features != self.num_features:
            raise InputError(
                f"the graph has {graph.num_features} features per node, but "
                f"the model was trained on {self.num_features}"
            )
        backbone = self.backbone.to(graph.device)
        infer = LayerwiseInference(backbone.adjacency(graph), tell=tell)
        return infer.parts(backbone, ending, ids=ids)

    def _scaled(self, rows: Tensor) -> Tensor:
        """Outputs on the scale of the targets, if they are those of a regression."""
        if self.center is None or self.scale is None:
            return rows
        center, scale = (torch.tensor(v, device=rows.device) for v in (self.center, self.scale))
        return rows.float() * scale + center
