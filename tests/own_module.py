"""A user's module: a method, an estimator and a backbone that are not part of the package."""

from pathlib import Path

MODULE = '''
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from torch import nn

from graphfm import Method
from graphfm.backbones.base import Backbone, Settings, stack
from graphfm.backbones.sage import SAGELayer
from graphfm.estimators.base import Estimator
from graphfm.options import Setting
from graphfm.samplers.neighbor import NeighborSampler
from graphfm.tables import TableSpec


@dataclass(kw_only=True)
class Smoothed(Estimator):
    """The weighted mean of this aggregate and the last one."""

    keeps_history: ClassVar[bool] = True
    decay: float = 0.5

    def declare(self, layers, first):
        return {f"last.{d}": TableSpec(width=layer.agg_width) for d, layer in enumerate(layers)}

    def aggregate(self, step):
        fresh = step.layer.aggregate(step.h, step.block)
        past = self.tables[f"last.{step.depth}"].pull(step.block.dst_ids)
        return torch.lerp(past, fresh, self.decay)

    def record(self, step, agg, out):
        self.tables[f"last.{step.depth}"].push(step.block.dst_ids, agg)


def smoothed(
    *,
    decay: Annotated[float, Setting("How much of the fresh aggregate is taken.")] = 0.8,
    fanout: tuple[int, ...] = (2,),
    weights: tuple[float, ...] = (1.0,),
    mode: Literal["fast", "slow"] = "fast",
    limit: int | None = None,
    strict: bool = False,
) -> Method:
    """The mean of the last two aggregates."""
    return Method(NeighborSampler(fanout=fanout, batch_size=64), Smoothed(decay=decay))


@dataclass(frozen=True, kw_only=True)
class ScaledSettings(Settings):
    scale: Annotated[float, Setting("What features are multiplied by.")] = 1.0


class Scale(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


class Scaled(Backbone):
    """SAGE on scaled features."""

    Settings = ScaledSettings

    def __init__(self, in_width, out_width, settings=ScaledSettings()):
        layers = stack(SAGELayer, in_width, out_width, settings)
        super().__init__(Scale(settings.scale), layers, nn.Identity())


def broken(*, fanout: tuple[int, ...] = (2,)):
    return [fanout]


def needy(*, level: int):
    return Method(NeighborSampler(fanout=(level,), batch_size=64))


def greedy(*, device: str = "tpu"):
    return Method(NeighborSampler(fanout=(2,), batch_size=64))


def twice(*, hidden: int = 3):
    return Method(NeighborSampler(fanout=(2,), batch_size=64))


not_a_function = 7
'''


def write_module(folder: Path, name: str) -> None:
    """A module under a name that no other test has imported."""
    (folder / f"{name}.py").write_text(MODULE)
