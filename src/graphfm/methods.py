"""Every training method, as a sampler and an estimator. Start reading here.

The sampler says which nodes and edges a step sees; the estimator says how a layer's output is
computed from what it sees. Backbones know neither, so any method runs on any of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from graphfm.estimators.base import Estimator, Exact
from graphfm.samplers.base import Sampler
from graphfm.samplers.full import FullSampler


@dataclass(frozen=True)
class Method:
    sampler: Sampler
    estimator: Estimator = field(default_factory=Exact)

    def __post_init__(self) -> None:
        if missing := self.estimator.views - self.sampler.views:
            raise ValueError(
                f"{type(self.estimator).__name__} reads Block.{', Block.'.join(sorted(missing))}, "
                f"which this {type(self.sampler).__name__} does not fill"
            )


def full() -> Method:
    """Full batch: every node and edge at every step. Exact, and limited by memory."""
    return Method(FullSampler())


METHODS: Mapping[str, Callable[..., Method]] = {"full": full}
