"""The settings that say what is asked of the nodes: what to train by and what to choose by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from graphfm.errors import InputError
from graphfm.metrics.names import AUTO, SAME, gain
from graphfm.options import Setting
from graphfm.training.class_weights import as_weights

METRICS = Literal[
    "auto", "accuracy", "micro-f1", "macro-f1", "balanced-accuracy", "roc-auc",
    "average-precision", "r2", "mae", "rmse",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class QuestionSettings:
    """How predictions are judged, by the loss of a step and by the metric of an epoch."""

    metric: Annotated[
        METRICS,
        Setting(
            "What chooses the best epoch: micro-f1 (or accuracy; auto), macro-f1, "
            "balanced-accuracy, roc-auc, average-precision; of a regression r2 (auto), mae, rmse."
        ),
    ] = "auto"
    loss: Annotated[
        Literal["auto", "cross-entropy", "focal", "mse", "mae", "huber"],
        Setting("cross-entropy (auto) or focal; of a regression mse (auto), mae or huber."),
    ] = "auto"
    class_weights: Annotated[
        tuple[str, ...] | None,
        Setting(
            "Weight of classes in the loss: balanced (all count alike), CLASS=WEIGHT,..., or a "
            ".json or .csv file of them; auto: all nodes count alike."
        ),
    ] = None
    label_smoothing: Annotated[
        float, Setting("Share of a label that is spread over all classes.", rare=True)
    ] = 0.0
    focal_gamma: Annotated[
        float, Setting("How little the focal loss counts what is found.", rare=True)
    ] = 2.0
    huber_delta: Annotated[
        float, Setting("Errors beyond it count linearly; in deviations.", rare=True)
    ] = 1.0
    positive: Annotated[
        str | None,
        Setting("Of two classes the one that rankings look for; auto: the rarer.", rare=True),
    ] = None

    def check_question(self) -> None:
        """Refuse values that no graph allows; read the weights if they are in a file."""
        if not 0 <= self.label_smoothing < 1:
            raise InputError(f"label_smoothing is {self.label_smoothing}; expected 0 to below 1")
        if not 0 <= self.focal_gamma <= 100:
            raise InputError(f"focal_gamma is {self.focal_gamma}; expected 0 to 100")
        if not 0 < self.huber_delta <= 1e6:
            raise InputError(f"huber_delta is {self.huber_delta}; expected above 0, at most 1e6")
        for name, value, owner in (("focal_gamma", 2.0, "focal"), ("huber_delta", 1.0, "huber")):
            if getattr(self, name) != value and self.loss != owner:
                raise InputError(f"{name} belongs to the {owner} loss; give loss {owner} too")
        if self.class_weights is not None:
            object.__setattr__(self, "class_weights", as_weights(self.class_weights))
        object.__setattr__(self, "metric", SAME.get(self.metric, self.metric))

    def gain(self, value: float) -> float:
        """A value of the metric, with the sign that makes higher better."""
        return gain(self.metric, value)

    @property
    def lower_is_better(self) -> bool:
        return self.metric != AUTO and self.gain(1.0) < 0
