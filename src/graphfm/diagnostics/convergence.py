"""How fast does the gradient vanish? Its exact norm over a training, and slopes with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from statistics import fmean, linear_regression, median

import torch

from graphfm.diagnostics.gradient import exact_gradient
from graphfm.errors import InputError
from graphfm.training.trainer import Trainer


@dataclass(frozen=True, kw_only=True)
class Coupling:
    """The settings that Theorem 1 ties to the accuracy e: all fall with it, and T grows."""

    beta: tuple[float, ...]  # beta_{0,k} of the histories, input first
    lr: float  # eta
    beta_1: float  # of Adam: the weight of the fresh gradient
    steps: int  # T


def printed_coupling(
    layers: int, ratio: float, *, lr: float, steps: int, beta: float = 1.0
) -> Coupling:
    """The theorem's: eta and beta_1 as e^K, beta_{0,k} as e^(K - k), T as e^-(K + 2).

    `ratio` is T in units of `steps`, the T of e = 1; `lr` and `beta` are eta and beta_{0,k} there.
    """
    e = ratio ** (-1 / (layers + 2))
    betas = tuple(beta * e ** (layers - k) for k in range(1, layers + 1))
    return Coupling(beta=betas, lr=lr * e**layers, beta_1=e**layers, steps=round(steps * ratio))


def repaired_coupling(
    layers: int, ratio: float, *, lr: float, steps: int, beta: float = 1.0
) -> Coupling:
    """What the last display of the proof allows (docs/theory.md).

    beta_{0,k} as e^(K - k + 2), beta_1 as e^2, eta as e^(K + 1), T as e^-(K + 3).
    """
    e = ratio ** (-1 / (layers + 3))
    betas = tuple(beta * e ** (layers - k + 2) for k in range(1, layers + 1))
    return Coupling(beta=betas, lr=lr * e ** (layers + 1), beta_1=e**2, steps=round(steps * ratio))


@dataclass(frozen=True)
class GradientTrace:
    """The exact full-batch gradient along a training."""

    steps: tuple[int, ...]  # taken before each measurement
    squared_norms: tuple[float, ...]
    # The squared norm of the mean gradient over the second half: noise that averages out over time
    # is not in it, a bias is.
    rest: float

    @property
    def mean(self) -> float:
        """The expected squared norm at a random step, which the theorem bounds by e^2."""
        return fmean(self.squared_norms)


def trace_gradient(trainer: Trainer, steps: int, *, points: int = 60) -> GradientTrace:
    """Train for some steps at a constant learning rate; measure the gradient about `points` times.

    The gradient is that of the mean loss over all training nodes, without sampling or dropout.
    """
    if steps < 1 or points < 1:
        raise InputError(f"steps is {steps} and points {points}; expected 1 or more of each")
    sampler = trainer.method.sampler
    if sampler.wants_gradients:
        raise InputError(
            f"{type(sampler).__name__} chooses nodes by gradients that an epoch begins with, and "
            "a trace has no epochs; use another method"
        )
    epochs = chain.from_iterable(sampler.epoch(trainer.rng) for _ in repeat(None))
    every, taken, found = max(steps // points, 1), list[int](), list[torch.Tensor]()
    trainer.backbone.train()
    for step, seeds in enumerate(islice(epochs, steps)):
        if step % every == 0:
            taken.append(step)
            found.append(exact_gradient(trainer))
        trainer.step(seeds)
    gradients = torch.stack(found)
    rest = gradients[len(found) // 2 :].mean(dim=0).square().sum()
    return GradientTrace(tuple(taken), tuple(gradients.square().sum(dim=1).tolist()), float(rest))


@dataclass(frozen=True)
class Slope:
    """The exponent p of y ~ x^p: the median over seeds, and the range of the seeds' own slopes."""

    value: float
    low: float
    high: float
    seeds: int

    @property
    def confidence(self) -> float:
        """The chance that the range holds the true median: 1 - 2^(1 - seeds), by the sign test."""
        return 1 - 2.0 ** (1 - self.seeds)

    def __str__(self) -> str:
        interval = f"{self.low:.3f} to {self.high:.3f}"
        return f"{self.value:.3f} ({100 * self.confidence:.0f} % interval {interval})"


def fit_slope(x: Sequence[float], runs: Sequence[Sequence[float]]) -> Slope:
    """Fit log y = p log x + c to each seed's run, by least squares.

    The interval assumes nothing about the distribution of slopes; 6 seeds give 97 %.
    """
    if len(x) < 2 or not runs or any(len(run) != len(x) for run in runs):
        raise InputError(
            f"got {len(x)} values of x and runs of {[len(run) for run in runs]}; expected two or "
            "more values, and a y for each in every run"
        )
    if min(*x, *chain.from_iterable(runs)) <= 0:
        raise InputError("a value is 0 or negative; a slope of logarithms needs positive values")
    logs = [math.log(value) for value in x]
    slopes = [linear_regression(logs, [math.log(y) for y in run]).slope for run in runs]
    return Slope(median(slopes), min(slopes), max(slopes), len(slopes))
